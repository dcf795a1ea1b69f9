"""Users by size (rows, or distance from a centre): what a noisy histogram on a logarithmic scale says of them.

Bins that stand out of the noise are smoothed: their users rise once and fall once. Beyond the last of them users are
too few to be seen, but not nobody: a tail goes on from what is seen, as steeply as the noise beyond allows, and how
steeply is uncertain. A reading is therefore a set of crowds with probabilities. Post-processing of noisy values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arrays import Booleans, Floats, Integers
from .noisy_bins import Bins, Window, find_windows
from .tuning import TUNING
from .unimodal import rise_and_fall

__all__ = ["ROUGHNESS", "Crowds", "read", "surprise"]

REACH = 8.0
"""Octaves beyond what is seen in which users are thought possible."""
FITTED = 1.5
"""Octaves of what is seen that a tail continues."""
ROUGHNESS = 0.15
"""How far users in bins are from a tail's formula, or from one that rises once and falls once, relative."""
HEAVY_ROWS = np.geomspace(0.01, 3.0, 6)
"""Rows that *heavy* users, with rows of another order than all others, may have, over the rows of the others."""
HEAVY_WIDTH = 0.7
"""They lie around one size, with this standard deviation in octaves, or, as likely, all in one bin."""
NO_HEAVY_USERS = 0.7
"""Prior probability that there are no heavy users."""
UNLIKELY_READING = 0.01
"""Readings that are less likely are left out."""
UNLIKELY_CROWDS = 0.02
"""The least likely crowds, with this probability in all, do not count in what is expected."""
TAILS_BESIDE = 8
"""Tails of a crowd that heavy users are thought of beside."""
UNLIKELY_TAIL = 5e-3
"""Tails that are less likely, over the likeliest, are left out."""
LEAST = 0.3
"""A tail ends where fewer users than this are expected beyond."""


@dataclass(frozen=True, eq=False)
class Crowds:
    """What a histogram leaves possible: row t of `users` has probability `weights[t]`; column j are users of size
    `sizes[j]`, spread over `octaves[j]` around it. `error` is the standard deviation of the number of users that are
    seen; users of larger size than `seen` are not. strangers[t, j]: the part of these users who do not continue the
    crowd, but come after a gap. readings[t]: the number of the reading that row t belongs to; a reading says which bins
    hold users and which hold noise only. kinds[t]: the number of where row t has heavy users; 0: nowhere.
    """

    sizes: Floats
    octaves: Floats
    users: Floats
    weights: Floats
    error: float
    seen: float
    strangers: Floats
    readings: Integers
    kinds: Integers

    @cached_property
    def typical(self) -> Floats:
        """The geometric mean over the crowds of the likeliest reading."""
        return self._typical(self.readings == np.argmax(np.bincount(self.readings, self.weights)))

    def _typical(self, which: Booleans) -> Floats:
        users, weights = self.users[which], self.weights[which]
        logs = weights @ np.log(users + 1e-9) / weights.sum()
        return np.where(users.max(axis=0) > 0, np.exp(logs) - 1e-9, 0.0).clip(0.0)

    @cached_property
    def settled(self) -> Crowds:
        """The typical crowd of each reading and each place of heavy users."""
        both, inverse = np.unique(np.stack([self.readings, self.kinds]), axis=1, return_inverse=True)
        weights: Floats = np.bincount(inverse.ravel(), self.weights).astype(np.float64)
        users = np.array([self._typical(inverse.ravel() == one) for one in range(len(weights))])
        parts = [np.average(self.strangers[inverse.ravel() == one], axis=0) for one in range(len(weights))]
        return replace(self, users=users, weights=weights, strangers=np.array(parts), readings=both[0], kinds=both[1])

    @cached_property
    def likely(self) -> Crowds:
        """Without the least likely crowds. One by one they may be unlikely, as groups of heavy users are, and together
        not.
        """
        order = np.argsort(-self.weights)
        enough = int(np.searchsorted(np.cumsum(self.weights[order]), 1 - UNLIKELY_CROWDS)) + 1
        kept = np.isin(np.arange(len(order)), order[:enough])
        if kept.all():
            return self
        return replace(
            self,
            users=self.users[kept],
            weights=self.weights[kept] / self.weights[kept].sum(),
            strangers=self.strangers[kept],
            readings=self.readings[kept],
            kinds=self.kinds[kept],
        )

    def capped(self, most: float) -> Crowds:
        """The same users, of size `most` at most."""
        over = self.sizes > most
        if not over.any():
            return self
        octaves = np.where(over, 0.0, self.octaves)
        return replace(self, sizes=np.where(over, most, self.sizes), octaves=octaves, seen=min(self.seen, most))

    def spread_out(self, parts: int) -> Floats:
        """The users of so many crowds that are as likely as each other."""
        users: Floats = self.users[self.equally_likely(parts)]
        return users

    def equally_likely(self, parts: int) -> Integers:
        """The numbers of so many crowds, as likely as each other, in the order of what their largest users hold."""
        order = np.argsort(self.users @ self.sizes)
        cumulative = np.cumsum(self.weights[order])
        places = np.searchsorted(cumulative, (np.arange(parts) + 0.5) / parts)
        chosen: Integers = order[np.minimum(places, len(order) - 1)]
        return chosen

    def quantile(self, share: float) -> float:
        """The size that this share of users do not exceed."""
        typical = self.typical
        place = np.searchsorted(np.cumsum(typical) / typical.sum(), share)
        return float(self.sizes[min(int(place), len(self.sizes) - 1)])


