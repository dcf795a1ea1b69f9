"""Side doors: logs, errors and what hangs on them, scratch folders, saved files, forks and threads."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import crowdgram
from crowdgram.errors import CrowdgramError, EngineFailure
from crowdgram.mechanisms import Laplace
from crowdgram.privacy.noise import add_discrete_gaussian, add_discrete_laplace, fresh_salt
from crowdgram.releases import pipeline
from crowdgram.releases.registry import MECHANISMS
from crowdgram.tables import scratch as scratch_module
from crowdgram.tables.engines import DuckEngine
from crowdgram.tables.scratch import DRAFT, LOCK, NAME, make_scratch, sweep

SECRET = "zebra-4711"
USERS, ROWS = 1237, 7421
DOMAIN = ["apple", "pear"]


def table():
    """1237 users, one of them and one item secret; 7421 rows."""
    users = [f"user-{j % USERS}" if j % USERS else SECRET for j in range(ROWS)]
    items = [DOMAIN[j % 2] if j % 5 else SECRET for j in range(ROWS)]
    return pa.table({"who": users, "what": items})


def release(source, **changes):
    arguments = {"user": "who", "item": "what", "epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN}
    return crowdgram.release(source, **(arguments | changes))


def write(folder, kind):
    path = folder / f"t.{kind}"
    if kind == "parquet":
        pa.parquet.write_table(table(), path)
    elif kind == "csv":
        path.write_text("who,what\n" + "".join(f"{r['who']},{r['what']}\n" for r in table().to_pylist()))
    else:
        path.write_text("".join(json.dumps(r) + "\n" for r in table().to_pylist()))
    return path


# Logs, warnings and output


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "arrow", "pandas"])
def test_nothing_private_is_logged_warned_or_printed(kind, tmp_path, caplog, capfd):
    source = {"arrow": table, "pandas": lambda: table().to_pandas()}.get(kind, lambda: write(tmp_path, kind))()
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release(source)
    printed = "".join(capfd.readouterr())
    said = caplog.text + printed + "".join(str(one.message) for one in caught)
    assert SECRET not in said
    assert str(ROWS) not in said
    assert str(USERS) not in said


# Errors


def all_that_hangs_on(error):
    """Everything that an error reporter would find: messages, notes, causes, contexts, and variables of every frame
    outside this file.
    """
    found, seen, todo = [], set(), [error]
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        found += [str(one), repr(one.args), *getattr(one, "__notes__", [])]
        todo += [one.__cause__, one.__context__]
        for frame, _ in traceback.walk_tb(one.__traceback__):
            if frame.f_code.co_filename != __file__:
                found += [repr(value) for value in frame.f_locals.values()]
    return "\n".join(found)


def fails_late(kind):
    """A mechanism that reads the table and then fails with what it saw in its hands."""

    class FailsLate(Laplace):
        def run(self, counts, budget, request):
            cells = counts.engine.fetch(counts.users, "testing").to_pydict()
            everyone = f"{SECRET}: {cells}"
            error = kind(everyone)
            error.add_note(everyone)
            raise error from ValueError(everyone)

    return FailsLate


def test_the_search_below_finds_what_is_there():
    with pytest.raises(ValueError) as caught:
        pipeline.release.__wrapped__(table(), user="who", item="what", epsilon=1.0, domain=[SECRET, SECRET])
    assert SECRET in all_that_hangs_on(caught.value)


@pytest.mark.parametrize("kind", [ValueError, KeyError, MemoryError, IndexError, ArithmeticError, RecursionError])
def test_an_error_nobody_foresaw_takes_nothing_along(kind, monkeypatch):
    # The registry is patched because `sanitize_errors` is on the public `release`, which takes registered mechanisms.
    monkeypatch.setitem(MECHANISMS, "laplace", fails_late(kind))
    with pytest.raises(EngineFailure) as caught:
        release(table(), mechanism="laplace", delta=0.0)
    hanging = all_that_hangs_on(caught.value)
    assert SECRET not in hanging
    assert kind.__name__ not in str(caught.value)  # which kind it is may depend on a row
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_our_own_errors_leave_their_frames_behind(monkeypatch):
    class Overspends(Laplace):
        def run(self, counts, budget, request):
            everyone = counts.engine.fetch(counts.users, "testing").to_pydict()
            assert everyone
            budget.start().laplace("too much", np.zeros(1, dtype=np.int64), bound=1, epsilon=5.0)

    monkeypatch.setitem(MECHANISMS, "laplace", Overspends)  # as above
    with pytest.raises(CrowdgramError, match="pure start") as caught:
        release(table(), mechanism="laplace", delta=0.0)
    assert SECRET not in all_that_hangs_on(caught.value)


def test_what_a_callers_own_progress_raises_takes_its_own_frames_along_and_none_of_ours():
    class Mine(Exception):
        pass

    def stop(stage):
        if stage == "adding noise":
            mine = "a variable of progress"
            try:
                int(mine)
            except ValueError as error:
                raise Mine("stop") from error

    with pytest.raises(Mine, match="stop") as caught:
        release(table(), mechanism="laplace", delta=0.0, progress=stop)
    assert isinstance(caught.value.__cause__, ValueError)
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert [frame.f_code.co_name for frame in frames][-2:] == ["run", "stop"]
    assert frames[-1].f_locals["mine"] == "a variable of progress"
    # A frame keeps those that called it: the mechanism's held exact sums.
    behind = list(traceback.walk_stack(frames[-1].f_back))
    assert any(frame.f_code.co_filename.endswith("baselines.py") for frame, _ in behind)
    ours = os.path.dirname(crowdgram.__file__)
    held = [frame.f_locals for frame, _ in behind if frame.f_code.co_filename.startswith(ours) and frame.f_locals]
    assert len(held) == 1  # that which has raised it
    assert not {"args", "kwargs"} & set(held[0])  # the table
    assert held[0]["callers"] == held[0]["raised"] == []  # other errors


@pytest.mark.parametrize("error", [EngineFailure("mine"), BrokenPipeError("mine")])
def test_what_a_callers_own_progress_raises_is_passed_on_whatever_it_is(error):
    class Printed:
        def __call__(self, stage):
            raise error from ValueError("why")

    with pytest.raises(type(error), match="mine") as caught:
        release(table(), progress=Printed())
    assert caught.value is error
    assert str(caught.value.__cause__) == "why"


def test_an_argument_too_many_is_an_ordinary_error():
    with pytest.raises(TypeError, match="nonsense"):
        release(table(), nonsense=1)
    with pytest.raises(TypeError, match="epsilon"):
        crowdgram.release(table(), user="who", item="what")


# What is saved


def test_a_saved_release_holds_nothing_but_what_was_released(tmp_path):
    source = write(tmp_path, "parquet")
    made = release(source)
    made.save(tmp_path / "r.json")
    text = (tmp_path / "r.json").read_text()
    for private in (SECRET, str(tmp_path), "t.parquet", os.uname().nodename):
        assert private not in text
    for private in (USERS, ROWS):  # as numbers: the digits of others may hold them
        assert not re.search(rf"(?<![\d.]){private}(?![\d.])", text)
    document = json.loads(text)
    assert document["items"] == DOMAIN
    # Everything that is not a figure of the estimate follows from public arguments and noisy values.
    known = {"items", "branch", "rounds", "max_rows_per_user", "released_on"}  # the day, taken before a row is read
    above = {"rows_above_bound", "rows_above_bound_low", "rows_above_bound_high"}  # of the noisy histogram of rows
    assert set(document["parameters"]) <= known | above


# Scratch folders


@pytest.fixture
def scratch(tmp_path, monkeypatch, own_database):
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


HOLDS = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it runs in the background ignore it
from crowdgram.cli import main
from crowdgram.tables.engines import DuckEngine
import crowdgram.cli.app as app
def hold(*arguments, **options):
    with DuckEngine.embedded() as engine:
        engine.backend.raw_sql("SET memory_limit = '40MB'")
        engine.backend.raw_sql("CREATE TEMP TABLE t AS SELECT 'zebra-4711-' || i AS x FROM range(2000000) r(i)")
        print("ready", flush=True)
        time.sleep(60)
app.app_of = lambda _: hold
main()
"""


