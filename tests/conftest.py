"""Shared fixtures: the engines that the conformance suite runs on, and a watch on private rows."""

from __future__ import annotations

import functools
import gc
import importlib.util
import os
import re
import shutil
import subprocess
import sys

# Before NumPy is loaded. Matrices here are small: a second thread of the linear algebra waits for most of its time, and
# the tests take all cores already.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest  # and neither DuckDB nor crowdgram here: what hands tests out to workers needs neither

from . import reruns

gc.disable()  # until all tests are collected, since what is collected stays


def spark_missing() -> str | None:
    """Why Spark cannot run here, in plain words; None if it can."""
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed: pip install 'crowdgram[spark]'"
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not shutil.which(java):
        return "Java is not installed: Spark needs Java 17 (for example Debian's openjdk-17-jre-headless)"
    said = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version.group(1)) < 17:
        return f"Spark needs Java 17 or newer; {java} says: {said.splitlines()[0] if said else 'nothing'}"
    return None


SHARED = (
    "tests/attacks/test_arithmetic.py",
    "tests/audit/test_selftest.py",
    "tests/cli/test_audit.py",
    "tests/inference/test_counts.py",
    "tests/present/test_browser.py",
    "tests/releases/test_discovered_groups.py",
    "tests/releases/test_discovery.py",
    "tests/test_site.py",
)
"""Files whose tests share what takes long to make: one worker runs all of them."""
ALONE = "tests/test_docs.py", "tests/mechanisms/test_intervals.py", "tests/releases/test_outcomes.py"
"""Files with tests of many long cases, which share nothing: any worker runs each of them."""


def group(nodeid):
    """The tests that one worker runs: all of Spark's, for one Java machine, and of PostgreSQL, for one server; those of
    some files; or all cases of one, or one case.
    """
    path, _, name = nodeid.partition("::")
    if shared := [one for one in ("spark", "postgres") if one in name]:
        return shared[0]
    if path in ALONE:
        return nodeid
    return path if path in SHARED else nodeid.partition("[")[0]


DRAWING = (
    "tests/audit/",
    "tests/cli/",
    "tests/explore/",
    "tests/inference/",
    "tests/mechanisms/",
    "tests/paper/",
    "tests/releases/",
)
"""Folders whose tests draw fresh noise, which has no seed, as the examples of the documents do."""


def pytest_configure(config):
    from hypothesis import settings

    config.pluginmanager.register(reruns)
    # Nothing is timed in a test: on a busy machine any example may take long.
    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")


def pytest_itemcollected(item):
    if item.get_closest_marker("spark") and group(item.nodeid) != "spark":
        raise pytest.UsageError(f"{item.nodeid}: the name of a test that is marked spark needs the word")
    if item.nodeid.startswith((*DRAWING, "tests/test_docs.py")):
        item.add_marker(pytest.mark.drawing)


