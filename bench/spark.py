"""A release in Spark against Spark's own `group by user, item` on the same file, each in a process of its own.

    python bench/spark.py [--rows-scale 1] [--repeat 1] [--skew] [--json FILE]

See bench/README.md for what is measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))
import speed

TARGET_RATIO = 2.5

# Time counts from when the session is there. The CPU time is that of Java and of Python, from /proc.
START = """
import json, os, sys, time
from pyspark.sql import SparkSession
file, domain, partitions = sys.argv[1:4]
session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
session = session.config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "3g")
session = session.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
session = session.config("spark.sql.shuffle.partitions", partitions).getOrCreate()
java = session.sparkContext._gateway.proc.pid
def cpu():
    fields = open(f"/proc/{java}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()
start, busy = time.perf_counter(), cpu()
"""
FLOOR = """
counts = session.read.parquet(file).groupBy("user", "item").count().cache()
counts.count()
"""
RELEASE = """
import crowdgram
with crowdgram.Spark():
    release = crowdgram.release(file, user="user", item="item", domain=domain, epsilon=1.0, delta=1e-6)
"""
END = """
seconds, busy = time.perf_counter() - start, cpu() - busy
jobs = len(session.sparkContext.statusTracker().getJobIdsForGroup(None))
left = session.sparkContext._jsc.getPersistentRDDs().size()
done = session.sparkContext._jsc.sc().statusStore().executorList(True).head()
moved = done.totalShuffleWrite() / 1e6
print(json.dumps({"seconds": seconds, "cpu": busy, "jobs": jobs, "left": left, "moved_mb": moved}))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows-scale", type=float, default=1.0, help="share of the 20 million rows (default 1)")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each; the median counts (default 1)")
    parser.add_argument("--skew", action="store_true", help="one user has a tenth of all rows, more than all others")
    parser.add_argument("--partitions", type=int, default=200, help="spark.sql.shuffle.partitions (default 200)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure to FILE")
    options = parser.parse_args(arguments)
    table, domain = speed.make_data(max(1, round(speed.USERS * options.rows_scale)), speed.ITEMS)
    with tempfile.TemporaryDirectory(prefix="crowdgram-spark-") as folder:
        if options.skew:
            table = skewed(table, Path(folder) / "skewed.parquet")
        speed.warm(table)
        found: dict[str, list[dict[str, float]]] = {"group-by": [], "release": []}
        for turn in range(options.repeat):
            for name, script in (("group-by", FLOOR), ("release", RELEASE)):
                print(f"{name}, {turn + 1} of {options.repeat} ...", file=sys.stderr)
                given = [str(table), str(domain), str(options.partitions)]
                command = [sys.executable, "-c", START + script + END, *given]
                ended = subprocess.run(command, capture_output=True, text=True, check=False)
                if ended.returncode:
                    raise SystemExit(f"{name} failed:\n{ended.stderr[-2000:]}")
                found[name].append(json.loads(ended.stdout))
    print(f"{'':<9} {'seconds':>8} {'CPU s':>7} {'jobs':>5} {'left':>5} {'moved MB':>9}")
    middle = {name: {key: median(run[key] for run in runs) for key in runs[0]} for name, runs in found.items()}
    for name, one in middle.items():
        counted = f"{one['jobs']:>5.0f} {one['left']:>5.0f} {one['moved_mb']:>9.0f}"
        print(f"{name:<9} {one['seconds']:>8.1f} {one['cpu']:>7.1f} {counted}")
    ratio = middle["release"]["cpu"] / middle["group-by"]["cpu"]
    print(f"CPU ratio {ratio:.2f} {speed.verdict(ratio, TARGET_RATIO)} (at most {TARGET_RATIO})")
    if options.json:
        options.json.write_text(json.dumps({"runs": found, "cpu_ratio": ratio}, indent=2) + "\n")


def skewed(table: Path, target: Path) -> Path:
    """The same rows, of which a tenth are those of one user."""
    import duckdb

    chosen = "CASE WHEN random() < 0.1 THEN -1 ELSE user END"
    duckdb.sql("SELECT setseed(0.5)")
    duckdb.sql(f"COPY (SELECT {chosen} AS user, item FROM '{table}') TO '{target}'")
    return target


if __name__ == "__main__":
    main()
