"""SmartNoise SQL: counts of rows, of which it keeps so many of a user; at its strongest sums of a user's own counts."""

import pandas
import snsql
from serve import DELTA, EPSILON, serve

BOUNDS = {
    "rows": "rows",
    "rows_strong": "cross_laplace",
    "users": "most_laplace",
    "found_rows": "rows_by_users",
    "found_users": "most",
}


def ask(frame, query, most, censor=False, **columns):
    columns |= {"user": {"type": "int", "private_id": True}, "item": {"type": "int"}}
    table = {"max_ids": most, "sample_max_ids": True, "censor_dims": censor, "clamp_counts": False}
    metadata = {"": {"shop": {"visits": table | columns}}}
    reader = snsql.from_df(frame, privacy=snsql.Privacy(epsilon=EPSILON, delta=DELTA), metadata=metadata)
    return dict(reader.execute(query)[1:])


def rows(table, _, rows):
    query = "SELECT item, COUNT(*) AS n FROM shop.visits GROUP BY item"
    return {"rows": ask(pandas.read_parquet(table), query, rows)}


def rows_strong(table, _, most, per_item):
    counts = pandas.read_parquet(table).groupby(["user", "item"]).size().reset_index(name="n")
    query = "SELECT item, SUM(n) AS n FROM shop.visits GROUP BY item"
    return {"rows": ask(counts, query, most, n={"type": "int", "lower": 0, "upper": per_item})}


def users(table, _, most):
    pairs = pandas.read_parquet(table).drop_duplicates()
    return {"users": ask(pairs, "SELECT item, COUNT(*) AS n FROM shop.visits GROUP BY item", most)}


def found_rows(table, _, rows):
    query = "SELECT item, COUNT(*) AS n FROM shop.visits GROUP BY item"
    return {"rows": ask(pandas.read_parquet(table), query, rows, censor=True)}


def found_users(table, _, most):
    pairs = pandas.read_parquet(table).drop_duplicates()
    return {"users": ask(pairs, "SELECT item, COUNT(*) AS n FROM shop.visits GROUP BY item", most, censor=True)}


if __name__ == "__main__":
    serve(globals())
