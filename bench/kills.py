"""Kill releases at every stage, without warning, and see that the ledger never charges less than was shown.

    python bench/kills.py [--kills 200] [--periods] [--stages NAME ...] [--json FILE] [--mutant NAME]

See bench/README.md for what is done and checked. Exits with 1 if anything was amiss. Needs Linux or macOS.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from crowdgram import Ledger, recover
from crowdgram.export.json_file import to_text
from crowdgram.mechanisms import Laplace, Request
from crowdgram.privacy import Entry, Guarantee, LaplaceEvent, LedgerHead, laplace_scale
from crowdgram.releases import budgets, pipeline
from crowdgram.synth import Crowd

PROMISE = {"epsilon": 0.02, "delta": 1e-9}
KILLS_A_LEDGER = 40
MONTHS = ("2026-01", "2026-02", "2026-03")
WAYS = ("stage", "statement", "moment", "storm")
MUTANTS = ("late-charge", "early-show")
"""Broken on purpose: one charges after it has read, one shows before it has stored. The checks must catch both."""


@dataclass
class Verdict:
    """What was done, and what was amiss."""

    kills: int = 0
    ended_before: int = 0
    by_way: Counter[str] = field(default_factory=Counter)
    by_state: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Told:
    """What a child did before it died: whether it went on to read rows, and digests of what it showed."""

    read: int
    shown: dict[int, str]
    killed: bool


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="how many processes to kill (200)")
    parser.add_argument("--json", type=Path, help="write the result to this file")
    parser.add_argument("--stages", nargs="+", help="kill at these stages only (all of them)")
    parser.add_argument("--periods", action="store_true", help="charge to the months of a ledger with periods, in turn")
    parser.add_argument("--mutant", choices=MUTANTS, help="try a mutant instead: it must be caught")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        verdict = run(Path(folder), options.kills, options.mutant, options.stages, periods=options.periods)
    print(f"{verdict.kills} kills in {time.monotonic() - start:.0f} s: {_listed(verdict.by_way)}")
    print(f"what became of the release: {_listed(verdict.by_state)}")
    print(f"ended before the kill: {verdict.ended_before}")
    print(f"faults: {len(verdict.faults)}")
    for fault in verdict.faults[:20]:
        print(f"  {fault}")
    if options.json:
        options.json.write_text(json.dumps(vars(verdict), indent=1))
    return 1 if verdict.faults else 0


def run(
    folder: Path, kills: int, mutant: str | None = None, only: list[str] | None = None, *, periods: bool = False
) -> Verdict:
    """Kill that many children, in turn at a stage, at an SQL statement, at a moment, and in a storm of charges. If one
    has ended before, the next is to be killed in the same way.
    """
    crowd = Crowd(users=60, rows=5, items=6, seed=1, strings=True)
    crowd.write(folder / "visits.csv", domain=folder / "items.txt", overwrite=True)
    if mutant is not None:
        _break(mutant)
    stages, statements, seconds = _rehearse(folder)
    stages = only or stages
    verdict = Verdict()
    chance = random.Random()
    turn, tried = 0, Counter[str]()
    alone = folder / "alone.ledger"
    Ledger.create(alone, 30.0, 1e-5)
    _judge(verdict, "nobody", alone, [], _spawn(folder, alone))
    while verdict.kills < kills and turn < 4 * kills + 20:
        if turn % KILLS_A_LEDGER == 0:
            path = folder / f"{turn}.ledger"
            Ledger.create(path, 30.0, 1e-5, every="month" if periods else None)
        month = MONTHS[turn % len(MONTHS)] if periods else None
        way = WAYS[verdict.kills % len(WAYS)]
        place = tried[way]
        before = Ledger.open(path).history()
        if way == "stage":
            told = _spawn(folder, path, month, stage=stages[place % len(stages)])
        elif way == "statement":
            told = _spawn(folder, path, month, statement=1 + place % statements)
        elif way == "moment":
            told = _spawn(folder, path, month, seconds=chance.uniform(0.0, 1.1 * seconds))
        else:
            told = _spawn(folder, path, month, storm=True, seconds=chance.uniform(0.0, 0.3))
        turn += 1
        tried[way] += 1
        if told.killed:
            verdict.kills += 1
            verdict.by_way[way] += 1
        else:
            verdict.ended_before += 1
        _judge(verdict, f"{way} {place}", path, before, told, month)
    return verdict


def _judge(verdict: Verdict, name: str, path: Path, before: list[Entry], told: Told, month: str | None = None) -> None:
    """The ledger after a kill: sound, nothing forgotten, and no less charged than was read and shown."""
    try:
        found = Ledger.open(path, period=month)
        found.check()
        after = found.history()
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a fault)
        verdict.faults.append(f"{name}: the ledger cannot be read: {error}")
        return
    new = after[len(before) :]
    verdict.by_state.update("finished" if entry.finished else "unfinished" for entry in new)
    if not new:
        verdict.by_state["not charged"] += 1
    if [entry.at for entry in after[: len(before)]] != [entry.at for entry in before]:
        verdict.faults.append(f"{name}: earlier charges changed")
    if any(entry.period != month for entry in new):
        verdict.faults.append(f"{name}: another period was charged")
    if told.read > len(new):
        verdict.faults.append(f"{name}: rows were read without a charge")
    for number, digest in told.shown.items():
        if number > len(after) or not after[number - 1].finished:
            verdict.faults.append(f"{name}: release {number} was shown and is not stored")
        elif _sha(found.document(number)) != digest:
            verdict.faults.append(f"{name}: release {number} is stored otherwise than it was shown")
    if any(entry.finished for entry in new) and not told.shown and name.split()[0] != "storm":
        recover(found)  # its output was lost with the process; the ledger has it


def _rehearse(folder: Path) -> tuple[list[str], int, float]:
    """The stages, SQL statements and seconds of a release that nobody kills, in a child of its own."""
    path, told = folder / "rehearsal.ledger", folder / "rehearsal.json"
    Ledger.create(path, 30.0, 1e-5)
    child = os.fork()
    if child == 0:
        seen: list[str] = []
        count = _count_statements()
        start = time.monotonic()
        _release(folder, Ledger.open(path), seen.append)
        told.write_text(json.dumps([seen, count[0], time.monotonic() - start]))
        os._exit(0)
    os.waitpid(child, 0)
    stages, statements, seconds = json.loads(told.read_text())
    return stages, statements, seconds


def _spawn(
    folder: Path,
    path: Path,
    month: str | None = None,
    *,
    stage: str | None = None,
    statement: int | None = None,
    seconds: float | None = None,
    storm: bool = False,
) -> Told:
    """Run a child and kill it: by its own hand at a stage or a statement, or from outside after some time."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiver)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 2)
        try:
            if statement is not None:
                _count_statements(statement)
            (_storm if storm else _one)(folder, Ledger.open(path, label="to be killed", period=month), sender, stage)
        finally:
            os._exit(0)
    os.close(sender)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(receiver, "rb") as pipe:
        lines = pipe.read().decode().splitlines()
    _, status = os.waitpid(child, 0)
    shown = dict(line.split()[1:] for line in lines if line.startswith("shown "))
    return Told(
        read=lines.count("read"),
        shown={int(number): digest for number, digest in shown.items()},
        killed=os.WIFSIGNALED(status),
    )


