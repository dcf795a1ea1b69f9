"""The installed script, in a process of its own: exit codes, encodings and a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from crowdgram.stages import Stage

from .test_app import folder, release

__all__ = ["folder"]

SCRIPT = Path(sys.executable).with_name("crowdgram")


def script(*arguments, **environment):
    return subprocess.run(
        [SCRIPT, *map(str, arguments)],
        capture_output=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.slow
def test_the_script(folder):
    arguments = [
        "release",
        "visits.csv",
        "--user",
        "user",
        "--item",
        "item",
        "--domain",
        "items.txt",
        "-o",
        "r.json",
    ]
    result = script(*arguments, "--epsilon", "1")
    assert result.returncode == 0, result.stderr
    assert b"\x1b" not in result.stdout + result.stderr
    assert b"item-0000" in result.stdout
    result = script(*arguments, "--epsilon", "0", "--force")
    assert result.returncode == 2
    assert b"epsilon" in result.stderr
    assert result.stdout == b""


@pytest.mark.slow
def test_no_release_is_lost_to_an_encoding(folder):
    Path("items.txt").write_text("naïve\n名前\n", encoding="utf-8")
    assert release().exit_code == 0
    result = script("show", "r.json", PYTHONIOENCODING="ascii")
    assert result.returncode == 0, result.stderr
    assert rb"na\xefve" in result.stdout
    assert rb"\u540d\u524d" in result.stdout


@pytest.mark.slow
def test_a_terminal_gets_a_progress_display(folder):
    parent, child = pty.openpty()
    arguments = [
        "visits.csv",
        "--user",
        "user",
        "--item",
        "item",
        "--domain",
        "items.txt",
        "--epsilon",
        "1",
        "-o",
        "r.json",
    ]
    with subprocess.Popen(
        [SCRIPT, "release", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=child,
        env={**os.environ, "TERM": "xterm"},
    ) as process:
        os.close(child)
        heard = b""
        while True:
            try:
                part = os.read(parent, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            heard += part
    os.close(parent)
    assert process.returncode == 0
    assert b"\x1b[" in heard
    assert any(stage.encode() in heard for stage in Stage)  # a stage may pass between two looks at it
    assert b"crowdgram: " not in heard


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numpy.exceptions", "numpy._core.function_base", "crowdgram.mechanisms.user_sizes"])
def test_an_interrupt_while_libraries_are_loaded_is_said_without_them(folder, name):
    """NumPy cannot be loaded once more after half of it was."""
    program = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {name!r}:\n"
        "            sys.meta_path.remove(self)\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "asked = ['release', 'visits.csv', '--user', 'user', '--item', 'item', '--epsilon', '1', '-o', 'r']\n"
        "sys.argv = ['crowdgram', *asked]\n"
        "from crowdgram.cli import script\n"
        "script()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted.\n")
