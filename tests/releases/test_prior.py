"""A prior on its way into a release: types, items that one side lacks, "other", groups, columns, ledgers."""

from __future__ import annotations

import datetime

import ibis.expr.datatypes as dt
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import crowdgram
from crowdgram import Auto
from crowdgram.errors import AccuracyWarning, InvalidArgument, InvalidDomain
from crowdgram.releases.priors import UNIFORM_PART, ReadPrior, smoothed
from crowdgram.tables import Domain

ITEMS = ["a", "b", "c", "d"]
RNG = np.random.default_rng(1)
TABLE = pa.table(
    {
        "user": np.repeat(np.arange(300), 10),
        "item": RNG.choice(ITEMS, 3000, p=[0.4, 0.3, 0.2, 0.1]),
        "country": RNG.choice(["DE", "FR"], 3000),
    }
)


def release(prior, table=TABLE, **more):
    asked = {"user": "user", "item": "item", "epsilon": 2.0, "delta": 1e-6, **more}
    return crowdgram.release(table, mechanism=Auto(prior=prior), **asked)


def over(domain, listed, own=None, other=0.0):
    """The shares of a prior over a domain, without their uniform part."""
    shares = ReadPrior(listed, own or {}, other).over(domain)
    assert shares.sum() == pytest.approx(1)
    return ((shares - UNIFORM_PART / len(shares)) / (1 - UNIFORM_PART)).round(12).tolist()


def test_shares_follow_the_domain():
    plain = Domain(("a", "b", "c"), (dt.string,))
    assert over(plain, {"c": 0.1, "a": 0.4, "gone": 0.5}) == [0.8, 0.0, 0.2]
    assert over(plain, {"a": 0.5}, other=0.5) == [0.5, 0.25, 0.25]  # what an earlier release did not list
    assert over(Domain(("a", "b"), (dt.string,)), {"z": 1.0}) == [0.5, 0.5]
    with_other = Domain(("a", "b"), (dt.string,), other=True)
    assert over(with_other, {"a": 0.5, "gone": 0.2}, other=0.3) == [0.5, 0.0, 0.5]


def test_shares_of_groups():
    types, pairs = (dt.string, dt.string), (("DE", "a"), ("FR", "a"))
    listed = {("DE", "a"): 0.4, ("FR", "a"): 0.2, ("DE", "b"): 0.1, ("IT", "a"): 0.1}
    own = {"FR": 0.1, "IT": 0.1}
    assert over(Domain(pairs, types, groups=("DE", "FR")), listed, own) == [0.5, 0.25, 0.125, 0.125]
    found = Domain(pairs, types, groups=("DE", "FR"), other=True)
    assert over(found, listed, own) == [0.4, 0.2, 0.1, 0.1, 0.2]


def test_no_share_is_zero():
    assert smoothed(np.array([1.0, 0.0])).min() == UNIFORM_PART / 2
    assert smoothed(np.zeros(4)).tolist() == [0.25] * 4


@pytest.mark.slow
@pytest.mark.parametrize("weight", ["rows", "users"])
def test_a_release_says_that_it_had_a_prior(weight):
    made = release({"a": 4, "b": 3}, domain=ITEMS, weight=weight)
    assert made.parameters["prior"] == "given"
    assert "prior" not in crowdgram.release(TABLE, user="user", item="item", epsilon=1.0, domain=ITEMS).parameters
    again = release(made, domain=ITEMS, weight=weight)  # an earlier release
    assert np.abs(again.probabilities - [0.4, 0.3, 0.2, 0.1]).sum() < 0.3


def test_a_saved_release_keeps_it(tmp_path):
    release(pd.Series({"a": 0.5, "b": 0.5}), domain=ITEMS).save(tmp_path / "last.json")
    loaded = crowdgram.load(tmp_path / "last.json")
    assert loaded.parameters["prior"] == "given"
    assert release(loaded, domain=ITEMS).parameters["prior"] == "given"


def test_items_are_read_in_the_type_of_the_column():
    days = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]
    table = pa.table({"user": np.arange(400) // 2, "item": pa.array(days * 200, pa.date32())})
    made = release({"2024-01-01": 1.0}, table, domain=days)
    assert made.parameters["prior"] == "given"
    with pytest.raises(InvalidDomain, match=r"prior: holds 'Monday'.*needs dates") as raised:
        release({"Monday": 1.0}, table, domain=days)
    assert raised.value.argument == "prior"


@pytest.mark.slow
def test_found_items_take_what_the_prior_has():
    made = release({"a": 0.4, "b": 0.3, "never": 0.3})
    assert made.parameters["prior"] == "given"
    assert release({"never": 1.0}).parameters["prior"] == "given"  # what is found is not known before it is paid for
    assert release(made, domain=ITEMS, other="rest").parameters["prior"] == "given"  # with its "other"


@pytest.mark.slow
def test_groups_and_columns():
    grouped = release({("DE", "a"): 1.0}, by="country", groups=["DE", "FR"], domain=ITEMS)
    assert release(grouped, by="country", groups=["DE", "FR"], domain=ITEMS).parameters["prior"] == "given"
    assert release(grouped, by="country").parameters["prior"] == "given"
    assert release(grouped.joint, item=["country", "item"]).parameters["prior"] == "given"
    for prior in ({"a": 1.0}, {("DE", "a", "x"): 1.0}):
        with pytest.raises(InvalidArgument, match=r"prior: holds .*needs tuples of values of 'country', 'item'"):
            release(prior, by="country", groups=["DE", "FR"], domain=ITEMS)
    with pytest.raises(InvalidArgument, match=r"prior: holds \('DE', 'a'\), and needs values of 'item'"):
        release({("DE", "a"): 1.0}, domain=ITEMS)


def test_what_says_nothing_is_refused_before_anything_is_charged(tmp_path):
    ledger = crowdgram.Ledger.create(tmp_path / "budget.ledger", epsilon=4.0, delta=1e-5)
    with pytest.raises(InvalidArgument, match="prior: has none of the items of domain") as raised:
        release({"A": 0.5, "B": 0.5}, domain=ITEMS, ledger=ledger)
    assert raised.value.argument == "prior"
    assert not list(ledger.history())
    release({"a": 0.5, "b": 0.5}, domain=ITEMS, ledger=ledger)
    assert len(list(ledger.history())) == 1


def test_a_prior_mostly_of_other_items_gets_a_warning():
    with pytest.warns(AccuracyWarning, match="prior: 10% of its weight is on items of domain") as warned:
        release({"a": 1, "B": 9}, domain=ITEMS)
    assert [one.filename for one in warned if one.category is AccuracyWarning] == [__file__]
