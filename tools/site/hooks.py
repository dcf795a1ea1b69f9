"""MkDocs hooks for `make docs`: which files are pages, formulas as MathML, and the pages of the API and the command.

The site has the repository's own paths (README.md, docs/tutorial.md, bench/README.md), so that every relative link
means on the site what it means on GitHub. A page that links to a text file of another kind gets a page of that file.
"""

from __future__ import annotations

import html
import importlib
import json
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from latex2mathml.exceptions import NumeratorNotFoundError
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "docs/**/*.md")
PICTURES = ("docs/images/*.png",)
SHOWN_AS_TEXT = {
    "LICENSE": "Licence",
    "examples/first_release.py": "A first release",
    "examples/notebook.ipynb": "Releases in a notebook",
}
ASSETS = ("iframe-worker.js", "site.css")
PACKAGES = {
    "synth": "Synthetic tables",
    "samples": "A table of real people",
    "theory": "Theory",
    "audit": "Audit",
}

_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")
_BARE_ALPHABET = re.compile(r"\\(mathbb|mathcal) ([A-Z])")  # the converter knows these with braces only
_LEFT_OVER = re.compile(r"\$[^$<]*\\[a-zA-Z]")
_CODE = re.compile(r"<(code|pre)\b.*?</\1>", re.DOTALL)
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """The site's files: the repository's pages and pictures at their own paths, and what is made here."""
    kept = [file for file in files if file.src_dir != config.docs_dir]
    found = sorted({path for pattern in (*PAGES, *PICTURES) for path in ROOT.glob(pattern)})
    site = Files(kept)
    for path in found:
        site.append(File(path.relative_to(ROOT).as_posix(), str(ROOT), config.site_dir, config.use_directory_urls))
    for name in ASSETS:
        text = Path(__file__).with_name(name).read_text(encoding="utf-8")
        site.append(File.generated(config, f"assets/{name}", content=text))
    for uri, text in made_pages().items():
        site.append(File.generated(config, uri, content=text))
    return site


def made_pages() -> dict[str, str]:
    """The pages that are in no file: text files shown as they are, the API and the command."""
    shown = {_page_of(name): _as_text(name, title) for name, title in SHOWN_AS_TEXT.items()}
    packages = {f"reference/{name}.md": _package(name, title) for name, title in PACKAGES.items()}
    return {**shown, "reference/crowdgram.md": _library(), **packages, "reference/command.md": _command()}


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Lead links to text files of other kinds to the pages that show them."""
    here = (ROOT / page.file.src_uri).parent

    def led(found: re.Match[str]) -> str:
        target = (here / found[1]).resolve()
        if "://" in found[1] or not target.is_relative_to(ROOT):
            return found[1]
        return _page_of(found[1]) if target.relative_to(ROOT).as_posix() in SHOWN_AS_TEXT else found[1]

    return _LINK.sub(led, markdown)


def on_page_content(content: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Formulas become MathML, which browsers draw by themselves: no script, and nothing to fetch."""

    def drawn(found: re.Match[str]) -> str:
        block = found[2] == "["
        try:
            source = _BARE_ALPHABET.sub(r"\\\1{\2}", html.unescape(found[3]))
            formula = convert(source, display="block" if block else "inline")
        except (ValueError, KeyError, IndexError, NumeratorNotFoundError) as error:
            raise PluginError(f"{page.file.src_uri}: not a formula: {found[3]} ({error!r})") from None
        return f'<span class="formula">{formula}</span>' if block else formula

    content = _FORMULA.sub(drawn, content)
    left = _LEFT_OVER.search(_CODE.sub("", content))
    if left or 'class="arithmatex"' in content:
        raise PluginError(f"{page.file.src_uri}: a formula was left as text{': ' + left[0] if left else ''}.")
    return content


def _page_of(name: str) -> str:
    return f"{name.removesuffix('.py').removesuffix('.ipynb')}.md"


def _as_text(name: str, title: str) -> str:
    if name.endswith(".ipynb"):
        return _notebook(name)
    language = "python" if name.endswith(".py") else "text"
    return f"# {title}\n\n```{language}\n{(ROOT / name).read_text(encoding='utf-8')}```\n"


def _notebook(name: str) -> str:
    """The cells of a notebook, which is kept without outputs: text as it is, and code as code."""
    cells = json.loads((ROOT / name).read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    shown = [
        f"```python\n{text}\n```" if cell["cell_type"] == "code" else text
        for cell, text in zip(cells, texts, strict=True)
    ]
    shown.insert(1, f"The file is `{name}`. Open it in Jupyter to run it and to see the pictures.")
    return "\n\n".join([*shown, ""])


def _library() -> str:
    """The public names of `crowdgram`, what most people need first."""
    import crowdgram

    first = ("release", "Release", "GroupedRelease")
    names = [*first, *(name for name in crowdgram.__all__ if name not in first and not name.startswith("_"))]
    found = [getattr(crowdgram, name) for name in names]
    heading = "# The library\n\nAll of it can be imported from `crowdgram`.\n"
    return heading + "".join(f"\n::: {one.__module__}.{one.__qualname__}\n" for one in found)


def _package(name: str, title: str) -> str:
    module = importlib.import_module(f"crowdgram.{name}")
    said = (module.__doc__ or "").strip()
    return f"# {title}\n\n{said}\n" + "".join(f"\n::: crowdgram.{name}.{one}\n" for one in module.__all__)


def _command() -> str:
    """Every command of the app, with its arguments and options as `--help` has them."""
    from typer.main import get_command

    from crowdgram.cli.app import app

    pages = ["# The command\n\nEvery command has `--help`.\n"]

    def describe(command: Any, name: str, parent: Any) -> None:
        context = command.context_class(command, info_name=name, parent=parent)
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        pages.append(f"## {context.command_path}\n\n{_escaped(command.help)}\n\n```text\n{usage}\n```\n")
        records = [one.get_help_record(context) for one in command.get_params(context) if one.name != "help"]
        rows = [f"| {_option(option)} | {_escaped(said)} |" for option, said in filter(None, records)]
        if rows:
            pages.append("\n".join(["| option | meaning |", "|---|---|", *rows, ""]))
        for inner in command.list_commands(context) if hasattr(command, "list_commands") else ():
            describe(command.get_command(context, inner), inner, context)

    describe(get_command(app), "crowdgram", None)
    return "\n".join(pages)


def _option(text: str) -> str:
    """An option and, apart from it, the kind of its value: for a list, the kind of one."""
    name, opening, kind = text.partition(" <")
    return f"`{name}`{{.option}}" + (f" `<{kind.replace('list[str]', 'str')}`" if opening else "")


def _escaped(text: str) -> str:
    """Text whose signs Markdown leaves as they are."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", " ".join(html.escape(text, quote=False).split()))
