"""Invented crowds whose users differ in ways that trap an estimator, for `bench/accuracy.py`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from crowdgram.synth import Visits

__all__ = ["INVENTED"]

Floats = npt.NDArray[np.float64]


def sample(_: np.random.Generator) -> pa.Table:
    """The sample table's pages: one user in a hundred is a robot with 300 rows of one page, 18% of all rows."""
    table = Visits().table()
    return pa.table({"user": table["user"], "item": table["page"]})


def dominant(rng: np.random.Generator) -> pa.Table:
    """One item a user; one of 250 items has 40%."""
    shares = np.append(0.4, 0.6 * _zipf(249, 0.5))
    return pa.table({"user": np.arange(3000), "item": rng.choice(250, 3000, p=shares)})


def classes(rng: np.random.Generator) -> pa.Table:
    """A fifth of users have some twenty times the rows of the others, and like what the others do not."""
    heavy = rng.random(10_000) < 0.2
    rows = np.exp(np.where(heavy, rng.normal(5.3, 0.6, 10_000), rng.normal(2.5, 0.7, 10_000)))
    return _drawn(rng, rows, heavy, _zipf(60), _zipf(60)[::-1])


def night(rng: np.random.Generator) -> pa.Table:
    """Hours of the day; three users in ten are awake at night, and twice as busy."""
    late = rng.random(20_000) < 0.3
    hours = np.arange(24) / 24 * 2 * np.pi
    day, dark = (np.exp(2 * np.cos(hours - at / 24 * 2 * np.pi)) for at in (14, 2))
    rows = np.exp(rng.normal(3, 1, 20_000)) * np.where(late, 2, 1)
    return _drawn(rng, rows, late, day / day.sum(), dark / dark.sum())


def robots(rng: np.random.Generator) -> pa.Table:
    """One user in two hundred is a robot with 300 to 3,000 rows of two items: four rows in ten."""
    robot = rng.random(30_000) < 0.005
    rows = np.where(robot, rng.integers(300, 3000, 30_000), np.exp(rng.normal(2, 0.8, 30_000)))
    own = np.zeros(40)
    own[[5, 9]] = 0.7, 0.3
    return _drawn(rng, rows, robot, _zipf(40), own)


def languages(rng: np.random.Generator) -> pa.Table:
    """Words of two languages, none in common; three users in ten speak the second."""
    second = rng.random(5000) < 0.3
    first = np.append(_zipf(1000), np.zeros(1000))
    return _drawn(rng, np.exp(rng.normal(5, 1, 5000)), second, first, first[::-1])


INVENTED: dict[str, Callable[[np.random.Generator], pa.Table]] = {
    one.__name__: one for one in (sample, dominant, classes, night, robots, languages)
}


def _zipf(items: int, power: float = 1.0) -> Floats:
    weights: Floats = np.arange(1, items + 1, dtype=np.float64) ** -power
    shares: Floats = weights / weights.sum()
    return shares


def _drawn(rng: np.random.Generator, rows: Floats, other: npt.NDArray[np.bool_], one: Floats, two: Floats) -> pa.Table:
    """Users with so many rows and one more, drawn from `one`, or from `two` where they are others."""
    counts = rows.astype(np.int64) + 1
    users = np.repeat(np.arange(len(counts)), counts)
    items = np.where(
        np.repeat(other, counts), rng.choice(len(two), len(users), p=two), rng.choice(len(one), len(users), p=one)
    )
    return pa.table({"user": users, "item": items})
