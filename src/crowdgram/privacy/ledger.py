"""The ledger: a file that holds the budget of a data set, and every release that was charged to it.

A release is charged before it reads a row, and the charge is on disk before `charge` returns. When it is finished,
what it really cost and what it shows are stored in one transaction, before anyone sees it. So a crash at any moment
leaves a ledger in which no less is charged than was shown.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crowdgram.errors import BudgetExceeded, CrowdgramError, InvalidArgument, LedgerFailure, PrivacyViolation
from crowdgram.privacy.events import Event
from crowdgram.privacy.filters import Cost, Filter, Plan, total
from crowdgram.privacy.guarantee import Adjacency, Guarantee
from crowdgram.privacy.ledger_file import body_of, damaged, digest_of, make_file, parsed, reading, writing

__all__ = ["Entry", "Ledger"]

LONGEST_LABEL = 500


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge. All of it public.

    number: counted from 1. at: when it was charged (UTC). finished: whether the release was finished; one that was
    not stays charged in full. composition: "tight" or "plain", the same for all entries of a ledger.
    """

    number: int
    at: str
    label: str
    mechanism: str
    weight: str
    guarantee: Guarantee
    composition: str
    plan: Plan
    settled: Cost | None

    @property
    def finished(self) -> bool:
        return self.settled is not None

    @property
    def cost(self) -> Cost:
        """What it counts as: what it cost, or, unfinished, all that it may have cost."""
        return self.plan.most if self.settled is None else self.settled


