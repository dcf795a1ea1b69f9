"""OpenDP: its Polars context; at its strongest Gaussian noise, for rows on sums that the caller clips."""

import warnings

import opendp.prelude as dp
import polars as pl
from caller import clipped_sums
from serve import DELTA, EPSILON, serve

dp.enable_features("contrib")
warnings.simplefilter("ignore", FutureWarning)
BOUNDS = {
    "rows": "rows",
    "rows_strong": "norm",
    "users": "most_laplace",
    "users_strong": "most_gaussian",
    "found_rows": "rows",
    "found_users": "most",
}
RHO = 0.02435  # as zCDP this implies epsilon = 1 and delta = 1e-6 by OpenDP's own conversion


def context(table, **loss):
    return dp.Context.compositor(
        data=pl.scan_parquet(table),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user")),
        privacy_loss=dp.loss_of(**loss),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=100_000_000)],
    )


def rows(table, items, rows):
    query = context(table, epsilon=EPSILON).query().truncate_per_group(rows)
    query = query.group_by("item").agg(dp.len(signed=True)).with_keys(pl.LazyFrame({"item": items}))
    return {"rows": dict(query.release().collect().iter_rows())}


def rows_strong(table, items, norm):
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(items)), dp.l2_distance(T=float)
    measure = dp.binary_search_chain(
        lambda scale: dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale)), DELTA),
        d_in=norm,
        d_out=(EPSILON, DELTA),
    )
    return {"rows": dict(zip(items, measure(clipped_sums(table, items, norm).tolist()), strict=True))}


def users(table, items, most):
    query = context(table, epsilon=EPSILON).query().truncate_per_group(1, by=["item"]).truncate_per_group(most)
    query = query.group_by("item").agg(dp.len(signed=True)).with_keys(pl.LazyFrame({"item": items}))
    return {"users": dict(query.release().collect().iter_rows())}


def users_strong(table, items, most):
    query = context(table, rho=RHO).query().truncate_per_group(1, by=["item"]).truncate_per_group(most)
    query = query.group_by("item").agg(dp.len(signed=True)).with_keys(pl.LazyFrame({"item": items}))
    return {"users": dict(query.release().collect().iter_rows())}


def found_rows(table, _, rows):
    query = context(table, epsilon=EPSILON, delta=DELTA).query().truncate_per_group(rows)
    return {"rows": dict(query.group_by("item").agg(dp.len(signed=True)).release().collect().iter_rows())}


def found_users(table, _, most):
    query = context(table, epsilon=EPSILON, delta=DELTA).query()
    query = query.truncate_per_group(1, by=["item"]).truncate_per_group(most)
    return {"users": dict(query.group_by("item").agg(dp.len(signed=True)).release().collect().iter_rows())}


if __name__ == "__main__":
    serve(globals())
