"""The whole way from a table to a release, and what can be asked of a release."""

from __future__ import annotations

import datetime
import warnings

import dp_accounting
import numpy as np
import pyarrow as pa
import pytest
from dp_accounting import pld

import crowdgram
from crowdgram.errors import InvalidArgument, InvalidDomain, InvalidTable, PrivacyWarning
from crowdgram.mechanisms import Discovering
from crowdgram.privacy import Adjacency, GaussianEvent, Guarantee, LaplaceEvent, check
from crowdgram.releases import registry
from crowdgram.stages import Stage
from crowdgram.synth import Crowd

from ..thorough import combined

BASELINES = ["laplace", "gaussian", "sample-one"]
MECHANISMS = [name for name, kind in registry.MECHANISMS.items() if issubclass(kind, Discovering)]
WAYS = MECHANISMS, ["rows", "users"], ["add-remove", "replace"]


EVERY_WAY = combined(*WAYS)


SMALL = Crowd(users=40, rows=6, items=5, tail=0.5, seed=3, strings=True)


def release(table, **more):
    return crowdgram.release(table, **{"user": "user", "item": "item", "epsilon": 1.0, "delta": 1e-6, **more})


def of(crowd=SMALL, **more):
    return release(crowd.table(), **{"domain": crowd.item_names(), **more})


def table_of(*rows):
    return pa.table(
        {
            "user": pa.array([r[0] for r in rows], pa.string()),
            "item": pa.array([r[1] for r in rows], pa.string()),
        }
    )


@pytest.fixture(scope="module")
def one():
    return of(max_rows_per_user=6)


def assert_valid(made, items, ways):
    mechanism, weight, adjacency = ways
    assert made.items == tuple(items)
    assert (made.mechanism, made.weight, made.guarantee.adjacency.value) == (mechanism, weight, adjacency)
    p = made.probabilities
    assert p.sum() == pytest.approx(1, abs=1e-9)
    assert np.all((p >= 0) & (p <= 1))
    assert np.all((made.lower >= 0) & (made.lower <= p) & (p <= made.upper) & (made.upper <= 1))
    assert np.all(made.standard_errors >= 0)
    assert made.guarantee.epsilon == 1.0
    # Laplace noise spends no delta, and the guarantee says so.
    assert made.guarantee.delta == (0.0 if registry.MECHANISMS[mechanism].pure else 1e-6)
    check(made.events, made.guarantee)
    if mechanism in BASELINES:
        assert type(made.events[-1]) is (GaussianEvent if mechanism == "gaussian" else LaplaceEvent)
        assert made.events[-1].dimension == len(items)


@pytest.mark.parametrize("ways", EVERY_WAY, ids="-".join)
def test_every_mechanism_weight_and_adjacency(ways):
    mechanism, weight, adjacency = ways
    made = of(mechanism=mechanism, weight=weight, adjacency=adjacency)
    assert_valid(made, SMALL.item_names(), ways)
    # The bound is bought if it matters and was not given.
    bought = [event for event in made.events if event.purpose.startswith("users by rows")]
    assert bool(bought) == (weight == "rows")
    if mechanism in BASELINES:
        assert len(made.events) == len(bought) + (1 if weight == "users" else 2)  # the number of users, the counts
        assert ("max_rows_per_user" in made.parameters) == (weight == "rows")


NEXT_TO_NOTHING = {
    "no rows": [],
    "one row": [("a", "x")],
    "one user": [("a", "x")] * 500,
    "outside the domain": [("a", "nowhere"), ("b", "else")],
    "nulls": [(None, "x"), ("a", None)],
}


@pytest.mark.slow
@pytest.mark.parametrize("case", combined(*WAYS, list(NEXT_TO_NOTHING)), ids="-".join)
def test_tables_with_next_to_nothing_give_valid_releases(case):
    mechanism, weight, adjacency, name = case
    ways, rows = case[:3], NEXT_TO_NOTHING[name]
    made = release(table_of(*rows), domain=["x", "y", "z"], mechanism=mechanism, weight=weight, adjacency=adjacency)
    assert_valid(made, ["x", "y", "z"], ways)


@pytest.mark.parametrize("mechanism", registry.MECHANISMS)
@pytest.mark.parametrize("more", [{}, {"by": "item", "groups": ["x"], "item": {"again": "item"}}])
def test_one_item_that_tells_nothing_is_refused_before_it_is_charged(mechanism, more, tmp_path):
    ledger = crowdgram.Ledger.create(tmp_path / "l", 1.0, 1e-5)
    table = table_of(("a", "x"), ("b", "y"))
    with pytest.raises(InvalidDomain, match=r"^domain: has one item.*other='other'") as caught:
        release(table, domain=["x"], mechanism=mechanism, ledger=ledger, **more)
    assert caught.value.argument == "domain"
    assert ledger.history() == []


