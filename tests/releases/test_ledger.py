"""Releases that are charged to a ledger."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import ibis
import pytest

import crowdgram
from crowdgram import Discover, Ledger
from crowdgram.errors import BudgetExceeded, EngineFailure, InvalidArgument, InvalidTable, LedgerFailure
from crowdgram.mechanisms import Adaptive, Auto, Discovering, Laplace, Request
from crowdgram.privacy import Guarantee
from crowdgram.releases import Charge, budgets, largest_epsilon
from crowdgram.releases.pipeline import run
from crowdgram.releases.query import Query
from crowdgram.releases.registry import MECHANISMS, as_mechanism
from crowdgram.stages import Stage
from crowdgram.synth import Crowd

from ..thorough import THOROUGH, combined

KILLS = Path(__file__).parents[2] / "bench" / "kills.py"
SMALL = Crowd(users=40, rows=6, items=5, tail=0.5, seed=3, strings=True)
ALIKE = Crowd(users=300, rows=150, items=30, seed=4, strings=True)
ESTIMATORS = tuple(name for name, kind in MECHANISMS.items() if issubclass(kind, Discovering))
CAPS = (("rows", None), ("rows", 4), ("users", None))
EVERY_WAY = [
    (mechanism, weight, cap, delta)
    for mechanism, (weight, cap), delta in combined(ESTIMATORS, CAPS, (0.0, 1e-7))
    if delta or mechanism != "gaussian"
]
PUBLIC = Request("rows", None, lambda _: None)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "visits.ledger", 3.0, 1e-5)


def release(crowd=SMALL, **more):
    options = {"user": "user", "item": "item", "epsilon": 0.3, "delta": 1e-7, "domain": crowd.item_names(), **more}
    return crowdgram.release(crowd.table(), **options)


def test_a_release_is_charged_and_stored(ledger):
    stages = []
    made = release(ledger=Ledger.open(ledger.path, label="weekly"), progress=stages.append)
    (entry,) = ledger.history()
    assert (entry.label, entry.mechanism, entry.weight, entry.finished) == ("weekly", "auto", "rows", True)
    assert entry.guarantee == made.guarantee
    assert crowdgram.recover(ledger) == crowdgram.recover(str(ledger.path), 1) == made
    # Charged before rows are counted, stored after all else.
    assert stages.index(Stage.CHARGING) + 1 == stages.index(Stage.COUNTING)
    assert stages[-1] is Stage.STORING
    assert "ledger" not in str(made.parameters)


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "weight", "cap", "delta"), EVERY_WAY)
def test_every_mechanism_keeps_to_its_plan(ledger, mechanism, weight, cap, delta):
    made = release(mechanism=mechanism, weight=weight, max_rows_per_user=cap, delta=delta, ledger=ledger, epsilon=0.5)
    (entry,) = ledger.history()
    assert entry.finished  # `settle` compared what was drawn with the plan
    assert {event.purpose for event in made.events} & entry.plan.looks or not entry.plan.looks
    assert (entry.cost.mu_squared > 0) == any(hasattr(event, "sigma") for event in made.events)


@pytest.mark.slow
@pytest.mark.parametrize(("crowd", "mechanism", "weighted"), combined(("small", "alike"), ESTIMATORS, CAPS))
def test_every_mechanism_keeps_to_its_plan_where_items_are_found(ledger, crowd, mechanism, weighted):
    """Whether nothing is found or all: how many items there are is not known when the ledger is charged."""
    weight, cap = weighted
    options = {"mechanism": mechanism, "weight": weight, "max_rows_per_user": cap, "domain": None, "epsilon": 1.5}
    stages = []
    made = release(SMALL if crowd == "small" else ALIKE, **options, ledger=ledger, progress=stages.append)
    (entry,) = ledger.history()
    assert entry.finished
    assert entry.cost.outright == made.threshold_delta == 0.25e-7
    gaussian = [event for event in made.events if hasattr(event, "sigma")]
    assert entry.cost.mu_squared >= 0.99 * sum((event.sensitivity / event.sigma) ** 2 for event in gaussian)
    assert gaussian or made.parameters["branch"] == "histogram"
    assert stages[:3] == [Stage.OPENING, Stage.CHARGING, Stage.COUNTING]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["adaptive", "gaussian"])
def test_a_plan_holds_however_many_items_are_found(ledger, mechanism):
    """Looks are reserved before the search, so that the number of items found moves nothing that rounds may spend."""
    many = Crowd(users=4000, rows=50, items=240, zipf=0.0, seed=5, strings=True)
    made = release(many, mechanism=mechanism, domain=None, epsilon=2.5, ledger=ledger)
    assert len(made) > 220  # all 240 pass by far
    assert ledger.history()[0].finished


@pytest.mark.slow
def test_auto_that_can_only_make_rounds_after_a_discovery_is_charged_for_rounds(ledger):
    release(ALIKE, domain=Discover(0.75), ledger=ledger)
    (entry,) = ledger.history()
    assert entry.mechanism == "auto"
    assert len(entry.plan.ways) == 1
    assert entry.cost.finish == 0


@pytest.mark.slow
def test_a_refusal_where_items_are_found(ledger):
    release(epsilon=2.5, mechanism="laplace", ledger=ledger)
    with pytest.raises(BudgetExceeded, match=r"epsilon=0\.\d+ with mechanism='laplace' and delta=1e-07"):
        release(domain=None, epsilon=2.0, ledger=ledger)
    assert len(ledger.history()) == 1


def test_thresholds_have_a_part_of_delta_of_their_own(ledger):
    plan = Adaptive().plan(Guarantee(0.02, 4e-6), PUBLIC, None)
    given = {"mechanism": "adaptive", "weight": "rows"}
    ledger.charge(plan, Guarantee(0.02, 4e-6), **given)  # a quarter of 4e-6 is most of an eighth of 1e-5
    with pytest.raises(BudgetExceeded):
        ledger.charge(plan, Guarantee(0.02, 4e-6), **given)
    ledger.charge(Adaptive().plan(Guarantee(0.02, 4e-6), PUBLIC, 10), Guarantee(0.02, 4e-6), **given)


@pytest.mark.slow
def test_groups_are_recovered_as_groups(ledger):
    table = ALIKE.table().append_column("half", [[user % 2 for user in range(300) for _ in range(150)]])
    options = {"user": "user", "item": "item", "by": "half", "epsilon": 1.0, "delta": 1e-7}
    made = crowdgram.release(table, **options, ledger=ledger)
    again = crowdgram.recover(ledger)
    assert isinstance(again, crowdgram.GroupedRelease)
    assert again.joint == made.joint
    assert again.groups == made.groups == (0, 1)


@pytest.mark.filterwarnings("ignore::crowdgram.errors.AccuracyWarning")
def test_a_mechanism_without_a_plan_costs_what_it_promises(ledger):
    release(mechanism="paper", epsilon=0.5, ledger=ledger)
    (entry,) = ledger.history()
    assert entry.finished
    assert (entry.cost.pure, entry.cost.finish, entry.cost.outright) == (0.5, 0.5, 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_rounds_keep_to_their_plan(tmp_path, adjacency):
    ledger = Ledger.create(tmp_path / "a.ledger", 3.0, 1e-5, adjacency)
    made = release(ALIKE, epsilon=1.0, adjacency=adjacency, mechanism="adaptive", ledger=ledger)
    (entry,) = ledger.history()
    assert any(hasattr(event, "sigma") for event in made.events)
    assert entry.cost.finish == 0
    assert 0.5 * entry.plan.most.mu_squared < entry.cost.mu_squared <= entry.plan.most.mu_squared


@pytest.mark.slow
def test_small_releases_cost_less_than_their_sum(ledger):
    for _ in range(3):
        release(ALIKE, mechanism="adaptive", ledger=ledger)
    assert 0.1 < ledger.spent() < 0.6  # the sum is 0.9
    asked = Guarantee(0.3, 1e-7)
    plan = Adaptive().plan(asked, PUBLIC, 30)
    assert ledger.fits(plan)


@pytest.mark.slow
def test_a_refusal_says_what_would_fit(ledger):
    release(epsilon=2.5, mechanism="laplace", ledger=ledger)
    stages = []
    with pytest.raises(BudgetExceeded) as caught:
        release(epsilon=1.0, ledger=ledger, progress=stages.append)
    assert stages == [Stage.OPENING, Stage.CHARGING]  # no row was read
    assert "What would fit: epsilon=0.5 with mechanism='auto' and delta=1e-07, or epsilon=" in str(caught.value)
    assert "with mechanism='adaptive' and delta=1e-07, or epsilon=0.5 with mechanism='laplace'" in str(caught.value)
    assert len(ledger.history()) == 1
    release(epsilon=0.5, ledger=ledger)  # it does
    with pytest.raises(BudgetExceeded, match=r"Nothing would fit any more\."):
        release(epsilon=0.5, mechanism="gaussian", delta=1e-5, ledger=ledger)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["auto", "laplace", "gaussian", "paper"])
@pytest.mark.parametrize("spent", [0.4, 2.0])
def test_the_largest_epsilon_fits_and_no_more(ledger, mechanism, spent):
    ledger.charge(Laplace().plan(Guarantee(spent), PUBLIC, 5), Guarantee(spent), mechanism="laplace", weight="rows")
    asked = Guarantee(1.0, 0.0 if mechanism == "laplace" else 1e-8)
    found = largest_epsilon(ledger, Charge(asked, as_mechanism(mechanism), PUBLIC, items=5))
    assert ledger.fits(as_mechanism(mechanism).plan(Guarantee(found, asked.delta), PUBLIC, 5))
    assert found == 3.0 or not ledger.fits(
        as_mechanism(mechanism).plan(Guarantee(found * 1.02, asked.delta), PUBLIC, 5)
    )


def test_one_release_may_take_all_of_a_ledger(ledger):
    release(epsilon=3.0, delta=1e-5, mechanism="gaussian", ledger=ledger)
    assert ledger.composition() == "plain"
    with pytest.raises(BudgetExceeded):
        release(epsilon=0.01, ledger=ledger)


class TestNothingIsCharged:
    """What fails for a public reason fails before the ledger is charged."""

    @pytest.mark.parametrize(
        ("more", "error"),
        [
            ({"epsilon": -1}, InvalidArgument),
            ({"user": "nobody"}, InvalidTable),
            ({"domain": ["a", "a"]}, ValueError),
            ({"adjacency": "replace"}, InvalidArgument),
            ({"mechanism": "none"}, InvalidArgument),
            ({"epsilon": 3.1}, BudgetExceeded),
        ],
    )
    def test_bad_arguments(self, ledger, more, error):
        with pytest.raises(error):
            release(**{"ledger": ledger, **more})
        assert ledger.history() == []

    def test_bad_ledgers(self, tmp_path):
        stages = []
        for given, error in ((tmp_path / "none", LedgerFailure), (7, InvalidArgument), (b"x", InvalidArgument)):
            with pytest.raises(error, match=r"ledger|none"):
                release(ledger=given, progress=stages.append)
        assert stages == []


def test_a_table_that_is_gone_charges_nothing(ledger):
    backend = ibis.duckdb.connect()
    backend.raw_sql("create table visits as select 1 as user, 'a' as item")
    table = backend.table("visits")
    backend.raw_sql("drop table visits")
    with pytest.raises(EngineFailure, match="opening the table"):
        crowdgram.release(table, user="user", item="item", domain=["a"], epsilon=0.1, ledger=ledger)
    assert ledger.history() == []


def test_a_release_that_fails_on_the_way_stays_charged(ledger):
    class Fails(Auto):
        def run(self, *_):
            raise EngineFailure("while counting", stage="counting")

    query = Query(
        user="user", item="item", guarantee=Guarantee(0.3, 1e-7), mechanism=Fails(), domain=SMALL.item_names()
    )
    with pytest.raises(EngineFailure):
        run(SMALL.table(), query, ledger=ledger)
    (entry,) = ledger.history()
    assert not entry.finished
    assert entry.cost == entry.plan.most


def test_a_release_that_cannot_be_stored_is_not_shown(ledger, monkeypatch):
    def full(*_):
        raise LedgerFailure("the disk is full.", path=ledger.path)

    monkeypatch.setattr(Ledger, "settle", full)  # a fault, as of a full disk
    with pytest.raises(LedgerFailure, match=r"the disk is full\. Release 1 stays charged.*not shown"):
        release(ledger=ledger)
    assert not ledger.history()[0].finished


def test_the_ledger_holds_nothing_private(ledger):
    secret = Crowd(users=40, rows=6, items=5, seed=3, strings=True)
    table = secret.table()
    crowdgram.release(table, user="user", item="item", domain=["item-0001", "item-0003"], epsilon=0.5, ledger=ledger)
    content = ledger.path.read_bytes() + ledger.document().encode()
    for user in table["user"].unique().to_pylist():
        assert user.encode() not in content
    assert b"item-0002" not in content  # not in the domain
    assert b"item-0001" in content


def test_the_stored_document_is_the_saved_file(ledger, tmp_path):
    made = release(ledger=ledger)
    made.save(tmp_path / "r.json")
    assert (tmp_path / "r.json").read_text(encoding="utf-8") == ledger.document()


def test_room_is_asked_for_the_domain(ledger, monkeypatch):
    seen = []
    monkeypatch.setattr(Ledger, "_check_room", lambda _, room: seen.append(room))  # a watch on what is asked for
    release(ledger=ledger)
    assert seen == [5 * budgets.BYTES_FOR_ITEM]


def kills(tmp_path, *options):
    done = subprocess.run(
        [sys.executable, KILLS, "--json", tmp_path / "kills.json", *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (tmp_path / "kills.json").exists(), done.stderr
    return done.returncode, json.loads((tmp_path / "kills.json").read_text())


@pytest.mark.slow
def test_kills(tmp_path):
    """Once each way, and twice if thorough; `make kills` does so 200 times."""
    number = 8 if THOROUGH else 4
    code, verdict = kills(tmp_path, "--kills", str(number))
    assert verdict["faults"] == []
    assert code == 0
    assert verdict["kills"] == number
    assert set(verdict["by_way"]) == {"stage", "statement", "moment", "storm"}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ["late-charge", "early-show"])
def test_kills_catch_a_mutant(tmp_path, mutant):
    code, verdict = kills(tmp_path, "--kills", "2", "--stages", "profiling the crowd", "--mutant", mutant)
    assert code == 1
    assert verdict["faults"]
