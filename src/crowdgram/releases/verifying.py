"""A ledger against what it stores and what others hold of it: was it turned back, cut off or rewritten?"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable

from ..errors import CrowdgramError, InvalidArgument, LedgerFailure
from ..export.documents import load, parse, to_text
from ..privacy import Cost, Entry, Ledger, LedgerHead
from ..results.grouped import GroupedRelease
from ..results.grouped_reach import GroupedReach
from ..results.reach import Reach
from ..results.release import Release
from .budgets import LedgerLike

__all__ = ["verify_ledger"]

Saved = str | os.PathLike[str]
Result = Release | GroupedRelease | Reach | GroupedReach


def verify_ledger(
    ledger: LedgerLike, *, releases: Iterable[Saved] = (), heads: Iterable[LedgerHead | str] = ()
) -> LedgerHead:
    """Check all of a ledger, and that it has been where others saw it. Returns where it stands; costs nothing.

    releases: saved releases that were charged to it. heads: what `Ledger.head` or `crowdgram ledger show` said earlier.

    LedgerFailure if a row, a document or the order of charges was changed without care; if a charge does not fit the
    budget; if the cost of a release is not that of its events; if the ledger lacks a head, or the charge of a release;
    or if it stores another release than the one that is given. A copy that is older than all that is given here, and a
    ledger that was rewritten from there on, cannot be told from the real one.
    """
    found = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    given = [(os.fspath(path), load(path)) for path in releases]
    head = found.check([*heads, *(_head_of(where, one) for where, one in given)])
    stored: dict[int, str] = {}
    wanted = {one.ledger_head.number for _, one in given if one.ledger_head is not None}
    for entry, text in found.documents():
        made = _stored(found, head.ledger, entry, text)
        if entry.number in wanted:
            stored[entry.number] = to_text(made)
    for where, one in given:
        assert one.ledger_head is not None
        number = one.ledger_head.number
        if stored.get(number) != to_text(one):
            why = "is not the one that it stores" if number in stored else "was finished, and it says that it was not"
            raise _refused(
                found,
                f"its release {number} and {where!r} differ: {where!r} {why}. One of the two was changed, or the file "
                "was computed from the release.",
            )
    return head


def _head_of(where: str, result: Result) -> LedgerHead:
    if result.ledger_head is None:
        raise InvalidArgument(
            f"release={where!r}: needs to be a release that was charged to a ledger. Leave it out.", argument="release"
        )
    return result.ledger_head


def _stored(ledger: Ledger, identity: str, entry: Entry, text: str) -> Result:
    """A stored release, held to its charge: what it promises and what its events cost."""
    fault = None
    try:
        made = parse(text, f"release {entry.number} of the ledger")
        whole = made.joint if isinstance(made, GroupedRelease | GroupedReach) else made
        if whole.guarantee != entry.guarantee or whole.ledger_head != LedgerHead(identity, entry.number, entry.digest):
            fault = "is stored with another promise or charge than its own"
        elif not _alike(entry.plan.settled(whole.events, entry.guarantee), entry.settled):
            fault = "cost something else than its events say"
    except CrowdgramError:
        fault = "cannot be read, or drew more than was charged for it"
    if fault is not None:
        raise _refused(
            ledger, f"its release {entry.number} {fault}, so the file was changed. Do not release against it."
        )
    return made


def _alike(one: Cost, two: Cost | None) -> bool:
    """Whether two costs are the same, but for how libraries round."""
    if two is None:
        return False
    pairs = zip(one.to_dict().values(), two.to_dict().values(), strict=True)
    return all(math.isclose(a, b, rel_tol=1e-9) for a, b in pairs)


def _refused(ledger: Ledger, said: str) -> LedgerFailure:
    return LedgerFailure(f"ledger={ledger.written!r}: {said}", path=ledger.path)
