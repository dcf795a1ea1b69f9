"""The ledger: a file that holds the budget of a data set, and every release that was charged to it.

A release is charged before it reads a row, and the charge is on disk before `charge` returns. When it is finished,
what it really cost and what it shows are stored in one transaction, before anyone sees it. So a crash at any moment
leaves a ledger in which no less is charged than was shown. A ledger with periods has one such budget for each of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from crowdgram.errors import BudgetExceeded, InvalidArgument, LedgerFailure, PrivacyViolation
from crowdgram.privacy.events import Event
from crowdgram.privacy.filters import Plan, filled_epsilon, total
from crowdgram.privacy.guarantee import Adjacency, Guarantee
from crowdgram.privacy.ledger_arguments import check_local, check_text, overall_limit
from crowdgram.privacy.ledger_checks import check_head, check_spending
from crowdgram.privacy.ledger_file import LedgerPath, body_of, damaged, digest_of, make_file, reading, refused, writing
from crowdgram.privacy.ledger_rows import (
    Entry,
    LedgerHead,
    Limit,
    read_document,
    read_entries,
    read_head,
    read_terms,
)
from crowdgram.privacy.periods import Every, Period, parse_every

__all__ = ["Entry", "Ledger", "LedgerHead"]


class Ledger:
    """A data set's budget on disk. Safe to share between threads and processes; nothing is kept open.

    budget: of all releases; in a ledger with periods, of the releases of each. every: how long periods are; None
    without. overall: the limit of all periods together, or None. period, period_column: what the ledger was opened for.

    Guarantee: all releases charged to one ledger, each of which may be asked for after the results of those before, are
    together differentially private as `budget` says (docs/proofs/ledger.md). With periods, what is protected is a
    user's rows of one period, if releases read rows of their own period only; a whole user is protected by `overall`,
    if there is one. It holds for one file that nobody turns back: a restored copy has forgotten what was spent since.
    `check` notices that by a head that somebody kept; every release has the one of its charge.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        label: str = "",
        period: str | None = None,
        period_column: str | None = None,
    ) -> None:
        check_text("label", label, "a text", "weekly report")
        if period_column is not None:
            check_text("period_column", period_column, "the name of a column", "day")
        self.label = label
        self._path = LedgerPath.of(path)
        with reading(self._path) as connection:
            self._terms = read_terms(connection, self._path)
            self._seen = read_head(connection, self._path, self._terms)
        self.budget: Guarantee = self._terms.limit.guarantee
        self.every: Every | None = self._terms.every
        self.overall: Guarantee | None = None if self._terms.overall is None else self._terms.overall.guarantee
        if period is not None and self.every is None:
            raise InvalidArgument(
                f"period={period!r:.80}: the ledger {self.written!r} has one budget for all time. Leave the period "
                "out, or make a ledger with every='month'.",
                argument="period",
            )
        if period_column is not None and period is None:
            raise InvalidArgument(
                f"period_column={period_column!r:.80}: says which rows are of a period. Give the period too.",
                argument="period_column",
            )
        self.period = None if period is None or self.every is None else Period.parse(self.every, period)
        self.period_column = period_column

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        epsilon: float,
        delta: float = 0.0,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        *,
        every: Every | None = None,
        epsilon_overall: float | None = None,
        delta_overall: float | None = None,
        network: bool = False,
    ) -> Ledger:
        """Set up a budget in a new file, readable by its owner only. A file that is there already is left alone.

        every: "day", "week", "month", "quarter" or "year": each such period has the budget anew. epsilon_overall,
        delta_overall: a limit for all periods together, which protects a user who is in all of them; delta_overall is
        delta if it is not given. network: whether you answer for the locks of a network file system; without it, a
        ledger there is neither made nor charged. It is checked on Linux only.
        """
        limit = Limit.of(Guarantee(epsilon, delta, Adjacency.parse(adjacency)))
        terms = {"id": uuid.uuid4().hex, "created": _now(), **limit.to_dict()}
        if every is not None:
            terms["every"] = parse_every(every)
        overall = overall_limit(limit.guarantee, epsilon_overall, delta_overall, every)
        if overall is not None:
            terms["overall"] = overall.to_dict()
        if network:
            terms["network"] = True
        target = LedgerPath.of(path)
        check_local(target, allowed=network)
        make_file(target, terms)
        return cls(path)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        label: str = "",
        period: str | None = None,
        period_column: str | None = None,
    ) -> Ledger:
        """Open a ledger that `create` made. label: what releases that are charged through it are for; in `history`.

        period: of a ledger with periods, the one to charge, such as "2026-11". It is never guessed: a month is mostly
        released when it is over, so that today's date would name another one. period_column: a column of the table,
        dates or timestamps (with a time zone, in UTC), or text of such: releases then read rows of the period only, and
        the ledger records it. Without it, whoever runs the release answers for that, and the ledger records that.
        """
        return cls(path, label=label, period=period, period_column=period_column)

    @property
    def path(self) -> Path:
        """The ledger's file."""
        return self._path.file

    @property
    def written(self) -> str:
        """The path as it was given, which messages name."""
        return self._path.written

    def __repr__(self) -> str:
        every = "" if self.every is None else f", every={self.every!r}"
        return f"<Ledger {self.written!r}, epsilon={self.budget.epsilon:g}, delta={self.budget.delta:g}{every}>"

    def history(self) -> list[Entry]:
        """Every charge, oldest first, of all periods."""
        seen = self._seen
        with reading(self._path) as connection:
            return self._entries(connection, seen)

    def head(self) -> LedgerHead:
        """Where the ledger stands. Keep it elsewhere: `check` tells by it whether the ledger was turned back since."""
        return self._head(self.history())

    def periods(self) -> list[str]:
        """The periods that have a charge, in the order of the calendar; none for a ledger without periods."""
        if self.every is None:
            return []
        return [one.name for one in sorted({Period.parse(self.every, entry.period) for entry in self.history()})]

    def composition(self) -> str | None:
        """How releases are composed: "tight" or "plain"; None before the first (of the period), which decides."""
        return _composition(self._own(self.history()))

    def spent(self) -> float:
        """For readers: about the epsilon that a ledger of this delta would need for all that was charged so far.

        Of a ledger with periods, for what was charged to the period that it was opened for.
        """
        return self._spent(self._own(self.history()))

    def spent_by_period(self) -> dict[str, float]:
        """What `spent` says of each period that has a charge, in the order of the calendar."""
        entries = self.history()
        if self.every is None:
            return {}
        own: dict[Period, list[Entry]] = {}
        for entry in entries:
            own.setdefault(Period.parse(self.every, entry.period), []).append(entry)
        return {period.name: self._spent(own[period]) for period in sorted(own)}

    def spent_overall(self) -> float:
        """For readers: about the epsilon that one ledger would need for all releases of all periods.

        At the delta of the overall limit, or else of the ledger; inf if no epsilon serves at that delta.
        """
        entries = self.history()
        if not entries:
            return 0.0
        delta = (self.overall or self.budget).delta
        fixed = entries[0].overall_composition
        spent = total(entry.cost for entry in entries)
        return min(filled_epsilon(one, spent, delta) for one in ((fixed,) if fixed else ("tight", "plain")))

    def fits(self, plan: Plan) -> bool:
        """Whether a release of this plan could be charged now."""
        return self.fitting()(plan)

    def fitting(self) -> Callable[[Plan], bool]:
        """A function that says whether a release of a plan could be charged, as things stand now."""
        entries = self.history()
        return lambda plan: self._refusal(entries, plan) is None

    def check_left(self, plan: Plan, guarantee: Guarantee) -> None:
        """Refuse a release that could not be charged now, as `charge` does. Nothing is charged."""
        self._check_left(self.history(), plan, guarantee)

    def check_period(self) -> None:
        """Refuse a ledger with periods that was opened for none of them."""
        if self.every is not None and self.period is None:
            raise InvalidArgument(
                f"period=None: the ledger {self.written!r} has a budget for each {self.every}. Say which one to "
                "charge: Ledger.open(path, period=...), or --period.",
                argument="period",
            )

    def check_adjacency(self, guarantee: Guarantee) -> None:
        """Refuse a guarantee of another adjacency or unit than the budget's."""
        if guarantee.adjacency is not self.budget.adjacency or guarantee.unit != self.budget.unit:
            raise InvalidArgument(
                f"adjacency={guarantee.adjacency.value!r}: the ledger {self.written!r} is for "
                f"{self.budget.adjacency.value!r}, and guarantees of different adjacency do not add. "
                f"Give adjacency={self.budget.adjacency.value!r}, or another ledger.",
                argument="adjacency",
            )

    def check(self, heads: Iterable[LedgerHead | str] = ()) -> LedgerHead:
        """Read the whole file, documents included, and recompute that no charge overspent; LedgerFailure if anything
        is wrong. Returns where it stands now.

        heads: where it stood at earlier times, as `head` or a release (`release.ledger_head`) says, or the text of one,
        "3:DIGEST". A ledger that lacks one was turned back, was changed, or is another one.
        """
        seen = self._seen
        with reading(self._path) as connection:
            if read_terms(connection, self._path).identity != self._terms.identity:
                raise _exchanged(self._path)
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            entries = self._entries(connection, seen)
            stored = [number for (number,) in connection.execute("SELECT number FROM documents ORDER BY number")]
            if found != "ok" or stored != [entry.number for entry in entries if entry.finished]:
                raise damaged(self._path)
        for _ in self._documents(entries):
            pass
        check_spending(entries, self._terms, self._path)
        for head in heads:
            check_head(entries, self._terms, self._path, head)
        return self._head(entries)

    def charge(self, plan: Plan, guarantee: Guarantee, *, mechanism: str, weight: str, room: int = 0) -> LedgerHead:
        """Charge a release that is about to start, durably; where the ledger stands then. BudgetExceeded if it does
        not fit.

        Guarantee: when this returns, the charge survives a crash of the process or the machine. Nobody else can have
        been charged the same budget: the check and the charge are one transaction, under the lock for writing. When
        it raises, nothing was charged. `room`: bytes that the folder must have free, for the document to come.
        """
        self.check_period()
        self.check_adjacency(guarantee)
        if any((way.epsilon, way.delta) != (guarantee.epsilon, guarantee.delta) for way in plan.ways):
            raise InvalidArgument("plan: needs to be for the guarantee of the release.", argument="plan")
        check_local(self._path, allowed=self._terms.network)
        self._check_room(room)
        seen = self._seen
        with self._writing() as connection:
            entries = self._entries(connection, seen)
            self._check_column(entries)
            self._check_left(entries, plan, guarantee)
            values = {
                "at": _now(),
                "label": self.label,
                "mechanism": mechanism,
                "weight": weight,
                "guarantee": guarantee.to_dict(),
                "composition": _composition(self._own(entries)) or self._terms.limit.filter.first_composition(plan),
                "ways": [way.to_dict() for way in plan.ways],
                "looks": sorted(plan.looks),
                "known": plan.known,
                "salt": uuid.uuid4().hex,  # releases show the digest, which is not to tell the time or the label
            }
            if self.period is not None:
                values["period"], values["period_column"] = self.period.name, self.period_column
                values["overall_composition"] = self._overall_composition(entries, plan)
            body, head = body_of(values), self._head(entries)
            number, digest = head.number + 1, digest_of("charge", head.digest, body)
            connection.execute("INSERT INTO charges VALUES (?, ?, ?)", (number, body, digest))
            connection.execute("UPDATE head SET number = ?, digest = ?", (number, digest))
        self._seen = LedgerHead(head.ledger, number, digest)
        return self._seen

    def settle(self, charged: LedgerHead | int, events: Sequence[Event], document: str) -> None:
        """Store what a finished release shows, with what it cost, durably, before anyone sees it.

        charged: what `charge` returned, or the number of the charge.

        Guarantee: raises, and the release must not be shown, unless what was drawn lies within what was charged, and
        the ledger still has that charge.
        """
        seen = self._seen
        with self._writing() as connection:
            entries = self._entries(connection, seen)
            if isinstance(charged, LedgerHead):
                check_head(entries, self._terms, self._path, charged)
            number = charged.number if isinstance(charged, LedgerHead) else charged
            if not 1 <= number <= len(entries) or entries[number - 1].finished:
                raise PrivacyViolation(f"charge {number} cannot be settled: it is unknown, or was settled before.")
            entry = entries[number - 1]
            cost = entry.plan.settled(events, entry.guarantee)
            content = zlib.compress(document.encode())
            body = body_of({"cost": cost.to_dict(), "document": hashlib.sha256(content).hexdigest()})
            digest = digest_of("settlement", entry.digest, body)
            connection.execute("INSERT INTO settlements VALUES (?, ?, ?)", (number, body, digest))
            connection.execute("INSERT INTO documents VALUES (?, ?)", (number, content))

    def document(self, number: int | None = None) -> str:
        """What a finished release showed, as it was stored: the last, or the one of this number. Costs nothing.

        The last is that of the period, if the ledger was opened for one.
        """
        seen = self._seen
        with reading(self._path) as connection:
            entries = self._entries(connection, seen)
            finished = [entry.number for entry in entries if entry.finished]
            if number is None:
                own = entries if self.period is None else self._own(entries)
                number = next((entry.number for entry in reversed(own) if entry.finished), None)
            if number is None:
                of = "" if self.period is None else f" of {self.period.name}"
                raise InvalidArgument(
                    f"number=None: the ledger {self.written!r} has no finished release{of} to recover.",
                    argument="number",
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
            return read_document(connection, number, self._path)

    def documents(self) -> Iterator[tuple[Entry, str]]:
        """All finished releases with their charges, oldest first, as they were stored."""
        return self._documents(self.history())

    def _documents(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, str]]:
        """One after the other, each in a transaction of its own: a long one would keep releases from being stored."""
        for entry in entries:
            if entry.finished:
                with reading(self._path) as connection:
                    text = read_document(connection, entry.number, self._path)
                yield entry, text

    def _entries(self, connection: sqlite3.Connection, seen: LedgerHead) -> list[Entry]:
        """All charges; refused if this object has seen the ledger further on.

        seen: what `_seen` was before the transaction began. Later, another thread may have charged.
        """
        entries = read_entries(connection, self._path, self._terms)
        check_head(entries, self._terms, self._path, seen)
        self._seen = self._head(entries)
        return entries

    def _head(self, entries: Sequence[Entry]) -> LedgerHead:
        identity = self._terms.identity
        return LedgerHead(identity, len(entries), entries[-1].digest if entries else identity)

    def _own(self, entries: Sequence[Entry]) -> list[Entry]:
        """The charges that share the budget: all, or those of the period."""
        self.check_period()
        return [entry for entry in entries if self.period is None or entry.period == self.period.name]

    def _spent(self, entries: Sequence[Entry]) -> float:
        """About the epsilon of a budget that these charges, which share one, would fill."""
        if not entries:
            return 0.0
        return self._terms.limit.filter.as_epsilon(entries[0].composition, total(entry.cost for entry in entries))

    def _check_left(self, entries: Sequence[Entry], plan: Plan, guarantee: Guarantee) -> None:
        refusal = self._refusal(entries, plan)
        if refusal is not None:
            raise BudgetExceeded(
                f"epsilon={guarantee.epsilon:g}, delta={guarantee.delta:g}: needs to be at most what the ledger "
                f"{self.written!r} has left of its {refusal}. Nothing was charged, and no row was read.",
                epsilon=guarantee.epsilon,
                delta=guarantee.delta,
            )

    def _refusal(self, entries: Sequence[Entry], plan: Plan) -> str | None:
        """The limit that a release of this plan would break, in words; None if it fits."""
        own, limit, overall = self._own(entries), self._terms.limit, self._terms.overall
        composition = _composition(own) or limit.filter.first_composition(plan)
        if not limit.filter.fits(composition, total(entry.cost for entry in own), plan):
            return _named(limit.guarantee) + ("" if self.period is None else f" for {self.period.name}")
        fixed = self._overall_composition(entries, plan)
        if overall is None or fixed is None:
            return None
        if overall.filter.fits(fixed, total(entry.cost for entry in entries), plan):
            return None
        return f"{_named(overall.guarantee)} for all periods together"

    def _check_column(self, entries: Sequence[Entry]) -> None:
        """Refuse another column than that of earlier charges: by two columns a row could be of two periods."""
        for entry in entries if self.period_column is not None else ():
            if entry.period_column not in (None, self.period_column):
                raise InvalidArgument(
                    f"period_column={self.period_column!r:.80}: the ledger {self.written!r} tells periods by "
                    f"{entry.period_column!r:.80}, and by two columns a row could be of two periods. Use that one, or "
                    "another ledger.",
                    argument="period_column",
                )

    def _overall_composition(self, entries: Sequence[Entry], plan: Plan) -> str | None:
        if self._terms.overall is None:
            return None
        first = entries[0].overall_composition if entries else None
        return first or self._terms.overall.filter.first_composition(plan)

    def _check_room(self, room: int) -> None:
        try:
            free = shutil.disk_usage(self.path.parent).free
        except OSError:
            return
        if free < room + 2**20:
            raise LedgerFailure(
                f"ledger={self.written!r}: needs {(room >> 20) + 1} MB of room on its disk for the release to come. "
                "Nothing was charged. Make room.",
                path=self.path,
            )

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with writing(self._path) as connection:
            if read_terms(connection, self._path).identity != self._terms.identity:
                raise _exchanged(self._path)
            yield connection


def _exchanged(path: LedgerPath) -> LedgerFailure:
    return refused(path, "is another one than was opened. Open it again.")


def _named(guarantee: Guarantee) -> str:
    return f"epsilon={guarantee.epsilon:g}, delta={guarantee.delta:g}"


def _composition(entries: Sequence[Entry]) -> str | None:
    return entries[0].composition if entries else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