def _one(folder: Path, ledger: Ledger, sender: int, stage: str | None) -> None:
    """A release that tells when it goes on to read rows, and what it shows."""

    def progress(name: str) -> None:
        if name.startswith("counting rows"):
            os.write(sender, b"read\n")
        if name == stage:
            os.kill(os.getpid(), signal.SIGKILL)

    _show_by(sender)
    _release(folder, ledger, progress)


def _storm(_folder: Path, found: Ledger, sender: int, _stage: str | None) -> None:
    """Charges and settlements in a row, without a table: most kills fall into a commit."""
    guarantee = Guarantee(PROMISE["epsilon"])
    plan = Laplace().plan(guarantee, Request("rows", 1, lambda _: None), 4)
    event = LaplaceEvent("counts by item", 1, laplace_scale(1, guarantee.epsilon), 4)
    for turn in range(40):
        number = found.charge(plan, guarantee, mechanism="laplace", weight="rows").number
        os.write(sender, b"read\n")
        document = json.dumps({"turn": turn, "filling": "x" * 20_000})
        found.settle(number, [event], document)
        os.write(sender, f"shown {number} {_sha(document)}\n".encode())


def _release(folder: Path, ledger: Ledger, progress: Callable[[str], None]) -> None:
    pipeline.release(
        str(folder / "visits.csv"),
        user="user",
        item="item",
        domain=str(folder / "items.txt"),
        ledger=ledger,
        progress=progress,
        **PROMISE,
    )


def _show_by(sender: int) -> None:
    """Tell what a release shows as soon as it is stored, which is before it is returned."""
    stored = pipeline.store_release

    def telling(found: Ledger, charged: LedgerHead, release: budgets.Release) -> None:
        stored(found, charged, release)
        os.write(sender, f"shown {charged.number} {_sha(to_text(release))}\n".encode())

    pipeline.store_release = telling


def _count_statements(fatal: int | None = None) -> list[int]:
    """Count the SQL statements of the ledger, and die just before the one of this number."""
    count = [0]
    connect = sqlite3.connect

    def counting(*arguments: object, **options: object) -> sqlite3.Connection:
        def seen(_: str) -> None:
            count[0] += 1
            if count[0] == fatal:
                os.kill(os.getpid(), signal.SIGKILL)

        connection = connect(*arguments, **options)  # type: ignore[call-overload]
        connection.set_trace_callback(seen)
        return connection

    sqlite3.connect = counting  # type: ignore[assignment]
    return count


def _break(mutant: str) -> None:
    """Turn the pipeline into a mutant with a fault, for this process and its children."""
    stored = pipeline.store_release
    if mutant == "late-charge":
        waiting: list[tuple[object, ...]] = []

        def later(*arguments: object, **options: object) -> LedgerHead:
            waiting.append((arguments, options))
            head = arguments[0].head()  # type: ignore[attr-defined]
            return LedgerHead(head.ledger, head.number + 1, "0" * 64)

        def charge_and_store(ledger: Ledger, _: LedgerHead, release: budgets.Release) -> None:
            given, options = waiting.pop()
            stored(ledger, budgets.charge_ledger(*given, **options), release)  # type: ignore[misc]

        pipeline.charge_ledger, pipeline.store_release = later, charge_and_store
    else:
        pipeline.store_release = lambda *_: None


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
