"""The documents keep their word: every example runs, every link leads somewhere.

Blocks of one document share a namespace and a folder and run in order. A block that cannot be run has a
comment just above it: `<!-- not run: reason -->`. A `text` block is what the block before it printed: the same words,
and numbers that are near, since noise is fresh in every run; a line "..." stands for any lines.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crowdgram.cli.app import app

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>\S[^\n]*) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int
    skipped: bool


def blocks(text):
    return [
        Block(
            found["language"],
            found["code"],
            text.count("\n", 0, found.start("code")) + 1,
            found["reason"] is not None,
        )
        for found in BLOCK.finditer(text)
    ]


def commands(code):
    """The commands of a console block: lines after `$ `, with their continuations."""
    joined = code.replace("\\\n", " ")
    return [shlex.split(line[2:], comments=True) for line in joined.splitlines() if line.startswith("$ ")]


def run_command(command):
    if command[0] == "crowdgram":
        result = CliRunner().invoke(app, command[1:])
        assert result.exit_code == 0, f"{shlex.join(command)}\n{result.output}"
        return result.stdout
    if command[0] == "make":
        for target in command[1:]:
            assert target in make_targets(), f"the Makefile has no target {target}"
        return ""
    return pytest.fail(f"{shlex.join(command)}: only crowdgram and make are run; mark the block as not run")


NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e-?\d+)?")  # 9,987 is one number, as is 1e-06


def near(one, two):
    return abs(one - two) <= 0.25 * max(abs(one), abs(two)) + 0.03


def agrees(shown, printed):
    """Whether a line is as shown: the same words, whatever the spaces and bars between them, and near numbers."""
    words = [" ".join(NUMBER.sub("#", line.replace("█", "")).split()) for line in (shown, printed)]
    numbers = [[float(number.replace(",", "")) for number in NUMBER.findall(line)] for line in (shown, printed)]
    return words[0] == words[1] and all(near(*pair) for pair in zip(*numbers, strict=True))


def check_output(shown, printed, where):
    lines = [line for line in printed.splitlines() if line.strip()]
    skip = False
    for line in shown.splitlines():
        if line.strip() == "...":
            skip = True
        elif line.strip():
            while skip and lines and not agrees(line, lines[0]):
                lines.pop(0)
            assert lines, f"{where}: not printed: {line}"
            assert agrees(line, lines[0]), f"{where}: shown and printed:\n{line}\n{lines[0]}"
            lines.pop(0)
            skip = False
    assert skip or not lines, f"{where}: not shown: {lines[0]}"


def make_targets():
    return re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def run_document(text, name):
    namespace = {"__name__": "__docs__"}
    printed = None
    for block in blocks(text):
        if block.skipped:
            printed = None
            continue
        if block.language == "text":
            assert printed is not None, f"{name}:{block.line}: no block was run before this output"
            check_output(block.code, printed, f"{name}:{block.line}")
            printed = None
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as target:
                # The line numbers of a traceback are those of the document.
                exec(compile("\n" * (block.line - 1) + block.code, name, "exec"), namespace)
            printed = target.getvalue()
        elif block.language in ("console", "bash"):
            found = commands(block.code)
            assert found, f"{name}:{block.line}: no line starts with '$ '"
            printed = "".join(run_command(command) for command in found)


SPARK = ROOT / "docs" / "how-to" / "spark.md"
WITH_EXAMPLES = [path for path in DOCUMENTS if blocks(path.read_text(encoding="utf-8"))]


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.spark] if path == SPARK else []) for path in WITH_EXAMPLES],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_examples_run(path, tmp_path, monkeypatch, request):
    if path == SPARK:
        request.getfixturevalue("spark")  # or the reason why there is none
    monkeypatch.chdir(tmp_path)
    run_document(path.read_text(encoding="utf-8"), str(path))


def test_every_how_to_page_has_an_example():
    pages = [path for path in DOCUMENTS if path.parent.name == "how-to" and path.name != "README.md"]
    assert len(pages) > 10
    assert set(pages) <= set(WITH_EXAMPLES)


def test_there_are_examples():
    found = [block for path in DOCUMENTS for block in blocks(path.read_text(encoding="utf-8"))]
    assert sum(block.language == "python" for block in found) >= 10
    assert sum(block.language == "console" for block in found) >= 5
    fences = sum(len(re.findall(r"^```\w", path.read_text(encoding="utf-8"), re.MULTILINE)) for path in DOCUMENTS)
    assert len(found) == fences  # none escapes the search


@pytest.mark.parametrize(
    "text",
    [
        "```python\n1 / 0\n```\n",
        "```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n",
        "```console\n$ crowdgram show none.json\n```\n",
        "```console\n$ make nothing\n```\n",
        "```console\n$ rm -r x\n```\n",
        "```console\ncrowdgram --version\n```\n",
        "<!-- not run: -->\n```python\n1 / 0\n```\n",
        "```python\nprint('a 1')\n```\n\n```text\nb 1\n```\n",
        "```python\nprint('a 1')\n```\n\n```text\na 2\n```\n",
        "```python\nprint('a 1')\n```\n\n```text\na 1\na 1\n```\n",
        "```python\nprint('a', 1, 'b', sep='\\n')\n```\n\n```text\na\n```\n",
        "```python\nprint('a', 1, 'b', sep='\\n')\n```\n\n```text\n...\nc\n```\n",
        "```text\na\n```\n",
    ],
)
def test_a_broken_document_is_noticed(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, ZeroDivisionError, pytest.fail.Exception)):
        run_document(text, "broken.md")


def test_a_block_can_be_skipped_with_a_reason():
    run_document("<!-- not run: it divides by nothing -->\n```python\n1 / 0\n```\n", "skipped.md")


def test_of_two_skipped_blocks_what_is_between_is_run():
    skipped = "<!-- not run: it divides by nothing -->\n```python\n1 / 0\n```\n"
    with pytest.raises(NameError):
        run_document(f"{skipped}\n```python\nnone\n```\n\n{skipped}", "between.md")


def test_output_may_be_near():
    code = "print('a  0.100', 'b', 'c 9', sep='\\n')"
    run_document(f"```python\n{code}\n```\n\n```text\na 0.120\n...\nc 10\n```\n", "near.md")


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("Users: 9,987", "Users: 10,003", True),
        ("Users: 9,987 of 3", "Users: 2,003 of 3", False),
        ("12,345,678 rows", "12,400,000 rows", True),
        ("(1,2)", "(1,2)", True),
        ("e^1 = 2.72, but 1e-06", "e^1 = 2.72, but 1e-06", True),
    ],
)
def test_thousands_are_one_number(shown, printed, same):
    assert agrees(shown, printed) == same


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


PAGES = [
    *DOCUMENTS,
    *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md")),
]


def lost_links(path, text):
    """The relative links of a page that lead to no file, or to no heading of it."""
    lost = []
    prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "", text, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        place, _, anchor = target.partition("#")
        if target.startswith("https://"):
            continue
        to = path.parent / place if place else path
        if to != path and not to.is_file() and not (to / "README.md").is_file():
            lost.append(target)
        elif anchor:
            headings = re.findall(r"^#+ (.*)$", text if to == path else to.read_text(encoding="utf-8"), re.MULTILINE)
            lost += [] if anchor in map(slug, headings) else [target]
    return lost


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    assert not lost_links(path, path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("target", ["none.md", "tutorial.md#none", "#none", "../none/", "http://example.org"])
def test_a_lost_link_is_noticed(target):
    text = f"# Title\n\n[one]({target}), [two](tutorial.md#1-get-the-table), [three](#title), [four](../README.md)\n"
    assert lost_links(ROOT / "docs" / "page.md", text) == [target]


def test_the_readme_starts_with_what_people_need():
    start = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:32])
    for word in (
        "user-level",
        "make demo",
        "make test",
        "pip install",
        "crowdgram.release(",
        "docs/images/demo.png",
    ):
        assert word in start


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_example_files_run(path, tmp_path):
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Adding or removing all rows of any one user" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_there_is_an_example_file():
    assert (ROOT / "examples" / "first_release.py").is_file()
