"""Users by rows, read from a noisy histogram: what stands out, who is a stranger, what may be hidden; and its price."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from crowdgram.mechanisms.noisy_bins import Bins
from crowdgram.mechanisms.pilot_queries import (
    EDGES,
    HISTOGRAM_UNIT,
    ROWS_SECOND,
    RowHistogram,
    _fitted,
    look_at_rows,
    row_reserves,
)
from crowdgram.mechanisms.row_bound import best_bound, bias_of, moved_squares, share_above, worth_knowing
from crowdgram.mechanisms.user_sizes import read
from crowdgram.privacy import Guarantee, Spending

from ..samplers import Scripted

ALL = np.array(EDGES, dtype=np.float64)
WIDE = np.append(ALL[:26], ALL[27::2])  # half an octave each from the 27th on
BULK = {edge: 400.0 / (1 + abs(math.log2(edge / 10))) ** 3 for edge in EDGES if 2 <= edge <= 90}


def bins(users, edges=ALL, deviation=1.0):
    """Users by their bin's upper edge, without noise, as if it had this standard deviation."""
    values = np.array([sum(n for rows, n in users.items() if low < rows <= high) for low, high in _pairs(edges)])
    return Bins(values, np.full(len(edges), deviation), edges, laplace=True)


def _pairs(edges):
    return list(zip(np.append(0.0, edges[:-1]).tolist(), edges.tolist(), strict=True))


def test_wider_bins_hold_the_same_users_and_the_noise_of_all_they_merge():
    fine = bins(BULK, deviation=3.0)
    wide = fine.merged(WIDE)
    assert wide.users.sum() == pytest.approx(fine.users.sum())
    assert wide.users[:26] == pytest.approx(fine.users[:26])
    assert wide.users.tolist() == pytest.approx(bins(BULK, WIDE).users.tolist())
    assert wide.deviations[:26] == pytest.approx(3.0)
    assert wide.deviations[26:] == pytest.approx(3.0 * math.sqrt(2))


def test_looks_with_different_bins_are_averaged_where_both_have_an_edge():
    both = bins(BULK, deviation=3.0) + bins(BULK, WIDE, deviation=1.0)
    assert both.edges.tolist() == WIDE.tolist()
    assert both.users == pytest.approx(bins(BULK, WIDE).users)
    assert both.deviations[0] == pytest.approx((1 / 9 + 1) ** -0.5)
    assert both.deviations[-1] == pytest.approx((1 / 18 + 1) ** -0.5)


def test_a_lump_after_a_gap_is_seen_and_called_strangers():
    crowd = read(bins(BULK | {300: 60.0}, WIDE, deviation=8.0), strangers=True)
    assert 256 < crowd.seen < 363
    place = int(np.flatnonzero(crowd.sizes == crowd.seen)[0])
    assert crowd.weights @ crowd.strangers[:, place] > 0.8
    assert crowd.typical[place] == pytest.approx(60.0)
    assert crowd.weights @ (crowd.users[:, place] > 59) > 0.8


@pytest.mark.parametrize("laplace", [True, False])
def test_a_lump_after_a_gap_is_strangers_however_narrow_the_bins_are(laplace):
    """Ten bins of two standard deviations each: none stands out alone, and a crowd that falls would be flat there."""
    lump = {float(edge): 13.0 for edge in ALL if 700 < edge < 3500}
    crowd = read(replace(bins(BULK | lump, deviation=6.5), laplace=laplace), strangers=True)
    rows = crowd.users * crowd.sizes
    strange = (rows * crowd.strangers).sum(axis=1) / rows.sum(axis=1)
    assert crowd.weights @ strange > 0.6
    assert crowd.weights @ (strange > 0.3) > 0.95


def test_as_many_users_of_every_number_of_rows_are_one_crowd():
    """On a scale of octaves they would seem to rise from one row on, but for the widths of bins."""
    several = {float(rows): 20_000.0 * rows**-0.8 for rows in range(1, 53)}
    crowd = read(bins(several, deviation=20.0), strangers=True)
    assert not crowd.strangers[crowd.kinds == 0].any()


def test_a_tail_that_falls_holds_no_strangers():
    falling = BULK | {float(edge): 400.0 / edge for edge in WIDE[WIDE > 90][:6]}
    crowd = read(bins(falling, WIDE, deviation=0.2), strangers=True)
    assert crowd.seen > 180  # wide bins begin there
    assert not crowd.strangers[:, crowd.sizes <= crowd.seen].any()
    assert crowd.weights @ (crowd.kinds > 0) < 0.4  # hardly more than before


