"""Files and names of the code that the documents mention, in backticks and outside of examples, are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from .test_docs import PAGES, ROOT, blocks

SOURCE = ROOT / "src" / "crowdgram"
FOLDERS = ("src", "tests", "bench", "tools", "examples", "docs")
FILES = [*ROOT.glob("*"), *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*"))]
NAMES = {file.name for file in FILES}
PYTHON = [file for file in FILES if file.suffix == ".py" and file != Path(__file__)]
FILE = re.compile(r"(?:[\w-]+/)*[\w-]+\.(?:py|md|toml|yml)")
DOTTED = re.compile(r"(?:[A-Za-z]\w*\.)*([A-Za-z]\w*)\.(\w+)")
LONG_WORD = re.compile(r"[A-Za-z_]\w*_\w+")


@cache
def words():
    """All words of the code."""
    return set(re.findall(r"\w+", " ".join(file.read_text(encoding="utf-8") for file in PYTHON)))


def stored(node):
    """The names that a statement inside a class, or inside its methods, gives to the class or its objects."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.attr] if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) else []


@cache
def classes():
    """The members of each class, and the names of its bases."""
    found = {}
    for node in (node for file in SOURCE.rglob("*.py") for node in ast.walk(ast.parse(file.read_text()))):
        if isinstance(node, ast.ClassDef):
            members, bases = found.setdefault(node.name, (set(), set()))
            members.update(name for inner in ast.walk(node) for name in stored(inner))
            plain = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
            bases.update(base.id for base in plain if isinstance(base, ast.Name))
    return found


def has(kind, name):
    members, bases = classes().get(kind, ((), ()))
    return name in members or any(has(base, name) for base in bases)


def is_there(file, page):
    if "/" not in file:
        return file in NAMES
    return any((folder / file).is_file() for folder in (ROOT, SOURCE, SOURCE.parent, ROOT / "docs", page.parent))


def lost_names(page, text):
    """What a page mentions and the repository does not have. NAME in a file stands for any. Names of other tools
    are there if an example has them that is not run.
    """
    lost = []
    foreign = set(re.findall(r"\w+", " ".join(block.code for block in blocks(text) if block.skipped)))
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for said in re.findall(r"`([^`\n]+)`", prose):
        name = re.sub(r"\(.*\)$", "", said)
        if FILE.fullmatch(said):
            there = "NAME" in said or is_there(said, page)
        elif dotted := DOTTED.fullmatch(name):
            kind, member = dotted.groups()
            there = member in foreign or (has(kind, member) if kind[0].isupper() else member in words())
        else:
            there = not LONG_WORD.fullmatch(name) or name in words() or name in foreign
        lost += [] if there else [said]
    return lost


CURRENT = [page for page in PAGES if page.name != "CHANGELOG.md"]  # which also names what was


@pytest.mark.parametrize("page", CURRENT, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_named_is_there(page):
    assert not lost_names(page, page.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "said",
    [
        "tables/absent.py",
        "absent.md",
        "Absent.items",
        "Release.absent_member",
        "crowdgram.Release.absent_member()",
        "release.absent_member",
        "absent_function(3)",
    ],
)
def test_a_lost_name_is_noticed(said):
    text = f"`{said}`, `tables/counts.py`, `test_docs.py`, `Release.items`, `tables/NAME.py`, `count_rows`\n"
    assert lost_names(Path(ROOT / "docs" / "page.md"), text) == [said]


def test_names_of_other_tools_are_in_examples_that_are_not_run():
    example = "```python\nother.make_it(kept_rows=3)\n```\n"
    said = "`other.make_it(3)`, `kept_rows`, `lost_rows`\n\n"
    page = Path(ROOT / "docs" / "page.md")
    assert lost_names(page, f"{said}<!-- not run: it is not installed -->\n{example}") == ["lost_rows"]
    assert lost_names(page, f"{said}{example}") == ["other.make_it(3)", "kept_rows", "lost_rows"]