def holding(folder):
    """A process that has spilled rows to its scratch folder and goes on working."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(folder)}, text=True
    )
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.mark.slow
def test_what_a_killed_process_leaves_is_swept_by_the_next_and_a_live_ones_is_not(scratch):
    child = holding(scratch)
    [left] = scratch.iterdir()
    spilled = [one for one in left.iterdir() if one.name != LOCK]
    assert spilled  # or this test shows nothing
    assert left.stat().st_mode & 0o777 == 0o700
    sweep()
    assert left.exists()  # its process lives
    child.kill()
    child.wait()
    assert left.exists()
    release(table(), mechanism="laplace")
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_process_that_is_asked_to_end_cleans_up(scratch, number):
    child = holding(scratch)
    child.send_signal(number)
    assert child.wait(30) != 0
    assert list(scratch.iterdir()) == []


def test_a_sweep_touches_nothing_else(scratch, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir(mode=0o700)
    (precious / LOCK).touch()
    (scratch / "crowdgram-link").symlink_to(precious)
    (scratch / "crowdgram-file").touch()
    (scratch / "crowdgram-mine").mkdir(mode=0o700)  # no lock file, and not our name: it may be anybody's
    shared = scratch / "crowdgram-shared"
    shared.mkdir()
    shared.chmod(0o755)
    (shared / LOCK).touch()
    inside = scratch / "crowdgram-trap"
    inside.mkdir(mode=0o700)
    (inside / LOCK).symlink_to(precious / LOCK)
    before = sorted(scratch.iterdir())
    sweep()
    assert sorted(scratch.iterdir()) == before
    assert (precious / LOCK).exists()
    left = scratch / "crowdgram-left"
    left.mkdir(mode=0o700)
    (left / LOCK).touch()
    sweep()
    assert not left.exists()


@pytest.mark.parametrize("inside", [[], [DRAFT], ["rows"], [DRAFT, "rows"]])
def test_a_folder_that_was_never_locked_is_swept_if_it_is_empty(scratch, inside):
    """Of a process that was killed between making the folder and locking it."""
    left = scratch / f"{NAME}unlocked"
    left.mkdir(mode=0o700)
    for name in inside:
        (left / name).touch()
    sweep()
    assert left.exists() == ("rows" in inside)
    assert not left.exists() or sorted(one.name for one in left.iterdir()) == sorted(inside)


@pytest.mark.parametrize("after", ["mkdir", "flock"])
def test_who_finds_its_folder_swept_before_it_is_locked_makes_another(scratch, monkeypatch, after):
    module = {"mkdir": os, "flock": scratch_module.fcntl}[after]
    original, swept = getattr(module, after), []

    def then_sweep(*args):
        original(*args)
        if not swept:
            swept.extend(scratch.iterdir())
            sweep()  # as another process does just then
            assert not list(scratch.iterdir())

    monkeypatch.setattr(module, after, then_sweep)
    folder, remove = make_scratch()
    assert len(swept) == 1
    assert folder != str(swept[0])
    assert os.listdir(folder) == [LOCK]
    remove()
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("killed_by", ["its owner's removal", "a sweep"])
def test_the_lock_is_removed_last(scratch, monkeypatch, killed_by):
    """Who is killed while it removes a folder leaves one that the next sweep knows."""
    folder, remove = make_scratch()
    for name in ("aaa", "in-use-", "zzz"):
        (scratch / folder / name).touch()
    (scratch / folder / "deep").mkdir()
    gone = []
    unlink, rmtree, scandir = os.unlink, shutil.rmtree, os.scandir

    def lock_first(path):
        """The order of a folder is up to the file system."""
        return sorted(scandir(path), key=lambda one: one.name != LOCK) if str(path) == folder else scandir(path)

    monkeypatch.setattr(os, "scandir", lock_first)
    monkeypatch.setattr(os, "unlink", lambda path: (gone.append(os.path.basename(path)), unlink(path)))
    monkeypatch.setattr(shutil, "rmtree", lambda path, **more: (gone.append(os.path.basename(path)), rmtree(path)))
    if killed_by == "a sweep":
        monkeypatch.setattr(scratch_module.fcntl, "flock", lambda *_: None)  # as if its owner had gone
        sweep()
    else:
        remove()
    assert not list(scratch.iterdir())
    assert sorted(gone) == ["aaa", "deep", "in-use", "in-use-", "zzz"]
    assert gone[-1] == LOCK


ENDS = """
import os, sys
from crowdgram.tables.scratch import make_scratch
folder, remove = make_scratch()
open(os.path.join(folder, "rows"), "w").close()
if sys.argv[1] == "fork":
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        assert os.path.isdir(folder)  # a fork that ends leaves it alone
sys.exit(143)  # as the handler of a signal does, before the caller can see to the folder
"""


@pytest.mark.parametrize("how", ["plain", "fork"])
def test_a_folder_that_nobody_could_remove_goes_with_its_process(scratch, how):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ENDS, how], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (143, "")
    assert list(scratch.iterdir()) == []


def test_a_scratch_folder_that_cannot_be_made_is_said(scratch, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(EngineFailure, match=r"^no scratch folder can be made in .*No such file"):
        make_scratch(scratch / "missing")
    monkeypatch.setattr(scratch_module.os, "mkdir", full)
    with pytest.raises(EngineFailure, match=r"^no scratch folder can be made in .*No space left.*temp_dir"):
        release(table(), mechanism="laplace")


def test_scratch_folders_of_this_process_are_kept_until_removed(scratch):
    folder, remove = make_scratch()
    _, remove_other = make_scratch()  # sweeps
    assert os.path.isdir(folder)
    remove()
    assert not os.path.isdir(folder)
    remove_other()
    assert list(scratch.iterdir()) == []
    with DuckEngine.embedded():
        assert len(list(scratch.iterdir())) == 1
    assert list(scratch.iterdir()) == []


# Randomness after a fork and in threads


def in_forks(draw, forks=4):
    """What `draw` returns in each of several forks of this process, and in the process itself afterwards."""
    pipes = []
    for _ in range(forks):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(write, json.dumps(draw()).encode())
            finally:
                os._exit(0)
        os.close(write)
        pipes.append((child, read))
    results = []
    for child, read in pipes:
        with os.fdopen(read, "rb") as pipe:
            results.append(json.loads(pipe.read()))
        os.waitpid(child, 0)
    return [*results, draw()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "draw",
    [
        lambda: add_discrete_laplace(np.zeros(8, dtype=np.int64), 2.0**40).tolist(),
        lambda: add_discrete_gaussian(np.zeros(8, dtype=np.int64), 2.0**40).tolist(),
        lambda: [fresh_salt()],
    ],
)
def test_forks_and_their_parent_draw_differently(draw):
    """Eight draws at scale 2^40 agree by chance with probability below 2^-300."""
    draw()  # the sampler is loaded and has been used before the fork
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking a process with threads
        results = in_forks(draw)
    flat = [value for result in results for value in result]
    assert len(set(flat)) == len(flat)


def test_threads_never_share_a_draw():
    """8000 draws at scale 2^56: two equal ones have chance below 1e-9."""
    found, start = [], threading.Barrier(8)

    def work():
        start.wait()
        for _ in range(10):
            found.extend(add_discrete_laplace(np.zeros(100, dtype=np.int64), 2.0**56).tolist())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8000
    assert len(set(found)) == len(found)


@pytest.mark.slow
def test_releases_in_threads_do_not_disturb_each_other():
    results, errors = [], []

    def work():
        try:
            results.append(release(table(), mechanism="laplace").probabilities.tolist())
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert len({tuple(result) for result in results}) == 4


def test_stages_are_the_same_for_all_tables():
    def stages(source):
        seen = []
        release(source, mechanism="laplace", progress=seen.append)
        return seen

    assert stages(table()) == stages(table().slice(0, 0))
