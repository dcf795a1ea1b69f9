"""A mechanism on two neighbouring tables at once, given the same noisy outcomes: the exact privacy loss of each path.

Both runs are the real code down to `Spending`; only the sampler behind it is stood in for. At each draw the two runs
show their exact integers (x on the first table, x' on the second), one outcome y is drawn for both, and the loss

    L = sum over draws of log P[y | x] - log P[y | x']

is known exactly, for the scale that was really asked of the sampler and not for the one that was recorded. What must
not depend on the table is compared: that the next draw is of the same kind, scale and size, the recorded events, and
the estimate that is made of the outcomes. A difference tells the two tables apart for certain, so its loss is infinite.

How outcomes are drawn, and what a loss is where the two tables do not even have the same items, is in `draws`.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import CrowdgramError
from ..mechanisms import Request, discovery
from ..privacy import Guarantee, Spending, noise
from ..privacy import spending as spending_module
from ..tables import HeldItems
from .draws import Asked, Path, Sampling, Tilt

__all__ = ["Mechanism", "door", "follow", "intercepted", "swapped"]

Integers = npt.NDArray[np.int64]
Mechanism = Callable[[Any, Spending, Request], Any]
"""From a table (counts, or rows for a whole release), a budget and what is asked, to what comes out."""

PATIENCE = 120.0
"""Seconds that one step of a mechanism may take before the audit gives up."""


def follow(
    mechanism: Mechanism, tables: tuple[Any, Any], guarantee: Guarantee, request: Request, tilt: Tilt | None = None
) -> Path:
    """Run `mechanism` on both tables with the same outcomes. Call within `intercepted`."""
    sampling = Sampling(tilt or Tilt())
    runs = [_Run(mechanism, table, Spending(guarantee), request) for table in tables]
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


@contextmanager
def intercepted() -> Iterator[None]:
    """Stand in for the sampler and the salts of the threads that `follow` starts; others draw as always."""
    doors = [
        (spending_module, "noise", _Door()),
        (noise, "secrets", _Salts(vars(noise)["secrets"])),
        (discovery, "_sums", _named(vars(discovery)["_sums"])),
        (HeldItems, "sum", _named_as_held(HeldItems.sum)),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in doors]
    try:
        for module, name, door in doors:
            setattr(module, name, door)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


@contextmanager
def swapped(owner: Any, name: str, stand_in: Callable[..., Any]) -> Iterator[None]:
    """Put `stand_in` in the place of a function, in the threads that `follow` starts and in no others.

    For code that is broken on purpose, and for engines that remember.
    """
    real = getattr(owner, name)

    def chosen(*arguments: Any, **named: Any) -> Any:
        return (real if getattr(_here, "run", None) is None else stand_in)(*arguments, **named)

    setattr(owner, name, chosen)
    try:
        yield
    finally:
        setattr(owner, name, real)


def door() -> Any:
    """What `Spending` draws by just now: the sampler, or what stands in for it."""
    return vars(spending_module)["noise"]


class _Stopped(BaseException):
    """The other run parted from this one: there is nothing left to do."""


_here = threading.local()


class _Run:
    """A mechanism in a thread of its own, which stops at each draw."""

    def __init__(self, mechanism: Mechanism, table: Any, spending: Spending, request: Request) -> None:
        self._asked: queue.Queue[Any] = queue.Queue()
        self._answers: queue.Queue[Any] = queue.Queue()
        self.spending = spending
        self.names: tuple[Any, ...] | None = None
        self.known: tuple[Any, list[Any]] | None = None
        quiet = replace(request, report=lambda _: None)

        def work() -> None:
            _here.run = self
            try:
                self._asked.put(mechanism(table, spending, quiet))
            except _Stopped:
                pass
            except Exception as error:  # noqa: BLE001 (handed to the thread that waits)
                self._asked.put(error)

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def ask(self, asked: Asked) -> Any:
        self._asked.put(asked)
        answer = self._answers.get()
        if answer is _Stopped:
            raise _Stopped
        return answer

    def answer(self, outcome: Any) -> None:
        self._answers.put(outcome)

    def next(self) -> Any:
        return self._asked.get(timeout=PATIENCE)

    def stop(self) -> None:
        if self._thread.is_alive():
            self._answers.put(_Stopped)
            self._thread.join(PATIENCE)


class _Door:
    """In place of `crowdgram.privacy.noise` as `Spending` sees it."""

    def add_discrete_laplace(self, values: Integers | Sequence[int], scale: float) -> Integers:
        return self._noisy("laplace", values, scale)

    def add_discrete_gaussian(self, values: Integers | Sequence[int], sigma: float) -> Integers:
        return self._noisy("gaussian", values, sigma)

    def choose_each(self, scores: Integers, scale: float) -> Integers:
        run = getattr(_here, "run", None)
        if run is None:
            return noise.choose_each(scores, scale)
        rows = tuple(tuple(row) for row in scores.tolist())
        return np.array(run.ask(Asked("choice", rows, float(scale))), dtype=np.int64)

    def __getattr__(self, name: str) -> Any:
        return getattr(noise, name)

    def _noisy(self, kind: str, values: Integers | Sequence[int], scale: float) -> Integers:
        run = getattr(_here, "run", None)
        if run is None:
            add = noise.add_discrete_laplace if kind == "laplace" else noise.add_discrete_gaussian
            return add(values, scale)
        row, names, run.names = tuple(int(value) for value in values), run.names, None
        return np.array(run.ask(Asked(kind, (row,), float(scale), names)), dtype=np.int64)


def _named(real: Callable[..., Any]) -> Callable[..., Any]:
    """In place of `discovery._sums`: the next draw is told which items its coordinates are. Their number differs
    between the two tables, and so do their places.
    """

    def sums(sets: Any, alive: Integers, gains: Integers) -> Any:
        run = getattr(_here, "run", None)
        if run is not None:
            # Items are numbered in the order of their values, and `named` gives them in that order.
            if run.known is None or run.known[0] is not sets:
                run.known = sets, sets.named(np.arange(sets.items))
            run.names = tuple(run.known[1][place] for place in alive.tolist())
        return real(sets, alive, gains)

    return sums


def _named_as_held(real: Callable[..., Any]) -> Callable[..., Any]:
    """In place of `HeldItems.sum`: the same, for the one histogram that finds items and measures them."""

    def sums(held: HeldItems, row_cap: int) -> Any:
        places, totals = real(held, row_cap)
        run = getattr(_here, "run", None)
        if run is not None:
            of = {place: item for item, place in held.named(places).items()}
            run.names = tuple(of[place] for place in places.tolist())
        return places, totals

    return sums


class _Salts:
    """In place of `secrets` as `crowdgram.privacy.noise` sees it: both runs get the same salt."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def token_hex(self, size: int) -> str:
        run = getattr(_here, "run", None)
        return str(self._real.token_hex(size) if run is None else run.ask(Asked("salt", (), float(size))))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _parted(one: Any, other: Any, runs: Sequence[_Run]) -> str | None:
    """What differs between two runs that got the same outcomes, now that one of them has ended."""
    for ended in (one, other):
        if isinstance(ended, Exception) and not isinstance(ended, CrowdgramError):
            raise ended
    if isinstance(one, Asked) or isinstance(other, Asked) or type(one) is not type(other):
        return "one run ends where the other goes on"
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
