"""A mechanism on two neighbouring tables at once, given the same noisy outcomes: the exact privacy loss of each path.

Both runs are the real code down to `Spending`; only the sampler behind it is stood in for. At each draw the two runs
show their exact integers (x on the first table, x' on the second), one outcome y is drawn for both, and the loss

    L = sum over draws of log P[y | x] - log P[y | x']

is known exactly, for the scale that was really asked of the sampler and not for the one that was recorded. What must
not depend on the table is compared: that the next draw is of the same kind, scale and size, the recorded events, and
the estimate that is made of the outcomes. A difference tells the two tables apart for certain, so its loss is infinite.

Outcomes may be drawn with a tilt: Gaussian ones around x + tilt (x - x') instead of x, where large losses are common.
`log_weight` = log P[outcomes | x] - log Q[outcomes], Q the tilted distribution, makes up for it.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import CrowdgramError
from ..mechanisms import Estimate, Request
from ..privacy import Guarantee, Spending, noise
from ..privacy import spending as spending_module
from ..tables import Counts

__all__ = ["Draw", "Mechanism", "Path", "door", "follow", "intercepted"]

Integers = npt.NDArray[np.int64]
Mechanism = Callable[[Counts, Spending, Request], Estimate]

PATIENCE = 120.0
"""Seconds that one step of a mechanism may take before the audit gives up."""


@dataclass(frozen=True)
class Draw:
    """One draw as both tables see it. squared_mu: (l2 distance / sigma)^2, of a Gaussian one. epsilon: the largest loss
    that it could have, of any other.
    """

    kind: str
    scale: float
    loss: float
    log_weight: float
    squared_mu: float
    epsilon: float


@dataclass(frozen=True)
class Path:
    """All draws of one run, and what came out. `parted`: what differed though the outcomes were the same, if anything;
    the loss is infinite then.
    """

    draws: tuple[Draw, ...]
    parted: str | None

    @property
    def loss(self) -> float:
        return math.inf if self.parted else math.fsum(draw.loss for draw in self.draws)

    @property
    def log_weight(self) -> float:
        return math.fsum(draw.log_weight for draw in self.draws)

    @property
    def squared_mu(self) -> float:
        return math.fsum(draw.squared_mu for draw in self.draws)

    @property
    def epsilon(self) -> float:
        return math.fsum(draw.epsilon for draw in self.draws)


def follow(
    mechanism: Mechanism, tables: tuple[Counts, Counts], guarantee: Guarantee, request: Request, tilt: float = 0.0
) -> Path:
    """Run `mechanism` on both tables with the same outcomes. Call within `intercepted`."""
    draws: list[Draw] = []
    runs = [_Run(mechanism, counts, Spending(guarantee), request) for counts in tables]
    try:
        while True:
            one, other = (run.next() for run in runs)
            if isinstance(one, _Asked) and isinstance(other, _Asked):
                if one.public != other.public:
                    return Path(tuple(draws), f"draw {len(draws) + 1} differs in kind, scale or size")
                draw, outcome = _draw(one, other, tilt)
                draws.append(draw)
                for run in runs:
                    run.answer(outcome)
                continue
            return Path(tuple(draws), _parted(one, other, runs))
    finally:
        for run in runs:
            run.stop()


@contextmanager
def intercepted() -> Iterator[None]:
    """Stand in for the sampler and the salts of the threads that `follow` starts; others draw as always."""
    doors = [(spending_module, "noise", _Door()), (noise, "secrets", _Salts(vars(noise)["secrets"]))]
    before = [(module, name, getattr(module, name)) for module, name, _ in doors]
    try:
        for module, name, door in doors:
            setattr(module, name, door)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def door() -> Any:
    """What `Spending` draws by just now: the sampler, or what stands in for it."""
    return vars(spending_module)["noise"]


@dataclass(frozen=True)
class _Asked:
    """What a run wants drawn: noise on `values` (or a choice by them) of a kind and scale; or a salt."""

    kind: str
    values: tuple[tuple[int, ...], ...]
    scale: float

    @property
    def public(self) -> tuple[str, float, tuple[int, ...]]:
        return self.kind, self.scale, tuple(len(row) for row in self.values)


class _Stopped(BaseException):
    """The other run parted from this one: there is nothing left to do."""


_here = threading.local()


class _Run:
    """A mechanism in a thread of its own, which stops at each draw."""

    def __init__(self, mechanism: Mechanism, counts: Counts, spending: Spending, request: Request) -> None:
        self._asked: queue.Queue[Any] = queue.Queue()
        self._answers: queue.Queue[Any] = queue.Queue()
        self.spending = spending
        quiet = replace(request, report=lambda _: None)

        def work() -> None:
            _here.run = self
            try:
                self._asked.put(mechanism(counts, spending, quiet))
            except _Stopped:
                pass
            except Exception as error:  # noqa: BLE001 (handed to the thread that waits)
                self._asked.put(error)

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def ask(self, asked: _Asked) -> Any:
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
        return np.array(run.ask(_Asked("choice", rows, float(scale))), dtype=np.int64)

    def __getattr__(self, name: str) -> Any:
        return getattr(noise, name)

    def _noisy(self, kind: str, values: Integers | Sequence[int], scale: float) -> Integers:
        run = getattr(_here, "run", None)
        if run is None:
            add = noise.add_discrete_laplace if kind == "laplace" else noise.add_discrete_gaussian
            return add(values, scale)
        row = tuple(int(value) for value in values)
        return np.array(run.ask(_Asked(kind, (row,), float(scale))), dtype=np.int64)


class _Salts:
    """In place of `secrets` as `crowdgram.privacy.noise` sees it: both runs get the same salt."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def token_hex(self, size: int) -> str:
        run = getattr(_here, "run", None)
        return str(self._real.token_hex(size) if run is None else run.ask(_Asked("salt", (), float(size))))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _parted(one: Any, other: Any, runs: Sequence[_Run]) -> str | None:
    """What differs between two runs that got the same outcomes, now that one of them has ended."""
    for ended in (one, other):
        if isinstance(ended, Exception) and not isinstance(ended, CrowdgramError):
            raise ended
    if isinstance(one, _Asked) or isinstance(other, _Asked) or type(one) is not type(other):
        return "one run ends where the other goes on"
    if isinstance(one, CrowdgramError):
        if str(one) != str(other):
            return "the two runs fail with different messages"
        raise one
    if runs[0].spending.events != runs[1].spending.events:
        return "the recorded events differ"
    return None if _same(one, other) else "the estimates differ"


