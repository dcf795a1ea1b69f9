"""Adaptive rounds: noise for what users differ by.

Round 0 sums plain counts with a little of the budget. Every later round measures users against the estimate so far
(the centre), bounds how far one of them may stray (the radius), sums the deviations and adds noise for the radius
only. All rounds are combined by inverse variance. Users who agree with the crowd stray by about sqrt(m) where they
have m rows: that is the saving.

Everything that a round is told (centre, scales, radius, caps, shares) was released before it, with noise: see
docs/proofs/adaptive.md. Distances and masses are relative throughout: 1 is a user who counts fully.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..privacy import Adjacency, Spending
from ..tables import MAX_BITS, MAX_RADIUS, MAX_STRETCH, UNIT, Centre, Counts, Norm, distances
from .cost import DISAGREEMENT, best_radius, cost_at, reshuffling
from .drawn import Clipped, clipped
from .estimate import Estimate, combine
from .histograms import Crowding, near, spread_out, unimodal, visible
from .measurements import agreed
from .profile import HISTOGRAM_UNIT, Profile
from .schedule import Outlook, next_share
from .shrink import NoiseShape, Shrunk, shrink
from .simplex import project

__all__ = ["MAX_ROUNDS", "Budget", "run_rounds"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FIRST_SHARE, SECOND_SHARE = 0.03, 0.15
MAX_ROUNDS = 7
FINEST = 4
"""The scale of the most common items, in whole numbers: others are told apart by a quarter of it."""
ROUND_UNIT = 2**26
"""What a full user weighs in a round: leaves room for the centre's bits below 2^50."""

LARGEST_NOISE = 2.0**55
"""The largest standard deviation that is asked of the sampler, with room to its limit."""

LOOK_EDGES = 2.0 ** (-np.arange(0, 11, 0.25)[::-1])
LOOK_THRESHOLD = {"gaussian": 4.3, "laplace": 6.5}
LOOK_ALONE = 1.3
"""... and by this factor more if they are far from most users, where they would rule how far users are on average."""
LOOK_DETAIL = 200
"""A look at distances aims at a standard deviation of one user in this many ..."""
LOOK_MOST = 0.02
"""... but for no more than this share of the budget."""

WEIGHT_SHARES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.15)
"""Shares of a round that its divisor, the total weight, may take."""

AGREEMENT = 1.15
"""Mean square distances up to this factor above pure chance are taken as agreement; one more and users differ."""
SNUG = 0.85
"""Where users agree, clipping all of them alike is harmless, and a radius that is too large is not: take less than is
predicted.
"""
BLUR = 1.15
"""The centre's own error is known to about this factor, squared: what it may explain is not taken for users."""
AGREED = 0.01
"""How far users who agree are taken to differ: as `DISAGREEMENT`, which they do not reach."""
UNEVEN = 0.3
"""How well the mean weight that clipping leaves is predicted, relative to how far weights spread around it."""
SURPRISE = 2.0
"""Standard deviations that a measured and an expected total weight may be apart before the expectation is doubted."""
BETWEEN = 2
"""Points that the users of a bin of rows are spread over."""
SHIFTS = 0.25
"""How well it is known what clipping does to users who agree, relative."""
ROOM = 2.0
"""A user may weigh this many times what a typical clipped user does."""


