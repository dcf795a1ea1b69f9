"""Adaptive rounds: noise for what users differ by.

Every round measures users against the estimate so far (the centre), splits how far each of them strays over a few
radii, and sums each level with noise for its own width only. Users who agree with the crowd stray by about sqrt(m)
where they have m rows and fill the lowest level: that is the saving. What the others add above it is seen, with its
noise, instead of being lost; how levels differ says how far off an answer without the highest ones is (`shells`).

Everything that a round is told (centre, scales, radii, shares) was released before it, with noise: see
docs/proofs/adaptive.md. Masses are in rows where rows are counted, in users where users are; sizes are masses times
distances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Floats, distinct, median
from ..tables import (
    MAX_BITS,
    MAX_MASS_SCALE,
    MAX_RADIUS,
    MAX_STRETCH,
    ROW_LIMIT,
    Centre,
    Counts,
    Distances,
    Norm,
    distances,
)
from .budget import Budget
from .estimate import Divisor, Estimate, Total, combine
from .measurements import inverse_variance_mean
from .shells import (
    Drift,
    GroupShares,
    ItemGroup,
    Levels,
    Shells,
    combine_levels,
    floor_shares,
    item_moments,
    item_tilts,
    plan_levels,
)
from .shrink import Shrunk, shrink
from .simplex import project
from .tuning import TUNING
from .users_by_distance import USER_UNIT, Facts, UsersByDistance, look_at_distances

__all__ = ["run_rounds"]


EXPONENT: dict[Norm, float] = {"l2": 1 / 4, "l1": 1 / 5}
"""Scales go with this power of an item's share. A third (in l1 a quarter) is best for users who draw from the crowd:
noise is divided over items as their scatter is. But it makes whoever has a rare item an outlier, so a little less is
taken.
"""
SMALLEST_STRETCH = 4
"""The smallest stretch (1/scale), that of the most common items. Stretches are whole numbers, so they differ in steps
of a quarter of this one.
"""
LARGEST_RADIUS = 2.0**49
"""Radii are kept near this by the bits of the centre, ..."""
LARGEST_NOISE = 2.0**55
"""... and below what would ask more of the sampler than this standard deviation."""
PREPARING = 2
"""Rounds that make a rough centre, and one with scales."""
ROUND_GROWTH = tuple(2.0 ** np.arange(0.5, 6.5, 0.5))
"""Factors by which shares of the budget may grow from round to round."""
LEAST_OWN = 0.01
"""Of a square distance, what is taken to be users' own at least: both are known with noise."""
FEW_LEVELS = 1.62
"""What intervals allow for a bias, over a normal one. Drift is learned from two to five levels, and what is learned
from four has the tails of Student's t with three degrees of freedom.
"""


@dataclass(frozen=True, eq=False)
class _Round:
    """What one round measured, and with what: all that is needed to read it anew when more is known. mass: of all
    users, and its standard deviation.
    """

    shells: Shells
    levels: Levels
    scales: Floats
    mass: tuple[float, float]


@dataclass(eq=False)
class _Answer:
    """The estimate so far: values, and the variance of their noise. bias: how large the bias may be (root mean square
    over possible drifts). expected: how large it is on average.
    """

    values: Floats
    noise: Floats
    bias: Floats
    expected: Floats

    @property
    def deviations(self) -> Floats:
        return np.sqrt(self.noise + self.expected**2)


def run_rounds(
    counts: Counts, budget: Budget, facts: Facts, rounds: int | None, prior: Floats | None = None
) -> Estimate:
    """Run the rounds and combine them. `rounds`: how many, where the caller says. `prior`: a public distribution. It is
    not the first centre: a wrong one would spoil the first round, and shrinkage, which learns what it is worth, makes
    the second centre as good.

    Guarantee: every sum goes through `budget.noisy`, with the bound that `tables` states for it; nothing else is read
    from `counts`.
    """
    k = counts.items
    centre, deviations = np.full(k, 1 / k), np.ones(k)
    drift, past = Drift(), []
    answer = _Answer(centre if prior is None else prior, centre**2, np.zeros(k), np.zeros(k))
    shrunk = Shrunk(centre, centre, np.full(k, facts.tastes.square / k))
    view: _View | None = None
    most, histogram_share = rounds or TUNING.most_rounds, _histogram_share(budget, facts)
    for number in range(1, most + 1):
        exponent = 0.0 if number == 1 else EXPONENT[budget.norm]
        current = _view(counts, budget, facts, centre, deviations, shrunk, exponent, histogram_share, number)
        if current.crowd is None:
            current.measured.drop()
            break
        view = current
        share = _share(view, budget, shrunk, number, rounds, histogram_share)
        past.append(_measure(view, budget, facts, drift, share, number))
        view.measured.drop()
        if number == 1 and most > 1:
            drift = drift.elsewhere()  # the first centre is nobody's: how far users are from it is a matter of rows
        answer = _combined(past, drift, view.groups, GroupShares.of(view.groups, view.centre.shares))
        shrunk = shrink(answer.values, answer.deviations, budget.shape, prior)
        centre, deviations = project(shrunk.means), answer.deviations
        if budget.left < histogram_share + 0.001:
            break
    return _estimate(budget, facts, past, drift, answer, shrunk, view)


