"""The only door to randomness in the whole package.

Noise is drawn by exact samplers over the integers (`discrete`), from bytes of the operating system's cryptographic
generator. They are asked for when they are needed and never kept, so that threads and forks share none. There is no
seed: noise that can be replayed is not private.

A release draws through `EXACT`, which is a `Sampler`. Nothing in the public interface takes another one. An audit and
the tests give their own to `releases.pipeline.run` or to `Spending`, instead of replacing functions of this module.
`OPENDP` draws the same noise by OpenDP's samplers, 20 to 50 times as slowly: the reference that the tests compare with.
"""

from __future__ import annotations

import math
import os
import re
import secrets
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import metadata
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from crowdgram.arrays import Integers
from crowdgram.errors import EngineFailure, InvalidArgument, MissingDependency
from crowdgram.privacy.chances import Entropy
from crowdgram.privacy.discrete import discrete_gaussian, discrete_laplace
from crowdgram.shortage import is_shortage

__all__ = [
    "EXACT",
    "MAX_SCALE",
    "OPENDP",
    "Labels",
    "Sampler",
    "add_discrete_gaussian",
    "add_discrete_laplace",
    "bare_draws",
    "check_sampler",
    "choose_each",
    "fresh_salt",
]

Labels = Callable[[], Sequence[Any]]
"""What the coordinates of a sum are. They are private: for an audit that compares two tables, and for nothing else."""

MAX_SCALE = 2.0**56
_CLAMP = 2**62
_LEAST, _MOST = -(2**63), 2**63 - 1
_MAX_THREADS = 16
# One of OpenDP's draws takes about 10 microseconds; a thread is worth starting for a few milliseconds of them.
_CHUNK = 2048

FIRST_GOOD = (0, 14, 2)
"""The first version of OpenDP to draw with. In 0.14.0 and 0.14.1 discrete Laplace noise has wrong probabilities at some
scales, 3 and 5 among them, and so has Gaussian noise, which is made of it.
"""


class Sampler(Protocol):
    """Draws all that is random in a release. `labels` names the coordinates if their number is private."""

    def laplace(self, values: Integers | Sequence[int], scale: float, labels: Labels | None, /) -> Integers:
        """As `add_discrete_laplace`."""
        ...

    def gaussian(self, values: Integers | Sequence[int], sigma: float, labels: Labels | None, /) -> Integers:
        """As `add_discrete_gaussian`."""
        ...

    def choose(self, scores: Integers, scale: float, /) -> Integers:
        """As `choose_each`."""
        ...

    def salt(self) -> str:
        """As `fresh_salt`."""
        ...


class _Exact:
    """The sampler of every release."""

    def laplace(self, values: Integers | Sequence[int], scale: float, _: Labels | None, /) -> Integers:
        return add_discrete_laplace(values, scale)

    def gaussian(self, values: Integers | Sequence[int], sigma: float, _: Labels | None, /) -> Integers:
        return add_discrete_gaussian(values, sigma)

    def choose(self, scores: Integers, scale: float, /) -> Integers:
        return choose_each(scores, scale)

    def salt(self) -> str:
        return fresh_salt()


class _OpenDP(_Exact):
    """The reference: the same noise, by OpenDP's make_laplace and make_gaussian."""

    def laplace(self, values: Integers | Sequence[int], scale: float, _: Labels | None, /) -> Integers:
        return _measured("scale", values, scale, _laplace_measurement)

    def gaussian(self, values: Integers | Sequence[int], sigma: float, _: Labels | None, /) -> Integers:
        return _measured("sigma", values, sigma, _gaussian_measurement)


EXACT: Sampler = _Exact()
OPENDP: Sampler = _OpenDP()


@lru_cache(maxsize=1)
def check_sampler() -> None:
    """Refuse to draw with a version of OpenDP whose noise is known to be wrong, or that is not known at all."""
    try:
        version = metadata.version("opendp")
    except metadata.PackageNotFoundError:
        version = "of an unknown version"
    parts = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)(.*)", version)
    # With a suffix, it may come before the version that it names.
    if parts is None or (*map(int, parts.groups()[:3]), not parts[4]) < (*FIRST_GOOD, True):
        needed = ".".join(map(str, FIRST_GOOD))
        raise MissingDependency(
            f"the installed opendp is {version}, whose noise cannot be trusted: 0.14.0 and 0.14.1 draw Laplace noise "
            f"with wrong probabilities. Nothing was drawn. Install opendp {needed} or later: pip install "
            f"'opendp>={needed}'.",
            name="opendp",
        )


