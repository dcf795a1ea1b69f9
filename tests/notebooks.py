"""Run a notebook cell by cell in this process, in order, and show what each cell ends with.

Why not Jupyter: a kernel (ipykernel, nbclient and some thirty packages behind them) would be a large dependency for one
test. What a kernel adds to plain Python are magics, which the notebook does without (`%` would be a syntax error here),
and the display of a cell's last value, which is done here: every rich form of it is asked for, so that a view that
fails also fails the test. A kernel would only print its error.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMS = ("_repr_html_", "_repr_png_", "_repr_svg_", "_repr_markdown_")


@dataclass
class Ran:
    """A cell that ran: its source, what it printed, its last value, and the rich forms of it by name."""

    source: str
    printed: str
    value: Any = None
    forms: dict[str, Any] = field(default_factory=dict)


def read_notebook(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def source_of(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def run_notebook(notebook: dict[str, Any], name: str) -> list[Ran]:
    """Run every code cell in one namespace; the first that fails raises, with the lines of its own cell."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [run_cell(source_of(cell), namespace, f"{name}, code cell {n}") for n, cell in enumerate(codes, start=1)]


def run_cell(source: str, namespace: dict[str, Any], where: str) -> Ran:
    tree = ast.parse(source, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, where, "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), where, "eval"), namespace)
    shown = {form: getattr(value, form)() for form in FORMS if hasattr(type(value), form)}
    repr(value)
    return Ran(source, printed.getvalue(), value, shown)