def _histogram_share(budget: Budget, facts: Facts) -> float:
    """The share of the budget for a histogram of distances whose noise per bin has a standard deviation of users /
    `histogram_detail`.
    """
    share = budget.share_for(max(facts.users, 1.0) / TUNING.histogram_detail)
    return min(max(share, TUNING.histogram_least), TUNING.histogram_most)


def _share(
    view: _View, budget: Budget, shrunk: Shrunk, number: int, rounds: int | None, histogram_share: float
) -> float:
    """The share of the budget for a round, by a plan of this one and all after it.

    A round with the share x is worth x / d^2, where users are d from its centre: the closer, the less noise. The first
    two, which make a centre and scales, count for nothing. And it makes the next centre: d^2 = own^2 + n d_before^2 /
    x, where own is how far users stray from the crowd itself. Shares grow from round to round by one factor; it, and
    the number of rounds, are those that promise most.
    """
    crowd = view.crowd
    assert crowd is not None
    left, power = budget.left, 1 if budget.shape == "gaussian" else 2  # pure shares add up, Gaussian ones in squares
    square, error = crowd.median_distance**2, _square_error(shrunk, view.centre.scales, budget.norm)
    own = max(square - error, LEAST_OWN * square)
    noise = len(view.centre.stretches) * (budget.deviation(1.0) * crowd.clipped_at(0.9)) ** 2

    def worth(shares: Floats) -> float:
        distance, total, last = own + error, 0.0, number + len(shares) - 1
        for j, x in enumerate(shares.tolist(), start=number):
            total += x**power / distance if j > PREPARING or j == last else 0.0
            distance = own + noise * distance / square / x**power
        return total

    most = (TUNING.most_rounds if rounds is None else rounds) - number + 1
    fewest = most if rounds is not None else min(max(PREPARING + 2 - number, 1), most)
    plans = []
    for length in range(fewest, most + 1):
        spent = left - (length - 1) * histogram_share
        for factor in ROUND_GROWTH if spent > 0 else ():
            shares = factor ** np.arange(length, dtype=np.float64)
            plans.append(shares * (spent / shares.sum()))
    best = max(plans, key=worth, default=np.array([left]))
    return left if len(best) == 1 else min(max(float(best[0]), TUNING.least_round), left)


def _square_error(shrunk: Shrunk, scales: Floats, norm: Norm) -> float:
    """How far an estimate that is the centre is from the answer, squared."""
    if norm == "l2":
        return float((shrunk.variances / scales**2).sum())
    return float((shrunk.spreads / scales).sum()) ** 2


def _place(centre: Floats, scales: Floats, facts: Facts, budget: Budget) -> Centre:
    """The centre in integers. Its bits are as many as keep radii near LARGEST_RADIUS."""
    stretches = np.clip(np.rint(SMALLEST_STRETCH * scales.max() / scales), SMALLEST_STRETCH, MAX_STRETCH).astype(
        np.int64
    )
    largest = facts.largest_mass * USER_UNIT / facts.row_cap * float(stretches.max()) * 2
    room = min(LARGEST_RADIUS, LARGEST_NOISE / 4 / max(budget.deviation(0.001), 1.0))
    bits = int(np.clip(math.floor(math.log2(room / largest)), 4, MAX_BITS))
    coordinates = np.clip(np.rint(centre * 2**bits), 0, 2**bits).astype(np.int64)
    return Centre(coordinates, stretches, bits)


@dataclass(frozen=True)
class _View:
    """Users measured against a centre with scales, and what a histogram of their distances tells."""

    measured: Distances
    groups: list[ItemGroup]
    crowd: UsersByDistance | None

    @property
    def centre(self) -> Centre:
        return self.measured.centre


def _view(
    counts: Counts,
    budget: Budget,
    facts: Facts,
    centre: Floats,
    deviations: Floats,
    shrunk: Shrunk,
    exponent: float,
    histogram_share: float,
    number: int,
) -> _View:
    """Measure users against `centre`, with scales max(centre, deviation)^exponent, and buy a histogram of distances."""
    wanted = np.maximum(centre, deviations) ** exponent
    placed = _place(centre, wanted / wanted.max(), facts, budget)
    measured = distances(counts, placed, budget.norm)
    error = _square_error(shrunk, placed.scales, budget.norm)
    crowd = look_at_distances(measured, budget, facts, histogram_share, number, error)
    return _View(measured, _groups(placed.shares, placed.scales), crowd)


