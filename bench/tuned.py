"""What the simple mechanisms reach at the best cap there is, found with the truth in hand: an oracle that no user has.

Simulated in floating point with `numpy.random`, for speed: nothing here is private, and nothing here is Crowdgram's.
Each result is divided by its own noisy total and projected onto the simplex.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from crowdgram.mechanisms.simplex import project
from crowdgram.privacy.gaussian import gaussian_mu

__all__ = ["BASELINES", "Contributions", "Oracle", "Tuned", "estimate", "l1", "standard_error"]

Floats = npt.NDArray[np.float64]
Weight = Literal["rows", "users"]

BASELINES = ("laplace", "gaussian", "sample-one")
CAPS_PER_DOUBLING = 4


@dataclass(frozen=True, eq=False)
class Contributions:
    """Every user's counts, users by items, with what the mechanisms need of them."""

    counts: sparse.csr_matrix
    items: list[int] | list[str]

    @classmethod
    def of(cls, source: pa.Table | Path) -> Contributions:
        """Count the rows of a table (columns user and item) in DuckDB; only its cells come into memory."""
        with duckdb.connect() as connection:
            connection.execute("SET enable_progress_bar = false")
            table = (
                connection.from_arrow(source) if isinstance(source, pa.Table) else connection.from_parquet(str(source))
            )
            cells = table.aggregate('"user", item, count(*) as n', '"user", item').fetchnumpy()
        items, column = np.unique(cells["item"], return_inverse=True)
        users, row = np.unique(cells["user"], return_inverse=True)
        shape = (len(users), len(items))
        return cls(sparse.csr_matrix((cells["n"].astype(np.float64), (row, column)), shape=shape), items.tolist())

    def within(self, items: list[int] | list[str]) -> Contributions:
        """The same over a wider, sorted domain, of which some items may not occur."""
        place = np.searchsorted(np.array(items), np.array(self.items))
        cells = self.counts.tocoo()
        shape = (cells.shape[0], len(items))
        return Contributions(sparse.csr_matrix((cells.data, (cells.row, place[cells.col])), shape=shape), items)

    def answer(self, weight: Weight) -> Floats:
        """The table's own answer, without privacy."""
        rows = self.rows()
        if weight == "rows":
            return self.totals(np.ones_like(rows)) / rows.sum()
        return self.totals(1 / rows) / len(rows)

    def rows(self) -> Floats:
        return np.asarray(self.counts.sum(axis=1)).ravel()

    def norms(self) -> Floats:
        return np.sqrt(np.asarray(self.counts.multiply(self.counts).sum(axis=1)).ravel())

    def totals(self, weights: Floats) -> Floats:
        """For every item the sum over users of weight times count."""
        return np.asarray(self.counts.T @ weights).ravel()

    def sampled(self, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """The item of one row of each user, drawn uniformly from the user's rows."""
        ends = np.cumsum(self.counts.data)
        rows = self.rows()
        drawn = np.cumsum(rows) - rows + np.floor(rng.random(len(rows)) * rows)
        return self.counts.indices[np.searchsorted(ends, drawn, side="right")].astype(np.int64)


@dataclass(frozen=True)
class Tuned:
    """A baseline at its best cap; None where there is nothing to cap: with weight "users" every user's l1 norm is 1."""

    mechanism: str
    cap: float | None
    mean: float
    standard_error: float


class Oracle:
    """Collects the error of every baseline at every cap over repetitions; the best mean is the baseline's result.

    A repetition uses the same noise, scaled, for all caps of a baseline, so that caps are compared with each other and
    not luck with luck. The caps lie between the least and the most that a user of the first table has, at most a
    quarter of a doubling apart. Outside, nothing changes but for the worse.
    """

    def __init__(self, weight: Weight, epsilon: float, delta: float, rng: np.random.Generator) -> None:
        self.weight, self.epsilon, self.mu, self.rng = weight, epsilon, gaussian_mu(epsilon, delta), rng
        self._caps: dict[str, Floats] = {}
        self._errors: dict[str, list[list[float]]] = {name: [] for name in BASELINES}

    def add(self, table: Contributions, truth: Floats) -> None:
        """One repetition on one table."""
        equal = self.weight == "users"
        rows, norms = table.rows(), table.norms()
        base = 1 / rows if equal else np.ones_like(rows)  # the weight of a user whom nothing clips
        sizes = {"laplace": rows * base, "gaussian": norms * base, "sample-one": rows * base}
        self._caps = self._caps or {name: _grid(size) for name, size in sizes.items()}
        k, item = len(truth), table.sampled(self.rng)
        unit_noise = {
            "laplace": self.rng.laplace(size=k) / self.epsilon,
            "gaussian": self.rng.normal(size=k) / self.mu,
            "sample-one": self.rng.laplace(size=k) / self.epsilon,
        }

        def clipped(name: str, cap: float) -> Floats:
            scaled = np.minimum(1.0, cap / sizes[name])
            if name == "sample-one":
                return np.bincount(item, weights=scaled * sizes[name], minlength=k)
            return table.totals(base * scaled)

        deviations = {"laplace": math.sqrt(2) / self.epsilon, "gaussian": 1 / self.mu}
        for name, caps in self._caps.items():
            deviation = deviations.get(name, deviations["laplace"])
            self._errors[name].append(
                [l1(estimate(clipped(name, cap) + cap * unit_noise[name], cap * deviation), truth) for cap in caps]
            )

    def best(self) -> Mapping[str, Tuned]:
        return {name: self._best(name) for name in BASELINES}

    def _best(self, name: str) -> Tuned:
        errors, caps = np.array(self._errors[name]), self._caps[name]
        means = errors.mean(axis=0)
        best = int(means.argmin())
        cap = None if self.weight == "users" and name != "gaussian" else float(caps[best])
        return Tuned(name, cap, float(means[best]), standard_error(errors[:, best]))


def estimate(noisy: Floats, deviation: float) -> Floats:
    """Noisy sums as a distribution: divided by their total (kept above its own noise) and projected."""
    return project(noisy / max(float(noisy.sum()), deviation * math.sqrt(len(noisy))))


def l1(one: Floats, other: Floats) -> float:
    return float(np.abs(one - other).sum())


def standard_error(values: npt.ArrayLike) -> float:
    """Of the mean; not a number for a single value."""
    array = np.asarray(values, dtype=np.float64)
    return float(array.std(ddof=1) / math.sqrt(len(array))) if len(array) > 1 else math.nan


def _grid(sizes: Floats) -> Floats:
    low, high = float(sizes.min()), float(sizes.max())
    count = math.ceil(CAPS_PER_DOUBLING * math.log2(high / low) - 1e-9) + 1
    # From the top: among equals (all users alike) the largest cap is named.
    return np.geomspace(high, low, count)
