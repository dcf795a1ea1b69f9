"""Crowdgram beside other tools on the same tables: error, time, memory and lines of code.

    python bench/peers [--tables FOLDER] [--only NAME ...] [--repeat 3] [--json FILE]

See bench/README.md for what is measured and how to read the table.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from peers import environments, tables  # noqa: E402
from peers.measuring import Failed, Tool, run, tools  # noqa: E402
from peers.presenting import markdown  # noqa: E402
from peers.scoring import errors_of  # noqa: E402

EPSILON, DELTA = 1.0, 1e-6
DATA = HERE.parent / "data" / "peers"
SLOW = 8.0
"""CPU seconds above which a use of a tool is not repeated."""
ASKED = {"nycflights13_dest": ("shares", "rows", "users", "found_rows", "found_users")}
"""What is asked of a table. Of all others: shares and counts of rows over known items."""
ON_SPARK = {"nycflights13_dest": ("rows", "rows_strong")}
"""The uses of Tumult Analytics that are run: each starts Spark, and takes about a minute of CPU time."""


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    DATA.mkdir(parents=True, exist_ok=True)
    available, versions = {}, {}
    for tool in tools(HERE / "tools"):
        try:
            available[tool], versions[tool.name] = tool.environment(), tool.version()
        except environments.Unavailable as reason:
            versions[tool.name] = f"not run: {reason}"
    made = {name: make for name, make in loads(options.tables) if not options.only or name in options.only}
    measured = {}

    def chosen(tool: Tool) -> bool:
        return not options.tool or tool.name in options.tool

    for turn in range(1, options.repeat + 1):
        for name, make in made.items():
            print(f"{name}, turn {turn} ...", file=sys.stderr)
            table, kept = measured.get(name) or (make(), Kept(DATA / f"{name}.runs.json"))
            measured[name] = table, kept
            measure(table, {tool: python for tool, python in available.items() if chosen(tool)}, kept, turn)
            record = {
                "epsilon": EPSILON,
                "delta": DELTA,
                "adjacency": "add-remove",
                "cores": os.cpu_count(),
                "tools": versions,
                "tables": [summarise(table, available, kept) for table, kept in measured.values()],
            }
            if options.json:
                options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(markdown(record))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python bench/peers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="a folder with the real tables")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="run this one only; repeatable")
    parser.add_argument("--tool", action="append", default=[], metavar="NAME", help="run this one only; repeatable")
    parser.add_argument("--repeat", type=int, default=3, help=f"runs of each, unless one takes {SLOW:g} CPU seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure to FILE, after each table")
    options = parser.parse_args(arguments)
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    names = [name for name, _ in loads(options.tables)]
    if unknown := [name for name in options.only if name not in names]:
        parser.error(f"--only: there is no table named {', '.join(unknown)}")
    return options


def loads(folder: Path | None) -> Iterator[tuple[str, Callable[[], tables.Table]]]:
    """The tables, each made if it is used."""
    for name in tables.REAL if folder else ():
        yield name, partial(tables.real, name, folder, DATA, EPSILON, DELTA)
    for name in tables.INVENTED:
        yield name, partial(tables.invented, name, DATA, EPSILON, DELTA)
    yield tables.ORDERS, lambda: tables.orders(environments.program("tpch", "tpchgen-cli"), DATA, EPSILON, DELTA)


class Kept:
    """The runs on a table, in a file: what was interrupted goes on where it was. Remove the file to begin again."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.runs: dict[str, list[dict[str, Any]]] = json.loads(file.read_text()) if file.exists() else {}

    def of(self, tool: Tool, use: str, bound: dict[str, Any]) -> list[dict[str, Any]]:
        """The runs with this bound."""
        return self.runs.setdefault(f"{tool.name} {use} {json.dumps(bound)}", [])

    def add(self, tool: Tool, use: str, bound: dict[str, Any], made: dict[str, Any]) -> None:
        self.of(tool, use, bound).append(made)
        self.file.write_text(json.dumps(self.runs, indent=1))


def uses(table: tables.Table, available: Iterable[Tool]) -> Iterator[tuple[Tool, str]]:
    """Those that answer what is asked of the table."""
    asked = ASKED.get(table.name, ("shares", "rows"))
    for tool in available:
        for use in tool.bounds:
            if use.removesuffix("_strong") in asked and (tool.name != "tumult" or use in ON_SPARK.get(table.name, ())):
                yield tool, use


def measure(table: tables.Table, available: dict[Tool, Path], kept: Kept, turn: int) -> None:
    """Run each use until it has so many runs. A use that failed, or is slow, is not run again."""
    with tempfile.TemporaryDirectory(prefix="crowdgram-peers-") as folder:
        items = Path(folder) / "items.txt"
        items.write_text("\n".join(map(str, table.items)) + "\n")
        for tool, use in uses(table, available):
            bound = tool.bound(use, table.bounds)
            before = kept.of(tool, use, bound)
            if len(before) >= turn or any("failed" in one or one["cpu"] > SLOW for one in before):
                continue
            print(f"  {tool.name}, {use} ...", file=sys.stderr)
            try:
                made = run(tool, available[tool], use, table.file, items, bound, Path(folder) / "out.json")
            except Failed as error:
                kept.add(tool, use, bound, {"failed": str(error)})
                continue
            errors = errors_of(made.values, table.items, table.truths, shares=not use.startswith("found"))
            costs = {"cpu": made.cpu, "seconds": made.seconds, "inside": made.inside, "peak_mb": made.peak_mb}
            found = {measure: len(of) for measure, of in made.values.items()} if use.startswith("found") else {}
            kept.add(tool, use, bound, {"errors": errors, **costs, "found": found})


def summarise(table: tables.Table, available: Iterable[Tool], kept: Kept) -> dict[str, Any]:
    """Mean errors, median times, and the highest memory."""
    lines, failed = [], []
    for tool, use in uses(table, available):
        bound = tool.bound(use, table.bounds)
        runs, line = kept.of(tool, use, bound), {"tool": tool.name, "use": use, "bound": bound}
        failed += [line | one for one in runs if "failed" in one]
        done = [one for one in runs if "failed" not in one]
        if done:
            errors = {measure: fmean(one["errors"][measure] for one in done) for measure in done[0]["errors"]}
            costs = {key: median(one[key] for one in done) for key in ("cpu", "seconds", "inside")}
            lines.append(
                line
                | {"lines_of_code": tool.lines(use), "runs": len(done), "errors": errors, **costs}
                | {"peak_mb": max(one["peak_mb"] for one in done), "found": done[0]["found"]}
            )
    sizes = {"users": table.users, "items": len(table.items), "rows": table.rows}
    return {"name": table.name, **sizes, "lines": lines, "failed": failed}


if __name__ == "__main__":
    main()
