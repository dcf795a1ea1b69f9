"""What all kinds of the fuzzer share: odd values, secrets, and how a release is made and checked."""

from __future__ import annotations

import datetime
import decimal
import inspect
import random
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import crowdgram
from crowdgram import releases

SECRETS = ("s3cret", 914872635)
"""Values of tables that no message may hold."""

unsanitized: Any = inspect.unwrap(releases.release)

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -(2**70), 0.0, 1.0, -1.0, 1e-300, 1e300, float("nan"),
    float("inf"), "", "1", "-1", b"x", [], {}, (), set(), object(), [1, 1], ["a", None], [[1]], {"a": 1}, range(3),
    1j,
    decimal.Decimal("1.5"), datetime.date(2024, 1, 1), uuid.UUID(int=1), np.float32(1), np.int64(1), np.array([1, 2]),
    np.array([[1]]), Path("/nonexistent"), "/nonexistent.csv", "/", ".", "*.csv", crowdgram,
)  # fmt: skip


def tiny() -> pa.Table:
    return pa.table({"user": ["a", "a", "b"], "item": ["x", "y", "x"]})


def checked(made: crowdgram.Release, items: list[Any] | None = None) -> None:
    """Whether a release is one: a distribution over its items, with intervals around it."""
    p = made.probabilities
    assert abs(float(p.sum()) - 1) < 1e-6
    assert np.all(np.isfinite(p))
    assert np.all(p >= 0)
    assert np.all(made.lower <= p + 1e-9)
    assert np.all(p - 1e-9 <= made.upper)
    assert items is None or list(made.items) == items
    repr(made), made._repr_html_(), made.top(3)


def release(table: object, **changes: Any) -> crowdgram.Release:
    usual = {
        "user": "user",
        "item": "item",
        "epsilon": 1.0,
        "domain": ["x", "y"],
        "mechanism": "laplace",
        "weight": "users",
    }
    # Unsanitized, so that an error nobody foresaw is seen as what it is.
    return unsanitized(table, **(usual | changes))


def noise(rng: random.Random) -> bytes:
    """Nothing, mostly; else a few bytes of any kind."""
    return rng.randbytes(rng.randrange(1, 20)) if rng.random() < 0.1 else b""
