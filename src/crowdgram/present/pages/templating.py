"""One HTML file from a template: names made harmless, libraries inlined, and a policy that allows nothing else.

Every text that a template shows passes `printable` and is then escaped, whatever the template's author wrote
(`finalize` and autoescaping). The policy names the hash of the one style and of the one script, so that a browser
runs nothing else and loads nothing at all. Figures travel as JSON in a data block, which is not a script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ...escaping import printable
from ...results.values import Other, is_other, values_of
from ..wording import shorten

__all__ = ["render"]

_LIBRARIES = {"tabulator": "tabulator.min.js", "uPlot": "uPlot.iife.min.js"}
_STYLES = ("tabulator_simple.min.css", "uPlot.min.css")
_LONGEST = 80


def render(template: str, *, title: str, blocks: dict[str, str], **context: Any) -> str:
    """A whole page. blocks: JSON texts by id, which the script reads."""
    style, script = _style(), _script()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    return (
        _environment()
        .get_template(template)
        .render(
            title=shorten(title, 200),
            style=Markup(style),
            script=Markup(script),
            policy=policy,
            blocks={key: Markup(_harmless(text)) for key, text in blocks.items()},
            **context,
        )
    )


def name(value: object, longest: int = _LONGEST) -> Markup:
    """A value, a group or a column, as text of its own direction. An `Other` is in italics; outer blanks are quoted."""
    whole = str(value)
    text = Markup("<bdi>{}</bdi>").format(printable(shorten(whole, longest)))
    if not whole or whole != whole.strip():
        text = Markup('<span class="quiet">“</span>{}<span class="quiet">”</span>').format(text)
    return Markup("<i>{}</i>").format(text) if isinstance(value, Other) else text


def line(item: Any, longest: int = _LONGEST) -> Markup:
    """An item in one place; the values of several columns side by side."""
    values = values_of(item)
    if len(values) == 1 or is_other(item):
        return name(values[0], longest)
    return Markup(", ").join(name(value, max(longest // len(values), 12)) for value in values)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("crowdgram.present.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters |= {"name": name, "line": line, "values": values_of, "is_other": is_other, "sentence": _sentence}
    return made


def _shown(value: object) -> object:
    """What a template's expression shows: a text that steers nothing."""
    return value if isinstance(value, Markup) else printable(str(value))


def _sentence(text: str) -> Markup:
    """A sentence in which numbers such as 1e-06 are not broken over two lines."""
    return Markup(
        re.sub(r"(?<![\w.])\d[\d.]*e-\d+", r'<span class="number">\g<0></span>', str(escape(printable(text))))
    )


def _harmless(text: str) -> str:
    """JSON that cannot end its block, whatever names it holds. In JSON these signs occur in texts only."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _style() -> str:
    return "\n".join([*(_vendored(one) for one in _STYLES), _read("assets", "report.css")])


@cache
def _script() -> str:
    libraries = []
    for library, file in _LIBRARIES.items():
        licence = _read("vendor", f"{library}.LICENSE").strip().replace("*/", "* /")
        libraries.append(f"/*! {library}\n{licence}\n*/\n{_vendored(file)}")
    text = "\n".join([*libraries, _read("assets", "report.js")])
    assert "</script" not in text.lower()
    assert "<!--" not in text
    return text


def _vendored(file: str) -> str:
    """A library as it is, but for where its source map would be: a page loads nothing."""
    return re.sub(r"(//#|/\*#) sourceMappingURL=.*", "", _read("vendor", file))


def _read(*path: str) -> str:
    return resources.files(__package__).joinpath(*path).read_text(encoding="utf-8")


def to_json(value: object) -> str:
    """JSON without a character that steers anything: names of letters and signs as they are, others escaped."""
    plain = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return plain if plain.isprintable() else json.dumps(value, allow_nan=False, separators=(",", ":"))
