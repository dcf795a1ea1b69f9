"""A command keeps what it has loaded; what calls one does not."""

from __future__ import annotations

import gc
import subprocess
import sys

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
