"""Random releases for bench/soak.py: tables of every kind, options, ledgers, and what goes wrong meanwhile."""

from __future__ import annotations

import datetime
import gzip
import json
import random
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from crowdgram import Ledger

COUNTRIES = ("DE", "FR", "NL", "PL")
MONTHS = ("2026-01", "2026-02", "2026-03")
SOURCES = ("visits.csv", "visits.csv.gz", "visits.parquet", "visits.jsonl", "visits.jsonl.gz", "visits.db", "-")
MECHANISMS = ("auto", "auto", "adaptive", "laplace", "gaussian", "sample-one", "paper")
DISASTERS = (
    *("none", "none", "none", "kill", "kill", "terminate", "interrupt"),
    *("full disk", "small disk", "low memory", "pair"),
)
"""What happens to a case. Most cases of a soak meet something; the rest show that all is well in between."""


@dataclass(frozen=True)
class Case:
    """One command, and what happens while it runs. number and the seed of the soak make it again."""

    number: int
    arguments: list[str]
    disaster: str
    piped: Path | None
    output: Path
    ledger: Path | None
    chance: random.Random = field(repr=False)


def write_tables(folder: Path, users: int = 250, items: int = 30) -> None:
    """One invented table in every kind of file, with public lists beside it."""
    chance = random.Random(11)
    rows = []
    for user in range(users):
        for _ in range(min(60, int(chance.paretovariate(1.2)))):
            day = datetime.date(2026, 1, 1) + datetime.timedelta(days=chance.randrange(90))
            item = f"page-{min(items - 1, int(chance.paretovariate(0.8)) - 1):02d}"
            rows.append((f"u{user:04d}", item, chance.choice(COUNTRIES), day, chance.randrange(0, 4)))
    names = ("user", "item", "country", "day", "n")
    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})
    pa.csv.write_csv(table, folder / "visits.csv")
    (folder / "visits.csv.gz").write_bytes(gzip.compress((folder / "visits.csv").read_bytes()))
    pa.parquet.write_table(table, folder / "visits.parquet")
    lines = "\n".join(json.dumps(dict(zip(names, row, strict=True)), default=str) for row in rows)
    (folder / "visits.jsonl").write_text(lines)
    (folder / "visits.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    with sqlite3.connect(folder / "visits.db") as database:
        database.execute("CREATE TABLE visits (user TEXT, item TEXT, country TEXT, day TEXT, n INTEGER)")
        values = [(*row[:3], str(row[3]), row[4]) for row in rows]
        database.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", values)
    (folder / "items.txt").write_text("\n".join(f"page-{item:02d}" for item in range(items)))
    (folder / "countries.txt").write_text("\n".join(COUNTRIES))
    shares = "\n".join(f"page-{item:02d},{1 / (item + 1):.6f}" for item in range(items))
    (folder / "prior.csv").write_text(f"item,share\n{shares}\n")


def make_ledger(path: Path, chance: random.Random) -> None:
    """A ledger of a random kind, so small that it fills."""
    adjacency = chance.choice(["add-remove", "replace"])
    if chance.random() < 0.4:
        overall = chance.choice([None, 6.0])
        Ledger.create(path, 2.5, 1e-5, adjacency, every="month", epsilon_overall=overall)
    else:
        Ledger.create(path, 4.0, 1e-5, adjacency)


def make_case(number: int, seed: int, folder: Path, ledgers: Sequence[Path]) -> Case:
    """The case of this number. Most of its options fit together; some do not, and have to be refused."""
    chance = random.Random(f"{seed}:{number}")
    source = chance.choice(SOURCES)
    output = folder / "out" / f"{number}.json"
    disaster = chance.choice(DISASTERS)
    reach = chance.random() < 0.2
    mechanism = chance.choice(MECHANISMS)
    given = chance.random() < 0.7
    pure = chance.random() < 0.2 and given and (reach or mechanism in ("auto", "adaptive", "laplace", "sample-one"))
    asked = ["reach" if reach else "release", "-" if source == "-" else str(folder / source)]
    asked += ["--user", "user", "--epsilon", f"{chance.choice([0.05, 0.2, 0.5, 1.0]):g}", "-o", str(output)]
    asked += ["--item", "lower_item=lower(item)" if chance.random() < 0.1 else "item"]
    asked += [] if pure else ["--delta", chance.choice(["1e-6", "1e-7", "1e-9"])]
    asked += ["--domain", str(folder / "items.txt")] if given else []
    if source == "visits.db":
        asked += ["--table", "visits"]
    if not reach:
        asked += ["--mechanism", mechanism, "--weight", chance.choice(["rows", "users"])]
        asked += ["--max-rows-per-user", str(chance.randrange(1, 30))] if chance.random() < 0.3 else []
        if chance.random() < 0.25:
            asked += ["--by", "country"]
            asked += ["--groups", str(folder / "countries.txt")] if chance.random() < 0.7 else []
        elif mechanism in ("auto", "adaptive") and given and chance.random() < 0.4:
            asked += ["--prior", str(folder / "prior.csv")]
        asked += ["--csv", str(output.with_suffix(".csv"))] if chance.random() < 0.2 else []
    asked += ["--count", "n"] if chance.random() < 0.2 else []
    asked += ["--where", "country <> 'PL' and item <> ''"] if chance.random() < 0.3 else []
    asked += ["--other", "rest"] if chance.random() < 0.2 else []
    asked += ["--threads", str(chance.randrange(1, 5))] if chance.random() < 0.3 else []
    if disaster == "low memory" or chance.random() < 0.1:
        asked += ["--memory-limit", "100MB"]
    ledger = chance.choice(ledgers) if ledgers and chance.random() < 0.8 else None
    if ledger is None:
        asked += ["--adjacency", chance.choice(["add-remove", "replace"])]
    else:
        found = Ledger.open(ledger)
        asked += ["--ledger", str(ledger), "--label", f"case {number}", "--adjacency", found.budget.adjacency.value]
        if found.every is not None:
            asked += ["--period", chance.choice(MONTHS)]
            asked += ["--period-column", "day"] if chance.random() < 0.7 else []
    piped = folder / "visits.csv" if source == "-" else None
    return Case(number, asked, disaster, piped, output, ledger, chance)
