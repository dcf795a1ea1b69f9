"""Tumult Analytics on local Spark: at most so many rows of a user; at its strongest zCDP, items and rows bounded."""

from pyspark.sql import SparkSession
from serve import DELTA, EPSILON, serve
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    RhoZCDPBudget,
    Session,
)

BOUNDS = {
    "rows": "rows",
    "rows_strong": "cross_gaussian",
    "users": "most_laplace",
    "users_strong": "most_gaussian",
    "found_rows": "rows_by_users",
    "found_users": "most",
}
RHO = 0.02435  # as zCDP this implies epsilon = 1 and delta = 1e-6


def open_table(table, budget):
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", 4).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return Session.from_dataframe(budget, "t", spark.read.parquet(table), protected_change=AddRowsWithID("user"))


def values(frame):
    return {row[0]: row[1] for row in frame.collect()}


def rows(table, items, rows):
    session = open_table(table, PureDPBudget(EPSILON))
    query = QueryBuilder("t").enforce(MaxRowsPerID(rows)).groupby(KeySet.from_dict({"item": items})).count()
    return {"rows": values(session.evaluate(query, PureDPBudget(EPSILON)))}


def rows_strong(table, items, most, per_item):
    session = open_table(table, RhoZCDPBudget(RHO))
    query = QueryBuilder("t").enforce(MaxGroupsPerID("item", most)).enforce(MaxRowsPerGroupPerID("item", per_item))
    query = query.groupby(KeySet.from_dict({"item": items})).count()
    return {"rows": values(session.evaluate(query, RhoZCDPBudget(RHO)))}


def users(table, items, most):
    session = open_table(table, PureDPBudget(EPSILON))
    query = QueryBuilder("t").enforce(MaxGroupsPerID("item", most)).enforce(MaxRowsPerGroupPerID("item", 1))
    query = query.groupby(KeySet.from_dict({"item": items})).count()
    return {"users": values(session.evaluate(query, PureDPBudget(EPSILON)))}


def users_strong(table, items, most):
    return {"users": rows_strong(table, items, most, 1)["rows"]}


def found_rows(table, _, rows):
    session = open_table(table, ApproxDPBudget(EPSILON, DELTA))
    bounded = QueryBuilder("t").enforce(MaxRowsPerID(rows))
    found = session.evaluate(bounded.get_groups(["item"]), ApproxDPBudget(EPSILON / 2, DELTA))
    query = bounded.groupby(KeySet.from_dataframe(found)).count()
    return {"rows": values(session.evaluate(query, ApproxDPBudget(EPSILON / 2, 0)))}


def found_users(table, _, most):
    session = open_table(table, ApproxDPBudget(EPSILON, DELTA))
    bounded = QueryBuilder("t").enforce(MaxGroupsPerID("item", most)).enforce(MaxRowsPerGroupPerID("item", 1))
    found = session.evaluate(bounded.get_groups(["item"]), ApproxDPBudget(EPSILON / 2, DELTA))
    query = bounded.groupby(KeySet.from_dataframe(found)).count()
    return {"users": values(session.evaluate(query, ApproxDPBudget(EPSILON / 2, 0)))}


if __name__ == "__main__":
    serve(globals())
