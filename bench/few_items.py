"""What noise of density exp(-|x|_2 / s) would gain where items are few, and what an exact sampler of it costs.

    python bench/few_items.py [--draws 200]

Prints the figures of docs/few-items.md, which has the proof that the sampler is exact. No release uses it.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from fractions import Fraction

import numpy as np
from scipy import optimize, special

from crowdgram.privacy.chances import ALWAYS, Chance, Entropy, exp_bounds
from crowdgram.privacy.discrete import discrete_laplace
from crowdgram.privacy.gaussian import gaussian_mu

ITEMS = (2, 3, 5, 8, 10, 12, 15, 20)
BUDGETS = ((1.0, 1e-6), (0.1, 1e-6), (4.0, 1e-6))
SHARES = (0.3, 0.5, 0.7, 0.9)
SCALE = 2.0**30
"""As in releases: many integers to a standard deviation."""


def root_bounds(square: int, places: int) -> tuple[Fraction, Fraction]:
    """Rationals below and above sqrt(square), 2^-places apart; the same if it is a whole number of such steps."""
    low = math.isqrt(square << 2 * places)
    exact = low * low == square << 2 * places
    return Fraction(low, 2**places), Fraction(low + (not exact), 2**places)


def kept(vector: list[int], scale: Fraction, root: Fraction) -> Chance:
    """e^-x, x = (|z|_2 - |z|_1 / root) / scale, for a rational root of at least sqrt(items)."""
    square, size = sum(z * z for z in vector), Fraction(sum(map(abs, vector))) / root
    if size * size == square:
        return ALWAYS

    def bounds(places: int) -> tuple[int, int]:
        low, high = root_bounds(square, places + 64)
        most = (high - size) / scale
        least = max((low - size) / scale, Fraction(0))
        upper = 2**places if least == 0 else exp_bounds(least, places)[1]
        return exp_bounds(most, places)[0], min(upper, 2**places)

    return Chance(bounds)


def spherical(items: int, scale: float, entropy: Entropy) -> tuple[list[int], int]:
    """One draw of integers with P[z] proportional to exp(-|z|_2 / scale), and how many tries it took."""
    root = Fraction(math.isqrt(items << 40) + 1, 2**20)
    proposal, tries = Fraction(scale) * root, 0
    wide = math.nextafter(float(proposal), math.inf)  # the proposal's scale is a double: a little wider is as good
    root = Fraction(wide) / Fraction(scale)
    while True:
        tries += 1
        drawn = [int(z) for z in discrete_laplace(wide, items, entropy)]
        if kept(drawn, Fraction(scale), root).events(1, entropy)[0]:
            return drawn, tries


def mean_size(items: int) -> float:
    """E|x_1| for density exp(-|x|_2): that of the radius, a gamma variable, times that of a direction's coordinate."""
    return items * math.exp(special.gammaln(items / 2) - special.gammaln((items + 1) / 2)) / math.sqrt(math.pi)


def show_sampler(draws: int) -> None:
    print("items  accepted  CPU ms a draw  E|x_1| / s seen, expected")
    for items in (2, 5, 10, 20):
        start = time.process_time()
        made = [spherical(items, SCALE, os.urandom) for _ in range(draws)]
        spent = (time.process_time() - start) / draws * 1e3
        seen = np.mean([np.abs(np.array(vector, dtype=float)).mean() for vector, _ in made]) / SCALE
        accepted = draws / sum(tries for _, tries in made)
        print(f"{items:5} {accepted:9.4f} {spent:14.1f}  {seen:.3f}, {mean_size(items):.3f}")


def show_law(draws: int) -> None:
    """In two dimensions at scale 1: the largest distance of a frequency from its exact probability, in deviations."""
    made: dict[tuple[int, ...], int] = {}
    for _ in range(draws):
        vector, _ = spherical(2, 1.0, os.urandom)
        made[tuple(vector)] = made.get(tuple(vector), 0) + 1
    reach = range(-60, 61)
    weights = {(a, b): math.exp(-math.hypot(a, b)) for a in reach for b in reach}
    whole = math.fsum(weights.values())
    off = [
        abs(made.get(at, 0) - draws * p / whole) / math.sqrt(draws * p / whole)
        for at, p in weights.items()
        if p / whole > 0.005
    ]
    print(f"law in two dimensions: {len(off)} points, {draws} draws, largest distance {max(off):.1f} deviations")


def epsilon_of(mu: float, delta: float, most: float) -> float:
    """The epsilon, up to `most`, whose Gaussian noise at this delta has this mu."""
    return float(optimize.brentq(lambda epsilon: gaussian_mu(epsilon, delta) - mu, 1e-9, most))


def show_gains() -> None:
    normal = math.sqrt(2 / math.pi)
    for epsilon, delta in BUDGETS:
        mu = gaussian_mu(epsilon, delta)
        print(f"\nepsilon {epsilon:g}, delta {delta:g}: mean error of the best noise now over that of l2 noise")
        print("items  plain, add-remove  plain, replace  reach, users of all items")
        for items in ITEMS:
            own, gaussian = mean_size(items) / epsilon, normal / mu
            plain = min(1 / epsilon, gaussian) / own
            replaced = min(2 / epsilon, math.sqrt(2) * gaussian) / (math.sqrt(2) * own)
            reach = min(items / epsilon, math.sqrt(items) * gaussian) / (math.sqrt(items) * own)
            print(f"{items:5} {plain:18.2f} {replaced:15.2f} {reach:26.2f}")
        print("in rounds, by the part of mu^2 that the level has which would get l2 noise:")
        for share in SHARES:
            rest = math.sqrt(1 - share) * mu
            spared = epsilon - epsilon_of(rest, delta, epsilon)
            gains = [normal / (math.sqrt(share) * mu) / (mean_size(items) / spared) for items in ITEMS]
            print(f"  {share:.1f}: " + ", ".join(f"{k} items {g:.2f}" for k, g in zip(ITEMS, gains, strict=True)))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200, help="of each number of items (200)")
    given = parser.parse_args(arguments)
    show_sampler(given.draws)
    show_law(20 * given.draws)
    show_gains()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