def add_discrete_gaussian(values: Integers | Sequence[int], sigma: float) -> Integers:
    """Each value plus its own independent discrete Gaussian noise.

    Formula: P[noise = z] proportional to exp(-z^2 / (2 sigma^2)) over the integers z, where sigma is the
    argument, taken as the exact rational that the double is.

    Guarantee: that of GaussianEvent(sensitivity, sigma, len(values)) for any bound `sensitivity` on the l2
    distance of the values of two neighbouring tables. Values beyond +-2^62 are clamped first: clamping moves
    no two values further apart, in any coordinate, so the sensitivity stays. The noisy sum is exact and then
    saturates at the ends of int64, which is post-processing.

    Reference: docs/proofs/samplers.md for the law of the noise; docs/proofs/discrete-gaussian.md for its privacy.
    """
    return _add("sigma", values, sigma, discrete_gaussian)


def add_discrete_laplace(values: Integers | Sequence[int], scale: float) -> Integers:
    """Each value plus its own independent discrete Laplace noise.

    Formula: P[noise = z] proportional to exp(-|z| / scale) over the integers z, where scale is the argument,
    taken as the exact rational that the double is.

    Guarantee: that of LaplaceEvent(sensitivity, scale, len(values)) for any bound `sensitivity` on the l1
    distance of the values of two neighbouring tables; clamping and saturation as in `add_discrete_gaussian`.

    Reference: docs/proofs/samplers.md for the law of the noise; docs/proofs/laplace.md for its privacy.
    """
    return _add("scale", values, scale, discrete_laplace)


def choose_each(scores: Integers, scale: float) -> Integers:
    """For each row of `scores`, the index of one column, by the exponential mechanism; rows are independent.

    Formula: P[j] proportional to exp(scores[j] / scale), where scale is the argument, taken as the exact rational that
    the double is.

    Guarantee: bounded range 2 sensitivity/scale for each row, for any bound `sensitivity` on how far one score moves
    between neighbouring tables; sensitivity/scale if all scores move the same way. Scores must lie within +-2^62, where
    no difference overflows.

    Reference: OpenDP's make_noisy_max under zero-concentrated divergence, which is the maximum of scores with
    Gumbel noise. It is sampled exactly: from 0.14.2 on by drawing a column uniformly and keeping it with
    probability exp((score - largest)/scale), in rationals, until one is kept; before, by comparing partially
    sampled Gumbel variables. Both are the distribution above. docs/proofs/bounded-range.md.
    """
    check_sampler()
    measure = _choice_measurement(_checked_scale("scale", scale))
    rows = np.ascontiguousarray(scores, dtype=np.int64)
    if rows.ndim != 2 or rows.shape[1] == 0 or scores.dtype.kind not in "iu":
        raise InvalidArgument(
            "scores: need to be whole numbers with a row for each choice and a column for each candidate.",
            argument="scores",
        )
    if rows.shape[1] == 1:
        return np.zeros(len(rows), dtype=np.int64)
    threads = min(os.cpu_count() or 1, _MAX_THREADS, len(rows))
    if threads <= 1 or rows.size < _CHUNK:
        return np.array([measure(row) for row in rows], dtype=np.int64)
    from concurrent.futures import ThreadPoolExecutor  # which loads logging, for OpenDP's samplers only

    with ThreadPoolExecutor(threads) as pool:
        return np.array(list(pool.map(measure, rows)), dtype=np.int64)


def fresh_salt() -> str:
    """128 random bits in hexadecimal, from the operating system.

    For choices that must be unpredictable but need no stated distribution, such as which row of a user is
    sampled. Not for noise.
    """
    return secrets.token_hex(16)


def bare_draws(kind: Literal["laplace", "gaussian"], scale: float, draws: int) -> Integers:
    """Noise on zeros: for the self-test that judges it, and for nothing else."""
    add = add_discrete_laplace if kind == "laplace" else add_discrete_gaussian
    return add(np.zeros(draws, dtype=np.int64), scale)


def _add(name: str, values: Any, scale: float, draw: Callable[[float, int, Entropy], Integers]) -> Integers:
    scale = _checked_scale(name, scale)
    clamped = _clamped(values)
    noise = draw(scale, clamped.size, os.urandom)
    if noise.dtype == np.int64:  # below 2^62 then, so that the sum fits
        return clamped + noise
    exact = clamped.astype(object) + noise
    return np.array([min(max(int(value), _LEAST), _MOST) for value in exact], dtype=np.int64)


