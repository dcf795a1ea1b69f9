"""The mechanisms by name, and what each of them can serve."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..errors import InvalidArgument
from ..privacy import Ready
from ..tables import ROW_LIMIT, Counts
from .auto import adaptive, auto
from .baselines import gaussian, laplace, sample_one
from .discovery import Finish
from .estimate import Estimate
from .request import Request

__all__ = ["LOOKING", "MECHANISMS", "PURE", "Mechanism", "check_mechanism", "finish_of"]

Mechanism = Callable[[Counts, Ready, Request], Estimate]

MECHANISMS: dict[str, Mechanism] = {
    "auto": auto,
    "adaptive": adaptive,
    "laplace": laplace,
    "gaussian": gaussian,
    "sample-one": sample_one,
}

PURE = frozenset({"laplace", "sample-one"})
"""Mechanisms that draw Laplace noise only, on every path: whatever delta is offered, they promise delta=0. (A
mechanism that *chooses* Laplace noise on the word of noisy values cannot: the promise is about all that it might have
done.)"""

LOOKING = frozenset({"auto", "laplace"})
"""Mechanisms that, where items must be found, may find and measure them by one histogram instead: the others draw
another kind of noise, or ask for other sums.
"""

MOST_ROUNDS = 12


def finish_of(mechanism: str) -> Finish:
    """What a mechanism may draw last, where there is a delta: what a discovery before it must leave room for."""
    return "pure" if mechanism in PURE else "either" if mechanism == "auto" else "gaussian"


def check_mechanism(
    mechanism: str,
    weight: str,
    delta: float,
    max_rows_per_user: int | None,
    rounds: int | None,
    *,
    known: Collection[str] = MECHANISMS,
) -> None:
    """Refuse, before any row is read, what a mechanism cannot do. `known`: all mechanisms there are.

    With weight "users" a row cap is accepted and not needed: every user weighs the same, however many rows they have.
    """
    if not isinstance(mechanism, str) or mechanism not in known:
        raise InvalidArgument(f"mechanism={mechanism!r}: needs to be one of {', '.join(map(repr, known))}.")
    if not isinstance(weight, str) or weight not in ("rows", "users"):
        raise InvalidArgument(
            f"weight={weight!r}: needs to be 'rows' (share of all rows) or 'users' (the average user)."
        )
    if mechanism == "gaussian" and delta == 0:
        raise InvalidArgument(
            "mechanism='gaussian' cannot serve delta=0: Gaussian noise always leaves a small chance delta. "
            "Give a delta such as 1e-6, or use mechanism='auto' or 'laplace'."
        )
    _check_whole("max_rows_per_user", max_rows_per_user, ROW_LIMIT)
    _check_whole("rounds", rounds, MOST_ROUNDS)
    if rounds is not None and mechanism not in ("auto", "adaptive"):
        raise InvalidArgument(
            f"rounds={rounds} has no meaning for mechanism={mechanism!r}. Leave it out, or use 'adaptive'."
        )


def _check_whole(name: str, value: object, most: int) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgument(f"{name}={value!r}: needs to be a whole number of at least 1.")
    if value > most:
        raise InvalidArgument(f"{name}={value}: at most {most} can be used. Give at most that.")
