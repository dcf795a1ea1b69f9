"""PipelineDP on its local backend: counts with bounded items and rows; at its strongest vector sums, clipped in l2."""

import numpy as np
import pandas
import pipeline_dp
from pipeline_dp import AggregateParams, DataExtractors, Metrics, NoiseKind
from pipeline_dp.aggregate_params import NormKind
from serve import DELTA, EPSILON, serve

BOUNDS = {
    "rows": "cross_or_rows",
    "rows_strong": "norm",
    "users": "most",
    "found_rows": "cross",
    "found_users": "most",
}


def aggregate(rows, params, items=None, value=lambda _: 1):
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    extractors = DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1], value_extractor=value
    )
    result = engine.aggregate(rows, params, extractors, public_partitions=items)
    accountant.compute_budgets()
    return list(result)


def read(table):
    return list(pandas.read_parquet(table, columns=["user", "item"]).itertuples(index=False, name=None))


def rows(table, items, noise, rows=None, most=None, per_item=None):
    params = AggregateParams(
        metrics=[Metrics.COUNT],
        noise_kind=NoiseKind[noise.upper()],
        max_contributions=rows,
        max_partitions_contributed=most,
        max_contributions_per_partition=per_item,
    )
    return {"rows": {item: one.count for item, one in aggregate(read(table), params, items)}}


def rows_strong(table, items, norm):
    counts = pandas.read_parquet(table).groupby(["user", "item"]).size().reset_index(name="n")
    counts["place"] = np.searchsorted(items, counts["item"])
    vectors = []
    for user, of_user in counts.groupby("user"):
        vector = np.zeros(len(items))
        vector[of_user["place"]] = of_user["n"]
        vectors.append((user, 0, vector))
    params = AggregateParams(
        metrics=[Metrics.VECTOR_SUM],
        noise_kind=NoiseKind.GAUSSIAN,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        vector_size=len(items),
        vector_max_norm=norm,
        vector_norm_kind=NormKind.L2,
        public_partitions_already_filtered=True,
    )
    [(_, sums)] = aggregate(vectors, params, [], value=lambda row: row[2])
    return {"rows": dict(zip(items, sums.vector_sum, strict=True))}


def users(table, items, most, noise):
    params = AggregateParams(
        metrics=[Metrics.PRIVACY_ID_COUNT],
        noise_kind=NoiseKind[noise.upper()],
        max_partitions_contributed=most,
        max_contributions_per_partition=1,
    )
    return {"users": {item: one.privacy_id_count for item, one in aggregate(read(table), params, items)}}


def found_rows(table, _, most, per_item, noise):
    return rows(table, None, noise, most=most, per_item=per_item)


def found_users(table, _, most):
    return users(table, None, most, "laplace")


if __name__ == "__main__":
    serve(globals())
