"""diffprivlib: its histogram of rows that the caller bounds; at its strongest Gaussian noise on clipped sums."""

import numpy as np
from caller import clipped_sums, rows_of_users, totals, users_of_items
from diffprivlib.mechanisms import GaussianAnalytic
from diffprivlib.tools import histogram
from serve import DELTA, EPSILON, serve

BOUNDS = {"rows": "rows", "rows_strong": "norm", "users": "most_laplace", "users_strong": "most_gaussian"}


def rows(table, items, rows):
    places = np.searchsorted(items, rows_of_users(table, rows))
    counts, _ = histogram(places, epsilon=EPSILON / rows, bins=len(items), range=(-0.5, len(items) - 0.5))
    return {"rows": dict(zip(items, counts, strict=True))}


def rows_strong(table, items, norm):
    noise = GaussianAnalytic(epsilon=EPSILON, delta=DELTA, sensitivity=norm)
    return {"rows": {item: noise.randomise(x) for item, x in zip(items, clipped_sums(table, items, norm), strict=True)}}


def users(table, items, most):
    places = np.searchsorted(items, users_of_items(table, most))
    counts, _ = histogram(places, epsilon=EPSILON / most, bins=len(items), range=(-0.5, len(items) - 0.5))
    return {"users": dict(zip(items, counts, strict=True))}


def users_strong(table, items, most):
    noise = GaussianAnalytic(epsilon=EPSILON, delta=DELTA, sensitivity=most**0.5)
    counts = totals(users_of_items(table, most), items)
    return {"users": {item: noise.randomise(float(x)) for item, x in zip(items, counts, strict=True)}}


if __name__ == "__main__":
    serve(globals())
