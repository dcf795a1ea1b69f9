"""Looks that are paid for when they are drawn: the mu that pure events leave to Gaussian rounds.

Before the first look, rounds have the mu of the whole guarantee. A look of epsilon a takes as much of it as makes the
look and the rounds together no worse than the rounds alone were before, at every epsilon at which that can matter. So
looks may be chosen from noisy outcomes, and one that is not drawn costs nothing. Proof: docs/proofs/accounting.md,
Theorem 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from crowdgram.arrays import Floats
from crowdgram.privacy.accounting import ETA
from crowdgram.privacy.gaussian import SMALLEST_MU, gaussian_deltas, gaussian_mu
from crowdgram.privacy.guarantee import Guarantee
from crowdgram.privacy.losses import PureEvent, float_up, pure_epsilon
from crowdgram.privacy.roots import find_root

__all__ = ["ROUND_COORDINATES", "mu_after_looks"]

ROUND_COORDINATES = 2**40
"""Of all Gaussian rounds of a release together. What their discreteness costs is below a unit of rounding."""
COMPARED_AT = 129
"""Points at which two curves are compared; between them lines bound both. What that costs is 1 part in 10,000 of mu."""
APART_BY = 1.0 + 2.0**-20
"""Between the curves that are compared: far above the margin of `gaussian_deltas` and all rounding. It costs a part in
10 million of mu.
"""
LEAST_REACH = 2.0**-20
"""Over epsilon, what a look is taken to reach at least: points that are compared stay apart."""
SMALLEST_COMPARED = 1e-280
"""Below, the Gaussian curve is not known to a relative precision."""


def mu_after_looks(guarantee: Guarantee, looks: Sequence[PureEvent]) -> float:
    """The mu that Gaussian rounds have after `looks`, in the order in which these were drawn.

    Formula: m_0 is the largest mu with e^H delta_mu(epsilon - 2H) <= delta, H = ETA ROUND_COORDINATES; m_t is the
    largest mu such that p delta_mu(e - a) + (1 - p) delta_mu(e + a) <= delta_{m_(t-1)}(e) for all e within the sum of
    the earlier looks' epsilons around epsilon - 2H, where a is the epsilon of look t and p = 1/(1 + e^-a).

    Guarantee: rounds of at most ROUND_COORDINATES in all, whose mu^2 add to at most the square of this, keep the
    guarantee together with the looks. Which looks are drawn, with which epsilons, and whether a pure finish follows
    instead, may depend on noisy outcomes. Rounded down. Reference: docs/proofs/accounting.md, Theorem 7.
    """
    charge = ETA * ROUND_COORDINATES
    centre = math.nextafter(guarantee.epsilon - 2.0 * charge, -math.inf)
    mu = gaussian_mu(centre, math.nextafter(guarantee.delta * math.exp(-charge), 0.0)) if centre > 0.0 else 0.0
    reach = Fraction(0)
    for look in looks:
        mu = _after(mu, centre, float_up(reach), float_up(pure_epsilon(look)))
        reach += max(pure_epsilon(look), Fraction(LEAST_REACH * centre))
    return mu


@lru_cache(maxsize=1024)  # asked again before each draw
def _after(mu: float, centre: float, reach: float, look: float) -> float:
    """The largest mu whose rounds and the look are together at most rounds of `mu`, within `reach` of `centre`."""
    if mu <= SMALLEST_MU:
        return 0.0
    before = _Tangents(mu, np.linspace(centre - reach, centre + reach, COMPARED_AT if reach else 1))
    if not before.lowest > SMALLEST_COMPARED:
        return 0.0

    def excess(after: float) -> float:
        return before.excess(_with_look(after, look, before.epsilons))

    least = SMALLEST_MU
    if excess(least) > 0.0:
        return 0.0
    root = find_root(excess, least, mu, 2.0**-40)
    for after in (root, root * (1.0 - 2.0**-38)):
        if excess(after) <= 0.0:
            return after
    return 0.0


def _with_look(mu: float, look: float, epsilons: Floats) -> Floats:
    """The curve of a look, as bad as its epsilon allows, and of Gaussian noise: rounded up."""
    p = 1.0 / (1.0 + math.exp(-look))
    curve: Floats = p * gaussian_deltas(mu, epsilons - look) + (1.0 - p) * gaussian_deltas(mu, epsilons + look)
    return curve


class _Tangents:
    """The Gaussian curve from below. As a function of x = e^epsilon it is convex, with the slope -Phi(-epsilon/mu -
    mu/2): between two nodes it is above both tangents, the larger of which is least where they cross.
    """

    def __init__(self, mu: float, epsilons: Floats) -> None:
        self.epsilons, x = epsilons, np.exp(epsilons)
        self.values = gaussian_deltas(mu, epsilons)
        slopes = ndtr(-epsilons / mu - mu / 2)
        width, fall = np.diff(x), -np.diff(self.values)
        # From the left node at a slope, and from the right one at a smaller one: they cross where both are as low.
        steeper = slopes[:-1] - slopes[1:]
        at = np.where(steeper > 0.0, (fall - slopes[1:] * width) / np.where(steeper > 0.0, steeper, 1.0), 0.0)
        at = np.clip(at, 0.0, width)
        # Elsewhere than at the crossing the lower of the two is farther below any chord, so rounding does no harm.
        self.parts = at / width
        self.crossings = np.minimum(self.values[:-1] - slopes[:-1] * at, self.values[1:] + slopes[1:] * (width - at))

    @property
    def lowest(self) -> float:
        return float(min(self.values.min(), self.crossings.min(initial=np.inf)))

    def excess(self, curve: Floats) -> float:
        """Above 0 unless a convex curve with these values at the nodes lies below, with room to spare."""
        chords = curve[:-1] + self.parts * np.diff(curve)
        above = np.concatenate([curve * APART_BY / self.values, chords * APART_BY / self.crossings])
        return float(above.max()) - 1.0
