"""Users by distance: what their rows say of it."""

from __future__ import annotations

import numpy as np
import pytest

from crowdgram.arrays import Floats
from crowdgram.mechanisms.tastes import STRANGE, TASTES, Tastes
from crowdgram.mechanisms.user_sizes import Bins, Crowds, read
from crowdgram.mechanisms.users_by_distance import Facts, _within_rows

SIZES = np.geomspace(1.0, 2.0**16, 65)
FARTHEST = 10.0


def _tastes(taste: float, strange: float = 0.0) -> Tastes:
    fits = np.full((len(TASTES), len(STRANGE)), -1e3)
    fits[np.argmin(np.abs(TASTES - taste)), np.argmin(np.abs(STRANGE - strange))] = 0.0
    return Tastes.of(fits, (0.1,), items=50)


def _rows(rows: float, users: float) -> Crowds:
    edges = np.geomspace(1.0, 2.0**16, 65)
    counts = np.where(np.arange(65) == np.searchsorted(edges, rows), users, 0.0)
    crowds = read(Bins(counts, np.full(65, 1.0), edges, laplace=True))
    assert crowds is not None
    return crowds


def _far(kept: Floats, size: float) -> float:
    return float(kept[size * 0.99 <= SIZES].sum())


def test_what_a_histogram_shows_farther_out_than_users_have_rows_for_is_noise() -> None:
    facts = Facts(2**20, _rows(1000.0, 5000.0), 5000.0, 10.0, _tastes(1e-4))
    shown = np.where(SIZES < 100, 5000 / (SIZES < 100).sum(), 0.0)
    shown[-20] = 400.0  # at a size of 2,000, where a user of 1,000 rows is at 36 or so
    kept = _within_rows(shown, SIZES, facts, spread=1.0, error=0.0, farthest=FARTHEST)
    assert _far(kept, 1000.0) < 40
    assert kept.sum() == pytest.approx(shown.sum())


@pytest.mark.parametrize("known", [{"taste": 1.0}, {"taste": 1e-4, "strange": 0.5}])
def test_users_who_may_be_far_out_are_believed(known: dict[str, float]) -> None:
    facts = Facts(2**20, _rows(1000.0, 5000.0), 5000.0, 10.0, _tastes(**known))
    shown = np.where(SIZES < 100, 5000 / (SIZES < 100).sum(), 0.0)
    shown[-20] = 400.0
    kept = _within_rows(shown, SIZES, facts, spread=1.0, error=0.0, farthest=FARTHEST)
    assert _far(kept, 1000.0) == pytest.approx(400.0)
