"""The self-test of the installed sampler: what it draws against the exact probabilities that it promises.

All else in an audit takes the sampler's word. OpenDP 0.14.1, for example, draws discrete Laplace noise of scale 3 with
the right mean and variance, but with a size that leaves the rest 2 by 3 in 0.30 of draws instead of 0.27.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from ..arrays import Booleans, Integers
from ..privacy.noise import bare_draws

__all__ = ["DRAWS", "FALSE_ALARM", "UNDETECTED", "SelfTest", "check_draws"]

NoiseKind = Literal["laplace", "gaussian"]

DRAWS = 30_000
"""For each kind of noise and each scale."""

SCALES = (3.0, 5.0, 2.0**30 / 0.7)
"""Small ones, where every probability is large enough to be seen, and one as releases have it."""

FALSE_ALARM = 1e-6
"""The chance that any part of the test of a right sampler fails."""

UNDETECTED = 0.034
"""An event whose probability is wrong by this much or more passes with a chance below FALSE_ALARM."""

CHECKED_REACH = 12
MODULI = (2, 3, 4, 5, 7)
QUANTILES = (-6.0, -3.0, -2.0, -1.0, -0.5, -0.1, 0.1, 0.5, 1.0, 2.0, 3.0, 6.0)


@dataclass(frozen=True)
class SelfTest:
    """The event of one kind of noise that fits worst: its probability, how often it came, and the chance that a right
    sampler is so far off in this event.
    """

    kind: NoiseKind
    scale: float
    event: str
    expected: float
    seen: float
    chance: float
    events: int

    @property
    def passed(self) -> bool:
        """Whether the worst event is as likely as chance allows, all events of all tests taken together."""
        return self.chance * self.events >= FALSE_ALARM / 2


def check_draws(
    kind: NoiseKind, draw: Callable[[NoiseKind, float, int], Integers] = bare_draws, draws: int = DRAWS
) -> SelfTest:
    """Hold `draws` draws at each of SCALES against exact probabilities; the worst event.

    Events: single values, residues of the size, and half lines. Each is counted, and its count is binomial if the
    sampler is right. The two-sided chance of a count as unlikely is exact (Clopper and Pearson), and the least of all
    is held against FALSE_ALARM / 2, for each of the two kinds of noise, over the number of events (Bonferroni). So a
    right sampler fails with chance FALSE_ALARM at most, whatever the dependence between events.

    Power: with a chance of c = FALSE_ALARM / (2 events) or more a count lies within t = sqrt(log(2/c) / (2 draws)) of
    its mean (Hoeffding), so that an event that is wrong by UNDETECTED >= t + sqrt(log(1/FALSE_ALARM) / (2 draws))
    passes with a chance below FALSE_ALARM.
    """
    found = []
    for scale in SCALES:
        noise = draw(kind, scale, draws)
        for name, expected, hit in _events(kind, scale, noise):
            seen = int(hit.sum())
            found.append((_chance(seen, len(noise), expected), scale, name, expected, seen / len(noise)))
    chance, scale, name, expected, share = min(found)
    return SelfTest(kind, scale, name, expected, share, chance, len(found))


def _chance(seen: int, draws: int, expected: float) -> float:
    """Twice the smaller tail of the binomial, from its own definition."""
    below = float(special.bdtr(seen, draws, expected))
    above = float(special.bdtrc(seen - 1, draws, expected)) if seen else 1.0
    return min(2.0 * min(below, above), 1.0)


def _events(kind: NoiseKind, scale: float, noise: Integers) -> Iterator[tuple[str, float, Booleans]]:
    """Each event with its probability under exact noise, and whether each draw is in it."""
    if scale < 2.0**10:
        reach = int(60 * scale)
        z = np.arange(-reach, reach + 1)
        weights = np.exp(-np.abs(z) / scale if kind == "laplace" else -(z**2) / (2 * scale**2))
        p = weights / math.fsum(weights)
        for value in range(-CHECKED_REACH, CHECKED_REACH + 1):
            yield f"noise = {value}", float(p[z == value].sum()), noise == value
        for modulus in MODULI:
            for rest in range(modulus):
                inside = np.abs(z) % modulus == rest
                yield f"|noise| mod {modulus} = {rest}", math.fsum(p[inside]), np.abs(noise) % modulus == rest
        for value in range(-CHECKED_REACH, CHECKED_REACH + 1):
            yield f"noise <= {value}", math.fsum(p[z <= value]), noise <= value
        return
    for quantile in QUANTILES:
        # Sums over so many integers are integrals, and residues alike, to within 1/scale: less than 1e-9.
        edge = math.floor(quantile * scale)
        at = (edge + 0.5) / scale
        tail = 0.5 * math.exp(-abs(at)) if kind == "laplace" else float(special.ndtr(-abs(at)))
        yield f"noise <= {quantile:g} scales", tail if at < 0 else 1.0 - tail, noise <= edge
    for modulus in MODULI:
        for rest in range(modulus):
            yield f"noise mod {modulus} = {rest}", 1.0 / modulus, noise % modulus == rest