def _same(one: Any, other: Any) -> bool:
    """Whether two estimates are the same to the last bit."""
    for name in type(one).__dataclass_fields__:
        mine, theirs = getattr(one, name), getattr(other, name)
        if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray):
            if not np.array_equal(mine, theirs, equal_nan=True):
                return False
        elif mine != theirs:
            return False
    return True


def _draw(one: _Asked, other: _Asked, tilt: float) -> tuple[Draw, Any]:
    if one.kind == "salt":
        return Draw("salt", one.scale, 0.0, 0.0, 0.0, 0.0), noise.fresh_salt()
    if one.kind == "choice":
        return _choice(one, other)
    xs, others = one.values[0], other.values[0]
    scale, apart = one.scale, [a - b for a, b in zip(xs, others, strict=True)]
    if one.kind == "laplace":
        ys = noise.add_discrete_laplace(list(xs), scale).tolist()
        loss = sum(abs(y - b) - abs(y - a) for y, a, b in zip(ys, xs, others, strict=True))
        return Draw("laplace", scale, loss / scale, 0.0, 0.0, sum(map(abs, apart)) / scale), ys
    centres = [a + round(tilt * d) for a, d in zip(xs, apart, strict=True)]
    ys = noise.add_discrete_gaussian(centres, scale).tolist()
    # (y - b)^2 - (y - a)^2 = (a - b)(2y - a - b), in integers; so is the weight, with the centre for b.
    loss = sum((a - b) * (2 * y - a - b) for y, a, b in zip(ys, xs, others, strict=True))
    weight = sum((a - c) * (2 * y - a - c) for y, a, c in zip(ys, xs, centres, strict=True))
    twice = 2.0 * scale * scale
    return Draw("gaussian", scale, loss / twice, weight / twice, sum(d * d for d in apart) / scale**2, 0.0), ys


def _choice(one: _Asked, other: _Asked) -> tuple[Draw, list[int]]:
    """One column of each row, with P[j] proportional to exp(values[j] / scale)."""
    loss, most, chosen = 0.0, 0.0, []
    for mine, theirs in zip(one.values, other.values, strict=True):
        first, second = _log_probabilities(mine, one.scale), _log_probabilities(theirs, one.scale)
        # 128 random bits against the cumulative probabilities: an audit's draw, not a release's.
        at = int(noise.fresh_salt(), 16) / 2.0**128
        place = min(int(np.searchsorted(np.cumsum(np.exp(first)), at)), len(mine) - 1)
        chosen.append(place)
        loss += float(first[place] - second[place])
        most += float(np.max(np.abs(first - second)))
    return Draw("choice", one.scale, loss, 0.0, 0.0, most), chosen


def _log_probabilities(scores: tuple[int, ...], scale: float) -> npt.NDArray[np.float64]:
    highest = max(scores)
    weights = np.array([(score - highest) / scale for score in scores])
    normal: npt.NDArray[np.float64] = weights - math.log(math.fsum(np.exp(weights).tolist()))
    return normal
