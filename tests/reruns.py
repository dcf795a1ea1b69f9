"""Tests that draw fresh noise are run once more if they fail: what fails by chance passes then, a bug does not.

A plugin of pytest, and a small one: with several workers, pytest-rerunfailures asks a server of its own about every
test, which takes a millisecond of CPU time for each.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol


def pytest_configure(config):
    config.addinivalue_line("markers", "drawing: draws noise that has no seed; run once more if it fails")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    if item.get_closest_marker("drawing") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if any(report.failed for report in reports):
        for report in reports:
            report.outcome = "rerun" if report.failed else report.outcome
        log(item, reports)
        item.session._setupstate.teardown_exact(None)  # what was shared may be what failed
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    log(item, reports)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def log(item, reports):
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)


def pytest_report_teststatus(report):
    return ("rerun", "R", ("RERUN", {"yellow": True})) if report.outcome == "rerun" else None


def pytest_terminal_summary(terminalreporter):
    """With the failure itself: if it was no chance, nothing else says what it was."""
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.write_line(f"RERUN {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
