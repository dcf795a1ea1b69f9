"""A command keeps what it has loaded; what calls one does not."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time

import pytest

from .test_app import folder, release

__all__ = ["folder"]


def frozen(code):
    program = (
        "import gc\nbefore = gc.get_freeze_count()\n"  # Python 3.12 starts with some
        f"from crowdgram.cli.garbage import *\n{code}\nkeep_what_is_loaded()\nprint(gc.get_freeze_count() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stderr == ""
    return int(done.stdout)


def test_a_command_keeps_what_is_loaded():
    assert frozen("collect_seldom()") > 0


def test_what_has_not_the_process_to_itself_leaves_the_collector_alone():
    assert frozen("") == 0


@pytest.mark.slow
def test_what_is_loaded_after_duckdb_is_looked_through():
    """DuckDB would report what it made as leaks."""
    assert frozen("collect_seldom()\nimport duckdb") == 0


@pytest.mark.slow
def test_a_release_within_another_process_leaves_the_collector_alone(folder):
    kept, threshold = gc.get_freeze_count(), gc.get_threshold()  # the tests keep some
    assert release().exit_code == 0
    assert gc.get_freeze_count() <= kept
    assert gc.get_threshold() == threshold


def ended(code, **streams):
    program = (
        "import atexit, sys, threading\nfrom crowdgram.cli.garbage import end_at_once\n"
        "atexit.register(print, 'at the end')\n"
        "class Heavy:\n    def __del__(self):\n        sys.stderr.write('taken apart')\n"
        f"heavy = Heavy()\nsys.stdout.write('first, ')\n{code}\nend_at_once(3)\nsys.exit(4)"
    )
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": buffered, **streams}
    return subprocess.run([sys.executable, "-c", program], text=True, timeout=120, check=False, **options)


def test_a_command_ends_at_once_but_for_what_was_asked_to_run_at_the_end():
    done = ended("")
    assert (done.returncode, done.stdout, done.stderr) == (3, "first, at the end\n", "")


def test_threads_are_waited_for():
    done = ended("threading.Timer(0.3, print, ['thread']).start()")
    assert (done.returncode, done.stdout, done.stderr) == (4, "first, thread\nat the end\n", "taken apart")


def test_output_that_cannot_be_written_is_said():
    with open("/dev/full", "w") as full:
        done = ended("", stdout=full)
    assert done.returncode == 120  # Python's own
    assert "No space left on device" in done.stderr


def test_output_that_nobody_reads_does_not_keep_a_command_from_being_ended():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(65536))
    os.set_blocking(writer, True)
    program = (
        "import os\nfrom crowdgram.cli.garbage import end_at_once\nprint('more')\nos.write(2, b'!')\nend_at_once(0)"
    )
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, env=buffered) as process:
        assert process.stderr.read(1) == b"!"
        time.sleep(0.3)  # until it waits for the pipe; if that takes longer, the signal comes before and ends it too
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=60)
        process.kill()
    assert process.returncode == -signal.SIGTERM
    os.close(reader)
    os.close(writer)
