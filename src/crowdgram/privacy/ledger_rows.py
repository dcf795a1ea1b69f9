"""What the rows of a ledger say: its terms, its charges with what became of them, its head. Every digest is checked."""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from dataclasses import dataclass
from typing import Any

from crowdgram.errors import CrowdgramError, InvalidArgument
from crowdgram.privacy.filters import Cost, Filter, Plan
from crowdgram.privacy.guarantee import Guarantee
from crowdgram.privacy.ledger_file import LedgerPath, damaged, digest_of, parsed
from crowdgram.privacy.periods import Every, Period, parse_every

__all__ = [
    "Entry",
    "LedgerHead",
    "Limit",
    "Terms",
    "is_digest",
    "read_document",
    "read_entries",
    "read_head",
    "read_terms",
]

_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class LedgerHead:
    """Where a ledger stood after a charge: what somebody has to keep to notice later that it was turned back.

    ledger: the identity of the ledger. number: how many charges it had; it only grows. digest: of the last of them,
    which covers all before it, or the identity if there was none. It tells nothing about what was charged: each charge
    has 122 random bits in it.
    """

    ledger: str
    number: int
    digest: str

    def __post_init__(self) -> None:
        if not is_digest(self.ledger) or not is_digest(self.digest):
            raise InvalidArgument(
                "its ledger head needs digests of 64 hexadecimal digits, in lower case", argument=None
            )
        if isinstance(self.number, bool) or not isinstance(self.number, int) or not 0 <= self.number < 2**63:
            raise InvalidArgument("its ledger head needs a number of at least 0", argument=None)

    def __str__(self) -> str:
        return f"{self.number}:{self.digest}"

    def to_dict(self) -> dict[str, Any]:
        """The head in plain values, for JSON."""
        return {"id": self.ledger, "number": self.number, "head": self.digest}

    @classmethod
    def from_dict(cls, values: Any) -> LedgerHead:
        """The head that `to_dict` wrote."""
        if not isinstance(values, dict) or set(values) != {"id", "number", "head"}:
            raise InvalidArgument("its ledger head needs an id, a number and a head, and nothing else", argument=None)
        return cls(values["id"], values["number"], values["head"])


def is_digest(text: object) -> bool:
    """Whether it is a digest as ledgers write it."""
    return isinstance(text, str) and len(text) == 64 and set(text) <= _HEX


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge. All of it public.

    number: counted from 1. at: when it was charged (UTC). finished: whether the release was finished; one that was
    not stays charged in full. composition: "tight" or "plain", the same for all entries of a ledger or, if it has
    periods, of one period. period: what it was charged to; None if the ledger has none. period_column: the column by
    which only rows of that period were read; None if the operator answers for that. overall_composition: that of the
    overall limit, if there is one.
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
    period: str | None = None
    period_column: str | None = None
    overall_composition: str | None = None
    digest: str = ""

    @property
    def finished(self) -> bool:
        return self.settled is not None

    @property
    def cost(self) -> Cost:
        """What it counts as: what it cost, or, unfinished, all that it may have cost."""
        return self.plan.most if self.settled is None else self.settled


@dataclass(frozen=True, slots=True)
class Limit:
    """A budget, and the filter that keeps it."""

    guarantee: Guarantee
    filter: Filter

    @classmethod
    def of(cls, guarantee: Guarantee) -> Limit:
        """The limit of a new ledger."""
        return cls(guarantee, Filter.of(guarantee))

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Limit:
        """The limit that `to_dict` wrote; refused unless guarantee and filter are of one budget."""
        made = cls(Guarantee.from_dict(values["guarantee"]), Filter.from_dict(values["filter"]))
        if (made.guarantee.epsilon, made.guarantee.delta) != (made.filter.epsilon, made.filter.delta):
            raise ValueError("the filter is for another budget")
        return made

    def to_dict(self) -> dict[str, Any]:
        """The limit in plain values, for JSON."""
        return {"guarantee": self.guarantee.to_dict(), "filter": self.filter.to_dict()}


@dataclass(frozen=True, slots=True)
class Terms:
    """What a ledger was made for. identity: the digest that tells it from any other.

    limit: of all releases or, if `every` is not None, of those of one period. overall: of all periods together.
    network: whether its maker answers for the locks of a network file system.
    """

    limit: Limit
    identity: str
    every: Every | None = None
    overall: Limit | None = None
    network: bool = False