def _groups(centre: Floats, scales: Floats) -> list[ItemGroup]:
    """Items whose shares and scales are within a factor of two or so: what is believed of them is the same."""
    f = floor_shares(centre)
    kinds = np.rint(np.log2(f / f.max())) * 64 + np.rint(2 * np.log2(scales / scales.max()))
    moments, tilts = item_moments(f), item_tilts(f)
    groups = []
    for kind in distinct(kinds):
        i = np.flatnonzero(kinds == kind)
        groups.append(ItemGroup(i, float((scales[i] ** 2).mean()), moments[:, i].mean(axis=1), tilts[i]))
    return groups


def _shells(view: _View, budget: Budget) -> tuple[Shells, int]:
    """The shells of a view, with the coordinate for the mass; and the scale of that."""
    crowd, bits = view.crowd, view.centre.bits
    assert crowd is not None
    mass_scale = min(max(1, round(TUNING.mass_part * crowd.mean_distance * 2**bits)), MAX_MASS_SCALE)
    join = np.hypot if budget.norm == "l2" else np.add
    sizes = join(crowd.typical.sizes, mass_scale / 2**bits * crowd.typical.masses)
    return Shells.of(replace(crowd.typical, sizes=sizes), crowd.spread), mass_scale


def _plan(
    view: _View, shells: Shells, budget: Budget, drift: Drift, share: float
) -> tuple[float, tuple[int, ...], Floats]:
    most = max(2, min(10, TUNING.most_sums // len(view.centre.stretches)))

    def variance(x: Floats) -> Floats:
        return np.array([budget.deviation(share * each) ** 2 for each in x])

    return plan_levels(shells, drift.covariances(shells), view.groups, variance, most)


def _measure(view: _View, budget: Budget, facts: Facts, drift: Drift, share: float, number: int) -> _Round:
    """Sum the levels that promise most, each with its own noise and the mass that it has."""
    placed, centre, scales = view.centre, view.centre.shares, view.centre.scales
    full = USER_UNIT / facts.row_cap * 2.0**placed.bits
    shells, mass_scale = _shells(view, budget)
    beta = mass_scale / 2**placed.bits
    _, ends, x = _plan(view, shells, budget, drift, share)
    radii = _integer_radii(shells.radii[list(ends)] * full, budget, share * x)
    widths = np.diff([0, *radii])
    sums = view.measured.levels(radii, facts.row_cap, USER_UNIT, mass_scale)
    noisy = np.array(
        [
            budget.noisy(f"round {number}: level {j + 1}", each, share * part)
            for j, (each, part) in enumerate(zip(sums, x, strict=True))
        ]
    ).astype(np.float64)
    noise = np.array([budget.deviation(share * each) for each in x]) * widths / full
    planned = np.diff(np.append(0.0, np.cumsum(shells.masses)[list(ends)]))
    found, error = noisy[:, -1] / full / beta, noise / beta
    trust = 1 / (1 + error**2 / (TUNING.mass_doubt * planned) ** 2)
    masses = np.maximum(trust * found + (1 - trust) * planned, np.minimum(error, planned))
    corrected = shells.masses.copy()
    first = 0
    for end, ratio in zip(ends, masses / planned, strict=True):
        corrected[first : end + 1] *= ratio
        first = end + 1
    shells = replace(shells, masses=corrected)
    step = noisy[:, :-1] / full * scales / masses[:, None]
    divisor = trust * (error / masses) ** 2
    levels = Levels(ends, centre + step, (noise / masses) ** 2, step**2 * divisor[:, None])
    drift.learn(shells, levels, view.groups)
    left, doubt = _mass_left(view, budget, beta, radii, full, USER_UNIT / facts.row_cap)
    mass = float(found.sum()) + left, math.hypot(float(np.linalg.norm(error)), doubt)
    return _Round(shells, levels, scales, mass)


def _mass_left(
    view: _View, budget: Budget, beta: float, radii: list[int], full: float, weight: float
) -> tuple[float, float]:
    """The mass that levels leave out, and its standard deviation: what lies beyond the last radius, in the crowds that
    are possible, and what rounding weights down takes off, half a unit of `weight` in each level that a user is in.
    """
    crowd = view.crowd
    assert crowd is not None
    join = np.hypot if budget.norm == "l2" else np.add
    ends = np.array(radii) / full
    left = []
    for one in (crowd.typical, *crowd.possible):
        sizes = join(one.sizes, beta * one.masses)
        levels = np.where(sizes > ends[0], np.minimum(np.searchsorted(ends, sizes) + 1, len(ends)), 0)
        parts = np.maximum(1 - ends[-1] / sizes, 0.0) + levels / (2 * weight)
        left.append(float(one.users * one.masses @ parts))
    doubt = float(np.sqrt(np.mean((np.array(left) - left[0]) ** 2)))
    return left[0], math.hypot(TUNING.mass_doubt * left[0], doubt)


def _integer_radii(radii: Floats, budget: Budget, shares: Floats) -> list[int]:
    """Whole radii that increase, within what the tables and the sampler take."""
    noise = max(budget.deviation(float(each)) for each in shares)
    largest = min(float(MAX_RADIUS), LARGEST_NOISE / noise)
    scaled = radii * min(1.0, largest / radii[-1])
    whole: list[int] = []
    for radius in scaled.tolist():
        whole.append(max(math.floor(radius), whole[-1] + 1 if whole else 1))
    return whole


def _combined(past: list[_Round], drift: Drift, groups: list[ItemGroup], shares: list[GroupShares]) -> _Answer:
    """All rounds, read with what is believed now. Their noises are independent; their biases are shared, and go with
    the shares of items.
    """
    answer: _Answer | None = None
    for one in past:
        values, noise, bias, expected = combine_levels(one.shells, one.levels, drift, groups, one.scales, shares)
        if answer is None:
            answer = _Answer(values, noise, bias, expected)
            continue
        more = expected - answer.expected
        weight = np.clip((answer.noise - answer.expected * more) / (answer.noise + noise + more**2), 0.0, 1.0)
        answer = _Answer(
            weight * values + (1 - weight) * answer.values,
            weight**2 * noise + (1 - weight) ** 2 * answer.noise,
            weight * bias + (1 - weight) * answer.bias,
            weight * expected + (1 - weight) * answer.expected,
        )
    assert answer is not None
    return answer


def _estimate(
    budget: Budget,
    facts: Facts,
    past: list[_Round],
    drift: Drift,
    answer: _Answer,
    shrunk: Shrunk,
    view: _View | None,
) -> Estimate:
    k = len(answer.values)
    parameters: dict[str, int | float | str] = {"branch": "rounds", "rounds": len(past)}
    if 1 < facts.row_cap < ROW_LIMIT:
        parameters["max_rows_per_user"] = facts.row_cap
    bias, expected = answer.bias, answer.expected
    sampling = None
    if not past:  # nothing stood out: nothing is known
        bias = expected = np.full(k, 0.5)
        shrunk = Shrunk(answer.values, np.full(k, 1 / k), np.full(k, 1 / k**2))
    elif view is not None and view.crowd is not None:
        crowd = view.crowd
        # Rounds were planned by the shares known before them; what their bias may be goes with those known now.
        shares = project(shrunk.means)
        known = GroupShares.of(view.groups, shares)
        now = _combined(past, drift, view.groups, known)
        possible, likely = _possible_biases(past[-1], drift, view.groups, crowd, known)
        bias = FEW_LEVELS * np.maximum(now.bias, possible).mean(axis=0)
        expected = median(np.concatenate([now.expected[None], likely]))
        users = crowd.typical
        mass = float((users.users * users.masses).sum())
        sampling = float((users.users * users.sizes**2).sum()) / mass**2 / crowd.spread
        sampling *= float((shares * (1 - shares)).sum())
    made = combine(
        raw=answer.values,
        noise=np.sqrt(answer.noise),
        shrunk=shrunk,
        bias=bias,
        shape=budget.shape,
        divisor=Divisor(),
        sampling_variance=sampling,
        parameters=parameters,
        expected_bias=expected,
        within=answer.expected,
    )
    return replace(made, total=_total(past, facts))


def _total(past: list[_Round], facts: Facts) -> Total | None:
    """The total, from the round that measured it best; None if there was none. If users weigh the same, it is their
    number, which pilot queries told too.
    """
    if not past:
        return None
    value, error = min((one.mass for one in past), key=lambda mass: mass[1])
    if facts.row_cap == 1:
        value, error = inverse_variance_mean(value, error, facts.users, facts.users_error)
    value = max(value, error)
    return Total(value, error / value, facts.row_cap if facts.row_cap < ROW_LIMIT else None, biased=True)


def _possible_biases(
    last: _Round, drift: Drift, groups: list[ItemGroup], crowd: UsersByDistance, shares: list[GroupShares]
) -> tuple[Floats, Floats]:
    """The bias of the last round for each of the crowds that are possible: root mean square and mean."""
    found = []
    for one in crowd.possible:
        shells = Shells.of(one, crowd.spread, top=float(last.shells.radii[-1]))
        ends = tuple(int(np.argmin(np.abs(np.log(shells.radii / last.shells.radii[end])))) for end in last.levels.ends)
        if len(set(ends)) == len(ends):
            levels = replace(last.levels, ends=ends)
            found.append(combine_levels(shells, levels, drift, groups, last.scales, shares)[2:])
    biases = np.array(found) if found else np.zeros((1, 2, len(last.scales)))
    return biases[:, 0], biases[:, 1]
