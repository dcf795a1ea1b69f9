"""Algorithm 1, PHS: private hypothesis selection among binomial distributions.

For two binomials the Scheffe set W = {x: H_i(x) > H_j(x)} is {x >= t} or {x < t}, because their likelihood ratio is
monotone. So thresholds and masses depend on the cover alone and are found once for all symbols, and a symbol's
scores need only the numbers of users with at least t rows of it.

Of the d - 1 comparisons of a hypothesis few can ever be the smallest. Take hypotheses below H_i, from near to far: the
threshold falls, so the count in W rises; a comparison whose offset H_j(W) does not exceed that of a nearer one is never
smaller than it, whatever the data. What is left (`_Comparisons`) is a handful for each hypothesis, and the scores are
exactly those of the literal algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from ..arrays import Booleans, Floats, Integers
from ..errors import InvalidArgument
from ..privacy import Adjacency, AnyFinish, SelectionEvent
from ..tables import Tallies

__all__ = [
    "SCORE_UNIT",
    "Hypotheses",
    "Selected",
    "binomial_tails",
    "changed_symbols",
    "check_paid",
    "phs",
    "scores",
    "spread_of",
]


SCORE_UNIT = 2**10
"""A user counts 2^10 in a score, so that rounding the offsets to whole numbers loses less than 1/1000 of a user."""

_TIE = 1e-9
_AT_ONCE = 2**22
"""Scores that are held at once."""


@dataclass(frozen=True)
class _Comparisons:
    """For each hypothesis, thresholds t and offsets H_j(W) of the comparisons that can be the smallest; padded with
    offset -1, which never is.
    """

    thresholds: Integers
    offsets: Floats


@dataclass(frozen=True)
class Hypotheses:
    """The binomials Bin(m, p) for p in a cover, and their comparisons at accuracy alpha (in total variation)."""

    m: int
    cover: Floats
    alpha: float
    below: _Comparisons
    above: _Comparisons

    @classmethod
    def of(cls, m: int, cover: Floats, alpha: float) -> Hypotheses:
        """All that PHS needs to know of a cover. `cover` is strictly increasing and within [0, 1]."""
        if m < 1:
            raise InvalidArgument(f"m={m}: needs to be a whole number of at least 1.", argument="m")
        if not 0.0 < alpha < 1.0:
            raise InvalidArgument(f"alpha={alpha!r}: PHS needs an accuracy above 0 and below 1.", argument="alpha")
        if len(cover) < 1 or np.any(np.diff(cover) <= 0) or cover[0] < 0 or cover[-1] > 1:
            raise InvalidArgument("cover: needs strictly increasing probabilities within 0 and 1.", argument="cover")
        return cls(m, cover, alpha, _compare(m, cover, alpha, -1), _compare(m, cover, alpha, +1))

    def __len__(self) -> int:
        return len(self.cover)


@dataclass(frozen=True)
class Selected:
    """What PHS chose: the index of a hypothesis for each symbol, with how it was chosen."""

    hypotheses: Hypotheses
    chosen: Integers
    users: int
    scale: float
    event: SelectionEvent

    @property
    def probabilities(self) -> Floats:
        return self.hypotheses.cover[self.chosen]


def phs(
    tallies: Tallies,
    hypotheses: Hypotheses,
    spending: AnyFinish,
    *,
    users: int,
    epsilon: float,
    changed: int,
    monotone: bool = False,
) -> Selected:
    """Algorithm 1 (PHS) and its modification in Appendix E (Lemma 11), for every symbol.

    S(H_i) = min_j Gamma(H_i, H_j), Gamma = s if H_i(W) - H_j(W) <= 3 alpha, else max(0, #{u: N(u) in W} - s (H_j(W) +
    3/2 alpha)); P[H_i] proportional to exp(epsilon S(H_i)/2).

    where: s is `users`, a public or noisy number of users, and alpha that of `hypotheses`. Where W contains 0, #{N
    in W} is taken as s - #{N not in W}, unless `monotone`.

    Corrects errata 1 (the exponent), 4 (users at zero) and, with `changed`, 3.

    Guarantee: given `users`, a symbol's scores move by at most SCORE_UNIT when any one user changes, and only where the
    user has, or had, the symbol among the drawn rows: at most min(k, m) symbols under add-remove and min(k, 2m)
    under replace, which is what `changed` must be at least. Each choice has bounded range epsilon. `monotone` is
    for add-remove only: #{N in W} is counted as it is, all scores of all k symbols move by 0 or +SCORE_UNIT together,
    so that the exponent is epsilon S and `changed` must be k. Proof: docs/proofs/paper.md, Theorem 1.
    """
    k, adjacency = tallies.items, spending.guarantee.adjacency
    if monotone and adjacency is not Adjacency.ADD_REMOVE:
        raise InvalidArgument(
            f"monotone={monotone}: under {adjacency.value} scores move both ways. Leave it out.", argument="monotone"
        )
    check_paid(users, changed, k if monotone else changed_symbols(k, tallies.rows, adjacency))
    at_once = max(1, _AT_ONCE // max(len(hypotheses), tallies.rows + 2))
    chosen, event = spending.choose_each(
        "probability of each item",
        _rows_of_scores(tallies, hypotheses, users, monotone),
        selections=k,
        choices=len(hypotheses),
        changed=changed,
        sensitivity=SCORE_UNIT,
        epsilon=epsilon,
        monotone=monotone,
        at_once=at_once,
    )
    return Selected(hypotheses, chosen, users, (1 if monotone else 2) / event.epsilon, event)


def changed_symbols(k: int, m: int, adjacency: Adjacency) -> int:
    """How many symbols one user may change: min(k, m) under add-remove, min(k, 2m) under replace (erratum 3)."""
    return min(k, m if adjacency is Adjacency.ADD_REMOVE else 2 * m)


def check_paid(users: int, changed: int, fewest: int) -> None:
    """Refuse to count from no users, or to pay for fewer symbols than a user may change."""
    if users < 1:
        raise InvalidArgument(
            f"users={users}: needs to be a whole number of at least 1, public or noisy.", argument="users"
        )
    if changed < fewest:
        raise InvalidArgument(
            f"changed={changed}: a user may change {fewest} symbols, and all are to be paid for.", argument="changed"
        )


def scores(tails: Integers, everybody: int, hypotheses: Hypotheses, users: int) -> Integers:
    """SCORE_UNIT times S(H_j), rounded down offsets, for each symbol (row of `tails`) and hypothesis; exact integers.

    `tails[i, t]`: users who have symbol i at least t times, t >= 1. `everybody`: what the sets {x < t} are counted
    from: s-hat, or the number of users who take part.
    """
    most = SCORE_UNIT * users
    found = np.full((len(tails), len(hypotheses)), most, dtype=np.int64)
    for comparisons, below in ((hypotheses.below, True), (hypotheses.above, False)):
        for t, offset in zip(comparisons.thresholds.T, comparisons.offsets.T, strict=True):
            inside = tails[:, t] if below else everybody - tails[:, t]
            # An integer for each hypothesis, from public values; a pad is far below any count.
            floor = np.where(offset < 0, -(2.0**60), np.ceil(most * (offset + 1.5 * hypotheses.alpha)))
            np.minimum(found, SCORE_UNIT * inside - floor.astype(np.int64), out=found)
    return np.maximum(found, 0, out=found)


def _rows_of_scores(
    tallies: Tallies, hypotheses: Hypotheses, users: int, monotone: bool
) -> Callable[[int, int], Integers]:
    everybody = tallies.takers if monotone else users

    def rows(first: int, last: int) -> Integers:
        return scores(tallies.tails(first, last), everybody, hypotheses, users)

    return rows


def _compare(m: int, cover: Floats, alpha: float, side: int) -> _Comparisons:
    """The comparisons of every hypothesis with those on one side of it, from near to far, that can be the smallest.

    TV(H_i, H_j) grows with the distance of the parameters, so the first comparison that counts (TV > 3 alpha) is
    found by bisection. Of those with the same threshold the nearest has the largest offset, so the next one to look
    at is the nearest with another threshold. A hypothesis is done when 1 - TV <= the largest offset so far, as
    H_j(W) + H_i(not W) = 1 - TV.
    """
    d = len(cover)
    own = np.arange(d)
    furthest = own if side < 0 else d - 1 - own
    distance = _first(
        own, np.ones_like(own), furthest, lambda i, steps: _gap(m, cover, i, i + side * steps)[2] > 3 * alpha
    )
    best = np.full(d, -1.0)
    active = own[distance <= furthest]
    kept: list[tuple[Integers, Integers, Floats]] = []
    while len(active):
        t, offset, gap = _gap(m, cover, active, active + side * distance[active])
        new = offset > best[active]
        kept.append((active[new], t[new], offset[new]))
        best[active[new]] = offset[new]
        going = 1.0 - gap > best[active]
        active, t = active[going], t[going]
        past = np.zeros_like(own)
        past[active] = t
        distance[active] = _first(
            active,
            distance[active] + 1,
            furthest[active],
            lambda i, steps, past=past: _thresholds(m, cover[i], cover[i + side * steps]) != past[i],  # type: ignore[misc]
        )
        active = active[distance[active] <= furthest[active]]
    return _padded(d, kept)


def _gap(m: int, cover: Floats, i: Integers, j: Integers) -> tuple[Integers, Floats, Floats]:
    """Threshold of W, H_j(W) and TV(H_i, H_j) = H_i(W) - H_j(W)."""
    t = _thresholds(m, cover[i], cover[j])
    mine, other = _tail(m, t, cover[i]), _tail(m, t, cover[j])
    return t, np.where(j < i, other, 1.0 - other), np.abs(mine - other)


def _first(own: Integers, low: Integers, most: Integers, holds: Callable[[Integers, Integers], Booleans]) -> Integers:
    """For each of `own`, the smallest number of steps from `low` to `most` for which `holds`, and holds beyond it;
    most + 1 if none does.
    """
    high = np.maximum(most + 1, low)
    while np.any(open_ := low < high):
        middle = (low + high) // 2
        found = np.zeros(len(low), dtype=bool)
        found[open_] = holds(own[open_], middle[open_])
        low, high = np.where(open_ & ~found, middle + 1, low), np.where(open_ & found, middle, high)
    return np.where(low > most, most + 1, low)


def _padded(d: int, kept: list[tuple[Integers, Integers, Floats]]) -> _Comparisons:
    which = np.concatenate([one[0] for one in kept] or [np.zeros(0, dtype=np.int64)]).astype(np.int64)
    order = np.argsort(which, kind="stable")
    which = which[order]
    place = np.arange(len(which)) - np.searchsorted(which, which)
    width = int(place.max(initial=-1)) + 1
    thresholds, offsets = np.ones((d, width), dtype=np.int64), np.full((d, width), -1.0)
    if width:
        thresholds[which, place] = np.concatenate([one[1] for one in kept])[order]
        offsets[which, place] = np.concatenate([one[2] for one in kept])[order]
    return _Comparisons(thresholds, offsets)


def _thresholds(m: int, p: Floats, q: Floats) -> Integers:
    """The t for which {x: Bin(m, p)(x) > Bin(m, q)(x)} is {x >= t} (p > q) or {x < t} (p < q)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        zeros = np.log1p(-np.minimum(p, q)) - np.log1p(-np.maximum(p, q))
        ones = np.log(np.maximum(p, q)) - np.log(np.minimum(p, q))
        crossing = m * zeros / (zeros + ones)
    low, high = np.minimum(p, q) == 0.0, np.maximum(p, q) == 1.0
    # A point mass at 0 or m: nothing beside it is likelier under it. Against each other, each keeps its own point.
    crossing = np.where(
        low & high, np.where(p > q, m - 0.5, 0.5), np.where(high, m - 0.5, np.where(low, 0.5, crossing))
    )
    whole = np.rint(crossing)
    tied = np.abs(crossing - whole) < _TIE * m
    above = np.where(tied, whole + 1, np.floor(crossing) + 1)
    below = np.where(tied, whole, np.ceil(crossing))
    return np.clip(np.where(p > q, above, below), 1, m).astype(np.int64)


