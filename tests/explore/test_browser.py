"""The whole way in a real browser, wide and narrow: plan, open a table, check, release, read, download, copy."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys

import pyarrow as pa
import pytest
from pyarrow import parquet

import crowdgram

from ..browsers import CHROMIUM, FLAGS, MARKS

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
for needed in ("starlette", "uvicorn"):
    pytest.importorskip(needed, reason="the extra explore is not installed: pip install 'crowdgram[explore]'")

PATIENCE = 60_000

pytestmark = MARKS


@contextlib.contextmanager
def explorer(folder):
    """The command itself; at the end Ctrl-C stops it."""
    run = [sys.executable, "-c", "from crowdgram.cli import main; main()", "explore"]
    started = subprocess.Popen(run, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = [started.stdout.readline(), started.stdout.readline()]
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}\n", said[1]), said
        yield said[1].strip()
        started.send_signal(signal.SIGINT)
        rest, _ = started.communicate(timeout=30)
        assert (started.returncode, rest) == (0, "")
    finally:
        started.kill()


PAGES = ["home", "<b>news</b>", "help"]


def test_the_whole_way_wide_and_narrow(tmp_path):
    rows = pa.table({"who": [n % 300 for n in range(900)], "what": [PAGES[n % 3] for n in range(900)]})
    parquet.write_table(rows, tmp_path / "visits.parquet")
    wrong = []
    with explorer(tmp_path) as address, sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        context = browser.new_context(viewport={"width": 1200, "height": 800})
        context.set_default_timeout(PATIENCE)
        one = context.new_page()
        own = address.partition("?")[0]
        one.on("console", lambda message: "422" in message.text or wrong.append(message.text))
        one.on("pageerror", lambda error: wrong.append(str(error)))
        one.on("request", lambda request: request.url.startswith((own, "data:", "blob:")) or wrong.append(request.url))
        one.goto(address)
        assert one.url == own  # the token has left the address
        _go(one, tmp_path / "wide.json")
        stranger = browser.new_context().new_page()
        assert stranger.goto(address).status == 403  # and has been used

        one.set_viewport_size({"width": 375, "height": 800})
        one.emulate_media(color_scheme="dark")
        one.reload()
        _go(one, tmp_path / "narrow.json")
        browser.close()
    assert wrong == []


def _go(one, saved_as):
    one.locator("#crowd [name=weight]").select_option("users")  # by users, an estimate is quick
    one.locator("#curve[data-whole]").wait_for()
    before = one.locator("#plan-answer").inner_text()
    assert "will be known to within" in before
    one.locator("#crowd [name=epsilon]").focus()
    for _ in range(6):
        one.keyboard.press("ArrowLeft")  # six steps of 0.05 are a factor of 2
    one.locator("#plan-settings", has_text="epsilon=0.5,").wait_for()
    assert one.locator("#plan-answer").inner_text() != before
    assert one.locator("#curve canvas").count() == 1

    one.locator("[name=table]").fill("visits.parquet")
    one.locator("#open").click()
    one.locator("#schema").wait_for()
    assert one.locator("#schema tbody").inner_text().split() == ["who", "int64", "what", "string"]
    one.locator("[name=user]").fill("who")
    one.locator("[name=item]").fill("wat")
    one.locator("input[name=domain_kind][value=list]").check()
    one.locator("[name=domain_list]").fill("\n".join(PAGES))
    one.locator("#job [name=weight]").select_option("users")
    one.locator("#check").click()
    one.locator("#job-said.error").wait_for()
    assert "column 'wat' is not in the table" in one.locator("#job-said").inner_text()
    one.locator("[name=item]").fill("what")
    one.locator("#check").click()
    one.locator("#job-said.good").wait_for()
    assert "3 items. No row was read" in one.locator("#job-said").inner_text()
    assert one.evaluate("document.documentElement.scrollWidth <= innerWidth")  # nothing sticks out

    one.locator("#go").click()
    frame = one.frame_locator("iframe")
    frame.locator("[data-ready]").first.wait_for()
    assert "<b>news</b>" in frame.locator("main").inner_text()
    assert one.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "--user who --item what --domain items.txt --weight users" in one.locator("#command").inner_text()
    with one.expect_download() as saved:
        one.get_by_text("Download the release (JSON)").click()
    saved.value.save_as(saved_as)
    assert set(crowdgram.load(saved_as).items) == set(PAGES)
    with one.expect_download() as saved:
        one.get_by_text("Download items.txt").click()
    assert saved.value.path().read_text() == "\n".join(PAGES) + "\n"
