"""Run a tool in a process of its own, and measure it with all processes that it starts."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import environments

__all__ = ["Failed", "Run", "Tool", "run", "tools"]

LIMIT = 600.0
"""Seconds after which a run is given up."""
PAGE, TICK = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """A run that did not give an answer, with the reason."""


@dataclass(frozen=True)
class Run:
    """What a run answered. cpu, seconds and peak_mb are of the whole command, with the start of the interpreter and of
    Spark; inside is of the tool's own function alone.
    """

    values: dict[str, dict[str, float]]
    cpu: float
    seconds: float
    inside: float
    peak_mb: float


@dataclass(frozen=True, eq=False)
class Tool:
    """A script of tools/: its functions are uses of the tool, BOUNDS has the name of the bound that each is given."""

    name: str
    file: Path
    bounds: Mapping[str, str | None]

    @classmethod
    def read(cls, file: Path) -> Tool:
        """Without importing it: the tool is not installed here."""
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "BOUNDS":
                name = "crowdgram" if file.stem == "ours" else file.stem.removesuffix("_tool")
                return cls(name, file, ast.literal_eval(node.value))
        raise ValueError(f"{file} has no BOUNDS.")

    def environment(self) -> Path:
        return Path(sys.executable) if self.name == "crowdgram" else environments.python_of(self.name)

    def version(self) -> str:
        if self.name != "crowdgram":
            return environments.version_of(self.name)
        import crowdgram

        return crowdgram.__version__

    def bound(self, use: str, bounds: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """The bound of a use; empty if it needs none."""
        name, question = self.bounds[use], use.removesuffix("_strong")
        return {} if name is None else dict(bounds["found" if question.startswith("found") else question][name])

    def lines(self, use: str) -> int:
        """Lines of code of the function and of all functions, of its script or the caller's, that it needs."""
        functions = {**_functions(self.file), **_functions(self.file.parent / "caller.py")}
        needed, waiting = set(), [use]
        while waiting:
            name = waiting.pop()
            if name in functions and name not in needed:
                needed.add(name)
                waiting += [node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)]
        return sum(_length(functions[name]) for name in needed)


def tools(folder: Path) -> Iterator[Tool]:
    """Ours first."""
    yield Tool.read(folder / "ours.py")
    for file in sorted(folder.glob("*_tool.py")):
        yield Tool.read(file)


def run(tool: Tool, python: Path, use: str, table: Path, items: Path, bound: dict[str, Any], out: Path) -> Run:
    out.unlink(missing_ok=True)
    command = [str(python), str(tool.file), use, str(table), str(items), json.dumps(bound), str(out)]
    environment = os.environ | {"PYSPARK_PYTHON": str(python), "PYTHONWARNINGS": "ignore"}
    with open(out.with_suffix(".log"), "w+b") as log:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        cpu, peak = _watch(process, start + LIMIT)
        seconds = time.perf_counter() - start
        log.seek(0)
        said = log.read().decode(errors="replace").strip().splitlines()
    if not out.exists():
        raise Failed("gave no answer in time" if seconds >= LIMIT else said[-1][:300] if said else "no answer")
    answer = json.loads(out.read_text())
    return Run(answer["values"], cpu, seconds, answer["seconds"], peak / 1e6)


def _watch(process: subprocess.Popen[bytes], deadline: float) -> tuple[float, float]:
    """CPU seconds of the process and all that it started, and the highest sum of their resident memory in bytes."""
    busy: dict[int, float] = {}
    peak = 0.0
    while True:
        ended, _, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = 0
            own = usage.ru_utime + usage.ru_stime  # with the children that it waited for
            return max(own, sum(busy.values())), max(peak, usage.ru_maxrss * 1024.0)
        resident = 0
        for pid in _tree(process.pid):
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            busy[pid] = (int(fields[11]) + int(fields[12])) / TICK
            resident += int(fields[21]) * PAGE
        peak = max(peak, resident)
        if time.perf_counter() > deadline:
            for pid in reversed(_tree(process.pid)):
                os.kill(pid, 9)
        time.sleep(0.05)


def _tree(root: int) -> list[int]:
    """A process and all that it started, parents first."""
    found, place = [root], 0
    while place < len(found):
        try:
            threads = Path(f"/proc/{found[place]}/task").iterdir()
            children = [child for thread in threads for child in (thread / "children").read_text().split()]
        except OSError:
            children = []
        found += map(int, children)
        place += 1
    return found


def _functions(file: Path) -> dict[str, ast.FunctionDef]:
    body = ast.parse(file.read_text(encoding="utf-8")).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def _length(function: ast.FunctionDef) -> int:
    """Lines of the body, without the docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in body)