@pytest.mark.slow
def test_one_item_in_several_groups_or_beside_all_others_is_not_refused():
    table = table_of(("a", "x"), ("b", "y"))
    by = {"by": "item", "item": {"again": "item"}, "domain": ["x"], "mechanism": "paper"}
    assert list(release(table, **{**by, "groups": ["x", "y"]}).shares) == ["x", "y"]
    assert len(release(table, **by, groups=["x"], other="rest").joint) == 2
    assert len(release(table, domain=["x"], mechanism="paper", other="rest")) == 2


@pytest.mark.parametrize("mechanism", BASELINES)
def test_a_given_cap_buys_nothing(mechanism):
    made = of(mechanism=mechanism, max_rows_per_user=3)
    assert len(made.events) == 1
    today = datetime.date.fromisoformat(made.parameters["released_on"])
    assert abs(datetime.datetime.now(datetime.UTC).date() - today) <= datetime.timedelta(days=1)
    assert made.parameters == {
        "items": 5, "row_bound": "given", "max_rows_per_user": 3, "released_on": today.isoformat()
    }  # fmt: skip


def test_sensitivity_follows_the_adjacency():
    add_remove, replace = (of(adjacency=a, max_rows_per_user=1).events[0] for a in Adjacency)
    assert replace.sensitivity == 2 * add_remove.sensitivity
    assert replace.scale == pytest.approx(2 * add_remove.scale)


@pytest.mark.slow
@pytest.mark.parametrize("ways", EVERY_WAY, ids="-".join)
def test_a_big_crowd_is_seen_well(ways):
    """Every probability within 0.08 of the truth; a right mechanism fails in fewer than 1 of 10^5 runs.

    With 3000 users, epsilon 2 and at least 1000 users' worth of weight under the cap, an error of 0.08 needs
    noise of 18 users' weight on one item: 16 scales of the Laplace noise, or 5.8 standard deviations of the
    Gaussian one, the worst cases (replace). The crowd's own sampling error is below 0.009 (standard
    deviation; sample-one, the largest item).
    """
    mechanism, weight, adjacency = ways
    crowd = Crowd(users=3000, rows=20, items=10, tail=0.5, seed=11)
    made = of(crowd, epsilon=2.0, mechanism=mechanism, weight=weight, adjacency=adjacency)
    assert np.abs(made.probabilities - crowd.distribution()).max() < 0.08


def test_weights_ask_different_questions():
    """One heavy user of x, many light users of y: half the rows, but one user in 201."""
    rows = [("heavy", "x")] * 2000 + [(f"u{k}", "y") for k in range(2000)]
    by_rows = release(table_of(*rows), domain=["x", "y"], epsilon=50, max_rows_per_user=2000, mechanism="laplace")
    by_users = release(table_of(*rows), domain=["x", "y"], epsilon=50, weight="users", mechanism="laplace")
    # Noise of scale 1/50 on weights of 2 (rows) and 2001 (users): |error| > 0.2 needs 20 scales, 2 in 10^9.
    assert by_rows.probability("x") == pytest.approx(0.5, abs=0.2)
    assert by_users.probability("x") == pytest.approx(1 / 2001, abs=0.001)


def test_intervals_cover_what_the_noise_hid():
    """95% intervals of 400 items cover the exact answer for 88% to 99.5% of them.

    Outside with probability below 10^-6: 400 independent Bernoulli(0.95) have standard deviation 4.4, so 352
    is 6.4 of them below the mean, and 399 or more has probability 3 in 10^8.
    """
    crowd = Crowd(users=4000, rows=50, items=400, zipf=0.0, seed=5)
    table = crowd.table()
    exact = np.bincount(table["item"].to_numpy(), minlength=400) / table.num_rows
    for mechanism in ("laplace", "gaussian"):
        made = of(crowd, mechanism=mechanism, max_rows_per_user=50)
        covered = np.sum((made.lower <= exact) & (exact <= made.upper))
        assert 352 <= covered <= 398


def test_two_releases_draw_their_own_noise():
    assert not np.array_equal(of().probabilities, of().probabilities)


@pytest.mark.slow
@pytest.mark.parametrize("ways", EVERY_WAY, ids="-".join)
def test_the_dp_event_keeps_the_claim(ways):
    mechanism, weight, adjacency = ways
    made = of(mechanism=mechanism, weight=weight, adjacency=adjacency)
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(made.to_dp_event())
    # dp_accounting rounds losses up to a grid of 1e-4, once for each event.
    assert accountant.get_epsilon(1e-6) <= 1.0 + 1e-3
    # And the budget was not left lying about: at delta = 1e-6 at least 0.9 of it is used. (Rounds end where nobody is
    # seen, as in a table so small.)
    assert accountant.get_epsilon(1e-6) >= 0.9 or mechanism in ("auto", "adaptive")


def test_dp_events_compose():
    made = of(mechanism="gaussian", weight="users")
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(made.to_dp_event(), 2)
    assert 1.2 < accountant.get_epsilon(1e-6) < 2.0


