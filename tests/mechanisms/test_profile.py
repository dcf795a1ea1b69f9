"""The profile: what is bought, and when. Chances of a false alarm are below 1e-6 a test unless said otherwise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from crowdgram.mechanisms.histograms import Crowding
from crowdgram.mechanisms.profile import (
    FINE_ROW_EDGES,
    FIRST_LOOK,
    HISTOGRAM_UNIT,
    ROW_EDGES,
    SECOND_LOOK,
    Profile,
    RowBins,
    RowProfile,
    _merged,
    buy_profile,
    buy_rows,
    look_again,
    look_closer,
    reserve_profile,
)
from crowdgram.privacy import Guarantee, LaplaceEvent, Spending
from crowdgram.synth import Crowd
from crowdgram.tables import UNIT, rows_histogram

from .crowds import counted, run_on, table_of

LARGE = Crowd(users=60_000, rows=2, items=4, seed=1)
MIDDLE = Crowd(users=12_000, rows=6, items=4, seed=1)
FEW = Crowd(users=30, rows=6, items=4, seed=1)


def profiled(crowd, *, equal=False, row_cap=None, epsilon=1.0):
    spending = Spending(Guarantee(epsilon, 1e-6))
    reserve_profile(spending, rows=not equal and row_cap is None)
    with counted(crowd.table(), crowd.items) as counts:
        profile, crowding = buy_profile(counts, spending, equal=equal, row_cap=row_cap)
    return profile, crowding, [event.purpose for event in spending.events]


def test_a_large_crowd_is_looked_at_once():
    assert profiled(LARGE)[2] == ["users by rows, first look", "users by concentration, first look"]


def test_a_smaller_crowd_is_looked_at_twice():
    purposes = profiled(MIDDLE)[2]
    assert purposes == [
        f"users by {what}, {look} look" for what in ("rows", "concentration") for look in ("first", "second")
    ]


def test_a_row_cap_that_is_given_is_not_bought():
    profile, _, purposes = profiled(LARGE, row_cap=2)
    assert purposes == ["users by concentration, first look"]
    assert profile.row_cap == 2
    assert not profile.equal


def test_equal_weights_need_no_rows():
    profile, _, purposes = profiled(LARGE, equal=True)
    assert purposes == ["users by concentration, first look"]
    assert (profile.row_cap, profile.rows, profile.equal) == (1, None, True)
    assert profile.chance == 0


def test_looks_cost_what_was_set_aside():
    spending = Spending(Guarantee(2.0, 1e-6))
    reserve_profile(spending, rows=True)
    with counted(FEW.table(), 4) as counts:
        buy_profile(counts, spending, equal=False, row_cap=None)
    for event, share in zip(spending.events, [FIRST_LOOK, SECOND_LOOK] * 2, strict=True):
        assert event.sensitivity == HISTOGRAM_UNIT
        assert event.scale == pytest.approx(HISTOGRAM_UNIT / (2.0 * share))


def test_without_a_reserve_it_would_not_be_paid_for_gaussian_rounds():
    """Events that are not reserved are charged as they come; the profile's are charged whether or not they come."""
    without, kept = Spending(Guarantee(1.0, 1e-6)), Spending(Guarantee(1.0, 1e-6))
    reserve_profile(kept, rows=True)
    assert kept.remaining_mu(10) < without.remaining_mu(10)


def test_the_facts_are_near_the_truth():
    """Users and rows of a crowd that is plain to see: bins are a factor of sqrt(2) wide, noise is 0.2%."""
    profile, crowding, _ = profiled(LARGE)
    assert profile.users == pytest.approx(60_000, rel=0.1)
    assert crowding.total_mass == pytest.approx(profile.mass)
    assert 2 <= profile.row_cap <= ROW_EDGES[3]
    p = LARGE.distribution()
    square = (p**2).sum() + (1 - (p**2).sum()) / 2  # E ||N/m||^2 with two rows
    assert profile.mean_square_concentration == pytest.approx(square, rel=0.25)
    assert not profile.blind


def test_few_users_cannot_be_seen():
    """Thirty users below noise of 87: one release in a hundred sees a bin that is not there, five of five do not."""
    blind = 0
    for _ in range(5):
        profile, crowding, purposes = profiled(FEW)
        assert len(purposes) == 4
        assert profile.users > 0
        assert crowding.total_mass > 0
        if profile.blind:
            blind += 1
            assert profile.mean_square_concentration > 0
    assert blind >= 1


