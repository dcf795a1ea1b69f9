"""Algorithm 3, Dense; Algorithm 5, Sparse; and Theorem 2, which joins them. The cores of Appendix E's algorithms too.

Two settings. constants="paper": epsilon', alpha' and the cover as printed, but for the errata. constants="tight":
the same algorithms with the composition that is really spent (families of choices of which a user changes few),
under add-remove with scores that all move one way if that is cheaper, with Gaussian noise in SmallBinom, and an
accuracy chosen by predicted error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..arrays import Floats
from ..errors import InvalidArgument
from ..privacy import Adjacency, AnyFinish, Guarantee
from ..tables import Tallies
from .binomial import (
    BINOMIAL_CONSTANT,
    SmallBinom,
    angular_cover,
    binom,
    binom_users,
    small_binom,
)
from .selection import Hypotheses, Selected, changed_symbols, phs, spread_of

__all__ = ["Constants", "Learned", "dense", "learn", "sparse"]

Constants = Literal["paper", "tight"]

SMALL_SHARE = 0.6
"""The part of mu^2 that SmallBinom gets in the sparse regime, with tight constants."""
TIGHT_HYPOTHESES = 2**13
MOST_ACCURACY = 0.28
"""PHS cannot tell hypotheses apart beyond 3 alpha >= 1 in total variation."""
TWO_SIDED = (0.025, 0.975)


@dataclass(frozen=True)
class Learned:
    """Estimates of each symbol's probability, not yet a distribution, with the error that is predicted for each.

    absolute, deviations: mean absolute error and standard deviation of the private choice or noise. low, high:
    quantiles at 2.5% and 97.5% of (estimate - truth). doubts: what keeps the theorem's bound on the error from
    applying; empty if it applies. All are functions of noisy and public values.
    """

    probabilities: Floats
    absolute: Floats
    deviations: Floats
    low: Floats
    high: Floats
    regime: Literal["dense", "sparse"]
    alpha: float
    hypotheses: int
    doubts: tuple[str, ...]


def dense(
    tallies: Tallies,
    spending: AnyFinish,
    *,
    users: int,
    alpha: float | None = None,
    constants: Constants = "paper",
    variable: bool = False,
    checked: bool = True,
) -> Learned:
    """Algorithm 3 (Dense), and its modification in Appendix E (Theorem 14) with `variable`.

    Binom(D_i, epsilon', alpha') for each symbol i, with epsilon' = epsilon/(4 sqrt(k log(1/delta))) and alpha' =
    min(sqrt(m) alpha/(2 sqrt(k)), 1).

    where: (epsilon, delta) is what `spending` has left, m is `tallies.rows`, s is `users`, which is public or
    noisy; with `variable`, epsilon' = epsilon/(4 sqrt((k + 1) log(2/delta))). constants="tight": epsilon' is what
    composition really allows. Theorem 7 needs k <= m, epsilon <= 1, 0 < delta < 1 and 0 < alpha <= 1, or there is
    an error; `checked=False` runs it anyway, and says so in `doubts`. Corrects errata 1, 3, 4, 7, 10 and 14.

    Guarantee: what `spending` has left, under its adjacency; the events are re-checked against it before each draw.
    Proof: docs/proofs/paper.md, Theorem 3.
    """
    rest = spending.rest
    k, m = tallies.items, tallies.rows
    doubts = _range("Theorem 7", k <= m, "k <= m", tallies, rest, alpha)
    _refuse(doubts, checked)
    if constants == "tight":
        plan = _tight_plan(k, m, users, spending, alpha, 1.0)
        doubts = plan.doubts
        selected = _tight_binom(tallies, spending, users, plan)
    else:
        alpha = 0.1 if alpha is None else alpha
        inner = min(math.sqrt(m) * alpha / (2 * math.sqrt(k)), 1.0)
        symbols, log = (k + 1, math.log(2 / rest.delta)) if variable else (k, math.log(1 / rest.delta))
        changed = changed_symbols(k, m, rest.adjacency)
        epsilon = min(rest.epsilon / (4 * math.sqrt(symbols * log)), spending.selection_epsilon(changed))
        selected = binom(tallies, spending, users=users, epsilon=epsilon, alpha=inner, changed=changed)
        doubts += _few_users(users, m, inner, epsilon, alpha / (40 * k))
    return _learn("dense", selected, None, alpha, doubts)


def sparse(
    tallies: Tallies,
    spending: AnyFinish,
    *,
    users: int,
    alpha: float | None = None,
    constants: Constants = "paper",
    variable: bool = False,
    checked: bool = True,
) -> Learned:
    """Algorithm 5 (Sparse), and its modification in Appendix E (Theorem 15) with `variable`.

    p'_i = Binom(D_i, epsilon', alpha'') and p''_i = SmallBinom(D_i, epsilon') for each symbol; p''_i where p'_i <
    2/m, else p'_i; epsilon' = epsilon/(8 sqrt(min(k, m) log(1/delta))), alpha'' = alpha/240.

    where: as in `dense`; with `variable`, log(2/delta). constants="tight": SmallBinom adds Gaussian noise. Theorem
    8 needs k >= m >= 8 and epsilon <= 1, 0 < delta < 1, 0 < alpha <= 1. Corrects errata 1 to 4, 7, 10 to 13.

    Guarantee: what `spending` has left, under its adjacency. p' and p'' are both drawn for all symbols, so that the
    choice between them is post-processing. Proof: docs/proofs/paper.md, Theorem 3.
    """
    rest = spending.rest
    k, m = tallies.items, tallies.rows
    doubts = _range("Theorem 8", k >= m >= 8, "k >= m >= 8", tallies, rest, alpha)
    _refuse(doubts, checked)
    changed = changed_symbols(k, m, rest.adjacency)
    if constants == "tight":
        plan = _tight_plan(k, m, users, spending, alpha, 1.0 - SMALL_SHARE)
        doubts = plan.doubts
        selected = _tight_binom(tallies, spending, users, plan)
        small = small_binom(tallies, spending, users=users, changed=changed, mu=spending.remaining_mu(k))
    else:
        alpha = 0.1 if alpha is None else alpha
        log = math.log(2 / rest.delta) if variable else math.log(1 / rest.delta)
        allowed = spending.selection_epsilon(changed, 1 / 6)  # SmallBinom's Laplace noise costs as much as four choices
        epsilon = min(rest.epsilon / (8 * math.sqrt(min(k, m) * log)), allowed)
        selected = binom(tallies, spending, users=users, epsilon=epsilon, alpha=alpha / 240, changed=changed)
        small = small_binom(tallies, spending, users=users, changed=changed, epsilon=epsilon)
        doubts += _few_users(users, m, alpha / 240, epsilon, alpha / (40 * k))
    return _learn("sparse", selected, small, alpha, doubts)


def learn(
    tallies: Tallies,
    spending: AnyFinish,
    *,
    users: int,
    alpha: float | None = None,
    constants: Constants = "paper",
    variable: bool = False,
    checked: bool = True,
) -> Learned:
    """Theorem 2's algorithm: Dense if k <= m, Sparse if k > m. The regime depends on public (or noisy) k and
    m only.

    With tight constants and `checked=False`, Sparse is taken if 2k > m already: hypotheses within 3 alpha of p =
    0 cannot be told apart from below, so that PHS alone leans upwards on many small probabilities.

    Guarantee: that of the one that runs. Theorem 2 needs epsilon <= 1.
    """
    k, m = tallies.items, tallies.rows
    algorithm = dense if (2 * k <= m if constants == "tight" and not checked else k <= m) else sparse
    return algorithm(
        tallies, spending, users=users, alpha=alpha, constants=constants, variable=variable, checked=checked
    )


@dataclass(frozen=True)
class _Plan:
    """How tight constants run PHS: range of a choice, symbols paid for, accuracy in total variation, covering radius.

    No theorem speaks of tight constants; `doubts` say when the choices are likely to be chance.
    """

    epsilon: float
    changed: int
    monotone: bool
    accuracy: float
    radius: float
    doubts: tuple[str, ...]


def _tight_plan(k: int, m: int, users: int, spending: AnyFinish, alpha: float | None, share: float) -> _Plan:
    """Spend all of `share`; then take the smallest accuracy at which the best hypothesis outweighs all others.

    Around the truth, scores fall by s for each unit of total variation, from 3/2 a s at the truth to 0 at distance
    3/2 a. So the choice errs by about 1/(s weight) in total variation, weight = epsilon/2 a user (epsilon, where
    scores are monotone), whatever a is, as long as the d hypotheses beyond, which have score 0, do not win: 3/2 a s
    weight >= log(d k) + 8 (so that one of k symbols goes astray in one release of 3000), with room for the sampling
    error of the counts.
    """
    adjacency = spending.guarantee.adjacency
    few = changed_symbols(k, m, adjacency)
    # Monotone scores need half the range, but every symbol is paid for: cheaper if sqrt(k) < 2 sqrt(changed).
    monotone = adjacency is Adjacency.ADD_REMOVE and k < 4 * few
    changed = k if monotone else few
    epsilon = spending.selection_epsilon(changed, share)
    gain = users * epsilon / (1 if monotone else 2)
    if alpha is None:
        needed = (math.log(TIGHT_HYPOTHESES * k) + 8) / (1.5 * gain) + 0.7 / math.sqrt(users)
        accuracy = min(MOST_ACCURACY, needed)
    else:
        accuracy = BINOMIAL_CONSTANT * min(math.sqrt(m) * alpha / (2 * math.sqrt(k)), 1.0) / 10
    # Neighbours in the cover are 0.8 radius apart in total variation: a third of the noise, or of the accuracy.
    step = max(min(accuracy, 1 / gain) / 3, 1.25 * math.sqrt(m) / TIGHT_HYPOTHESES)
    outweighs = math.log(TIGHT_HYPOTHESES * k) + 3  # one release in 20 has a wild choice
    doubts: tuple[str, ...] = ()
    if 1.5 * accuracy * gain < outweighs:
        enough = users * outweighs / (1.5 * MOST_ACCURACY * gain)
        doubts = (f"about {enough:.2g} users are needed for choices that are not mostly chance, and there are {users}",)
    return _Plan(epsilon, changed, monotone, accuracy, min(step / 0.8, 1.0), doubts)


def _tight_binom(tallies: Tallies, spending: AnyFinish, users: int, plan: _Plan) -> Selected:
    """Algorithm 2 with the plan's cover and accuracy, which may exceed the c/10 that Theorem 6's alpha <= 1 allows."""
    hypotheses = Hypotheses.of(tallies.rows, angular_cover(tallies.rows, plan.radius), plan.accuracy)
    return phs(
        tallies,
        hypotheses,
        spending,
        users=users,
        epsilon=plan.epsilon,
        changed=plan.changed,
        monotone=plan.monotone,
    )


def _learn(
    regime: Literal["dense", "sparse"],
    selected: Selected,
    small: SmallBinom | None,
    alpha: float | None,
    doubts: tuple[str, ...],
) -> Learned:
    p, m, users = selected.probabilities, selected.hypotheses.m, selected.users
    absolute, deviations, low, high = spread_of(selected, TWO_SIDED)
    if small is not None:
        below = p < 2 / m
        reach = 1.96 * small.deviations
        p = np.where(below, small.probabilities, p)
        absolute = np.where(below, math.sqrt(2 / math.pi) * small.deviations, absolute)
        deviations = np.where(below, small.deviations, deviations)
        low, high = np.where(below, -reach, low), np.where(below, reach, high)
    if alpha is None:
        # A count at a threshold is a median more than a mean: pi/2 of the variance.
        sampling = math.sqrt(2 / math.pi) * np.sqrt(math.pi / 2 * p * (1 - p) / (m * users))
        alpha = float(min(2.0, np.hypot(absolute, sampling).sum()))
    return Learned(p, absolute, deviations, low, high, regime, alpha, len(selected.hypotheses), doubts)


def _range(
    theorem: str, holds: bool, needed: str, tallies: Tallies, rest: Guarantee, alpha: float | None
) -> tuple[str, ...]:
    """What is out of the range that the theorem needs."""
    if rest.delta <= 0:
        raise InvalidArgument(f"delta={rest.delta:g}: {theorem} needs 0 < delta < 1. Try delta=1e-6.", argument="delta")
    if alpha is not None and not 0.0 < alpha <= 1.0:
        raise InvalidArgument(f"alpha={alpha!r}: {theorem} needs 0 < alpha <= 1. Try alpha=0.1.", argument="alpha")
    doubts = []
    if rest.epsilon > 1:
        doubts.append(f"{theorem} needs epsilon <= 1, and epsilon={rest.epsilon:g} is left for it")
    if not holds:
        doubts.append(
            f"{theorem} needs {needed}, and there are k={tallies.items} items and m={tallies.rows} rows a user"
        )
    return tuple(doubts)


def _refuse(doubts: tuple[str, ...], checked: bool) -> None:
    if checked and doubts:
        raise InvalidArgument(
            f"{doubts[0]}. Stay in that range, or release with mechanism='paper', which only warns.", argument=None
        )


def _few_users(users: int, m: int, alpha: float, epsilon: float, beta: float) -> tuple[str, ...]:
    needed = binom_users(m, alpha, epsilon, beta)
    if users >= needed:
        return ()
    return (f"Theorem 6 needs about {needed:.2g} users for this alpha, and there are about {users}",)
