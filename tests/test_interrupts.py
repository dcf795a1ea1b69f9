"""Ctrl-C and other signals while a release works: the program ends as it was told to, and says what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest
import typer

import crowdgram
import crowdgram.cli
from crowdgram.cli.asking import catch_errors
from crowdgram.interrupts import catch_interrupts, hold_interrupts

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs the signals of POSIX")

SCRIPT = Path(sys.executable).with_name("crowdgram")
ENDLESS = "select range % 1000 as user, 'a' as item from range(1000000000000)"

LOOP = """
import os, signal, sys
import ibis
import crowdgram

connection = ibis.duckdb.connect()
connection.raw_sql("create view endless as " + sys.argv[1])
table = connection.table("endless")

def stage(name):
    if name.startswith("counting"):
        signal.setitimer(signal.ITIMER_REAL, 1.0)

signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
handler = signal.getsignal(signal.SIGINT)
for _ in range(2):
    try:
        crowdgram.release(table, user="user", item="item", domain=["a", "b"], epsilon=1.0, progress=stage)
    except crowdgram.CrowdgramError as error:
        print("swallowed", error)
    except KeyboardInterrupt as error:
        print("interrupted", error.__context__, error.__cause__, error.__traceback__.tb_next.tb_next)
        print(signal.getsignal(signal.SIGINT) is handler)
"""


def heed_ctrl_c():
    """Shells start what is in the background so that it ignores Ctrl-C, and all that it starts too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_ctrl_c_in_the_engine_is_a_keyboard_interrupt():
    """Also where errors of ours are caught, twice in one process, and with no frame that could show sums."""
    done = subprocess.run(
        [sys.executable, "-c", LOOP, ENDLESS],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        preexec_fn=heed_ctrl_c,
    )
    assert done.stdout == "interrupted None None None\nTrue\n" * 2


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a table that never ends, and a ledger."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("slow.duckdb") as connection:
        connection.execute(f"create view slow as {ENDLESS}")
    Path("items.txt").write_text("a\nb\n")
    crowdgram.Ledger.create("budget.ledger", 2.0)
    return tmp_path


def told(number, when, *more):
    """The exit code and the lines of a release that gets a signal when a stage begins."""
    columns = ["--user", "user", "--item", "item", "--domain", "items.txt", "--epsilon", "1", "-o", "r.json"]
    command = [SCRIPT, "release", "slow.duckdb", "--table", "slow", *columns, *more]
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, preexec_fn=heed_ctrl_c) as process:
        watchdog = threading.Timer(90, process.kill)
        watchdog.start()
        lines = []
        for line in process.stderr:
            lines.append(line.rstrip())
            if when in line:
                threading.Timer(0.7, process.send_signal, [number]).start()
        code = process.wait()
        watchdog.cancel()
        return code, lines


@pytest.mark.slow
def test_ctrl_c_ends_the_command_with_130_and_says_what_is_charged(folder):
    code, lines = told(signal.SIGINT, "counting rows", "--ledger", "budget.ledger")
    assert code == 130
    assert lines[-1] == (
        "interrupted; nothing was written. The release stays charged, as rows may have been read: see crowdgram ledger "
        "history 'budget.ledger'."
    )
    assert all(line.startswith("crowdgram: ") for line in lines[:-1])
    assert [entry.finished for entry in crowdgram.Ledger.open("budget.ledger").history()] == [False]
    assert not Path("r.json").exists()


@pytest.mark.slow
def test_a_request_to_end_ends_the_command_in_the_engine_too(folder):
    assert told(signal.SIGTERM, "counting rows")[0] == 128 + signal.SIGTERM


