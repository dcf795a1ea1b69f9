"""From what an attack saw to a lower bound on epsilon, with a confidence level.

Every bound here holds with the stated confidence over the attack's own randomness, whatever the mechanism is: nothing
is assumed of the shape of the losses. docs/proofs/audit.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from ..arrays import Floats
from ..privacy.gaussian import gaussian_delta, gaussian_epsilon

__all__ = ["GRID", "epsilon_from_losses", "epsilon_from_rates", "gaussian_epsilon_from_rates", "rate_bounds"]


GRID = 2.0 ** np.arange(-6, 7.01, 1 / 128)
"""The epsilons that are tested, in this order: each half a percent above the one before."""


def epsilon_from_losses(losses: Sequence[float], log_weights: Sequence[float], delta: float, doubt: float) -> float:
    """A lower bound on epsilon at `delta`, from exact losses of sampled outcomes; wrong with chance `doubt` at most.

    Formula: delta(e) = E[w (1 - exp(e - L))_+] over outcomes drawn as they were, w = exp(log weight). For each e of
    GRID in turn "delta(e) <= delta" is tested, and the last e that is rejected is returned.

    The test: Z_t = w (1 - exp(e - L))_+ / delta is not negative and has a mean of at most 1 if the hypothesis holds. So
    the wealth prod_t (1 + b_t (Z_t - 1)), with bets 0 <= b_t < 1 that depend on earlier Z only, is a non-negative
    supermartingale, and exceeds 1/doubt at any time with chance at most `doubt` (Ville's inequality). Hypotheses are
    nested and tested in a fixed order up to the first that stands, so `doubt` is the chance of any false rejection.

    For delta = 0 an outcome of loss L that can happen at all refutes every epsilon below L, for certain.
    Reference: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (arXiv 2010.09686).
    """
    found = np.array(losses, dtype=np.float64)
    if delta == 0.0:
        return max(float(found.max(initial=0.0)), 0.0)
    weights = np.exp(np.array(log_weights, dtype=np.float64))[:, None]
    # A loss that is infinite loses everything, whatever epsilon is.
    lost = -np.expm1(np.minimum(GRID - found[:, None], 0.0))
    rejected = _log_wealth(weights * lost / delta) >= -math.log(doubt)
    standing = np.flatnonzero(~rejected)
    if len(standing) == 0:
        return math.inf
    return float(GRID[standing[0] - 1]) if standing[0] > 0 else 0.0


def _log_wealth(values: Floats) -> Floats:
    """The most that predictable bets against a mean of 1 ever make, for each column, in logs.

    The bet is the constant one that would have made most so far; the first is 0.3.
    """
    bets = np.linspace(0.05, 0.95, 19)[:, None]
    gains = np.zeros((len(bets), values.shape[1]))
    wealth, most = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    bet = np.full(values.shape[1], 0.3)
    for value in values:
        wealth = wealth + np.log1p(bet * (value - 1.0))
        most = np.maximum(most, wealth)
        gains += np.log1p(bets * (value - 1.0))
        bet = bets[np.argmax(gains, axis=0), 0]
    return most


def rate_bounds(hits: int, of: int, doubt: float) -> tuple[float, float]:
    """Clopper and Pearson's bounds on a rate: each is wrong with chance `doubt` / 2 at most."""
    low = 0.0 if hits == 0 else float(special.betaincinv(hits, of - hits + 1, doubt / 2))
    high = 1.0 if hits == of else float(special.betaincinv(hits + 1, of - hits, 1 - doubt / 2))
    return low, high


def epsilon_from_rates(hits: int, false_hits: int, of: int, delta: float, doubt: float) -> float:
    """A lower bound on epsilon at `delta` from how often an event, fixed before, happened on either table.

    Formula: P <= e^epsilon P' + delta for the event's two probabilities, so epsilon >= log((P - delta) / P'); P is
    taken from below and P' from above. Wrong with chance `doubt` at most.
    """
    low, _ = rate_bounds(hits, of, doubt)
    _, high = rate_bounds(false_hits, of, doubt)
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def gaussian_epsilon_from_rates(hits: int, false_hits: int, of: int, delta: float, doubt: float) -> float:
    """The epsilon at `delta` of the least mu whose Gaussian trade-off allows the two rates.

    Formula: mu >= Phi^-1(P) - Phi^-1(P'), P from below and P' from above; then the Gaussian curve. It refutes a claim
    of mu, and of an epsilon only if the mechanism's trade-off is Gaussian: not a bound for other mechanisms.
    Reference: Nasr et al., "Tight Auditing of Differentially Private Machine Learning" (arXiv 2302.07956).
    """
    low, _ = rate_bounds(hits, of, doubt)
    _, high = rate_bounds(false_hits, of, doubt)
    mu = float(special.ndtri(low) - special.ndtri(high))
    if not mu > 0.0 or not math.isfinite(mu) or delta == 0.0:
        return 0.0
    return gaussian_epsilon(mu, delta) if gaussian_delta(mu, 0.0) > delta else 0.0