class Ledger:
    """A data set's budget on disk. Safe to share between threads and processes; nothing is kept open.

    Guarantee: all releases charged to one ledger, each of which may be asked for after the results of those before, are
    together differentially private as `budget` says (docs/proofs/ledger.md). It holds for one file that nobody turns
    back: a restored copy has forgotten what was spent since.
    """

    def __init__(self, path: str | os.PathLike[str], *, label: str = "") -> None:
        _check_label(label)
        self.label = label
        self.path = Path(path).absolute()
        with reading(self.path) as connection:
            self.budget, self._filter, self._identity = _budget(connection, self.path)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        epsilon: float,
        delta: float = 0.0,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> Ledger:
        """Set up a budget in a new file, readable by its owner only. A file that is there already is left alone."""
        guarantee = Guarantee(epsilon, delta, Adjacency.parse(adjacency))
        terms = {
            "id": uuid.uuid4().hex,
            "created": _now(),
            "guarantee": guarantee.to_dict(),
            "filter": Filter.of(guarantee).to_dict(),
        }
        target = Path(path).absolute()
        make_file(target, terms)
        return cls(target)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, label: str = "") -> Ledger:
        """Open a ledger that `create` made. label: what releases that are charged through it are for; in `history`."""
        return cls(path, label=label)

    def __repr__(self) -> str:
        return f"<Ledger {str(self.path)!r}, epsilon={self.budget.epsilon:g}, delta={self.budget.delta:g}>"

    def history(self) -> list[Entry]:
        """Every charge, oldest first."""
        with reading(self.path) as connection:
            return _entries(connection, self.path)

    def composition(self) -> str | None:
        """How releases are composed: "tight" or "plain"; None before the first, which decides."""
        return _composition(self.history())

    def spent(self) -> float:
        """For readers: about the epsilon that a ledger of this delta would need for all that was charged so far."""
        entries = self.history()
        if not entries:
            return 0.0
        return self._filter.as_epsilon(entries[0].composition, total(entry.cost for entry in entries))

    def fits(self, plan: Plan) -> bool:
        """Whether a release of this plan could be charged now."""
        return self.fitting()(plan)

    def fitting(self) -> Callable[[Plan], bool]:
        """A function that says whether a release of a plan could be charged, as things stand now."""
        entries = self.history()
        composition, before = _composition(entries), total(entry.cost for entry in entries)
        return lambda plan: self._filter.fits(composition or self._filter.first_composition(plan), before, plan)

    def check_adjacency(self, guarantee: Guarantee) -> None:
        """Refuse a guarantee of another adjacency or unit than the budget's."""
        if guarantee.adjacency is not self.budget.adjacency or guarantee.unit != self.budget.unit:
            raise InvalidArgument(
                f"adjacency={guarantee.adjacency.value!r}: the ledger {str(self.path)!r} is for "
                f"{self.budget.adjacency.value!r}, and guarantees of different adjacency do not add. "
                f"Give adjacency={self.budget.adjacency.value!r}, or another ledger.",
                argument="adjacency",
            )

    def check(self) -> None:
        """Read the whole file, documents included; LedgerFailure if anything is wrong."""
        with reading(self.path) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise damaged(self.path)
            finished = [entry.number for entry in _entries(connection, self.path) if entry.finished]
            for number in finished:
                _document(connection, number, self.path)

    def charge(self, plan: Plan, guarantee: Guarantee, *, mechanism: str, weight: str, room: int = 0) -> int:
        """Charge a release that is about to start, durably; its number. BudgetExceeded if it does not fit.

        Guarantee: when this returns, the charge survives a crash of the process or the machine. Nobody else can have
        been charged the same budget: the check and the charge are one transaction, under the lock for writing. When
        it raises, nothing was charged. `room`: bytes that the folder must have free, for the document to come.
        """
        self.check_adjacency(guarantee)
        if any((way.epsilon, way.delta) != (guarantee.epsilon, guarantee.delta) for way in plan.ways):
            raise InvalidArgument("plan: needs to be for the guarantee of the release.", argument="plan")
        self._check_room(room)
        with self._writing() as connection:
            entries = _entries(connection, self.path)
            composition = _composition(entries) or self._filter.first_composition(plan)
            if not self._filter.fits(composition, total(entry.cost for entry in entries), plan):
                raise BudgetExceeded(
                    f"epsilon={guarantee.epsilon:g}, delta={guarantee.delta:g}: needs to be at most what the ledger "
                    f"{str(self.path)!r} has left of its epsilon={self.budget.epsilon:g}, "
                    f"delta={self.budget.delta:g}. Nothing was charged, and no row was read.",
                    epsilon=guarantee.epsilon,
                    delta=guarantee.delta,
                )
            body = body_of(
                {
                    "at": _now(),
                    "label": self.label,
                    "mechanism": mechanism,
                    "weight": weight,
                    "guarantee": guarantee.to_dict(),
                    "composition": composition,
                    "ways": [way.to_dict() for way in plan.ways],
                    "looks": sorted(plan.looks),
                    "known": plan.known,
                }
            )
            number = len(entries) + 1
            before = _last_digest(connection)
            connection.execute("INSERT INTO charges VALUES (?, ?, ?)", (number, body, digest_of(before, body)))
        return number

    def settle(self, number: int, events: Sequence[Event], document: str) -> None:
        """Store what a finished release shows, with what it cost, durably, before anyone sees it.

        Guarantee: raises, and the release must not be shown, unless what was drawn lies within what was charged.
        """
        with self._writing() as connection:
            entries = _entries(connection, self.path)
            if not 1 <= number <= len(entries) or entries[number - 1].finished:
                raise PrivacyViolation(f"charge {number} cannot be settled: it is unknown, or was settled before.")
            entry = entries[number - 1]
            cost = entry.plan.settled(events, entry.guarantee)
            content = zlib.compress(document.encode())
            body = body_of({"cost": cost.to_dict(), "document": hashlib.sha256(content).hexdigest()})
            charged = connection.execute("SELECT digest FROM charges WHERE number = ?", (number,)).fetchone()[0]
            connection.execute("INSERT INTO settlements VALUES (?, ?, ?)", (number, body, digest_of(charged, body)))
            connection.execute("INSERT INTO documents VALUES (?, ?)", (number, content))

    def document(self, number: int | None = None) -> str:
        """What a finished release showed, as it was stored: the last, or the one of this number. Costs nothing."""
        with reading(self.path) as connection:
            entries = _entries(connection, self.path)
            finished = [entry.number for entry in entries if entry.finished]
            if number is None and finished:
                number = finished[-1]
            if number is None:
                raise InvalidArgument(
                    f"number=None: the ledger {str(self.path)!r} has no finished release to recover.", argument="number"
                )
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(entries):
                raise InvalidArgument(
                    f"number={number!r}: needs to be a release of this ledger. Look at its history.", argument="number"
                )
            if number not in finished:
                why = "was not finished, so nothing was shown"
                raise InvalidArgument(
                    f"number={number!r}: this release {why}. Look at the ledger's history.", argument="number"
                )
            return _document(connection, number, self.path)

    def _check_room(self, room: int) -> None:
        try:
            free = shutil.disk_usage(self.path.parent).free
        except OSError:
            return
        if free < room + 2**20:
            raise LedgerFailure(
                f"ledger={str(self.path)!r}: needs {(room >> 20) + 1} MB of room on its disk for the release to come. "
                "Nothing was charged. Make room.",
                path=self.path,
            )

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with writing(self.path) as connection:
            if _budget(connection, self.path)[2] != self._identity:
                raise LedgerFailure(
                    f"ledger={str(self.path)!r}: is another one than was opened. Open it again.", path=self.path
                )
            yield connection