@dataclass
class Budget:
    """What the rounds may spend, in shares of the whole. Gaussian noise (mu) or, for pure privacy, Laplace noise
    (epsilon).
    """

    spending: Spending
    shape: NoiseShape
    total: float
    left: float = 1.0

    @property
    def norm(self) -> Norm:
        return "l2" if self.shape == "gaussian" else "l1"

    @property
    def power(self) -> float:
        return 0.5 if self.shape == "gaussian" else 1.0

    @property
    def mean_absolute(self) -> float:
        """Mean absolute value of the noise, in standard deviations."""
        return math.sqrt(2 / math.pi) if self.shape == "gaussian" else math.sqrt(0.5)

    def deviation(self, share: float, *, non_negative: bool = False) -> float:
        """Standard deviation of the noise on sums of vectors of norm at most 1."""
        factor = 1.0
        if self.spending.guarantee.adjacency is Adjacency.REPLACE:
            factor = math.sqrt(2) if non_negative and self.shape == "gaussian" else 2.0
        return factor * (1.0 if self.shape == "gaussian" else math.sqrt(2)) / (self.total * math.pow(share, self.power))

    def noisy(
        self, purpose: str, sums: Integers | list[int], bound: int, share: float, *, non_negative: bool
    ) -> Integers:
        """The sums with noise for `share`; `left` falls by it."""
        self.left -= share
        if self.shape == "gaussian":
            mu = self.total * math.sqrt(share)
            return self.spending.gaussian(purpose, sums, bound=bound, mu=mu, non_negative=non_negative)[0]
        values = np.array([min(max(v, -(2**62)), 2**62) for v in sums], dtype=np.int64)
        return self.spending.laplace(purpose, values, bound=bound, epsilon=self.total * share)[0]


@dataclass
class State:
    """What is known so far: the estimate of every round combined, and the crowd's total mass."""

    weighted: Floats
    precision: Floats
    mass: float
    mass_error: float
    centre: Floats
    shrunk: Shrunk

    @property
    def raw(self) -> Floats:
        return self.weighted / self.precision

    @property
    def deviations(self) -> Floats:
        return self.precision**-0.5

    def learn(self, estimate: Floats, deviation: Floats, shape: NoiseShape) -> None:
        """Take in one round."""
        self.weighted = self.weighted + estimate / deviation**2
        self.precision = self.precision + deviation**-2
        self.shrunk = shrink(self.raw, self.deviations, shape)
        self.centre = project(self.shrunk.means)


def run_rounds(
    counts: Counts, budget: Budget, profile: Profile, crowd: Crowding, rounds: int | None, reweighted: float
) -> Estimate:
    """Run the rounds and combine them. `rounds`: how many, where the user says; else as many as promise to pay.

    Guarantee: every sum goes through `budget.noisy`, with the bound that `tables` states for it; nothing else is read
    from `counts`.
    """
    most = rounds or MAX_ROUNDS
    reshuffled: Floats | float = 0.0
    unsure: Floats | float = 0.0
    state, bias = _first_round(counts, budget, profile, crowd, _first_share(counts, budget, profile, most))
    own_shape: float | None = None
    differ = profile.rows is None
    done = 1
    while done < most and budget.left > 0.005:
        scaled = _Scaled.at(state, profile, budget)
        measured = _Measured(counts, budget, profile, scaled, state)
        crowd_now: Crowding | None = None
        if own_shape is None:
            crowd_now = measured.look()
            own_shape = measured.own(crowd_now) / scaled.shape
        own = own_shape * scaled.shape
        share = next_share(
            Outlook(own, max(scaled.error, 1e-12), measured.contraction, budget.power), budget.left, most - done
        )
        if done == 1 and share == 1.0 and most > 2 and budget.shape == "gaussian":
            share = SECOND_SHARE  # a better centre also makes better scales, which the schedule does not see
        if done + 1 == most:
            share = 1.0
        elif rounds is not None and share == 1.0:
            share = SECOND_SHARE
        differ = differ or (crowd_now is not None and measured.disagreement(crowd_now) > 0.35)
        if crowd_now is None and differ:
            crowd_now = measured.look()
        spend = share * budget.left
        choice = measured.choose(crowd_now, own, spend, agree=not differ)
        bias, reshuffled, unsure = choice.bias, choice.reshuffled, 0.0
        if choice.clipping is not None:
            reshuffled, unsure = np.hypot(choice.clipping.moved, profile.cut), SHIFTS * np.abs(choice.clipping.shift)
        _later_round(done + 1, budget, profile, state, measured, choice, spend)
        measured.drop()
        done += 1
        if share == 1.0:
            break
    return combine(
        raw=state.raw,
        deviations=state.deviations,
        shrunk=state.shrunk,
        bias=bias,
        sampling=None if own_shape is None else _sampling_errors(state, profile, own_shape),
        shape=budget.shape,
        reweighted=np.hypot(reweighted, reshuffled),
        unsure=unsure,
        parameters={
            "rounds": done,
            **({} if profile.equal else {"max_rows_per_user": profile.row_cap}),
        },
    )


