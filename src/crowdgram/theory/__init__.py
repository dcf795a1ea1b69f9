"""The paper's mathematics, as functions to call: distances of binomials, bounds on users, and users measured.

Plain numbers in, plain numbers out: nothing here sees a table or draws noise. See docs/theory.md.
"""

from __future__ import annotations

from .binomial_constant import MEASURED_CONSTANT, Least, least_ratio, limit_ratio, lower_bound_holds
from .binomial_distance import (
    PAPER_CONSTANT,
    binomial_distance,
    distance_bounds,
    distance_scale,
    poisson_distance,
    tail_start,
)
from .lower_bounds import (
    assouad,
    counts_only_error,
    counts_only_users,
    error_sum,
    fano,
    le_cam,
    private_error,
    private_users,
    pure_error,
    pure_users,
    replaced,
    sampling_error,
    sampling_users,
)
from .measured_users import MeasuredUsers, measured_users
from .ranges import OutOfRange
from .user_complexity import (
    binomial_users,
    dense_users,
    gaussian_users,
    joined_users,
    laplace_users,
    median_users,
    sample_one_users,
    selection_users,
    small_binomial_users,
    sparse_users,
    variable_users,
)

__all__ = [
    "MEASURED_CONSTANT",
    "PAPER_CONSTANT",
    "Least",
    "MeasuredUsers",
    "OutOfRange",
    "assouad",
    "binomial_distance",
    "binomial_users",
    "counts_only_error",
    "counts_only_users",
    "dense_users",
    "distance_bounds",
    "distance_scale",
    "error_sum",
    "fano",
    "gaussian_users",
    "joined_users",
    "laplace_users",
    "le_cam",
    "least_ratio",
    "limit_ratio",
    "lower_bound_holds",
    "measured_users",
    "median_users",
    "poisson_distance",
    "private_error",
    "private_users",
    "pure_error",
    "pure_users",
    "replaced",
    "sample_one_users",
    "sampling_error",
    "sampling_users",
    "selection_users",
    "small_binomial_users",
    "sparse_users",
    "tail_start",
    "variable_users",
]