def test_a_group_that_no_bin_shows_is_believed_by_what_all_its_bins_say():
    """Three bins of two and a half standard deviations each, far beyond the crowd: none stands out of the noise."""
    group = {1024.0: 20.0, 1448.0: 20.0, 2048.0: 20.0}
    crowd = read(bins(BULK | group, WIDE, deviation=8.0), strangers=True)
    nobody = read(bins(BULK, WIDE, deviation=8.0), strangers=True)
    assert crowd.seen < 500
    (believed, rows), (before, fewer) = (
        (one.weights @ (one.kinds > 0), one.weights @ (one.users * one.strangers @ one.sizes))
        for one in (crowd, nobody)
    )
    assert believed > 1.5 * before
    assert 90_400 > rows > 3 * fewer


def test_what_is_as_small_as_noise_is_not_seen_the_less_the_farther_out_it_is():
    near, far = (read(bins(BULK | {rows: 46.0}, WIDE, deviation=8.0)).seen > 128 for rows in (256, 2**19))
    assert near
    assert not far


def test_what_no_bin_shows_is_believed_less_where_noise_has_long_tails():
    group = {1024.0: 20.0, 1448.0: 20.0, 2048.0: 20.0}
    noisy = bins(BULK | group, WIDE, deviation=8.0)
    gaussian, laplace = (read(replace(noisy, laplace=shape), strangers=True) for shape in (False, True))
    assert max(gaussian.seen, laplace.seen) < 500
    assert gaussian.weights @ (gaussian.kinds > 0) > 1.3 * (laplace.weights @ (laplace.kinds > 0))


@pytest.mark.slow
def test_noise_alone_is_rarely_taken_for_users_far_out():
    """48 bins far out, of 200 readings: by `more_alarm` at most about 2 in 1,000 windows' worth of them."""
    rng = np.random.default_rng(5)
    alarms, one = 0, bins(BULK, WIDE, deviation=5.0)
    for _ in range(200):
        noisy = Bins(one.users + rng.laplace(size=len(WIDE)) * 5 / math.sqrt(2), one.deviations, WIDE, laplace=True)
        alarms += read(noisy).seen > 500
    assert alarms < 7  # expected about 1


def far_lump(users):
    """What is read of so many users with 2,000 rows, at a noise of 8; and the probability that they are noise."""
    crowd = read(bins(BULK | {2000: users}, WIDE, deviation=8.0), strangers=True)
    held = crowd.users[:, crowd.sizes > 1024].max(axis=1) > users / 2
    return crowd, 1 - float(crowd.weights @ held)


def test_the_farthest_bin_that_stands_out_is_noise_as_likely_as_its_size_says():
    doubts = []
    for users in (60.0, 68.0, 90.0):
        crowd, doubt = far_lump(users)
        doubts.append(doubt)
        assert crowd.weights.sum() == pytest.approx(1.0)
        assert crowd.typical[crowd.sizes > 1024].max() == pytest.approx(users)
    assert 0.5 > doubts[0] > 1.9 * doubts[1]
    assert doubts[1] > 2 * doubts[2]
    assert doubts[2] < 0.01


def test_a_doubtful_lump_is_worth_another_look_and_a_clear_one_is_not():
    doubtful, clear = (worth_knowing(far_lump(users)[0], 5.0, 0.3) for users in (60.0, 90.0))
    assert doubtful > 5 * clear


def test_strangers_cost_their_whole_difference_and_others_a_part():
    alone, beside = (read(bins(BULK | more, WIDE, deviation=1.0), strangers=True) for more in ({}, {300: 60.0}))
    bound = np.array([90.0])
    assert float(bias_of(alone, bound)[1][alone.kinds == 0].max()) == 0.0  # the others have groups that no bin shows
    nobody_else = beside.weights * (beside.kinds == 0)
    ordinary, strange = (float(nobody_else @ part[:, 0] / nobody_else.sum()) for part in bias_of(beside, bound))
    assert strange > 0.1
    assert ordinary > 0
    kept, lost = best_bound(beside, 5.0, 0.3), best_bound(alone, 5.0, 0.3)
    assert kept.size > 2 * lost.size


def test_users_of_one_size_are_believed_where_a_wider_group_would_not_fit():
    """Forty robots of 300 rows each, behind noise: the bins beside theirs show nobody."""
    seen = bins(BULK | {300: 25.0}, WIDE, deviation=5.9)
    there = int(np.searchsorted(seen.edges, 300))
    nobody = seen.users.copy()
    nobody[there] = 0.0
    nobody[there + 1] -= 8.0
    there_too = replace(seen, users=np.where(np.arange(len(nobody)) == there + 1, nobody, seen.users))
    chances = []
    for each in (replace(seen, users=nobody), there_too):
        crowds = read(each, strangers=True)
        many = crowds.users[:, there] > 10
        chances.append(float(crowds.weights[many].sum()))
    assert chances[0] < 0.01
    assert chances[1] > 0.05


def test_what_a_bound_moves_is_summed_in_squares_over_users():
    crowd = read(bins(BULK | {300: 60.0}, WIDE, deviation=1.0))
    crowd = replace(crowd, octaves=np.zeros(len(crowd.sizes)), users=np.rint(crowd.users))  # a bin's users are alike
    squares = moved_squares(crowd, 90.0)
    for users, found in zip(crowd.users, squares, strict=True):
        rows = np.repeat(crowd.sizes, users.astype(int))
        kept = np.minimum(rows, 90.0)
        assert found == pytest.approx(float(((rows / rows.sum() - kept / kept.sum()) ** 2).sum()))