def pytest_collection_modifyitems(items):
    """Those of Spark first, the longest row for one worker, then slow ones, so that the workers end together."""
    items.sort(key=lambda item: (item.get_closest_marker("spark") is None, item.get_closest_marker("slow") is None))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    # Not --dist loadgroup: pytest-xdist 3.8 writes groups into the ids of tests, and pytest 9.2 does not read them.
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False  # or those with many cases would go before slow ones

    class Grouped(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group(nodeid)

        def mark_test_complete(self, node, item_index, duration=0):
            super().mark_test_complete(node, item_index, duration)
            done = group(self.registered_collections[node][item_index])
            if all(self.assigned_work[node][done].values()):
                del self.assigned_work[node][done]  # or all that a worker was ever given is looked at after every test

    return Grouped(config, log)


def pytest_collection_finish():
    """What is there before the first test stays: to look for garbage in it took an eighth of the time."""
    import typer.testing

    # The command is built once, and not for every call: that took twenty times as long as a call that is refused.
    typer.testing._get_command = functools.cache(typer.testing._get_command)
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_unconfigure():
    gc.unfreeze()  # or libraries report at the end what was not let go


@pytest.fixture(scope="session")
def running_spark():
    if why := spark_missing():
        pytest.skip(why)
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Tables are small: most of the time goes into planning and compiling. So queries are interpreted, as Spark does
    # with those that are too long to compile, but for tests that ask for `compiled`; there is one cheap compiler, which
    # starts early because most of Spark's own code is run a few times only, and no second planning, but still two
    # partitions in two threads.
    session = (
        SparkSession.builder.master("local[2]")
        .appName("crowdgram-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config(
            "spark.driver.extraJavaOptions", f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {UNVERIFIED} {EARLY} {HEAP}"
        )
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.session.timeZone", "UTC")  # as Ibis sets both, and not the machine's
        .config("spark.sql.mapKeyDedupPolicy", "LAST_WIN")
        .config("spark.shuffle.compress", "false")
        .config("spark.broadcast.compress", "false")
        .config("spark.sql.inMemoryColumnarStorage.compressed", "false")
        .config("spark.sql.ui.retainedExecutions", "1")  # nobody looks
        .config("spark.ui.retainedJobs", "1")
        .config("spark.ui.retainedStages", "1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    for name, value in INTERPRETED.items():
        session.conf.set(name, value)
    from crowdgram.tables.engines.spark import CHANGED

    for name in (*CHANGED, "spark.sql.autoBroadcastJoinThreshold"):  # so that they are among the settings to be kept
        session.conf.set(name, session.conf.get(name))
    yield session
    session.stop()


@pytest.fixture
def spark(running_spark):
    """The session of all tests. One that leaves a setting, a view or an engine behind fails, and no other after it."""
    from crowdgram.tables.engines.spark import HELD

    settings, views = left_in(running_spark)
    yield running_spark
    settings_after, views_after = left_in(running_spark)
    held = dict(HELD)
    HELD.clear()
    for name in views_after - views:
        running_spark.catalog.dropTempView(name)
    changed = {name for name, _ in settings.items() ^ settings_after.items()}
    for name in changed:
        if name in settings:
            running_spark.conf.set(name, settings[name])
        else:
            running_spark.conf.unset(name)
    assert (changed, views_after, held) == (set(), views, {})


def left_in(session):
    """The settings of a session, and its views, without a query: it would be one of Spark's slowest."""
    views = session._jsparkSession.sessionState().catalog().listLocalTempViews("*")
    return session.conf.getAll, {views.apply(place).table() for place in range(views.size())}


UNVERIFIED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Spark's classes are loaded as they are. With what is neither compressed nor kept for pages, a fifth less CPU time for
the first test, which warms Spark up: 41 s for 51 s.
"""
EARLY = "-XX:Tier3InvocationThreshold=80 -XX:Tier3MinInvocationThreshold=40 -XX:Tier3CompileThreshold=800"
"""Less than half of Java's own numbers: a tenth less CPU time, for a part of the conformance suite in two pairs."""
HEAP = "-Xms1g -Xmn300m -XX:+UseTransparentHugePages"
"""All of the memory from the start, in large pages where the system gives them: what Spark's parser learns of its
grammar is half a gigabyte that stays. An eighth less CPU time for the filters of the conformance suite.
"""

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.fixture
def compiled(spark):
    """Spark compiles its queries, as it does outside of the tests."""
    for name in INTERPRETED:
        spark.conf.unset(name)
    yield
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)


class Databases:
    """The embedded DuckDB of all tests of this process: to start one takes a fifth of a small release.

    Each engine still has a connection of its own, with temporary tables, macros and settings of its own.
    """

    def __init__(self, start):
        import crowdgram

        self.start, self.shared, self.process, self.whole = start, True, os.getpid(), None
        self.usual = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
            **crowdgram.DuckDB().settings,
        }

    def connect(self, settings):
        """A connection; None if the engine is to start a database of its own, as it does outside of the tests."""
        usual = settings == {**self.usual, "temp_directory": settings.get("temp_directory")}
        if not self.shared or not usual or os.getpid() != self.process:
            return None
        if self.whole is None:
            # Tables are small: nothing spills, and a second thread has nothing to do but to be started and awaited.
            self.whole = self.start(config={**settings, "temp_directory": "", "threads": 1})
        return self.whole.cursor()

    def close(self):
        """At the end, and before a test that has failed is run once more. Crowds that tests keep go with the database
        that they are in: with it, all of its connections are closed.
        """
        if crowds := sys.modules.get(f"{__package__}.mechanisms.crowds"):
            crowds.close_all()
        if self.whole is not None:
            self.whole.close()
            self.whole = None


@pytest.fixture(scope="session", autouse=True)
def databases():
    """A patch of DuckDB, which an engine starts with settings and nothing else: the engine's own code runs as it is.

    `test_engines_of_the_tests_share_a_database` fails if an engine asks in another way, which would only be slow.
    """
    import duckdb

    start = duckdb.connect
    made = Databases(start)

    def connect(*given, **options):
        asked = options.get("config") if not given and len(options) == 1 else None
        shared = None if asked is None else made.connect(asked)
        return start(*given, **options) if shared is None else shared

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", connect)
        yield made
    made.close()


@pytest.fixture
def own_database(databases, monkeypatch):
    """Engines start a database of their own, with all threads: for tests of scratch folders and of integers."""
    monkeypatch.setattr(databases, "shared", False)


@pytest.fixture
def no_rows_read(monkeypatch):
    """Fails the test if the table's rows are reached. A patch, because nothing that is asked says how rows are read."""
    for reads in ("count_rows", "tally_rows"):
        monkeypatch.setattr(f"crowdgram.tables.{reads}", lambda *_: pytest.fail("rows were read"))