# --- arguments


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("epsilon", 0),
        ("epsilon", -1.0),
        ("epsilon", float("nan")),
        ("epsilon", float("inf")),
        ("epsilon", 101),
        ("epsilon", 1e-9),
        ("epsilon", "1"),
        ("epsilon", True),
        ("epsilon", None),
        ("delta", -1e-9),
        ("delta", 1.0),
        ("delta", float("nan")),
        ("delta", "small"),
        ("adjacency", "neighbours"),
        ("weight", "items"),
        ("mechanism", "magic"),
        ("max_rows_per_user", 0),
        ("max_rows_per_user", 2.5),
        ("max_rows_per_user", True),
        ("max_rows_per_user", 2**20 + 1),
        ("progress", "loud"),
        ("user", ""),
        ("item", "user"),
    ],
)
def test_bad_arguments_are_named_before_a_row_is_read(argument, value, no_rows_read):
    with pytest.raises(InvalidArgument, match=argument):
        of(**{argument: value})


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 1e-300), (1e-2, 5e-324)])
def test_a_delta_that_gaussian_noise_cannot_serve(epsilon, delta, no_rows_read):
    with pytest.raises(InvalidArgument, match=r"gaussian.*laplace"):
        of(mechanism="gaussian", epsilon=epsilon, delta=delta)


@pytest.mark.parametrize(("domain", "error"), [([], InvalidDomain), (["a", "a"], InvalidDomain), (5, InvalidDomain)])
def test_bad_domains_are_refused_before_a_row_is_read(domain, error, no_rows_read):
    with pytest.raises(error, match="domain"):
        of(domain=domain)


def test_bad_columns_are_refused_before_a_row_is_read(no_rows_read):
    with pytest.raises(InvalidTable, match="'whom'"):
        of(user="whom")
    with pytest.raises(InvalidTable, match="'user'"):
        release(pa.table({"user": [1.5], "item": ["x"]}), domain=["x"])


def test_the_watch_on_rows_works(no_rows_read):
    with pytest.raises(pytest.fail.Exception, match="rows were read"):
        of()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "mechanism", "adjacency"), combined([1e-3, 100], MECHANISMS, ["add-remove", "replace"])
)
def test_the_ends_of_what_epsilon_may_be(epsilon, mechanism, adjacency):
    made = of(epsilon=epsilon, mechanism=mechanism, adjacency=adjacency)
    assert made.probabilities.sum() == pytest.approx(1)


def test_numbers_of_numpy_and_an_adjacency_itself_are_welcome():
    made = of(epsilon=np.float64(1), delta=np.float32(0), adjacency=Adjacency.REPLACE)
    assert made.guarantee == Guarantee(1.0, 0.0, Adjacency.REPLACE)


@pytest.mark.slow
def test_stages_are_the_same_for_all_tables():
    heard = []
    for table in (table_of(), SMALL.table(), table_of(*[("a", "x")] * (2**20 + 1))):
        stages = []
        release(table, domain=["x", "item-0000"], progress=stages.append)
        heard.append(stages)
    assert heard[0] == heard[1] == heard[2]
    assert heard[0][0] is Stage.OPENING
    assert heard[0][-1] is Stage.CHECKING


def test_versions_say_what_made_it(one):
    assert one.versions["crowdgram"] == crowdgram.__version__
    assert one.versions["engine"] == "duckdb"
    assert {"python", "opendp", "dp-accounting", "duckdb", "numpy", "ibis-framework"} <= set(one.versions)


@pytest.mark.parametrize(("delta", "says"), [(0.1, "below 0.1"), (0.9, "below 0.1")])
def test_a_delta_that_promises_nothing_is_refused(delta, says):
    with pytest.raises(InvalidArgument, match=says):
        crowdgram.release(None, user="user", item="item", domain=["a"], epsilon=1.0, delta=delta)


def test_a_large_delta_is_warned_of():
    table = Crowd(users=20, rows=2, items=2, seed=1).table()
    options = {"user": "user", "item": "item", "domain": [0, 1], "epsilon": 1.0, "mechanism": "gaussian"}
    with pytest.warns(PrivacyWarning, match="one user in 500") as caught:
        crowdgram.release(table, delta=0.002, **options)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        crowdgram.release(table, delta=0.0009, **options)


def test_a_large_epsilon_is_warned_of_before_anything_is_charged(tmp_path):
    table = Crowd(users=20, rows=2, items=2, seed=1).table()
    ledger = crowdgram.Ledger.create(tmp_path / "l", 50.0, 0.0)
    options = {"user": "user", "item": "item", "domain": [0, 1], "mechanism": "laplace", "ledger": ledger}
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning, match=r"epsilon=10\.5 is large.* 3\.6e\+04 times.*epsilon=1"):
            crowdgram.release(table, epsilon=10.5, **options)
        assert ledger.history() == []
        crowdgram.release(table, epsilon=10.0, **options)
    with pytest.warns(PrivacyWarning) as caught:
        crowdgram.release(table, epsilon=10.5, **options)
    assert caught[0].filename == __file__
