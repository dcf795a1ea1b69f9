"""What is shown while a command works."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

import crowdgram
from crowdgram.cli.progress import Stages
from crowdgram.stages import Stage
from crowdgram.synth import Crowd


def terminal():
    return Console(file=io.StringIO(), force_terminal=True, width=100)


def shown(console):
    """What a terminal was told, without colours and moves."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())


def test_a_terminal_has_a_bar_with_share_and_time():
    console = terminal()
    with Stages(console) as stages:
        stages(Stage.COUNTING)
        stages._bar.refresh()
        stages("of unknown length [bold]")
        stages._bar.refresh()
    text = shown(console)
    assert re.search(r"counting rows by user and item\s+\S+\s+5% 0:00:0\d", text)
    assert "of unknown length [bold]" in text
    assert stages.passed == [Stage.COUNTING, "of unknown length [bold]"]
    assert console.file.getvalue().rstrip().endswith("\x1b[2K")  # erased at the end


def test_lines_elsewhere_have_a_share_and_no_time():
    console = Console(file=io.StringIO(), width=40)
    with Stages(console) as stages:
        stages(Stage.FINDING)
        stages("reading standard input")
        stages("attacking auto", 0.25)
    assert console.file.getvalue().splitlines() == [
        "crowdgram: finding the items, for part of the budget (50%)",
        "crowdgram: reading standard input",
        "crowdgram: attacking auto (25%)",
    ]


@pytest.mark.parametrize("console", [terminal(), Console(file=io.StringIO())], ids=["terminal", "file"])
def test_quiet_shows_nothing(console):
    with Stages(console, quiet=True) as stages:
        stages(Stage.COUNTING)
    assert console.file.getvalue() == ""
    assert stages.passed == [Stage.COUNTING]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"mechanism": "laplace"}, {"mechanism": "sample-one"}, {"domain": None}])
def test_shares_rise_through_every_release(options):
    seen = []
    table = Crowd(users=100, rows=3, items=4, seed=1).table()
    asked = {"user": "user", "item": "item", "domain": range(4), "epsilon": 5.0, "delta": 1e-6}
    crowdgram.release(table, **{**asked, **options}, progress=seen.append)
    shares = [stage.done for stage in seen]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert 0.9 < shares[-1] < 1


def test_every_stage_has_a_share():
    assert all(0 <= stage.done < 1 for stage in Stage)
