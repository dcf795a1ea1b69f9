"""A mechanism on two neighbouring tables at once, given the same noisy outcomes: the exact privacy loss of each path.

Both runs are the real code; each has a sampler of its own that stops at every draw. The two runs show their exact
integers (x on the first table, x' on the second), one outcome y is drawn for both, and the loss

    L = sum over draws of log P[y | x] - log P[y | x']

is known exactly, for the scale that was really asked of the sampler and not for the one that was recorded. What must
not depend on the table is compared: that the next draw is of the same kind, scale and size, the recorded events, and
the estimate that is made of the outcomes. A difference tells the two tables apart for certain, so its loss is infinite.

`draws` says how outcomes are drawn, and what a loss is if the two tables have different items.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from ..arrays import Integers
from ..errors import CrowdgramError
from ..mechanisms import Estimate, Request
from ..privacy import Guarantee, Labels, Opening, Spending
from ..tables import Counts
from .draws import Asked, Path, Sampling, Tilt

__all__ = ["Attacked", "follow", "on_counts"]

Attacked = Callable[[Any, Spending, Request], Any]
"""From a table (counts, or rows for a whole release), a budget and what is asked, to what comes out."""

STEP_SECONDS = 120.0
"""Seconds that one step of a mechanism may take before the audit gives up."""


def on_counts(mechanism: Callable[[Counts, Opening, Request], Estimate]) -> Attacked:
    """A mechanism of a release, which is handed a budget that is open."""

    def run(counts: Counts, spending: Spending, request: Request) -> Estimate:
        return mechanism(counts, spending.open(), request)

    return run


def follow(
    mechanism: Attacked, tables: tuple[Any, Any], guarantee: Guarantee, request: Request, tilt: Tilt | None = None
) -> Path:
    """Run `mechanism` on both tables with the same outcomes."""
    sampling = Sampling(tilt or Tilt())
    runs = [_Run(mechanism, table, guarantee, request) for table in tables]
    try:
        while True:
            one, other = (run.next() for run in runs)
            if isinstance(one, Asked) and isinstance(other, Asked):
                outcomes = sampling.draw(one, other)
                if outcomes is None:
                    return sampling.path(f"draw {len(sampling.draws) + 1} differs in kind, scale or size")
                for run, outcome in zip(runs, outcomes, strict=True):
                    run.answer(outcome)
                continue
            return sampling.path(_parted(one, other, runs))
    finally:
        for run in runs:
            run.stop()


class _Stopped(BaseException):
    """The other run parted from this one: there is nothing left to do."""


class _Run:
    """A mechanism in a thread of its own, which stops at each draw. It is the sampler of its own budget."""

    def __init__(self, mechanism: Attacked, table: Any, guarantee: Guarantee, request: Request) -> None:
        self._asked: queue.Queue[Any] = queue.Queue()
        self._answers: queue.Queue[Any] = queue.Queue()
        self.spending = Spending(guarantee, sampler=self)
        quiet = replace(request, report=lambda _: None)

        def work() -> None:
            try:
                self._asked.put(mechanism(table, self.spending, quiet))
            except _Stopped:
                pass
            except Exception as error:  # noqa: BLE001 (handed to the thread that waits)
                self._asked.put(error)

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def laplace(self, values: Integers | Sequence[int], scale: float, labels: Labels | None, /) -> Integers:
        return self._noisy("laplace", values, scale, labels)

    def gaussian(self, values: Integers | Sequence[int], sigma: float, labels: Labels | None, /) -> Integers:
        return self._noisy("gaussian", values, sigma, labels)

    def choose(self, scores: Integers, scale: float, /) -> Integers:
        rows = tuple(tuple(row) for row in scores.tolist())
        return np.array(self._ask(Asked("choice", rows, float(scale))), dtype=np.int64)

    def salt(self) -> str:
        return str(self._ask(Asked("salt", (), 0.0)))

    def answer(self, outcome: Any) -> None:
        self._answers.put(outcome)

    def next(self) -> Any:
        return self._asked.get(timeout=STEP_SECONDS)

    def stop(self) -> None:
        if self._thread.is_alive():
            self._answers.put(_Stopped)
            self._thread.join(STEP_SECONDS)

    def _noisy(self, kind: str, values: Integers | Sequence[int], scale: float, labels: Labels | None) -> Integers:
        """If the number of coordinates is private, it differs between the tables, and so do their places."""
        row, names = tuple(int(value) for value in values), None if labels is None else tuple(labels())
        return np.array(self._ask(Asked(kind, (row,), float(scale), names)), dtype=np.int64)

    def _ask(self, asked: Asked) -> Any:
        self._asked.put(asked)
        answer = self._answers.get()
        if answer is _Stopped:
            raise _Stopped
        return answer


def _parted(one: Any, other: Any, runs: Sequence[_Run]) -> str | None:
    """What differs between two runs that got the same outcomes, now that one of them has ended."""
    for ended in (one, other):
        if isinstance(ended, Exception) and not isinstance(ended, CrowdgramError):
            raise ended
    if isinstance(one, Asked) or isinstance(other, Asked) or type(one) is not type(other):
        return "one run ends and the other goes on"
    if isinstance(one, CrowdgramError):
        if str(one) != str(other):
            return "the two runs fail with different messages"
        raise one
    if runs[0].spending.events != runs[1].spending.events:
        return "the recorded events differ"
    return None if _same(one, other) else "the estimates differ"


def _same(one: Any, other: Any) -> bool:
    """Whether what came out is the same to the last bit."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if is_dataclass(one) and type(one) is type(other):
        return all(_same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return bool(one == other)
