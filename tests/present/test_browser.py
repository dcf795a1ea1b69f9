"""Pages in a real browser: they run without errors or requests, and search, sort, scroll, keys and downloads work."""

from __future__ import annotations

import csv
import io
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from crowdgram import GroupedRelease, Other, Series
from crowdgram.escaping import printable, unguarded_cell
from crowdgram.export import write_csv
from crowdgram.present.report import page, page_of_several
from crowdgram.present.series_page import series_page

from ..browsers import CHROMIUM, FLAGS, MARKS
from ..results.synthetic import made
from ..results.test_reach import made as reach_of
from ..test_escaping import HOSTILE

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")

MANY = 200_000

pytestmark = MARKS


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def opened(browser, tmp_path):
    """A function that opens a page's text as a file, offline; at the end nothing may have gone wrong."""
    wrong, contexts = [], []

    def open_page(text, **options):
        path = tmp_path / f"page-{len(contexts)}.html"
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        one = context.new_page()
        one.on("console", lambda message: wrong.append(message.text))
        one.on("pageerror", lambda error: wrong.append(str(error)))
        one.on("request", lambda request: request.url.startswith(("file:", "blob:")) or wrong.append(request.url))
        one.goto(path.as_uri())
        for place in range(one.locator("[data-list]").count()):
            one.locator("[data-list]").nth(place).and_(one.locator("[data-ready]")).wait_for()
        return one

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def zipf(k, items=None):
    p = 1 / np.arange(1.0, k + 1)
    return made(p / p.sum(), np.full(k, 1e-7), items or [f"item {n}" for n in range(k)], ("page",))


def grouped():
    cells = list(product(("DE", "FR", "IT"), "abcd"))
    return GroupedRelease(made(np.arange(12, 0, -1) / 78, np.full(12, 1e-3), cells, ("country", "page")))


def rows(one):
    """The cells of the rows that are in the document."""
    cells = "[...row.querySelectorAll('.tabulator-cell')].map((cell) => cell.innerText)"
    return one.evaluate(f"[...document.querySelectorAll('.tabulator-row')].map((row) => {cells})")


def pages():
    shares = [zipf(40), zipf(40)]
    return {
        "release": page(zipf(300)),
        "groups": page(grouped()),
        "joint": page(grouped().joint),
        "reach": page(reach_of()),
        "several": page_of_several({"one": shares[0], "two": shares[1], "by": grouped(), "reach": reach_of()}),
        "series": series_page(Series({"jan": shares[0], "feb": shares[1]})),
    }


@pytest.mark.parametrize("width", [1200, 375])
def test_every_kind_of_page_opens_without_errors_or_requests(opened, width):
    kinds = pages()
    for kind, text in kinds.items() if width < 500 else [("release", kinds["release"]), ("groups", kinds["groups"])]:
        one = opened(text, viewport={"width": width, "height": 800}, color_scheme="dark" if width < 500 else "light")
        assert one.evaluate("document.documentElement.scrollWidth <= innerWidth"), kind  # nothing sticks out
        assert one.locator("h1").count() == 1
        stacked = one.locator(".tabulator-row .stacked").count() > 0  # names of several columns, below each other
        assert stacked == (width < 500 and kind in ("groups", "joint", "several"))
        assert one.locator("[data-plot]").count() == one.locator("[data-plot] canvas").count()


def test_the_legend_of_a_picture_tells_the_last_release_unless_a_pointer_is_on_another(opened):
    one = opened(pages()["series"])
    legend, picture = one.locator(".u-legend").first, one.locator(".u-over").first
    legend.get_by_text("feb").wait_for()
    box = picture.bounding_box()
    one.mouse.move(box["x"] + 2, box["y"] + 2)
    legend.get_by_text("jan").wait_for()
    one.mouse.move(0, 0)
    legend.get_by_text("feb").wait_for()


def test_many_items_are_searched_sorted_and_scrolled(opened):
    names = [f"item {n}" for n in range(MANY)]
    one = opened(page(zipf(MANY, names), digest="0" * 64))
    assert len(rows(one)) < 100  # only those that are seen are in the document
    assert one.locator(".status").inner_text() == "200,000 lines"
    assert one.locator("[role=grid]").get_attribute("aria-rowcount") == "200001"
    holder = one.locator(".tabulator-tableholder")
    holder.evaluate("(one) => { one.scrollTop = one.scrollHeight; }")
    one.get_by_text("item 199999", exact=True).wait_for()
    one.get_by_role("searchbox").fill("ITEM 1777")
    one.get_by_text("111 of 200,000 lines").wait_for()  # 1777, 1777x, 1777xx
    one.locator(".tabulator-col", has_text="share").click()
    one.locator(".tabulator-col", has_text="share").and_(one.locator("[aria-sort=descending]")).wait_for()
    assert rows(one)[0][1] == "item 1777"
    one.get_by_role("searchbox").fill("no such item")
    one.get_by_text("Nothing is called so.").wait_for()
    one.get_by_role("searchbox").fill("")
    one.get_by_text("200,000 lines", exact=True).wait_for()
    one.locator(".tabulator-col", has_text="rank").click()
    one.locator(".tabulator-col", has_text="rank").and_(one.locator("[aria-sort=ascending]")).wait_for()
    assert rows(one)[0][:2] == ["1", "item 0"]