def test_the_bias_of_a_bound_is_what_it_moves_between_users():
    crowd = read(bins(BULK | {300: 60.0}, WIDE, deviation=1.0))
    crowd = replace(crowd, octaves=np.zeros(len(crowd.sizes)))  # all users of a bin alike
    bounds = np.array([5.0, 90.0, 250.0])
    ordinary, strange = bias_of(crowd, bounds)
    before = crowd.users * crowd.sizes
    for j, bound in enumerate(bounds):
        after = crowd.users * np.minimum(crowd.sizes, bound)
        moved = np.abs(after / after.sum(axis=1, keepdims=True) - before / before.sum(axis=1, keepdims=True))
        assert ordinary[:, j] == pytest.approx((moved * (1 - crowd.strangers)).sum(axis=1), abs=1e-9)
        assert strange[:, j] == pytest.approx((moved * crowd.strangers).sum(axis=1), abs=1e-9)


def test_a_crowd_may_end_sharply():
    """As many users in each bin up to 100 rows, and nobody beyond: a smooth tail would see a part of them there."""
    flat = bins({edge: 500.0 for edge in WIDE if edge <= 100}, WIDE, deviation=20.0)
    sharp, smooth = (read(flat, strangers=each) for each in (True, False))
    beyond = sharp.sizes > 110
    assert sharp.typical[beyond].sum() < 0.5 * smooth.typical[beyond].sum()


def test_users_who_may_be_hidden_are_said():
    crowd = read(bins(BULK, WIDE, deviation=10.0), strangers=True)
    mean, low, high = share_above(crowd, 120.0)
    assert low < 0.01
    assert high > 0.1
    assert low < mean < high
    closer = share_above(read(bins(BULK, WIDE, deviation=1.0), strangers=True), 120.0)
    assert closer[2] < high


@pytest.mark.parametrize(("items", "part"), [(1, 0.24), (6, 0.24), (40, 0.105), (200, 0.04), (10_000, 0.04)])
def test_the_second_look_is_larger_where_items_are_few(items, part):
    assert ROWS_SECOND.most(items) == pytest.approx(part, rel=0.01)


def test_the_second_look_has_wide_bins_beyond_the_crowd_and_counts_every_user_once():
    drawn = []
    sampler = Scripted(laplace_by=lambda sums, _: drawn.append(sums.tolist()) or np.asarray(sums))
    histogram = np.array([12_000 // edge if 4 <= edge <= 60 else 0 for edge in EDGES])
    guarantee = Guarantee(1.0, 1e-6)
    rows = look_at_rows(histogram, Spending(guarantee, sampler=sampler).open().looks(row_reserves(guarantee, 6)), 6)
    assert len(drawn) == 2
    assert [sum(each) for each in drawn] == [int(histogram.sum()) * HISTOGRAM_UNIT] * 2
    assert len(drawn[0]) == len(EDGES)
    assert set(rows.bins.edges) < set(EDGES)
    beyond = rows.bins.edges[rows.bins.edges > 130]
    assert np.diff(np.log2(beyond)) == pytest.approx(0.5, abs=0.01)
    assert isinstance(rows, RowHistogram)
    assert rows.bins.users.sum() == pytest.approx(histogram.sum())


def test_the_second_look_is_small_if_the_first_shows_nobody():
    def nobody_at_first(sums, scale):
        return np.asarray(sums) if scale < 100 * HISTOGRAM_UNIT else np.zeros_like(sums)

    histogram = np.array([300 if edge == 5 else 0 for edge in EDGES])
    guarantee = Guarantee(1.0, 1e-6)
    spending = Spending(guarantee, sampler=Scripted(laplace_by=nobody_at_first)).open()
    looks = spending.looks(row_reserves(guarantee, 10))
    rows = look_at_rows(histogram, looks, 10)
    assert rows.crowds is not None
    assert [event.sensitivity / event.scale for event in looks.events] == pytest.approx([0.01, 0.04])


def test_users_who_are_seen_in_wide_bins_only_are_read():
    """A first look took noise at one row for users, so that bins beyond are wide; a second one shows them."""
    first = np.zeros(len(ALL))
    first[0] = 1500.0
    noisy = Bins(first, np.full(len(ALL), 100.0), ALL, laplace=True)
    edges = _fitted(RowHistogram.of(noisy).crowds)
    second = np.where(edges == edges[np.searchsorted(edges, 4096)], 3000.0, 0.0)
    both = RowHistogram.of(noisy + Bins(second, np.full(len(edges), 25.0), edges, laplace=True))
    assert both.crowds is not None
    assert 2000 < both.crowds.seen < 5000
