"""Users by their number of items: the crowds that a noisy histogram leaves possible, each with its probability.

If users are few, hardly a bin stands out of the noise, and yet the bins together say much. So the crowd is taken to be
one of many simple *shapes*, weighed by how well it explains all bins. A shape is a normal law of log2(items), cut off
at one item and at all items, or as likely at the end of a bin before that: often nobody has more than so many items,
while the law's tail would put users into empty bins. Or it is everybody with one item. And perhaps there is a part of
the users beside the crowd: heavy ones, of whom every octave holds as many pairs of a user and an item as any other, or
users of all items; beside users of one item also those of a normal law. Shapes are never exact: a bin may differ from
its shape by a part of it, and if noise is smaller than that, the bin is believed. Post-processing of noisy values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from ..arrays import Floats
from .noisy_bins import Bins

__all__ = ["ItemCrowds", "crowds_of_items"]

CENTRES, WIDTHS = 0.5, (0.1, 0.4, 0.8, 1.4, 2.2)
"""Of the normal laws, in octaves: steps between their centres, and standard deviations."""
LEAST_LEFT = 0.5
"""The part of a normal law's users who are left at least if it is cut off before all items."""
BESIDE = 0.1, 0.3, 0.6, 0.85
"""Parts of all pairs of a user and an item that users beside it may hold."""
ALONE, OCTAVE, MOST_BESIDE = 0.25, 0.03, 0.5
"""Prior probabilities that all have one item, but for users beside them; and that there are users beside, for every
octave of items that there is, up to MOST_BESIDE.
"""
SHAPE_ROUGHNESS = 0.4
"""Standard deviation of a bin around its shape, relative to it."""
OFF, OFF_CHANCES = np.array([-1.2, 0.0, 1.2]), np.array([0.3, 0.4, 0.3])
"""Standard deviations by which the number of users may be off the one that fits a shape best."""
UNLIKELY_SHAPE = 1e-4
"""Shapes less likely than this, relative to the likeliest, are left out."""


@dataclass(frozen=True, eq=False)
class ItemCrowds:
    """Row t of `users` has probability weights[t]; column j are users of least[j] to most[j] items. deviations:
    of each entry.
    """

    least: Floats
    most: Floats
    users: Floats
    deviations: Floats
    weights: Floats

    def points(self, parts: int) -> Floats:
        """Numbers of items, so many for each column, over which its users are spread evenly on the log scale."""
        inside = (np.arange(parts) + 0.5) / parts
        sizes: Floats = self.least[:, None] * (self.most / self.least)[:, None] ** inside
        return sizes.ravel()


def crowds_of_items(bins: Bins, items: int) -> ItemCrowds:
    """What `bins`, of users by their number of items, leave possible."""
    least, most = np.append(1.0, bins.edges[:-1] + 1), bins.edges
    shapes, prior = _shapes(least, most, items)
    y, variance = bins.users, bins.deviations**2
    known = (shapes**2 / variance).sum(axis=1)
    whole = (shapes * y / variance).sum(axis=1) / known
    several = np.maximum(whole[:, None] + OFF / np.sqrt(known)[:, None], 1.0)
    expected = (several[:, :, None] * shapes[:, None, :]).reshape(-1, len(y))
    prior = np.outer(prior, OFF_CHANCES).ravel()
    rough = (SHAPE_ROUGHNESS * expected) ** 2 + expected
    spread = np.sqrt(variance + rough)
    away = np.abs(y - expected) / spread
    laplace = variance > rough  # else the law of the bin around its shape, which is taken for normal
    log = np.where(laplace, -np.sqrt(2) * away - 0.5 * np.log(2), -0.5 * away**2 - 0.5 * np.log(2 * np.pi))
    fit = (log - np.log(spread)).sum(axis=1) + np.log(prior)
    weights = np.exp(fit - fit.max())
    keep = weights > UNLIKELY_SHAPE
    trust = rough[keep] / (rough[keep] + variance)
    mean = expected[keep] + trust * (y - expected[keep])
    deviation = np.sqrt(trust * variance)
    # Users are no fewer than none: the mean of a normal law cut off at 0.
    ratio = mean / np.maximum(deviation, 1e-9)
    density = np.exp(-0.5 * ratio**2) / np.sqrt(2 * np.pi)
    cut = np.where(ratio > -6, mean + deviation * density / np.maximum(ndtr(ratio), 1e-12), 0.0)
    return ItemCrowds(least, most, np.maximum(cut, 0.0), deviation, weights[keep] / weights[keep].sum())


def _shapes(least: Floats, most: Floats, items: int) -> tuple[Floats, Floats]:
    """Shapes, which sum to 1 over the bins, with prior probabilities."""
    sizes = np.sqrt(least * most)
    high = np.log2(np.append(most[:-1] + 0.5, np.inf))
    low = np.append(-np.inf, high[:-1])
    centres = np.arange(0.0, np.log2(items) + 1.01, CENTRES)
    normal = np.array([ndtr((high - c) / w) - ndtr((low - c) / w) for c in centres for w in WIDTHS])
    alone = np.zeros((1, len(most)))
    alone[0, 0] = 1.0
    heavy = (np.log2((most + 0.5) / (least - 0.5)) / sizes)[None, :]
    every = alone[:, ::-1]
    others = min(OCTAVE * np.log2(items), MOST_BESIDE)
    cut, parts = _cut_off(normal)
    kinds, prior = [cut], [(1 - ALONE) * (1 - others) / 2 * parts]
    for chance, part, crowds, forms in (
        (ALONE, 1.0, alone, (heavy, every, normal)),
        (1 - ALONE, 0.5, normal, (heavy, every)),
    ):
        mixed = [_beside(crowds, form, sizes) for form in forms]
        kinds += [crowds, *mixed]
        prior.append(np.full(len(crowds), chance * (1 - others) * part / len(crowds)))
        prior += [np.full(len(each), chance * others / len(forms) / len(each)) for each in mixed]
    return np.concatenate(kinds), np.concatenate(prior)


def _cut_off(crowds: Floats) -> tuple[Floats, Floats]:
    """Each crowd without users beyond the end of a bin, for each bin before the last that leaves LEAST_LEFT of them;
    and the chances of these. Crowds are alike likely, and so are the ends of one.
    """
    held = np.cumsum(crowds, axis=1)[:, :-1]
    which, last = np.nonzero(held >= LEAST_LEFT)
    kept: Floats = np.where(np.arange(crowds.shape[1]) <= last[:, None], crowds[which], 0.0)
    ends = np.bincount(which, minlength=len(crowds))
    return kept / held[which, last][:, None], 1 / (ends[which] * np.count_nonzero(ends))


def _beside(crowds: Floats, others: Floats, sizes: Floats) -> Floats:
    """Crowds and other users together, who hold each of the parts BESIDE of all pairs. Either side is a single one."""
    each = (crowds @ sizes) / (others @ sizes)
    mixed: Floats = np.concatenate([crowds + part / (1 - part) * each[:, None] * others for part in BESIDE])
    mixed /= mixed.sum(axis=1, keepdims=True)
    return mixed
