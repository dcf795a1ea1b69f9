"""The time and memory of `crowdgram release` against DuckDB's own `group by user, item` on the same file.

    python bench/speed.py [--repeat 3] [--mechanism laplace ...] [--rows-scale 1] [--items 1000] [--format parquet]
        [--memory-limit SIZE] [--json FILE]

See bench/README.md for what is measured and how to read the table.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

USERS, ROWS_PER_USER, ITEMS, SEED = 200_000, 100, 1_000, 20
DATA = Path(__file__).parent / "data"
TARGET_RATIO, TARGET_RATIO_OF_AUTO = 2.0, 2.2
TARGET_SAME = 3.5
TARGET_MB = 4_000.0
TARGET_TEXT = {"csv": 2.0, "csv.gz": 3.0, "jsonl": 3.0, "jsonl.gz": 3.0}
"""CPU time over that of DuckDB's own reader, by format."""

# Each script runs in an interpreter of its own. Of the floor only the query is timed: no start, no import.
FLOOR = """
import sys, time
import duckdb
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
for setting in sys.argv[2:]:
    connection.execute(f"SET {setting}")
file = sys.argv[1].replace("'", "''")
start, busy = time.perf_counter(), time.process_time()
connection.execute(
    f"create temp table counts as select user, item, count(*) as n from '{file}' group by 1, 2"
)
seconds, busy = time.perf_counter() - start, time.process_time() - busy
[(rows,)] = connection.execute("select sum(n) from counts").fetchall()
print(seconds, busy, int(rows))
"""
SETTINGS = """
from crowdgram.tables.engines import DuckDB
print(*(f"{name}={value}" for name, value in DuckDB().settings.items()))
"""
# As an installer does: a checkout whose modules are not compiled takes 0.35 CPU s more.
COMPILE = """
import compileall
import crowdgram
compileall.compile_dir(crowdgram.__path__[0], quiet=2)
"""
COPY = """
import sys
import duckdb
table, target = (one.replace("'", "''") for one in sys.argv[1:3])
form = "json" if ".jsonl" in target else "csv, header"
packed = ", compression gzip" if target.endswith(".gz") else ""
duckdb.sql(f"COPY (FROM '{table}') TO '{target}' (format {form}{packed})")
"""
MAKE = """
import sys
from crowdgram.synth import Crowd
users, rows, items, seed = map(int, sys.argv[1:5])
Crowd(users=users, rows=rows, items=items, seed=seed).write(sys.argv[5], domain=sys.argv[6], overwrite=True)
"""


@dataclass(frozen=True)
class Run:
    """One finished subprocess, or the query in it: wall time, CPU time of all cores."""

    seconds: float
    cpu: float
    peak_mb: float
    output: str


