"""How time and memory of `crowdgram release` grow with rows, items and groups, beside DuckDB's own group-by.

    python bench/growth.py [--only rows|items|groups] [--most ROWS] [--json FILE] [--plot FILE] [--from-record FILE]

See bench/README.md for what is measured.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import speed

ROWS = [1, 5, 20, 50, 100, 200]
"""Millions of rows, of 10,000 items."""
ITEMS = [100, 1_000, 10_000, 100_000, 1_000_000]
"""Of 10 million rows."""
GROUPS = [1, 10, 100, 1_000]
"""Of 10 million rows of 1,000 items: users by the remainder of their number."""
LIMIT = "4GB"


@dataclass(frozen=True)
class Line:
    """One release and the group-by before it. Seconds are of all cores' CPU time, memory is the peak in MB."""

    series: str
    size: int
    cpu: float
    floor_cpu: float
    seconds: float
    floor_seconds: float
    peak_mb: float
    floor_peak_mb: float

    @property
    def ratio(self) -> float:
        return self.cpu / self.floor_cpu


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=["rows", "items", "groups"], action="append", help="repeatable")
    parser.add_argument("--most", type=float, default=200.0, help="millions of rows at most (default 200)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure to FILE, line by line")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the picture")
    parser.add_argument("--from-record", type=Path, metavar="FILE", help="measure nothing: take the lines of FILE")
    parser.add_argument("--command", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.from_record:
        lines = [Line(**one) for one in json.loads(options.from_record.read_text())["lines"]]
        print("\n".join(map(render, lines)))
    else:
        command = shlex.split(options.command) if options.command else [str(Path(sys.executable).parent / "crowdgram")]
        lines = []
        for line in measure(command, options.only or ["rows", "items", "groups"], options.most):
            lines.append(line)
            print(render(line), flush=True)
            if options.json:
                options.json.write_text(json.dumps({"lines": [asdict(one) for one in lines]}, indent=1) + "\n")
    if options.plot:
        plot(lines, options.plot)


def measure(command: list[str], series: Sequence[str], most: float) -> Iterator[Line]:
    for size in [one for one in ROWS if "rows" in series and one <= most]:
        yield one_line(command, "rows", size * 1_000_000, size * 1_000_000, 10_000, ["--memory-limit", LIMIT])
    rows = int(min(10, most) * 1_000_000)
    for size in ITEMS if "items" in series else []:
        yield one_line(command, "items", size, rows, size, [])
    for size in GROUPS if "groups" in series else []:
        with tempfile.TemporaryDirectory() as folder:
            listed = Path(folder) / "groups.txt"
            listed.write_text("".join(f"{group}\n" for group in range(size)))
            by = ["--by", f"g=user % {size}", "--groups", str(listed)] if size > 1 else []
            yield one_line(command, "groups", size, rows, 1_000, by)


def one_line(command: list[str], series: str, size: int, rows: int, items: int, more: list[str]) -> Line:
    users = rows // speed.ROWS_PER_USER
    table, domain = speed.make_data(users, items)
    speed.warm(table)
    floor = speed.time_floor(table, users * speed.ROWS_PER_USER)
    with tempfile.TemporaryDirectory(prefix="crowdgram-growth-") as folder:
        release = speed.time_release(command, "auto", table, domain, Path(folder) / "release.json", more)
    return Line(series, size, release.cpu, floor.cpu, release.seconds, floor.seconds, release.peak_mb, floor.peak_mb)


def render(line: Line) -> str:
    cpu = f"CPU {line.cpu:>7.1f} s, group-by {line.floor_cpu:>6.1f} s, ratio {line.ratio:>5.2f}"
    return (
        f"{line.size:>11,} {line.series:<6} {cpu}; peak {line.peak_mb:>6.0f} MB, group-by {line.floor_peak_mb:>6.0f} MB"
    )


def plot(lines: Sequence[Line], target: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    series = [name for name in ("rows", "items", "groups") if any(line.series == name for line in lines)]
    for axes, name in zip(figure.subplots(1, len(series), squeeze=False)[0], series, strict=True):
        found = [line for line in lines if line.series == name]
        sizes = [line.size for line in found]
        axes.loglog(sizes, [line.cpu for line in found], "o-", label="release")
        axes.loglog(sizes, [line.floor_cpu for line in found], "s--", label="DuckDB's group-by")
        axes.set(xlabel=name, ylabel="CPU seconds")
        axes.legend(frameon=False)
    figure.savefig(target, dpi=120)


if __name__ == "__main__":
    main()