def test_figures_are_those_of_the_table(opened):
    """The script's digits and those of Python."""
    p = np.array([0.7, 0.2, 0.05, 0.03, 0.015, 0.004, 0.00099, 0.00001])
    errors = np.array([0.05, 1e-2, 3e-3, 1e-4, 1e-5, 1e-3, 1e-6, 1e-5])
    one = opened(page(made(p / p.sum(), errors, list("abcdefgh"), ("page",))))
    static = [row.split("\t")[:3] for row in one.locator("table.items tbody tr").all_inner_texts()]
    listed = [row[1:4] for row in rows(one)]
    assert [[text.strip() for text in row] for row in static] == listed
    assert len(listed) == len(p)


def test_keys_alone_reach_and_sort(opened):
    one = opened(page(zipf(50)))
    one.keyboard.press("Tab")
    assert one.evaluate("document.activeElement.className") == "skip"
    one.get_by_role("searchbox").focus()
    reached = []
    for _ in range(8):
        one.keyboard.press("Tab")
        reached.append(one.evaluate("((own) => own.textContent.slice(0, 20) + own.className)(document.activeElement)"))
    assert any("Download as CSV" in text for text in reached)
    assert any("tabulator-col" in text for text in reached)
    assert any("tabulator-tableholder" in text for text in reached)  # then arrow keys scroll
    head = one.locator(".tabulator-col", has_text="page")
    head.focus()
    one.keyboard.press("Enter")
    head.and_(one.locator("[aria-sort=ascending]")).wait_for()
    one.keyboard.press("Enter")
    head.and_(one.locator("[aria-sort=descending]")).wait_for()
    assert rows(one)[0][1] == "item 9"


def test_csv_is_that_of_an_export(opened, tmp_path):
    names = [*HOSTILE, "x;=1+1;y", "x\t=1+1", "x|@y"]
    items = [*names, Other("other")]
    release = made(np.full(len(items), 1 / len(items)), np.full(len(items), 1e-3), items, ("=page",))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = opened(page(release, "Hostile names"))
    with one.expect_download() as download:
        one.get_by_role("button", name="Download as CSV").click()
    assert download.value.suggested_filename == "hostile-names.csv"
    text = Path(download.value.path()).read_bytes().decode()
    write_csv(release, tmp_path / "export.csv")
    exported = (tmp_path / "export.csv").read_bytes().decode()
    lines, wanted = (list(csv.reader(io.StringIO(each, newline=""))) for each in (text, exported))
    assert lines[0] == wanted[0]
    assert sorted(line[0] for line in lines[1:]) == sorted(line[0] for line in wanted[1:])
    assert {unguarded_cell(line[0]) for line in lines[1:-1]} == set(names)
    for sign in ";\t|":  # spreadsheets of some countries part cells elsewhere
        cells = [cell for line in csv.reader(io.StringIO(text, newline=""), delimiter=sign) for cell in line]
        assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))] == []
    assert {line[-1] for line in lines[1:]} == {"true", "false"}
    figures = {line[0]: line[1:5] for line in wanted}
    for line in lines[1:]:
        assert [float(x) for x in line[1:5]] == pytest.approx([float(x) for x in figures[line[0]]], rel=1e-5)


def test_names_are_text_in_the_list(opened):
    one = opened(page(made(np.full(len(HOSTILE), 1 / len(HOSTILE)), np.full(len(HOSTILE), 1e-3), HOSTILE, ("page",))))
    shown = set()
    for place in range(0, 40 * len(HOSTILE), 300):
        one.locator(".tabulator-tableholder").evaluate("(one, top) => { one.scrollTop = top; }", place)
        one.wait_for_timeout(30)
        shown |= set(one.evaluate("[...document.querySelectorAll('.tabulator-row bdi')].map((one) => one.textContent)"))
    assert shown == set(map(printable, HOSTILE))
    assert one.evaluate("document.querySelectorAll('.tabulator img, .tabulator script').length") == 0


def test_dark_and_print(opened):
    one = opened(page(zipf(300)), color_scheme="light")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert one.evaluate(colour) == "rgb(255, 255, 255)"
    before = one.evaluate("document.querySelector('canvas').toDataURL()")
    one.emulate_media(color_scheme="dark")
    assert one.evaluate(colour) == "rgb(18, 24, 31)"
    assert one.evaluate("document.querySelector('canvas').toDataURL()") != before  # curves are drawn again
    one.emulate_media(color_scheme="dark", media="print")
    assert one.evaluate(colour) == "rgb(255, 255, 255)"
    assert not one.locator(".list").is_visible()  # paper does not scroll: the table and the curve stay
    assert one.locator("table.items").first.is_visible()
    assert one.pdf().startswith(b"%PDF")
    one.emulate_media(color_scheme="dark", media="screen")
    colours = "getComputedStyle(document.documentElement).getPropertyValue('--line')"
    dark = one.evaluate(colours)
    one.evaluate("dispatchEvent(new Event('beforeprint'))")  # curves are drawn for paper before rules for print hold
    assert one.evaluate(colours) != dark
    assert one.locator("details:not([open])").count() == 0
    one.evaluate("dispatchEvent(new Event('afterprint'))")
    assert one.evaluate(colours) == dark
    assert one.locator("details:not([open])").count() == 3


def test_without_scripts_the_tables_stay(browser, tmp_path):
    (tmp_path / "page.html").write_text(page(zipf(300)), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    one = context.new_page()
    one.goto((tmp_path / "page.html").as_uri())
    assert one.locator("table.items tbody tr").count() == 25
    context.close()
