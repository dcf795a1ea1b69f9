"""Too little memory is said as such, in whatever words a library has for it, and nothing else is taken for it."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys

import duckdb
import pyarrow as pa
import pytest
import typer

import crowdgram
from crowdgram import shortage
from crowdgram.cli.asking import catch_errors
from crowdgram.errors import EngineFailure, MissingDependency
from crowdgram.export import tabular
from crowdgram.shortage import check_room, is_near_limit, is_shortage
from crowdgram.tables.engines import DuckDB, DuckEngine

TABLE = pa.table({"user": [str(one) for one in range(50)], "item": ["a", "b"] * 25})
ASKED = {"user": "user", "item": "item", "epsilon": 1.0, "domain": ["a", "b"], "mechanism": "laplace"}
MAPPED = "libssl.so.3: failed to map segment from shared object"


def of_loader(said):
    """An error as ctypes raises it."""
    given = {"__name__": "ctypes", "said": said}
    try:
        exec("raise OSError(said)", given)
    except OSError as error:
        return error


def behind(kind, error):
    try:
        raise kind("anything") from error
    except kind as raised:
        return raised


SHORTAGES = [
    MemoryError(),
    pa.ArrowMemoryError("malloc of size 320 failed"),
    duckdb.OutOfMemoryException("Failed to allocate block"),
    OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
    ImportError(MAPPED),
    ImportError("libx.so: cannot allocate memory in static TLS block"),
    RuntimeError("can't start new thread"),
    of_loader(MAPPED),
    behind(ImportError, ImportError(MAPPED)),
    behind(ValueError, MemoryError()),
    Exception("Unable to load OpenDP shared library", "lib", of_loader(MAPPED)),
    ExceptionGroup("several", [ValueError("x"), MemoryError()]),
]
OTHERS = [
    ImportError("No module named 'x'"),
    ImportError("libx.so: undefined symbol: y"),
    OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    OSError(MAPPED),  # not of the loader: it may quote a row
    ValueError("out of memory"),
    RuntimeError("row: can't start new thread"),
    duckdb.ConversionException("out of memory"),
    SystemError("error return without exception set"),
    KeyError("cannot allocate memory"),
]


@pytest.mark.parametrize("error", SHORTAGES, ids=repr)
def test_shortages_are_known(error):
    assert is_shortage(error)


@pytest.mark.parametrize("error", OTHERS, ids=repr)
def test_other_errors_are_not_taken_for_one(error):
    assert not is_shortage(error)


def test_an_error_that_came_of_itself_is_looked_at_once():
    one, other = ValueError(), KeyError()
    one.__cause__, other.__cause__ = other, one
    assert not is_shortage(one)


def test_what_the_system_says_of_a_library_comes_from_ctypes(tmp_path):
    """Or `of_loader` shows nothing."""
    with pytest.raises(OSError) as caught:
        ctypes.CDLL(str(tmp_path / "missing.so"))
    assert caught.value.errno is None
    assert shortage._is_of_ctypes(caught.value)


@pytest.mark.parametrize("error", [one for one in SHORTAGES if isinstance(one, Exception)], ids=repr)
def test_a_release_says_so(monkeypatch, error):
    def full(*_):
        raise error

    monkeypatch.setattr("crowdgram.tables.count_rows", full)
    with pytest.raises(EngineFailure, match=r"^there is too little memory for this release\."):
        crowdgram.release(TABLE, **ASKED)


def said_by(capsys, error, *, private=True):
    def command():
        raise error

    with pytest.raises(typer.Exit) as caught:
        catch_errors(command, private=private)()
    assert caught.value.exit_code == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("error", SHORTAGES, ids=repr)
def test_a_command_says_so(capsys, error, private):
    assert (
        said_by(capsys, error, private=private) == "error: there is too little memory for this command. Give it more.\n"
    )


def test_an_error_near_the_limit_is_said_to_be_near_it(capsys, monkeypatch):
    """Native code that overlooks a failure to get memory leaves an error that says nothing of it."""
    odd = SystemError("error return without exception set")
    monkeypatch.setattr("crowdgram.cli.asking.is_near_limit", lambda: False)
    assert "unexpected SystemError" in said_by(capsys, odd)
    monkeypatch.setattr("crowdgram.cli.asking.is_near_limit", lambda: True)
    said = said_by(capsys, odd)
    assert "near the limit of its memory" in said
    assert "unexpected" not in said

    def fail(*_):
        raise odd

    monkeypatch.setattr("crowdgram.tables.count_rows", fail)
    monkeypatch.setattr("crowdgram.releases.exception_hygiene.is_near_limit", lambda: True)
    with pytest.raises(EngineFailure, match="near the limit of its memory"):
        crowdgram.release(TABLE, **ASKED)


LIMITED = """
import resource, sys
from crowdgram.shortage import check_room, is_near_limit
assert not is_near_limit()
used = 4096 * int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, resource.RLIM_INFINITY))
assert not is_near_limit()
check_room(2**29)
kept = bytearray(900 * 2**20)
assert is_near_limit()
try:
    check_room(2**29)
except MemoryError:
    del kept
    check_room(2**29)
    assert is_near_limit()  # it has been
    print("fine")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_how_near_the_limit_is():
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_no_limit_is_not_near(monkeypatch):
    monkeypatch.setattr(shortage, "resource", None)
    assert not is_near_limit()


def test_an_engine_without_room_is_not_started(monkeypatch, tmp_path):
    """DuckDB crashes then, and the process with it."""

    def no_room(*_, **__):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr("crowdgram.shortage.mmap.mmap", no_room)
    with pytest.raises(MemoryError):
        check_room(1)
    monkeypatch.setattr(duckdb, "connect", lambda *_, **__: pytest.fail("it was started"))
    with DuckDB(temp_directory=tmp_path):
        with pytest.raises(MemoryError):
            DuckEngine.embedded()
        with pytest.raises(EngineFailure, match=r"^there is too little memory for this release\."):
            crowdgram.release(TABLE, **ASKED)
    assert list(tmp_path.iterdir()) == []


def test_a_library_that_has_no_room_is_not_said_to_be_missing(monkeypatch):
    def no_room(_):
        raise ImportError(MAPPED)

    monkeypatch.setattr(tabular.importlib, "import_module", no_room)
    with pytest.raises(ImportError, match="failed to map") as caught:
        tabular._library("pandas")
    assert not isinstance(caught.value, MissingDependency)


def test_too_little_memory_before_a_command_has_begun():
    """In a process of its own: the command line is loaded here."""
    script = f"""
import sys
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "crowdgram.cli.app":
            raise ImportError({MAPPED!r})
sys.meta_path.insert(0, Broken())
sys.argv = ["crowdgram", "show", "x.json"]
from crowdgram.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: there is too little memory for this command. Give it more.\n")