def _first_share(counts: Counts, budget: Budget, profile: Profile, most: int) -> float:
    """A little for Gaussian noise, whose parts add up in squares. Pure parts add up as they are, and the schedule
    decides.
    """
    if most == 1:
        return 1.0
    if budget.shape == "gaussian":
        return FIRST_SHARE
    k = counts.items
    own = min(0.5, math.sqrt(2 / math.pi * k * profile.chance / profile.mass_moment))
    contraction = (
        budget.deviation(1.0) * budget.mean_absolute * k / max(profile.mass, 1.0) * math.sqrt(profile.mass_moment)
    )
    return min(0.3, next_share(Outlook(own, 1.0, contraction, budget.power), 1.0, most))


def _first_round(
    counts: Counts, budget: Budget, profile: Profile, crowd: Crowding, share: float
) -> tuple[State, float]:
    """Plain counts, bounded in norm. Their own total is the divisor."""
    k = counts.items
    one = budget.deviation(share, non_negative=True)
    if budget.norm == "l1":
        crowd = Crowding(crowd.users, crowd.mass, crowd.mass)  # the l1 norm of a user is the mass, whatever the items
    chosen = best_radius(crowd, budget.mean_absolute * k * one, DISAGREEMENT)
    radius = max(1, math.floor(chosen.radius * ROUND_UNIT))
    sums = distances(counts, Centre.origin(k), budget.norm).sum(radius, profile.row_cap, ROUND_UNIT)
    noisy = budget.noisy("round 1: counts by item", sums.totals, radius, share, non_negative=True).astype(np.float64)
    noise = one * radius
    total = max(float(noisy.sum()), math.sqrt(k) * noise)
    error = math.sqrt(k) * noise / total
    measured_mass = total / ROUND_UNIT / chosen.kept
    mass = measured_mass if error < 0.4 or profile.rows is None else profile.mass
    zeros = np.zeros(k)
    doubt = math.hypot(error, UNEVEN * chosen.spread / chosen.kept)
    state = State(zeros, zeros, max(mass, 1.0), doubt, zeros, Shrunk(zeros, zeros, zeros))
    state.learn(noisy / total, np.full(k, noise / total), budget.shape)
    return state, chosen.bias


@dataclass(frozen=True)
class _Scaled:
    """The centre in integers, with scales, and the public distances that follow from them.

    factors: a_i = 1 / s_i, near max(c_i, noise_i)^q, the l1-optimal division of noise over items whose deviations have
    variance about c_i (q = 1/3 for Gaussian noise in l2; 1/4 for Laplace noise in l1). shape: how far a user strays
    who draws from the centre with one row. error: how far the centre itself is from the crowd, from its own noise.
    wobble: how much the distance of such a user varies from one to the next, relative.
    """

    centre: Centre
    factors: Floats
    reach: float
    shape: float
    error: float
    wobble: float

    @classmethod
    def at(cls, state: State, profile: Profile, budget: Budget) -> _Scaled:
        norm = budget.norm
        c = state.centre
        wanted = np.maximum(c, state.deviations) ** (1 / 3 if norm == "l2" else 1 / 4)
        stretches = np.clip(np.rint(FINEST * wanted.max() / wanted), FINEST, MAX_STRETCH).astype(np.int64)
        factors = 1.0 / stretches
        variances = c * (1 - c)
        if norm == "l2":
            shape = math.sqrt(float((variances / factors**2).sum()))
            error = math.sqrt(float((state.shrunk.variances / factors**2).sum()))
            reach = math.sqrt(float((c**2 / factors**2).sum()) + float(factors.min()) ** -2)
        else:
            shape = float((np.sqrt(2 / math.pi * variances) / factors).sum())
            error = float((state.shrunk.spreads / factors).sum())
            reach = float((c / factors).sum()) + 1 / float(factors.min())
        moment = math.sqrt(profile.mass_moment)
        spread = variances / factors**2
        wobble = math.sqrt(float((spread**2).sum()) / 2) / max(float(spread.sum()), 1e-300)
        # A typical radius then stays near 2^47; bits are given up for very large crowds (their sums are larger) and
        # for very small budgets (their noise is).
        expected = 2 * math.hypot(shape * math.sqrt(profile.chance), error * moment)
        spare = 21 - math.log2(max(expected, 1.0)) - max(0.0, math.log2(profile.users + 1) - 18)
        spare -= max(0.0, math.log2(budget.deviation(0.01)) - 8)
        bits = int(min(MAX_BITS, max(4, spare)))
        coordinates = np.clip(np.rint(c * 2**bits), 0, 2**bits).astype(np.int64)
        shape = max(shape * moment, 1e-9)
        return cls(Centre(coordinates, stretches, bits), factors, reach, shape, error * moment, wobble)


