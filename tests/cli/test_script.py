"""The installed script, in a process of its own: exit codes, encodings and a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

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
    assert b"opening the table" in heard
    assert b"crowdgram: " not in heard
