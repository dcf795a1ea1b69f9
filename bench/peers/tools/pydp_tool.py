"""PyDP: its Laplace mechanism on counts that the caller bounds; at its strongest Gaussian noise on clipped sums."""

from caller import clipped_sums, rows_of_users, totals, users_of_items
from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism
from pydp.algorithms.partition_selection import create_partition_strategy
from serve import DELTA, EPSILON, serve

BOUNDS = {
    "rows": "rows",
    "rows_strong": "norm",
    "users": "most_laplace",
    "users_strong": "most_gaussian",
    "found_users": "most",
}


def rows(table, items, rows):
    noise = LaplaceMechanism(EPSILON, rows)
    counts = totals(rows_of_users(table, rows), items)
    return {"rows": {item: noise.add_noise(int(x)) for item, x in zip(items, counts, strict=True)}}


def rows_strong(table, items, norm):
    noise = GaussianMechanism(EPSILON, DELTA, norm)
    return {"rows": {item: noise.add_noise(x) for item, x in zip(items, clipped_sums(table, items, norm), strict=True)}}


def users(table, items, most):
    noise = LaplaceMechanism(EPSILON, most)
    counts = totals(users_of_items(table, most), items)
    return {"users": {item: noise.add_noise(int(x)) for item, x in zip(items, counts, strict=True)}}


def users_strong(table, items, most):
    noise = GaussianMechanism(EPSILON, DELTA, most**0.5)
    counts = totals(users_of_items(table, most), items)
    return {"users": {item: noise.add_noise(int(x)) for item, x in zip(items, counts, strict=True)}}


def found_users(table, _, most):
    counts = users_of_items(table, most).value_counts()
    strategy = create_partition_strategy("laplace", EPSILON / 2, DELTA, most)
    noise = LaplaceMechanism(EPSILON / 2, most)
    return {"users": {item: noise.add_noise(x) for item, x in counts.items() if strategy.should_keep(x)}}


if __name__ == "__main__":
    serve(globals())