@dataclass(frozen=True)
class Line:
    """One line of the table: medians over the repeats, but for the peak, which is the highest."""

    mechanism: str
    seconds: float
    floor_seconds: float
    ratio: float
    cpu: float
    floor_cpu: float
    cpu_ratio: float
    same_ratio: float
    peak_mb: float
    floor_peak_mb: float
    all_seconds: tuple[float, ...]
    all_floor_seconds: tuple[float, ...]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    users = max(1, round(USERS * options.rows_scale))
    table, domain = make_data(users, options.items, options.format)
    command = shlex.split(options.command) if options.command else [str(Path(sys.executable).parent / "crowdgram")]
    more = [] if options.memory_limit is None else ["--memory-limit", options.memory_limit]
    lines = measure(command, options.mechanism, options.repeat, table, domain, users * ROWS_PER_USER, more)
    print(render(lines))
    if options.format in TARGET_TEXT:
        most = TARGET_TEXT[options.format]
        for line in lines:
            told = f"CPU ratio {line.cpu_ratio:.2f} {verdict(line.cpu_ratio, most)} (at most {most})"
            print(f"{options.format}, {line.mechanism}: {told}")
    if options.rows_scale != 1 or options.items != ITEMS:
        print("The targets are set for --rows-scale 1 and --items 1000; on smaller tables the start weighs more.")
    if options.json:
        options.json.write_text(json.dumps(report(lines, users, options.items), indent=2) + "\n")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the median counts (default 3)")
    parser.add_argument("--rows-scale", type=float, default=1.0, help="share of the 20 million rows (default 1)")
    parser.add_argument("--items", type=int, default=ITEMS, help=f"items of the table (default {ITEMS})")
    parser.add_argument("--mechanism", action="append", help="repeatable (default laplace and gaussian)")
    parser.add_argument(
        "--format", choices=["parquet", *TARGET_TEXT], default="parquet", help="of the table (default parquet)"
    )
    parser.add_argument("--memory-limit", metavar="SIZE", help="of the release alone, such as 4GB (default none)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure to FILE")
    # What to run instead of crowdgram, to test this file.
    parser.add_argument("--command", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.mechanism = options.mechanism or ["laplace", "gaussian", "auto"]
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    if not 0 < options.rows_scale <= 100:
        parser.error("--rows-scale must be above 0 and at most 100")
    return options


def make_data(users: int, items: int, form: str = "parquet") -> tuple[Path, Path]:
    """The table and its domain file; made at the first call, in a process of its own.

    A child's peak memory counts from the memory of the parent that started it: this process must stay small.
    """
    DATA.mkdir(parents=True, exist_ok=True)
    stem = f"speed-{users}x{ROWS_PER_USER}-{items}-seed{SEED}"
    table, domain = DATA / f"{stem}.parquet", DATA / f"{stem}.domain.txt"
    if not (table.exists() and domain.exists()):
        print(f"making {table.name} ...", file=sys.stderr)
        numbers = [str(number) for number in (users, ROWS_PER_USER, items, SEED)]
        run([sys.executable, "-c", MAKE, *numbers, str(table), str(domain)])
    if form == "parquet":
        return table, domain
    text = DATA / f"{stem}.{form}"
    if not text.exists():
        print(f"making {text.name} ...", file=sys.stderr)
        run([sys.executable, "-c", COPY, str(table), str(text)])
    return text, domain


def measure(
    command: list[str],
    mechanisms: list[str],
    repeat: int,
    table: Path,
    domain: Path,
    rows: int,
    more: Sequence[str] = (),
) -> list[Line]:
    """Time a floor and a release in turn, so that a busy moment of the machine meets both."""
    warm(table)
    run([sys.executable, "-c", COMPILE])
    settings = run([sys.executable, "-c", SETTINGS]).output.split()
    floors: dict[str, list[Run]] = {mechanism: [] for mechanism in mechanisms}
    same: dict[str, list[Run]] = {mechanism: [] for mechanism in mechanisms}
    releases: dict[str, list[Run]] = {mechanism: [] for mechanism in mechanisms}
    with tempfile.TemporaryDirectory(prefix="crowdgram-speed-") as folder:
        out = Path(folder) / "release.json"
        for turn in range(repeat):
            for mechanism in floors:
                print(f"{mechanism}, {turn + 1} of {repeat} ...", file=sys.stderr)
                floors[mechanism].append(time_floor(table, rows))
                same[mechanism].append(time_floor(table, rows, settings))
                releases[mechanism].append(time_release(command, mechanism, table, domain, out, more))
    return [summarise(mechanism, releases[mechanism], floors[mechanism], same[mechanism]) for mechanism in floors]


def warm(table: Path) -> None:
    """Read the file once, so that nobody pays for a cold disk."""
    with open(table, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def time_floor(table: Path, rows: int, settings: Sequence[str] = ()) -> Run:
    finished = run([sys.executable, "-c", FLOOR, str(table), *settings])
    seconds, cpu, counted = finished.output.split()
    if int(counted) != rows:
        raise SystemExit(f"{table} has {counted} rows, not {rows}: remove it and run again.")
    return Run(float(seconds), float(cpu), finished.peak_mb, finished.output)


def time_release(
    command: list[str], mechanism: str, table: Path, domain: Path, out: Path, more: Sequence[str] = ()
) -> Run:
    out.unlink(missing_ok=True)
    privacy = ["--epsilon", "1", "--delta", "1e-6"]
    files = ["--domain", str(domain), "--mechanism", mechanism, "-o", str(out), *more]
    finished = run([*command, "release", str(table), "--user", "user", "--item", "item", *privacy, *files])
    if not out.exists() or out.stat().st_size == 0:
        raise SystemExit(f"The release with {mechanism} ended well but wrote no result: its time means nothing.")
    return finished


def run(command: list[str]) -> Run:
    """Run to the end and measure wall time and peak resident memory, the process's own children included.

    Compiled modules are kept, as an installer keeps them, whatever the shell says.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment)
        except OSError as error:
            raise SystemExit(f"Cannot run {command[0]}: {error.strerror}. Install the package first.") from error
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            raise SystemExit(f"Exit {process.returncode} of: {shlex.join(command)}\n{errors.read()[-2000:]}")
        unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes on macOS, in KiB on Linux.
        return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 1e6, output.read())


def summarise(mechanism: str, releases: list[Run], floors: list[Run], same: list[Run]) -> Line:
    seconds = median(one.seconds for one in releases)
    floor_seconds = median(one.seconds for one in floors)
    cpu, floor_cpu, same_cpu = (median(one.cpu for one in runs) for runs in (releases, floors, same))
    return Line(
        mechanism=mechanism,
        seconds=seconds,
        floor_seconds=floor_seconds,
        ratio=seconds / floor_seconds,
        cpu=cpu,
        floor_cpu=floor_cpu,
        cpu_ratio=cpu / floor_cpu,
        same_ratio=cpu / same_cpu,
        peak_mb=max(one.peak_mb for one in releases),
        floor_peak_mb=max(one.peak_mb for one in floors),
        all_seconds=tuple(one.seconds for one in releases),
        all_floor_seconds=tuple(one.seconds for one in floors),
    )


def render(lines: list[Line]) -> str:
    header = (
        f"{'mechanism':<12} {'seconds':>8} {'floor s':>8} {'ratio':>6}      {'CPU s':>7} {'ratio':>6} {'same':>6}      "
        f"{'peak MB':>8}"
    )
    body = [
        f"{line.mechanism:<12} {line.seconds:>8.2f} {line.floor_seconds:>8.2f} {line.ratio:>6.2f} "
        f"{verdict(line.ratio, target(line))} {line.cpu:>7.2f} {line.cpu_ratio:>6.2f} {line.same_ratio:>6.2f} "
        f"{verdict(line.same_ratio, TARGET_SAME)} {line.peak_mb:>8.0f} {verdict(line.peak_mb, TARGET_MB)}"
        for line in lines
    ]
    ratios = f"ratio at most {TARGET_RATIO} (auto: {TARGET_RATIO_OF_AUTO}), same at most {TARGET_SAME}"
    return "\n".join([header, *body, f"targets: {ratios}, peak at most {TARGET_MB:.0f} MB"])


def target(line: Line) -> float:
    """The ratio to keep to: auto looks at the table several times."""
    return TARGET_RATIO_OF_AUTO if line.mechanism == "auto" else TARGET_RATIO


def verdict(value: float, target: float) -> str:
    return "PASS" if value <= target else "MISS"


def report(lines: list[Line], users: int, items: int) -> dict[str, object]:
    return {
        "users": users,
        "rows": users * ROWS_PER_USER,
        "items": items,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "targets": {"ratio": TARGET_RATIO, "ratio_of_auto": TARGET_RATIO_OF_AUTO, "peak_mb": TARGET_MB},
        "lines": [
            asdict(line)
            | {
                "ratio_verdict": verdict(line.ratio, target(line)),
                "peak_verdict": verdict(line.peak_mb, TARGET_MB),
            }
            for line in lines
        ],
    }


if __name__ == "__main__":
    main()
