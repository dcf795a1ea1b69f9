"""Releases made of chosen shares and errors, without a table."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from crowdgram import GroupedRelease, Release
from crowdgram.privacy import GaussianEvent, Guarantee, LaplaceEvent


def project(values):
    ordered = np.sort(values)[::-1]
    excess = np.cumsum(ordered) - 1
    last = np.nonzero(ordered - excess / np.arange(1, len(values) + 1) > 0)[0][-1]
    return np.maximum(values - excess[last] / (last + 1), 0)


def made(measured, errors, items, columns, other=None):
    """A release as a mechanism would make it of these measured shares."""
    p = project(measured)
    reach = 1.96 * errors
    return Release(
        items=tuple(items),
        probabilities=p / p.sum(),
        standard_errors=errors,
        lower=np.minimum(np.clip(measured - reach, 0, 1), p),
        upper=np.maximum(np.clip(measured + reach, 0, 1), p),
        confidence=0.95,
        predicted_l1_error=float(errors.sum()),
        guarantee=Guarantee(1.0, 1e-6),
        events=(GaussianEvent("counts", 2.0**30, 1e10, len(p)),),
        mechanism="gaussian",
        weight="rows",
        item_columns=tuple(columns),
        measured=measured,
        other_errors=np.zeros(len(p)) if other is None else other,
    )


def zipf(k, exponent=1.0):
    p = np.arange(1, k + 1.0) ** -exponent
    return p / p.sum()


def exact(p, items=None):
    return made(np.asarray(p, dtype=float), np.full(len(p), 1e-10), items or range(len(p)), ("item",))


def noisy(theta, deviation, rng, laplace=False, claimed=1.0):
    """A release of theta with this noise, which claims `claimed` times as much."""
    noise = rng.laplace(0, 1 / math.sqrt(2), len(theta)) if laplace else rng.standard_normal(len(theta))
    found = made(theta + deviation * noise, np.full(len(theta), claimed * deviation), range(len(theta)), ("item",))
    return replace(found, events=(LaplaceEvent("counts", 1, 1.0, len(theta)),)) if laplace else found


def grouped(deviation=1e-9):
    shares = {"DE": 0.5, "FR": 0.3, "IT": 0.2}
    pages = {"DE": [0.6, 0.3, 0.1], "FR": [0.3, 0.3, 0.4], "IT": [0.5, 0.3, 0.2]}
    cells = {(group, page): shares[group] * p for group, ps in pages.items() for page, p in zip("abc", ps, strict=True)}
    values = np.array(list(cells.values()))
    return GroupedRelease(made(values, np.full(9, deviation), list(cells), ("country", "page")))