@dataclass(frozen=True)
class _Choice:
    """What a round works with: radius and largest mass (relative), predicted cost and bias, mean weight kept.

    doubt: of the total weight, relative. uneven: of the mean weight kept, relative. reshuffled: how far clipping moves
    the answer by chance, in sampling errors. clipping: what it does to each item, where users agree.
    """

    radius: float
    ceiling: float
    cost: float
    bias: float
    kept: float
    doubt: float
    uneven: float
    reshuffled: float
    clipping: Clipped | None


class _Measured:
    """Users measured against the current centre, and what may be asked of the distances."""

    def __init__(self, counts: Counts, budget: Budget, profile: Profile, scaled: _Scaled, state: State) -> None:
        self._counts, self._budget, self._profile, self.scaled, self._state = counts, budget, profile, scaled, state
        self.distances = distances(counts, scaled.centre, budget.norm)
        self._seen: Floats | None = None
        self._look_deviation = 1 / LOOK_DETAIL * profile.users

    @property
    def users(self) -> float:
        return self._state.mass if self._profile.equal else self._profile.users

    @property
    def contraction(self) -> float:
        """The error of the next centre for a round with all of the budget and radius 1."""
        k = self._counts.items
        one = self._budget.deviation(1.0) / self._state.mass * math.sqrt(self._profile.mass_moment)
        return one * (math.sqrt(k) if self._budget.norm == "l2" else k * self._budget.mean_absolute)

    @property
    def chance(self) -> float:
        """Mean square distance of users who draw from the centre, as far as rows are known; the centre's error
        included.
        """
        own = self.scaled.shape**2 / self._profile.mass_moment * self._profile.chance
        return own + self.scaled.error**2

    def look(self) -> Crowding | None:
        """Buy a histogram of distances; None if nothing stands out."""
        budget, users = self._budget, max(self.users, 1.0)
        if budget.shape == "gaussian":
            share = (LOOK_DETAIL / users * budget.deviation(1.0, non_negative=True)) ** 2
        else:
            share = LOOK_DETAIL / users * budget.deviation(1.0)
        share = min(LOOK_MOST, max(1e-4, share), budget.left / 2)
        edges = LOOK_EDGES * self.scaled.reach
        unit = UNIT * 2.0**self.scaled.centre.bits
        histogram = self.distances.histogram((edges * unit).tolist(), self._profile.row_cap)
        deviation = budget.deviation(share, non_negative=True)
        noisy = budget.noisy(
            "users by distance from the centre", histogram * HISTOGRAM_UNIT, HISTOGRAM_UNIT, share, non_negative=True
        )
        bins = noisy / HISTOGRAM_UNIT
        self._look_deviation = deviation
        seen = visible(bins, deviation, LOOK_THRESHOLD[budget.shape])
        if not seen.any():
            return None
        self._seen = visible(bins, deviation, LOOK_THRESHOLD[budget.shape], LOOK_ALONE)
        return self._crowding(near(unimodal(bins), seen, 4), edges)

    def own(self, crowd: Crowding | None) -> float:
        """How far users are from the crowd itself: what is measured, less the centre's error, and no less than
        chance.
        """
        if crowd is None:
            return max(math.sqrt(max(self.chance - self.scaled.error**2, 0.0)), 0.5 * self.scaled.error)
        typical, error = self._typical(), self.scaled.error
        chance = max(self.chance - error**2, 0.0)
        return math.sqrt(max(typical - BLUR * error**2, 0.9 * min(chance, typical), 0.01 * typical))

    def disagreement(self, crowd: Crowding | None) -> float:
        """How much of the distance is neither chance nor the centre's error: 0 where users agree, 1 where they
        clearly differ.
        """
        if crowd is None or self._profile.rows is None or self.chance <= 0:
            return 1.0
        return min(1.0, max(0.0, self._typical() / self.chance - AGREEMENT))

    def choose(self, crowd: Crowding | None, own: float, share: float, *, agree: bool) -> _Choice:
        """The radius and the largest mass for a round with `share` of the budget."""
        noise = self._budget.mean_absolute * float(self.scaled.factors.sum()) * self._budget.deviation(share)
        doubt = math.sqrt(self._state.mass_error**2 + 0.04**2 + (3 * self._look_deviation / max(self.users, 1.0)) ** 2)
        if crowd is None:
            crowd = self._by_chance(own)
            best = cost_at(crowd, SNUG * best_radius(crowd, noise, AGREED).radius, noise, AGREED)
            uneven = UNEVEN * best.spread / best.kept
            doubt = math.hypot(doubt, 0.05)
            clipping = self._clipped(own, best.radius) if agree else None
            reshuffled = reshuffling(crowd, best.radius)
            return _Choice(best.radius, 1.0, best.cost, 0.0, best.kept, doubt, uneven, reshuffled, clipping)
        differ = AGREED + (DISAGREEMENT - AGREED) * self.disagreement(crowd)
        best = best_radius(crowd, noise, differ)
        typical = float((crowd.users * crowd.size).sum() / crowd.total_mass)
        ceiling = min(1.0, max(ROOM * best.radius / typical, 1e-4))
        clipping = self._clipped(own, best.radius) if agree else None
        reshuffled = reshuffling(crowd, best.radius)
        uneven = UNEVEN * best.spread / best.kept
        return _Choice(best.radius, ceiling, best.cost, best.bias, best.kept, doubt, uneven, reshuffled, clipping)

    def drop(self) -> None:
        self.distances.drop()

    def _clipped(self, own: float, radius: float) -> Clipped | None:
        """What clipping does to users who agree; None where that is not known."""
        if self._profile.rows is None or self._budget.norm == "l1":
            return None
        rows = self._profile.by_rows(BETWEEN)[1]
        made = clipped(self._by_rows(own), rows, self._state.centre, 1 / self.scaled.factors, radius)
        return replace(made, shift=made.shift * own**2 / (own**2 + self.scaled.error**2))

    def _by_rows(self, own: float) -> Crowding:
        """Users by rows, as far out as these place them on average."""
        users, rows, mass = self._profile.by_rows(BETWEEN)
        moment = float((users * mass**3 / rows).sum() / (users * mass).sum())
        size = mass * np.sqrt(own**2 / moment / rows + self.scaled.error**2 / self._profile.mass_moment)
        return Crowding(users, size, mass)

    def _by_chance(self, own: float) -> Crowding:
        """Users as their rows alone would place them: heavier ones are nearer to the crowd, for their mass."""
        by_rows = self._by_rows(own)
        users, mass, size = by_rows.users, by_rows.mass, by_rows.size
        around = 1 + self.scaled.wobble * np.array([-1.34, -0.45, 0.45, 1.34])
        mass = np.repeat(mass, 4)
        crowd = Crowding(np.repeat(users / 4, 4), np.outer(size, around).ravel(), mass)
        return Crowding(crowd.users * self._state.mass / crowd.total_mass, crowd.size, mass)

    def _typical(self) -> float:
        """Mean square distance by mass, from the bins that stand out alone: a false bin far out would rule it."""
        assert self._seen is not None
        return self._crowding(self._seen, LOOK_EDGES * self.scaled.reach).mean_square()

    def _crowding(self, bins: Floats, edges: Floats) -> Crowding:
        users, size = spread_out(bins, edges, 4)
        if self._profile.equal:
            return Crowding(users, size, np.full(len(users), self._state.mass / users.sum()))
        # Heavier users are farther out: mass grows with distance, up to that of a full user.
        mass = np.minimum(size * self._state.mass / (users * size).sum(), 1.0)
        return Crowding(users, size, mass * self._state.mass / (users * mass).sum())