def read_terms(connection: sqlite3.Connection, path: LedgerPath) -> Terms:
    """The terms of a ledger; LedgerFailure if they cannot be trusted."""
    rows = connection.execute("SELECT body, digest FROM budget").fetchall()
    if len(rows) != 1 or rows[0][1] != digest_of("budget", "", rows[0][0]):
        raise damaged(path)
    terms = parsed(rows[0][0], path)
    if set(terms) - {"every", "overall", "network"} != {"id", "created", "guarantee", "filter"}:
        raise damaged(path)
    if ("overall" in terms and "every" not in terms) or terms.get("network", True) is not True:
        raise damaged(path)
    try:
        every = parse_every(terms["every"]) if "every" in terms else None
        overall = Limit.from_dict(terms["overall"]) if "overall" in terms else None
        limit = Limit.from_dict(terms)
    except (CrowdgramError, KeyError, TypeError, ValueError, OverflowError):
        raise damaged(path) from None
    return Terms(limit, str(rows[0][1]), every, overall, "network" in terms)


def read_head(connection: sqlite3.Connection, path: LedgerPath, terms: Terms) -> LedgerHead:
    """Where the ledger says that it stands. Whether its charges lead there, `read_entries` tells."""
    try:
        ((number, digest),) = connection.execute("SELECT number, digest FROM head").fetchall()
        return LedgerHead(terms.identity, number, digest)
    except ValueError:  # no row, several, or one that is no head
        raise damaged(path) from None


def read_entries(connection: sqlite3.Connection, path: LedgerPath, terms: Terms) -> list[Entry]:
    """All charges, oldest first, up to the head; LedgerFailure if one of them is missing, changed or elsewhere."""
    settlements = {
        number: (body, digest)
        for number, body, digest in connection.execute("SELECT number, body, digest FROM settlements")
    }
    before = terms.identity
    entries: list[Entry] = []
    for number, body, digest in connection.execute("SELECT number, body, digest FROM charges ORDER BY number"):
        if number != len(entries) + 1 or digest != digest_of("charge", before, body):
            raise damaged(path)
        settled = settlements.pop(number, None)
        if settled is not None and settled[1] != digest_of("settlement", digest, settled[0]):
            raise damaged(path)
        before = digest
        settlement = None if settled is None else parsed(settled[0], path)
        entries.append(_entry(number, parsed(body, path), settlement, path, terms, digest))
    if connection.execute("SELECT id, number, digest FROM head").fetchall() != [(1, len(entries), before)]:
        raise damaged(path)
    compositions: dict[str | None, str] = {}
    for entry in entries:
        if compositions.setdefault(entry.period, entry.composition) != entry.composition:
            raise damaged(path)
    if settlements or len({entry.overall_composition for entry in entries}) > 1:
        raise damaged(path)
    return entries


def _entry(
    number: int, charge: dict[str, Any], settlement: dict[str, Any] | None, path: LedgerPath, terms: Terms, digest: str
) -> Entry:
    try:
        looks, known_events = charge["looks"], charge["known"]
        plan = Plan(tuple(Cost.from_dict(way) for way in charge["ways"]), frozenset(looks), known_events)
        period = column = overall = None
        if terms.every is not None:
            period, column = Period.parse(terms.every, charge["period"]).name, charge["period_column"]
            overall = charge["overall_composition"]
        known = ("tight", "plain")
        right = charge["composition"] in known and overall in (known if terms.overall is not None else (None,))
        at, label, mechanism, weight = words = [charge[name] for name in ("at", "label", "mechanism", "weight")]
        promised = Guarantee.from_dict(charge["guarantee"])
        settled = None if settlement is None else Cost.from_dict(settlement["cost"])
        right = right and (column is None or isinstance(column, str)) and all(isinstance(word, str) for word in words)
        right = right and isinstance(looks, list) and isinstance(known_events, bool)
        right = right and promised.adjacency is terms.limit.guarantee.adjacency
        right = right and promised.unit == terms.limit.guarantee.unit
        right = right and all((way.epsilon, way.delta) == (promised.epsilon, promised.delta) for way in plan.ways)
        if not right or (settled is not None and not any(settled.within(way) for way in plan.ways)):
            raise damaged(path)
        return Entry(
            number,
            at,
            label,
            mechanism,
            weight,
            promised,
            charge["composition"],
            plan,
            settled,
            period,
            column,
            overall,
            digest,
        )
    except (CrowdgramError, KeyError, TypeError, ValueError, OverflowError):
        raise damaged(path) from None


def read_document(connection: sqlite3.Connection, number: int, path: LedgerPath) -> str:
    """What a finished release showed."""
    row = connection.execute(
        "SELECT body, content FROM settlements LEFT JOIN documents USING (number) WHERE number = ?", (number,)
    ).fetchone()
    if row is None:
        raise damaged(path)
    expected = parsed(row[0], path).get("document")
    if not isinstance(row[1], bytes) or hashlib.sha256(row[1]).hexdigest() != expected:
        raise damaged(path)
    try:
        return zlib.decompress(row[1]).decode()
    except (zlib.error, UnicodeDecodeError):
        raise damaged(path) from None
