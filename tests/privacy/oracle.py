"""Independent truths in many digits, for the tests of accounting."""

from __future__ import annotations

import mpmath as mp

mp.mp.dps = 50


def gaussian(mu: object, epsilon: object) -> mp.mpf:
    """The Gaussian curve at any real epsilon."""
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    return mp.ncdf(-epsilon / mu + mu / 2) - mp.exp(epsilon) * mp.ncdf(-epsilon / mu - mu / 2)


def gaussian_mu(epsilon: float, delta: float, near: float) -> mp.mpf:
    """The mu at which the Gaussian curve passes through (epsilon, delta), by a root finder."""
    return mp.findroot(
        lambda mu: mp.log(gaussian(mu, epsilon) / mp.mpf(delta)),
        (mp.mpf(near) * mp.mpf("0.99"), mp.mpf(near) * mp.mpf("1.01")),
        solver="anderson",
    )


def curve_of(losses: list[tuple[mp.mpf, mp.mpf]], epsilon: object) -> mp.mpf:
    """The curve of a discrete loss given as (loss, probability)."""
    epsilon = mp.mpf(epsilon)
    return mp.fsum(p * (1 - mp.exp(epsilon - loss)) for loss, p in losses if loss > epsilon)


def laplace_losses(shift: int, scale: object) -> list[tuple[mp.mpf, mp.mpf]]:
    """The loss of scalar discrete Laplace noise shifted by `shift`, atom by atom."""
    scale = mp.mpf(scale)
    a = mp.exp(-1 / scale)
    atoms = [(mp.mpf(shift) / scale, 1 / (1 + a)), (-mp.mpf(shift) / scale, a**shift / (1 + a))]
    return atoms + [((shift - 2 * y) / scale, (1 - a) / (1 + a) * a**y) for y in range(1, shift)]


def add_losses(first: list[tuple[mp.mpf, mp.mpf]], second: list[tuple[mp.mpf, mp.mpf]]) -> list[tuple[mp.mpf, mp.mpf]]:
    return [(x + y, p * q) for x, p in first for y, q in second]


def laplace_with_gaussian(epsilon_0: object, mu: object, epsilon: object) -> mp.mpf:
    """Continuous Laplace noise of pure epsilon_0 with Gaussian noise, by quadrature over its loss."""
    top, epsilon = mp.mpf(epsilon_0), mp.mpf(epsilon)
    inner = mp.quad(lambda x: mp.exp((x - top) / 2) / 4 * gaussian(mu, epsilon - x), mp.linspace(-top, top, 9))
    return gaussian(mu, epsilon - top) / 2 + mp.exp(-top) / 2 * gaussian(mu, epsilon + top) + inner


def discrete_gaussian_pmf(centre: object, sigma: object, reach: int) -> dict[int, mp.mpf]:
    """The discrete Gaussian around a real centre, on integers within `reach` of it."""
    centre, sigma = mp.mpf(centre), mp.mpf(sigma)
    middle = int(mp.nint(centre))
    weights = {y: mp.exp(-((y - centre) ** 2) / (2 * sigma**2)) for y in range(middle - reach, middle + reach + 1)}
    total = mp.fsum(weights.values())
    return {y: weight / total for y, weight in weights.items()}