def _later_round(
    number: int, budget: Budget, profile: Profile, state: State, measured: _Measured, choice: _Choice, share: float
) -> None:
    """Sum deviations from the centre, with a noisy total weight for the divisor."""
    bits = measured.scaled.centre.bits
    if profile.equal:
        row_cap, unit, full = 1, max(1, math.floor(ROUND_UNIT * choice.ceiling)), float(ROUND_UNIT)
    else:
        row_cap = max(1, min(profile.row_cap, math.ceil(profile.row_cap * choice.ceiling)))
        unit, full = ROUND_UNIT, ROUND_UNIT * profile.row_cap / row_cap
    largest = min(MAX_RADIUS, LARGEST_NOISE / budget.deviation(share * (1 - WEIGHT_SHARES[-1])))
    radius = int(min(largest, max(1, math.floor(choice.radius * full * 2**bits))))
    sums = measured.distances.sum(radius, row_cap, unit)
    weight_share = share * _weight_share(budget, state, choice, share, unit / full)
    expected = state.mass * choice.kept
    weight = budget.noisy(
        f"round {number}: total weight", np.array([sums.total_weight]), unit, weight_share, non_negative=True
    )
    weight_deviation = budget.deviation(weight_share, non_negative=True) * unit / full
    share -= weight_share
    noisy = budget.noisy(f"round {number}: deviations by item", sums.vector(), radius, share, non_negative=False)
    found, doubt = float(weight[0]) / full, choice.doubt * expected
    # Where the two disagree, it is the expectation that is wrong: it rests on a profile, the other on noise alone.
    doubt *= max(1.0, abs(found - expected) / (SURPRISE * math.hypot(weight_deviation, doubt)))
    total, total_error = agreed(found, weight_deviation, expected, doubt)
    total = max(total, 0.3 * expected)
    state.mass, state.mass_error = total / choice.kept, math.hypot(total_error / total, choice.uneven)
    centre = measured.scaled.centre.coordinates / 2**bits
    factors = measured.scaled.factors
    step = noisy.astype(np.float64) * factors / (full * 2**bits * total)
    if choice.clipping is not None:
        step -= choice.clipping.shift
    deviation = budget.deviation(share) * radius * factors / (full * 2**bits * total)
    # A wrong divisor scales the whole step, and the step is as large as the centre's error.
    state.learn(
        centre + step, np.sqrt(deviation**2 + (total_error / total) ** 2 * state.shrunk.variances), budget.shape
    )


def _weight_share(budget: Budget, state: State, choice: _Choice, share: float, largest: float) -> float:
    """The part of a round that its divisor is worth: an error in it scales the step, noise in the sums does not."""
    step = float(state.shrunk.spreads.sum())
    one = budget.deviation(share) * largest / max(state.mass * choice.kept, 10.0)

    def error(part: float) -> float:
        _, divisor = agreed(1.0, one / part**budget.power, 1.0, choice.doubt)
        return math.hypot(choice.cost / (1 - part) ** budget.power, step * divisor)

    return min(WEIGHT_SHARES, key=error)


def _sampling_errors(state: State, profile: Profile, own_shape: float) -> Floats:
    """Standard errors of the table's own answer: how far users stray, divided over items like the multinomial's.

    What chance explains of it falls with rows; the rest is what users differ by.
    """
    own = own_shape**2
    chance = profile.chance / profile.mass_moment
    between = max(own - chance, 0.0)
    drawn = 0.0 if chance == 0.0 else min(own / chance, 1.0)
    errors: Floats = np.sqrt(state.centre * (1 - state.centre) * profile.scatter(between, drawn))
    return errors