def read(bins: Bins, *, eager: bool = False, strangers: bool = False) -> Crowds | None:
    """The crowds that `bins` leave possible; None if nothing stands out. `eager`: if nothing is clear, believe less.
    `strangers`: the bins are of rows: a group of users beside the crowd is possible, and so is a sharp end.

    The farthest bins that stand out may be noise. So there is a reading for each bin that may be the last to hold
    users, with its probability; and two of them if there may be two crowds.
    """
    marked = find_windows(bins, eager)
    if not marked:
        return None
    first = min(window.first for window in marked)
    readings = []
    for last, chance in _last_bins(marked):
        for gap, part in _gaps(bins, first, last) if strangers else [(None, 1.0)]:
            readings.append((_reading(bins, first, last, gap, strangers), chance * part))
    return replace(
        max(readings, key=lambda reading: reading[1])[0],
        users=np.concatenate([one.users for one, _ in readings]),
        weights=np.concatenate([one.weights * chance for one, chance in readings]),
        strangers=np.concatenate([one.strangers for one, _ in readings]),
        readings=np.repeat(np.arange(len(readings)), [len(one.weights) for one, _ in readings]),
        kinds=np.concatenate([one.kinds for one, _ in readings]),
    )


def _reading(bins: Bins, first: int, last: int, gap: int | None, strangers: bool) -> Crowds:
    """The crowds that are possible if bins from `first` to `last` hold users whom noise does not hide, and a crowd of
    its own begins at `gap`.
    """
    upper, (least, widths) = bins.edges, _places(bins)
    sizes = np.sqrt(least * upper)
    shape = np.zeros(len(bins.users))
    ends = [last + 1] if gap is None else [gap, last + 1]
    for begin, end in zip([first, *ends[:-1]], ends, strict=True):
        shape[begin:end] = rise_and_fall(bins.users[begin:end], widths[begin:end])
    alike = math.log2(sizes[last] / sizes[first]) < 1.0  # by design, most likely: nobody has rows of another order
    hidden = HEAVY_ROWS if strangers and not alike else HEAVY_ROWS[:0]
    tails, weights, parts, kinds = _tails(bins, shape, sizes, widths, last, hidden, may_end=strangers)
    users = np.where(np.arange(len(shape)) <= last, shape, tails)
    error = math.sqrt(float((bins.deviations[first : last + 1] ** 2).sum()))
    alone = np.zeros(len(shape)) if gap is None else _strangers(shape / widths, gap)
    reading = np.zeros(len(weights), dtype=np.int64)
    return Crowds(
        sizes, np.log2(upper / least), users, weights, error, float(sizes[last]), alone + parts, reading, kinds
    )