def test_ctrl_c_while_modules_are_imported(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(crowdgram.cli, "_run", interrupted)  # Ctrl-C at this moment
    with pytest.raises(SystemExit) as ended:
        crowdgram.cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted; nothing was written.\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_command_ends_as_it_was_told_to_whatever_a_library_made_of_it(number, code):
    """DuckDB does so if the signal comes while it reads the schema of a registered table, such as a prior's."""

    @catch_errors
    def command():
        try:
            os.kill(os.getpid(), number)
        except (SystemExit, KeyboardInterrupt):
            raise duckdb.InvalidInputException("reading the schema failed: SystemExit") from None

    handlers = {signal.SIGTERM: lambda number, _: sys.exit(128 + number), signal.SIGINT: signal.default_int_handler}
    before = signal.signal(number, handlers[number])  # in the background Ctrl-C may be ignored
    try:
        with pytest.raises((SystemExit, typer.Exit)) as ended:
            command()
    finally:
        signal.signal(number, before)
    assert code == (ended.value.code if isinstance(ended.value, SystemExit) else ended.value.exit_code)


def test_handlers_stay_and_other_threads_are_left_alone():
    seen = []

    def in_a_thread():
        with catch_interrupts() as raised:
            seen.append(raised)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    assert seen == [[]]
    assert signal.getsignal(signal.SIGINT) is before


class Told(Exception):
    pass


@pytest.fixture
def raising():
    """A handler that raises, as that of the command does."""

    def leave(number, frame):
        raise Told(number)

    before = signal.signal(signal.SIGTERM, leave)
    yield leave
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("error", [None, KeyError])
def test_a_signal_waits_while_interrupts_are_held(raising, error):
    done = []

    def work():
        with hold_interrupts():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append("all of it")
            if error is not None:
                raise error

    with pytest.raises(Told, match=str(int(signal.SIGTERM))):
        work()
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGTERM) is raising
    with hold_interrupts():
        pass  # without a signal, nothing happens
    with pytest.raises(Told):
        os.kill(os.getpid(), signal.SIGTERM)


def test_another_thread_has_nothing_to_hold(raising):
    kept = []

    def work():
        with hold_interrupts():
            kept.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert kept == [raising]


LOADING = """
import os, signal, sys
from importlib.machinery import ModuleSpec

class Loader:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name == "duckdb" else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        os.kill(os.getpid(), signal.SIGTERM)
        print("loaded", flush=True)

def leave(number, frame):
    sys.exit(128 + number)

sys.meta_path.insert(0, Loader())
signal.signal(signal.SIGTERM, leave)
from crowdgram.tables.engines import DuckEngine
DuckEngine.embedded()
"""


def test_a_signal_waits_until_duckdb_is_loaded(tmp_path):
    """What a handler raises meanwhile is a crash: 'Critical nanobind error'."""
    done = subprocess.run(
        [sys.executable, "-c", LOADING],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGTERM, "loaded\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "code"), [("SIGINT", "KeyboardInterrupt()"), ("SIGTERM", "SystemExit(143)")])
def test_a_signal_in_a_destructor_comes_again_without_a_traceback(name, code):
    """Python drops what a handler raises there: the command would go on as if nobody had asked it to end."""
    program = f"""
import os, signal, sys, time
from crowdgram.interrupts import heed_dropped_errors

def leave(number, _):
    sys.exit(128 + number)

class Interrupted:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})
        time.sleep(0.5)

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, leave)
heed_dropped_errors()
try:
    Interrupted()
    print("dropped", flush=True)
    time.sleep(60)
    print("lost")
except (KeyboardInterrupt, SystemExit) as error:
    print(repr(error))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout.split(), done.stderr) == (["dropped", code], "")


@pytest.mark.parametrize(
    ("error", "shown"), [("SystemExit(3)", True), ("ValueError()", True), ("MemoryError()", False)]
)
def test_other_errors_that_python_drops_are_shown_as_ever_but_for_too_little_memory(error, shown):
    program = f"""
from crowdgram.interrupts import heed_dropped_errors

class Broken:
    def __del__(self):
        raise {error}

heed_dropped_errors()
Broken()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0
    assert (error.partition("(")[0] in done.stderr) is shown
    assert bool(done.stderr) is shown
