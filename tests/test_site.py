"""The site of `make docs`: every page is in its menu, every link leads somewhere, nothing comes from elsewhere."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import crowdgram

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix()
    for pattern in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "docs/**/*.md")
    for path in ROOT.glob(pattern)
}
MADE = re.compile(r"reference/[a-z]+\.md|LICENSE\.md|examples/(?:first_release|notebook)\.md")


def menu(text):
    """The paths that a configuration's menu names."""
    nav = re.search(r"^nav:\n(.*?)^\S", text, re.MULTILINE | re.DOTALL)[1]
    return re.findall(r"^ +- [^:]+: (\S+)(?: #.*)?$", nav, re.MULTILINE)


def test_every_page_is_in_the_menu_once():
    named = menu((ROOT / "mkdocs.yml").read_text())
    assert len(set(named)) == len(named)
    written = {path for path in named if not MADE.fullmatch(path)}
    assert written == PAGES
    assert len(PAGES) > 20


def test_the_menu_is_read_whole():
    lines = (
        "nav:\n  - Start: README.md\n  - More:\n      - Most:\n          - Groups: docs/a.md\n\ntheme:\n  - x: y.md\n"
    )
    assert menu(lines) == ["README.md", "docs/a.md"]


class Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.loaded, self.links, self.anchors, self.tags = [], [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append(tag)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        self.loaded += [found[name] for name in ("src", "data") if found.get(name)]
        if tag == "link" and found.get("rel") != "canonical":
            self.loaded.append(found["href"])


def build(root, folder):
    """What `make docs` runs, in another folder. Without --quiet: it would hide warnings from --strict."""
    pytest.importorskip("mkdocs", reason="the site is built with the versions of constraints.txt only")
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, {path: Links(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}


def test_the_makefile_builds_it_so():
    assert re.search(r"^docs: setup\n\t@?\S+ \S+/mkdocs build --strict$", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_a_lost_link_fails_the_build(tmp_path):
    """With the same settings and hooks, for a site of two written pages; the made ones are left out of it."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    hooks = tmp_path / "tools" / "site" / "hooks.py"
    hooks.write_text(hooks.read_text(encoding="utf-8") + "\n\ndef made_pages():\n    return {}\n", encoding="utf-8")
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = "nav:\n  - Start: README.md\n  - Other: docs/other.md\n\n"
    settings = re.sub(r"^nav:\n.*?(?=^\S)", nav, settings, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "mkdocs.yml").write_text(settings, encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# Start\n\n[found](docs/other.md#place)\n")
    page = tmp_path / "docs" / "other.md"
    page.write_text("# Other\n\n## Place\n\n[found](../README.md)\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode == 0, done.stdout + done.stderr
    page.write_text(page.read_text() + "\n[lost](none.md), [lost too](../README.md#none)\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode == 1
    assert "none.md" in done.stderr
    assert "'#none'" in done.stderr
    assert "2 warnings" in done.stdout + done.stderr


def test_every_page_is_built(site):
    folder, pages = site
    for path in PAGES:
        built = folder / re.sub(r"README\.md$", "index.md", path)
        assert built.with_suffix(".html") in pages


def test_nothing_is_loaded_from_elsewhere(site):
    folder, pages = site
    for path, page in pages.items():
        assert page.loaded
        for target in page.loaded:
            assert not urlsplit(target).scheme or target.startswith("data:"), f"{path.name}: {target}"
            assert not target.startswith("//")
            if path.name != "404.html":  # its links are absolute, as it may stand anywhere
                assert (path.parent / unquote(urlsplit(target).path)).is_file(), f"{path.name}: {target}"
    for style in folder.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import )['\"]?(?:https?:)?//", style.read_text(encoding="utf-8"))


def test_every_link_of_the_site_leads_to_a_page_and_a_place(site):
    _, pages = site
    for path, page in pages.items():
        for target in page.links if path.name != "404.html" else ():
            place = urlsplit(target)
            if place.scheme:
                assert place.scheme == "https"
                continue
            to = (path.parent / unquote(place.path)).resolve() if place.path else path
            assert to in pages, f"{path.name}: {target}"
            assert not place.fragment or unquote(place.fragment) in pages[to].anchors | {"__top"}, target


def test_formulas_are_drawn(site):
    folder, pages = site
    assert pages[folder / "docs/proofs/accounting.html"].tags.count("math") > 50
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert "arithmatex" not in text
        assert "\\varepsilon" not in text


def test_the_reference_has_the_library_and_the_command(site):
    folder, pages = site
    library = pages[folder / "reference/crowdgram.html"].anchors
    for name in set(crowdgram.__all__) - {"__version__"}:
        assert any(anchor.split(".")[-1] == name for anchor in library), name
    assert {"crowdgram-release", "crowdgram-ledger-create"} <= pages[folder / "reference/command.html"].anchors
    command = (folder / "reference/command.html").read_text(encoding="utf-8")
    for option, kind in (("--discovery-share", "float"), ("--weight", "rows|users"), ("-o, --output", "path")):
        cell = f'<td><code class="option">{option}</code> <code>&lt;{kind}&gt;</code></td>'
        assert re.search(rf"{re.escape(cell)}\s*<td>\w", command), option
    text = (folder / "reference/crowdgram.html").read_text(encoding="utf-8")
    assert "<li><code>max_rows_per_user</code>: how many rows of one user count fully" in text  # not in running text


def test_the_notebook_is_a_page(site):
    folder, _ = site
    page = (folder / "examples/notebook.html").read_text(encoding="utf-8")
    assert "<h1" in page
    assert "Releases in a notebook" in page
    assert page.count('class="highlight"') >= 10
    assert '"cell_type"' not in page


def test_docstrings_are_split_where_a_name_starts_a_sentence():
    pytest.importorskip("griffe", reason="the site is built with the versions of constraints.txt only")
    sys.path.insert(0, str(ROOT / "tools" / "site"))
    try:
        import parameters
    finally:
        sys.path.pop(0)
    assert doctest.testmod(parameters) == (0, 1)
    assert parameters.listed("a thing: b. a: c", "a") == "a thing: b. a: c"  # the paragraph starts otherwise
    assert parameters.listed("a: b.\n\n    a: code", "a") == "- `a`: b.\n\n    a: code"