def _places(bins: Bins) -> tuple[Floats, Floats]:
    """The least size in each bin, and its width in octaves."""
    upper = bins.edges
    if upper[0] == 1:  # whole numbers of rows: a bin begins with the next one, and each stands for half a row around it
        least = np.append(1.0, upper[:-1] + 1)
        return least, np.log2((upper + 0.5) / (least - 0.5))
    lower = np.append(upper[0] * upper[0] / upper[1], upper[:-1])
    return lower, np.log2(upper / lower)


def _gaps(bins: Bins, first: int, last: int) -> list[tuple[int | None, float]]:
    """The first bin after a gap, from which on users rise again who had fallen, and None, if there is no gap: each with
    its probability.

    Two crowds, each of which rises once and falls once, explain what is seen better than one. They are as likely as one
    if they do so by as much as noise would with a chance of `beside`.
    """
    part = slice(first, last + 1)
    users, width = bins.users[part], _places(bins)[1][part]
    one = rise_and_fall(users, width)
    rough = one + (ROUGHNESS * one) ** 2  # as one crowd would vary by chance, and as no crowd is a formula

    def misfit(fit: Floats) -> float:
        away = [((look.users[part] - fit) / np.sqrt(look.deviations[part] ** 2 + rough), look) for look in bins.looks]
        return sum(float(surprise(each, look.laplace).sum()) for each, look in away)

    begin = int(np.argmax(one / width)) + 2
    two = [
        np.append(rise_and_fall(users[:cut], width[:cut]), rise_and_fall(users[cut:], width[cut:]))
        for cut in range(begin, len(users))
    ]
    if not two:
        return [(None, 1.0)]
    misfits = [misfit(fit) for fit in two]
    best = int(np.argmin(misfits))
    odds = TUNING.beside * math.exp(min(misfit(one) - misfits[best], 50.0))
    found = (first + begin + best, odds / (1 + odds)), (None, 1 / (1 + odds))
    likely = [(gap, chance) for gap, chance in found if chance > UNLIKELY_READING]
    total = sum(chance for _, chance in likely)
    return [(gap, chance / total) for gap, chance in likely]


def _strangers(density: Floats, gap: int) -> Floats:
    """The part of the users from `gap` on that is too many for a crowd that falls: more than the least before them."""
    top = int(np.argmax(density[:gap]))
    least = np.minimum.accumulate(np.append(np.full(top, np.inf), density[top:]))
    after = (np.arange(len(density)) >= gap) & (density > 0)
    return np.where(after, 1 - least / np.maximum(density, 1e-300), 0.0).clip(0.0)


def surprise(away: Floats, laplace: bool) -> Floats:
    """The negative logarithm of the density of noise, so many standard deviations away, less that at 0. That of Laplace
    noise is rounded at the top, as crowds are no formula.
    """
    found: Floats = np.sqrt(1 + 2 * away**2) - 1 if laplace else 0.5 * away**2
    return found