def test_no_rows_seen_makes_users_weigh_the_same():
    spending = Spending(Guarantee(1.0, 1e-6))
    reserve_profile(spending, rows=True)
    with counted(table_of([1], [0]), 2) as counts:
        seen = RowProfile.of(buy_rows(rows_histogram(counts, FINE_ROW_EDGES), spending))
    assert seen is None or seen.largest >= 1
    # Where nothing was seen the profile says so, in the only way that later steps look at.
    equal = Profile(10.0, 1, True, None, Crowding(np.ones(1), np.ones(1), np.ones(1)), True)
    assert equal.mass == 10.0
    assert equal.scatter(0.5, 0.9) == pytest.approx(0.5 / 10)


def test_moments_of_masses():
    """Against sums over users, one by one."""
    rows = RowProfile(np.array([3.0, 1.0]), np.array([2.0, 10.0]), RowBins(np.array([3.0, 1.0]), 1.0, (2, 10)))
    profile = Profile(4.0, 8, False, rows, Crowding(np.array([4.0]), np.array([0.5]), np.ones(1)), False)
    mass = np.array([2 / 8, 2 / 8, 2 / 8, 1.0])
    m = np.array([2, 2, 2, 10])
    assert profile.mass == pytest.approx(mass.sum())
    assert profile.mass_moment == pytest.approx((mass**3).sum() / mass.sum())
    shares, capped = m / m.sum(), np.minimum(m, 4) / np.minimum(m, 4).sum()
    assert profile.scatter(0.5, 0.9) == pytest.approx((shares**2 * (0.5 + 0.9 / m)).sum())
    assert profile.scatter(0.5, 0.9, 4) == pytest.approx(((capped - shares) ** 2 * (0.5 + 0.9 / m)).sum())
    assert profile.inverse_mean_rows == pytest.approx(4 / m.sum())
    assert profile.mean_inverse_rows == pytest.approx((1 / m).mean())
    assert profile.chance == pytest.approx((mass**3 / m).sum() / mass.sum())
    crowd = profile.uncentred(profile.concentration)
    assert crowd.users.sum() == pytest.approx(4)
    assert crowd.total_mass == pytest.approx(profile.mass)
    assert sorted(set(crowd.size)) == pytest.approx([0.125, 0.5])


@pytest.mark.parametrize("mechanism", ["auto", "adaptive"])
@pytest.mark.parametrize(
    ("more", "bought"), [({}, True), ({"max_rows_per_user": 6}, False), ({"weight": "users"}, False)]
)
def test_mechanisms_buy_no_rows_that_they_were_told(mechanism, more, bought):
    made = run_on(MIDDLE, mechanism, **more)
    assert bool(made.spent_on("users by rows")) is bought
    assert made.spent_on("users by concentration")


def test_edges_double_every_two_steps():
    assert ROW_EDGES[0] == 1
    assert ROW_EDGES[-1] == 2**20
    assert all(b / a <= 2 for a, b in itertools.pairwise(ROW_EDGES))
    assert all(b > a for a, b in itertools.pairwise(ROW_EDGES))
    assert set(ROW_EDGES) < set(FINE_ROW_EDGES)


def test_a_large_crowd_is_seen_in_fine_bins_and_a_smaller_one_in_wide():
    for crowd, edges in ((LARGE, FINE_ROW_EDGES), (MIDDLE, ROW_EDGES)):
        assert profiled(crowd)[0].rows.edges == edges


def test_wide_bins_hold_the_users_of_the_fine_ones():
    fine = np.arange(len(FINE_ROW_EDGES))
    wide = _merged(fine)
    assert wide.sum() == fine.sum()
    low = 0
    for edge, users in zip(ROW_EDGES, wide, strict=True):
        assert users == sum(n for n, upper in zip(fine, FINE_ROW_EDGES, strict=True) if low < upper <= edge)
        low = edge