def _check_label(label: object) -> None:
    """Refuse what cannot be a label, before the file is opened."""
    if not isinstance(label, str) or len(label) > LONGEST_LABEL or "\x00" in label:
        raise InvalidArgument(
            f"label={label!r:.80}: needs to be a text of at most {LONGEST_LABEL} characters, such as 'weekly report'.",
            argument="label",
        )
    try:
        label.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(
            f"label={label!r:.80}: needs to be text that can be stored. Remove lone surrogates.", argument="label"
        ) from None


def _budget(connection: sqlite3.Connection, path: Path) -> tuple[Guarantee, Filter, str]:
    """The budget, how it is kept, and the digest that tells this ledger from any other."""
    rows = connection.execute("SELECT body, digest FROM budget").fetchall()
    if len(rows) != 1 or rows[0][1] != digest_of("budget", rows[0][0]):
        raise damaged(path)
    terms = parsed(rows[0][0], path)
    try:
        guarantee, fixed = Guarantee.from_dict(terms["guarantee"]), Filter.from_dict(terms["filter"])
    except (CrowdgramError, KeyError, TypeError, ValueError):
        raise damaged(path) from None
    if (guarantee.epsilon, guarantee.delta) != (fixed.epsilon, fixed.delta):
        raise damaged(path)
    return guarantee, fixed, str(rows[0][1])


def _entries(connection: sqlite3.Connection, path: Path) -> list[Entry]:
    """All charges, with every digest checked."""
    settlements = {
        number: (body, digest)
        for number, body, digest in connection.execute("SELECT number, body, digest FROM settlements")
    }
    before = connection.execute("SELECT digest FROM budget").fetchone()[0]
    entries: list[Entry] = []
    for number, body, digest in connection.execute("SELECT number, body, digest FROM charges ORDER BY number"):
        if number != len(entries) + 1 or digest != digest_of(before, body):
            raise damaged(path)
        settled = settlements.pop(number, None)
        if settled is not None and settled[1] != digest_of(digest, settled[0]):
            raise damaged(path)
        before = digest
        settlement = None if settled is None else parsed(settled[0], path)
        entries.append(_entry(number, parsed(body, path), settlement, path))
    if settlements or len({entry.composition for entry in entries}) > 1:
        raise damaged(path)
    return entries


def _entry(number: int, charge: dict[str, Any], settlement: dict[str, Any] | None, path: Path) -> Entry:
    try:
        plan = Plan(
            tuple(Cost.from_dict(way) for way in charge["ways"]), frozenset(charge["looks"]), bool(charge["known"])
        )
        return Entry(
            number,
            charge["at"],
            charge["label"],
            charge["mechanism"],
            charge["weight"],
            Guarantee.from_dict(charge["guarantee"]),
            charge["composition"],
            plan,
            None if settlement is None else Cost.from_dict(settlement["cost"]),
        )
    except (CrowdgramError, KeyError, TypeError, ValueError):
        raise damaged(path) from None


def _document(connection: sqlite3.Connection, number: int, path: Path) -> str:
    row = connection.execute(
        "SELECT body, content FROM settlements LEFT JOIN documents USING (number) WHERE number = ?", (number,)
    ).fetchone()
    expected = parsed(row[0], path).get("document")
    if row[1] is None or hashlib.sha256(row[1]).hexdigest() != expected:
        raise damaged(path)
    return zlib.decompress(row[1]).decode()


def _composition(entries: Sequence[Entry]) -> str | None:
    return entries[0].composition if entries else None


def _last_digest(connection: sqlite3.Connection) -> str:
    last = connection.execute("SELECT digest FROM charges ORDER BY number DESC LIMIT 1").fetchone()
    found = last or connection.execute("SELECT digest FROM budget").fetchone()
    return str(found[0])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
