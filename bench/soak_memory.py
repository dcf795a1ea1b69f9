"""Many releases in one process, and its memory after each: for bench/soak.py.

    python bench/soak_memory.py FOLDER RELEASES

FOLDER has the tables of soak_cases.py. Prints JSON: resident memory in MB, open files and threads after each release.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

import crowdgram


def main(folder: Path, releases: int) -> None:
    warnings.simplefilter("ignore")
    ledger = folder / "inside.ledger"
    crowdgram.Ledger.create(ledger, 100.0, 1e-5)
    given = {"user": "user", "item": "item", "epsilon": 0.02, "delta": 1e-9}
    listed = {"domain": str(folder / "items.txt")}
    kinds = [
        ("visits.csv", {**listed, "mechanism": "laplace"}),
        ("visits.parquet", {**listed, "ledger": str(ledger)}),
        ("visits.jsonl.gz", {**listed, "weight": "users", "mechanism": "gaussian"}),
        ("visits.csv.gz", {"epsilon": 0.5, "delta": 1e-6}),
        ("visits.db", {**listed, "by": "country", "groups": ["DE", "FR"], "mechanism": "adaptive"}),
        ("visits.parquet", {"where": "nothing = 1", **listed}),  # refused
    ]
    memory, files, threads = [], [], []
    for turn in range(releases):
        source, more = kinds[turn % len(kinds)]
        table = crowdgram.Database(str(folder / source), "visits") if source.endswith(".db") else str(folder / source)
        try:
            made = crowdgram.release(table, **{**given, **more})
            made.save(folder / "inside.json", overwrite=True)
        except crowdgram.CrowdgramError:
            assert "where" in more, source
        memory.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6)
        files.append(len(os.listdir("/proc/self/fd")))
        threads.append(len(os.listdir("/proc/self/task")))
    print(json.dumps({"memory": memory, "files": files, "threads": threads}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