def test_a_closer_look_gives_each_user_one_unit(monkeypatch):
    """Without noise: users, and their mean square concentration to within the width of a bin."""
    asked = []

    def laplace(self, purpose, sums, *, bound, epsilon):
        asked.append((sums, bound, epsilon))
        return sums, LaplaceEvent(purpose, bound, self.laplace_scale(bound, epsilon), len(sums))

    with counted(FEW.table(), FEW.items) as counts:
        spending = Spending(Guarantee(1.0, 1e-6))
        reserve_profile(spending, rows=False)
        blind, _ = buy_profile(counts, spending, equal=True, row_cap=None)
        monkeypatch.setattr(Spending, "laplace", laplace)
        profile, crowd = look_closer(counts, spending, blind, "look", 0.5)
    sums, bound, epsilon = asked[0]
    assert bound == UNIT
    assert epsilon == 0.5
    assert sums.sum() == FEW.users * UNIT
    assert profile.barely_seen
    assert profile.users == FEW.users
    assert crowd.total_mass == pytest.approx(FEW.users)
    users, items = FEW.table()["user"].to_numpy(), FEW.table()["item"].to_numpy()
    cells = np.unique(np.stack([users, items]), axis=1, return_counts=True)
    squares = np.bincount(cells[0][0], weights=cells[1] ** 2) / np.bincount(users) ** 2
    assert profile.mean_square_concentration == pytest.approx(squares.mean(), rel=0.35)


def test_a_crowd_below_the_noise_stays_a_guess():
    with counted(FEW.table(), FEW.items) as counts:
        spending = Spending(Guarantee(1.0, 1e-6))
        reserve_profile(spending, rows=False)
        blind, _ = buy_profile(counts, spending, equal=True, row_cap=None)
        profile, _ = look_closer(counts, spending, blind, "look", 1e-4)  # noise of 20,000 for 30 users
    assert profile.users > 0
    assert profile.mean_square_concentration > 0


@pytest.mark.parametrize(("spread", "low", "high"), [(0.0, 0.0, 0.3), (0.5, 0.3, 0.9), (1.0, 0.9, 1.9)])
def test_unevenness_follows_rows_that_no_bin_shows(spread, low, high):
    """Fixed seed: 2,000 users whose bins have noise of 60, far too much to see more than one bin of them."""
    generator = np.random.default_rng(3)
    rows = np.clip(np.rint(50 * np.exp(spread * generator.standard_normal(2000))), 1, ROW_EDGES[-1])
    users = np.histogram(rows, np.concatenate([[0.5], np.array(ROW_EDGES) + 0.5]))[0]
    found = [
        RowBins(users + 60 * generator.standard_normal(len(users)), 60.0, ROW_EDGES).unevenness(2000) for _ in range(20)
    ]
    assert low <= np.mean(found) <= high


def test_a_bin_alone_that_may_be_noise_is_looked_at_again():
    """Seven deviations in one bin of 4,000 rows, where 5,000 users have 20: the third look finds these."""
    false = np.zeros(len(ROW_EDGES))
    false[ROW_EDGES.index(4096)] = 620.0
    rows = RowProfile.of(RowBins(false, 88.0, ROW_EDGES))
    assert rows is not None
    assert not rows.undoubted
    concentration = Crowding(np.array([5000.0]), np.array([0.5]), np.ones(1))
    believed = Profile(620.0, rows.largest, False, rows, concentration, False)
    crowd = Crowd(users=5000, rows=20, items=5, seed=1)
    spending = Spending(Guarantee(1.0, 1e-6))
    with counted(crowd.table(), crowd.items) as counts:
        profile = look_again(counts, spending, believed)
    assert [event.purpose for event in spending.events] == ["users by rows, third look"]
    assert profile.rows is not None
    assert profile.rows.largest <= 32
    assert profile.users > 3000  # 5,000 and the none that were believed, by their precisions


def test_bins_that_were_noise_leave_users_of_equal_weight():
    false = np.zeros(len(ROW_EDGES))
    false[ROW_EDGES.index(4096)] = 620.0
    rows = RowProfile.of(RowBins(false, 88.0, ROW_EDGES))
    believed = Profile(620.0, 4096, False, rows, Crowding(np.array([9.0]), np.array([0.5]), np.ones(1)), False)
    spending = Spending(Guarantee(1.0, 1e-6))
    with counted(table_of([1, 2, 3], [0, 1, 1]), 2) as counts:
        profile = look_again(counts, spending, believed)
    assert profile.rows is None
    assert (profile.equal, profile.row_cap, profile.users) == (True, 1, 9.0)
    assert profile.unseen is not None
