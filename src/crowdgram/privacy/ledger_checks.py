"""What a ledger is held to beyond its digests: that it has been where somebody saw it, and that no charge overspent.

Whoever can write the file can recompute every digest in it. So a ledger that was turned back is noticed by what others
kept of it, and one that was rewritten also by charges that do not fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from crowdgram.errors import InvalidArgument
from crowdgram.privacy.filters import Total, total
from crowdgram.privacy.ledger_file import LedgerPath, refused
from crowdgram.privacy.ledger_rows import Entry, LedgerHead, Terms, is_digest

__all__ = ["check_head", "check_spending"]


def check_head(entries: Sequence[Entry], terms: Terms, path: LedgerPath, head: LedgerHead | str) -> None:
    """Refuse a ledger that has never stood where `head` says: a head, or the text "NUMBER:DIGEST" or "DIGEST"."""
    number, digest = _read_head(head)
    if isinstance(head, LedgerHead) and head.ledger != terms.identity:
        raise refused(path, f"is another ledger than that of {head}. Give the ledger of this head.")
    known = [terms.identity, *(entry.digest for entry in entries)]
    if number is not None and number >= len(known):
        raise refused(
            path,
            f"has {len(entries)} charges, and had {number}: it is an older copy, or was cut off, and has forgotten "
            "what was spent since. Do not release against it.",
        )
    if digest not in (known if number is None else known[number : number + 1]):
        raise refused(
            path,
            f"has never stood at {head}: it is an older copy, was changed, or is another ledger. Do not release "
            "against it unless you know why.",
        )


def _read_head(head: LedgerHead | str) -> tuple[int | None, str]:
    """The number, if it is known, and the digest."""
    if isinstance(head, LedgerHead):
        return head.number, head.digest
    if isinstance(head, str):
        number, colon, digest = head.rpartition(":")
        counted = number.isascii() and number.isdigit() and len(number) < 19
        if is_digest(digest) and (counted or not colon):
            return int(number) if colon else None, digest
    raise InvalidArgument(
        f"head={str(head)!r:.90}: needs to be a head as 'crowdgram ledger show' prints it, such as 3:DIGEST, or its "
        "digest of 64 hexadecimal digits.",
        argument="head",
    )


def check_spending(entries: Sequence[Entry], terms: Terms, path: LedgerPath) -> None:
    """Refuse charges that no ledger would have let pass: somebody put them there.

    When a charge was made, those before it counted for at least what they count for now, and what fits with more
    spent fits with less. So each must fit beside what those before it cost in the end.
    """
    limit, overall = terms.limit.filter, terms.overall
    nothing = together = total(())
    spent: dict[str | None, Total] = {}
    fixed: str | None = None
    for entry in entries:
        first = entry.period not in spent
        before = spent.setdefault(entry.period, nothing)
        right = limit.fits(entry.composition, before, entry.plan)
        right = right and (not first or entry.composition == limit.first_composition(entry.plan))
        spent[entry.period] = before.with_cost(entry.cost)
        if overall is not None:
            fixed = fixed or overall.filter.first_composition(entry.plan)
            right = right and entry.overall_composition == fixed
            right = right and overall.filter.fits(fixed, together, entry.plan)
            together = together.with_cost(entry.cost)
        if not right:
            raise refused(
                path,
                f"its charge {entry.number} does not fit its budget, so the file was changed. Do not release against "
                "it.",
            )
