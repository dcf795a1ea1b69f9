"""What a ledger is made and opened with, checked before its file is touched."""

from __future__ import annotations

from crowdgram.errors import InvalidArgument
from crowdgram.privacy.file_systems import is_mounted, network_of
from crowdgram.privacy.guarantee import Guarantee
from crowdgram.privacy.ledger_file import LedgerPath, refused
from crowdgram.privacy.ledger_rows import Limit

__all__ = ["check_local", "check_text", "overall_limit"]

LONGEST_LABEL = 500


def check_local(path: LedgerPath, *, allowed: bool) -> None:
    """Refuse to write on a network file system: two machines may both get the lock, and spend the same budget. Refuse a
    file that is mounted by itself: it has a second name in another folder, and there a journal that undoes charges.
    """
    if is_mounted(path.file):
        raise refused(
            path,
            "is mounted by itself, so that it has another name elsewhere, and what a crash leaves there to be undone "
            "is not seen here. Nothing was charged. Mount the ledger's folder instead of the file.",
        )
    kind = None if allowed else network_of(path.file.parent)
    if kind is not None:
        raise refused(
            path,
            f"is on a network or user-space file system ({kind}), whose locks may let two releases spend the same "
            "budget. Nothing was charged. Use a local disk; or, if you are sure of the locks, make the ledger there "
            "with network=True, or --network.",
        )


def check_text(argument: str, given: object, what: str, example: str) -> None:
    """Refuse what cannot be kept as text, before the file is opened."""
    empty = argument != "label" and given == ""
    if not isinstance(given, str) or empty or len(given) > LONGEST_LABEL or "\x00" in given:
        raise InvalidArgument(
            f"{argument}={given!r:.80}: needs to be {what} of at most {LONGEST_LABEL} characters, such as {example!r}.",
            argument=argument,
        )
    try:
        given.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(
            f"{argument}={given!r:.80}: needs to be text that can be stored. Remove lone surrogates.",
            argument=argument,
        ) from None


def overall_limit(budget: Guarantee, epsilon: float | None, delta: float | None, every: object) -> Limit | None:
    """The limit of all periods together, if it is given."""
    if epsilon is None and delta is None:
        return None
    if every is None or epsilon is None:
        name, value = ("epsilon_overall", epsilon) if every is None else ("delta_overall", delta)
        needed = "every, as it is for all periods together" if every is None else "epsilon_overall"
        raise InvalidArgument(f"{name}={value!r}: needs {needed}. Give both or neither.", argument=name)
    found = Guarantee(epsilon, budget.delta if delta is None else delta, budget.adjacency)
    if found.epsilon < budget.epsilon or found.delta < budget.delta:
        name = "epsilon_overall" if found.epsilon < budget.epsilon else "delta_overall"
        raise InvalidArgument(
            f"{name}={epsilon if name == 'epsilon_overall' else delta!r}: needs to be at least that of one period.",
            argument=name,
        )
    return Limit.of(found)
