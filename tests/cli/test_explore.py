"""The command `explore`, as far as it goes without a browser."""

from __future__ import annotations

import socket
import sys

import pytest
from typer.testing import CliRunner

from crowdgram.cli.app import app


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = CliRunner().invoke(app, ["explore"])
    assert done.exit_code == 2
    assert "pip install 'crowdgram[explore]'" in " ".join(done.output.split())


def test_a_port_that_is_taken_is_refused():
    pytest.importorskip("uvicorn", reason="the extra explore is not installed: pip install 'crowdgram[explore]'")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = CliRunner().invoke(app, ["explore", "--port", str(taken.getsockname()[1])])
    assert done.exit_code == 2
    assert "cannot be listened on" in done.output
