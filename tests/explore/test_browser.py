"""The whole way in a real browser, wide and narrow: plan, open a table, check, release, read, download, copy. And what
a page of another server on the same machine can do to it.
"""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

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
    run = [sys.executable, "-c", "from crowdgram.cli import script; script()", "explore"]
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
        one.on("console", lambda message: re.search("422|409", message.text) or wrong.append(message.text))
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
        one.frame_locator("iframe").locator("[data-ready]").first.wait_for()  # what was made is still there
        _go(one, tmp_path / "narrow.json", made=1)
        _attack(context, own)
        assert _made(one) == 2
        browser.close()
    assert wrong == []


JOB = {"table": "visits.parquet", "user": "who", "item": "what", "epsilon": "2", "delta": "1e-6"}
HOSTILE = Path(__file__).with_name("hostile.html")
"""What a page of another server may try."""


def _made(one):
    one.reload()
    one.locator("#results .one").first.wait_for()
    return one.locator("#results .one").count()


def _attack(context, own):
    """Another port is the same site for a browser, so that it even gets the cookie; it can do nothing with it."""
    stolen = []

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            stolen.append(self.headers.get("Cookie", ""))
            text = HOSTILE.read_text().replace("OWN", json.dumps(own)).replace("JOB", json.dumps(JOB)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        other = context.new_page()
        other.goto(f"http://127.0.0.1:{server.server_port}/")
        other.wait_for_function("document.title")
        tried = json.loads(other.title())
        server.shutdown()
    assert len(tried) == 14
    assert {name: said for name, said in tried.items() if said not in ("refused", "nothing")} == {}
    assert any(one.startswith("crowdgram-") for one in stolen)
    place = http.client.HTTPConnection(own.split("/")[2])
    for path in ("made", "release"):
        headers = {"Cookie": stolen[0], "Origin": own[:-1], "Content-Type": "application/json"}
        place.request("POST", f"/{path}", json.dumps(JOB), headers)
        answer = place.getresponse()
        assert (answer.status, "lost the key" in answer.read().decode()) == (403, True)
    place.close()


def _go(one, saved_as, made=0):
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
    if made:
        one.locator("#job-said.error", has_text=f"Release {made} of this page asked for the same").wait_for()
        one.locator("#go").click()
    one.locator("#results h3", has_text=f"Release {made + 1}").wait_for()
    frame = one.locator("#results .one").first.frame_locator("iframe")
    frame.locator("[data-ready]").first.wait_for()
    assert "<b>news</b>" in frame.locator("main").inner_text()
    assert one.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "--user who --item what --domain items.txt --weight users" in one.locator("#command").inner_text()
    with one.expect_download() as saved:
        one.get_by_text("Download the release (JSON)").first.click()
    saved.value.save_as(saved_as)
    assert set(crowdgram.load(saved_as).items) == set(PAGES)
    with one.expect_download() as saved:
        one.get_by_text("Download items.txt").click()
    assert saved.value.path().read_text() == "\n".join(PAGES) + "\n"