def _tails(
    bins: Bins, shape: Floats, sizes: Floats, widths: Floats, last: int, hidden: Floats, *, may_end: bool
) -> tuple[Floats, Floats, Floats, Integers]:
    """Tails beyond the last bin that is seen, and their posterior: the crowd's own, and perhaps a few users beside it.

    The crowd's own are A exp(-b x - c x^2) users an octave, x octaves from where they begin; b is log-normal by prior,
    c anything from 0 (a power law) to a log-normal's. They begin within what is seen; or, if a crowd `may_end` sharply
    (nobody flies on more days than a year has), with its last bin, for the misfit that is expected of the bins before.
    Beside it there may be a group of heavy users (robots, shared accounts): any share of rows, in any octave, is as
    likely as another; it is as wide as HEAVY_WIDTH, or all in one bin. The likelihood is that of the last octaves seen
    and of the noise beyond, of each look by itself: of Laplace noise, rounded at the top, as crowds are no formula.
    Returns users, probabilities, the part who are heavy, and where these are.
    """
    x = np.log2(sizes)
    top = int(np.argmax(shape / widths))
    start = max(int(np.searchsorted(x, x[last] - FITTED)), min(top, last))
    end = min(int(np.searchsorted(x, x[last] + REACH)), len(x) - 1)
    part = slice(start, end + 1)
    away, beyond = x[part] - x[start], np.arange(start, end + 1) > last
    seen = np.append(shape[start : last + 1], bins.users[last + 1 : end + 1])
    variance = bins.deviations[part] ** 2 + np.where(beyond, 0.0, ROUGHNESS * seen) ** 2
    slopes, bends = np.meshgrid(np.geomspace(0.2, 40, 24), np.append(0.0, np.geomspace(0.02, 5, 6)), indexing="ij")
    b, c = slopes.ravel(), bends.ravel()
    form = np.exp(-b[:, None] * away - c[:, None] * away**2) * widths[part]
    size = np.maximum((form * seen / variance).sum(axis=1) / (form**2 / variance).sum(axis=1), 0.0)
    own = size[:, None] * form
    prior = -0.5 * (np.log(b / TUNING.fall) / TUNING.fall_spread) ** 2
    if may_end:
        past = np.maximum(x[part] - x[last], 0.0)
        falling = np.exp(-b[:, None] * past - c[:, None] * past**2) * widths[part]
        own = np.concatenate([own, np.where(beyond, shape[last] / widths[last] * falling, seen)])
        prior = np.concatenate([prior, prior - 0.5 * float((~beyond).sum())])
    places = x[last] + np.arange(0.5, REACH)
    around = np.where(beyond, np.exp(-(((x[part] - places[:, None]) / HEAVY_WIDTH) ** 2) / 2) * widths[part], 0.0)
    few = np.concatenate([around, np.eye(len(away))[beyond]])
    few *= float(shape @ sizes) / np.maximum(few @ sizes[part], 1e-9)[:, None]
    ways = np.array([len(around), len(few) - len(around)])
    chances = np.repeat((1 - NO_HEAVY_USERS) / 2 / np.maximum(ways * len(hidden), 1), ways * len(hidden))
    groups = (few[:, None, :] * hidden[:, None]).reshape(-1, len(away))

    def fit(expected: Floats) -> Floats:
        found: Floats = -0.5 * ((seen - expected)[..., ~beyond] ** 2 / variance[~beyond]).sum(axis=-1)
        for look in bins.looks:
            off = (look.users[part] - expected)[..., beyond] / look.deviations[part][beyond]
            found -= surprise(off, look.laplace).sum(axis=-1)
        return found

    alone = prior + fit(own)
    weights = np.exp(alone - alone.max())
    # Beside heavy users, a few tails of the crowd itself stand for all; and of these, the likeliest.
    best = np.argsort(-weights)[:TAILS_BESIDE]
    beside = np.exp(prior[best, None] + fit(own[best, None, :] + groups) - alone.max())
    beside *= chances / NO_HEAVY_USERS * weights.sum() / weights[best].sum()
    kinds = np.append(np.zeros(len(own), dtype=np.int64), np.repeat(np.arange(1, len(few) + 1), len(hidden)))
    own = np.concatenate([own, own[best[beside.argmax(axis=0)]]])
    strange = np.concatenate([np.zeros((len(weights), len(away))), groups])
    weights = np.append(weights, beside.sum(axis=0))
    keep = weights > UNLIKELY_TAIL * weights.max()
    own, strange, kinds, weights = own[keep], strange[keep], kinds[keep], weights[keep]
    expected = own + strange
    tails = np.zeros((len(weights), len(sizes)))
    tails[:, part] = np.where(beyond, expected, 0.0)
    left = np.cumsum(tails[:, ::-1], axis=1)[:, ::-1]
    parts = np.zeros(tails.shape)
    parts[:, part] = np.where(beyond, strange / np.maximum(expected, 1e-300), 0.0)
    return np.where(left > LEAST, tails, 0.0), weights / weights.sum(), parts, kinds


def _last_bins(marked: list[Window]) -> list[tuple[int, float]]:
    """Bins that may be the last to hold users, each with its probability: those of a window, unless it or a farther
    one holds noise only.
    """
    doubts = {last: min(each.doubt for each in marked if each.last == last) for last in {each.last for each in marked}}
    left, found = 1.0, []
    for last in sorted(doubts, reverse=True):
        chance = left * (1 - doubts[last]) if last > min(doubts) else left
        left -= chance
        found.append((last, chance))
    likely = [(last, chance) for last, chance in found if chance > UNLIKELY_READING]
    total = sum(chance for _, chance in likely)
    return [(last, chance / total) for last, chance in likely]
