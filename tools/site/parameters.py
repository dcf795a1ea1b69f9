"""Griffe extension for the reference: what a docstring says of parameters and fields becomes a list.

Our docstrings say it in running text, "items: in the order of the domain. probabilities: sum to 1.", which is short in
the code and hard to search on a page. A paragraph that starts with the name of a parameter or field is split where
another one starts a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from griffe import Alias, Class, Extension, Function, Module, Object


class Parameters(Extension):
    """Rewrites docstrings as they are loaded; the code keeps them as they are."""

    def on_package(self, *, pkg: Module, **_: object) -> None:
        """Called with a package when all of it is loaded."""
        _rewrite(pkg)


def listed(text: str, names: Iterable[str]) -> str:
    """`text` with a list item for each of `names` that its paragraphs explain.

    >>> listed("Does it.\\n\\na: one. b, c: two\\nthree. d: no.", "abc")
    'Does it.\\n\\n- `a`: one.\\n- `b`, `c`: two three. d: no.'
    """
    one = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    start = re.compile(rf"(?:^|(?<=[.;)] ))((?:{one})(?:, (?:{one}))*): ")
    paragraphs = []
    for paragraph in text.split("\n\n"):
        line = " ".join(paragraph.split())
        if one and not paragraph.startswith(" ") and start.match(line):
            found = list(start.finditer(line))
            ends = [*(each.start() for each in found[1:]), len(line)]
            items = [
                f"- {', '.join(f'`{name}`' for name in each[1].split(', '))}: {line[each.end() : end].strip()}"
                for each, end in zip(found, ends, strict=True)
            ]
            paragraph = "\n".join(items)
        paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


def _rewrite(of: Object) -> None:
    for member in of.members.values():
        if isinstance(member, Alias):
            continue
        if isinstance(member, (Function, Class)) and member.docstring is not None:
            names = [each.name for each in member.parameters] if isinstance(member, Function) else list(member.members)
            member.docstring.value = listed(member.docstring.value, names)
        _rewrite(member)