def _tail(m: int, t: Integers, p: Floats) -> Floats:
    """P[Bin(m, p) >= t], t >= 1."""
    tail: Floats = betainc(t, m - t + 1.0, p)
    return tail


def binomial_tails(m: int, p: Floats) -> Floats:
    """P[Bin(m, p) >= t] for t = 0..m + 1, a row for each p."""
    t = np.arange(1, m + 1)
    inner = betainc(t[None, :], m - t[None, :] + 1.0, p[:, None])
    ends = np.ones((len(p), 1))
    return np.hstack([ends, inner, 0 * ends])


def spread_of(selected: Selected, quantiles: tuple[float, float]) -> tuple[Floats, Floats, Floats, Floats]:
    """Mean absolute error, standard deviation and two quantiles of (chosen - true) for each symbol, were what was
    chosen true.

    The cover's own rounding, at most half the gap to the next hypothesis, is part of it. From the distribution of
    the choice at the scores that `users` users from Bin(m, p-hat) would give on average. Post-processing of noisy
    values.
    """
    hypotheses = selected.hypotheses
    distinct, which = np.unique(selected.chosen, return_inverse=True)
    results = []
    at_once = max(1, _AT_ONCE // 4 // max(len(hypotheses), hypotheses.m + 2))
    for first in range(0, len(distinct), at_once):
        truth = hypotheses.cover[distinct[first : first + at_once]]
        expected = np.rint(selected.users * binomial_tails(hypotheses.m, truth)).astype(np.int64)
        expected[:, 0] = 0
        found = scores(expected, selected.users, hypotheses, selected.users) / (SCORE_UNIT * selected.scale)
        weights = np.exp(found - found.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        error = hypotheses.cover[None, :] - truth[:, None]
        gap = np.interp(truth, hypotheses.cover, np.gradient(hypotheses.cover) if len(hypotheses) > 1 else np.ones(1))
        absolute = np.hypot((weights * np.abs(error)).sum(axis=1), gap / 4)
        square = (weights * error**2).sum(axis=1) + gap**2 / 12
        up_to = np.cumsum(weights, axis=1)
        low, high = (
            error[np.arange(len(truth)), np.minimum((up_to < quantile).sum(axis=1), len(hypotheses) - 1)]
            for quantile in quantiles
        )
        results.append(np.stack([absolute, np.sqrt(square), low - gap / 2, high + gap / 2]))
    absolute, deviation, low, high = np.concatenate(results, axis=1)[:, which]
    return absolute, deviation, low, high