def _measured(name: str, values: Any, scale: float, measurement: Callable[[float], Any]) -> Integers:
    check_sampler()
    measure = measurement(_checked_scale(name, scale))
    clamped = _clamped(values)
    chunks = [clamped[start : start + _CHUNK] for start in range(0, clamped.size, _CHUNK)]
    threads = min(os.cpu_count() or 1, _MAX_THREADS, len(chunks))
    if threads <= 1:
        noisy = [measure(chunk.tolist()) for chunk in chunks]
    else:
        from concurrent.futures import ThreadPoolExecutor

        # A pool for each call: a pool kept at module level would not survive a fork.
        with ThreadPoolExecutor(threads) as pool:
            noisy = list(pool.map(lambda chunk: measure(chunk.tolist()), chunks))
    return np.concatenate([np.zeros(0, dtype=np.int64), *(np.array(chunk, dtype=np.int64) for chunk in noisy)])


@lru_cache(maxsize=64)
def _gaussian_measurement(sigma: float) -> Any:
    # Imported when first needed, and by module: OpenDP's prelude would also load every library that it can work with.
    _load_opendp()
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=sigma)


@lru_cache(maxsize=64)
def _laplace_measurement(scale: float) -> Any:
    _load_opendp()
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale)


@lru_cache(maxsize=64)
def _choice_measurement(scale: float) -> Any:
    _load_opendp()
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import zero_concentrated_divergence
    from opendp.metrics import linf_distance

    space = vector_domain(atom_domain(T="i64")), linf_distance(T="i64")
    return make_noisy_max(*space, zero_concentrated_divergence(), scale=scale)


def _load_opendp() -> None:
    """Load OpenDP, with the features that are used. If memory is short, it raises a plain Exception."""
    try:
        from opendp.mod import enable_features
    except ImportError:
        raise
    except Exception as error:  # noqa: BLE001 (it names files of this machine, and nothing else that helps)
        if is_shortage(error):
            raise MemoryError from None
        raise EngineFailure(
            "OpenDP's library cannot be loaded: there is too little memory, or it is damaged. Nothing was released. "
            "Give the release more memory, or install opendp again."
        ) from None
    enable_features("contrib")


def _checked_scale(name: str, scale: Any) -> float:
    is_number = isinstance(scale, int | float | np.integer | np.floating) and not isinstance(scale, bool)
    scale = int(scale) if isinstance(scale, np.integer) else scale  # NumPy would compare after rounding
    if not is_number or not math.isfinite(scale) or not 1.0 <= scale <= MAX_SCALE or float(scale) != scale:
        raise InvalidArgument(f"{name}={scale!r}: needs to be a number from 1 to 2^56.", argument=name)
    return float(scale)


def _clamped(values: Any) -> Integers:
    """The values as int64, clamped to +-2^62. A message never quotes them: they are private."""
    # Adding noise would leave what is masked as it is. A plain array or list has no mask, and `np.ma` is slow to load.
    if type(values) not in (np.ndarray, list) and isinstance(values, np.ma.MaskedArray):
        raise InvalidArgument("values: is a masked array. Fill it first.", argument="values")
    # A subclass may add in its own way.
    array = np.asarray(values) if isinstance(values, np.ndarray) else _from_sequence(values)
    if array.ndim != 1:
        raise InvalidArgument(
            f"values: has {array.ndim} dimensions, and needs to be a vector. Flatten it first.", argument="values"
        )
    if array.dtype == object:
        if not all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in array):
            raise InvalidArgument("values: needs whole numbers only. Pass integers.", argument="values")
        return np.array([min(max(int(value), -_CLAMP), _CLAMP) for value in array], dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidArgument(
            f"values: has dtype {array.dtype}, and needs integers. Scale and round them first.", argument="values"
        )
    if array.dtype.kind == "u":
        return np.minimum(array.astype(np.uint64), np.uint64(_CLAMP)).astype(np.int64)
    return np.clip(array.astype(np.int64), -_CLAMP, _CLAMP)


def _from_sequence(values: Any) -> npt.NDArray[Any]:
    """Python integers of any size, kept as they are; if all fit, as an array of integers."""
    items = list(values)
    if set(map(type, items)) == {int} and min(items) >= -_CLAMP and max(items) <= _CLAMP:
        return np.array(items, dtype=np.int64)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array
