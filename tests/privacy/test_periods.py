"""Ledgers with periods: one name for each period, budgets that are apart, and a limit over all of them."""

from __future__ import annotations

import datetime
import json
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

import pytest

from crowdgram.errors import BudgetExceeded, InvalidArgument, LedgerFailure
from crowdgram.privacy import Cost, Guarantee, LaplaceEvent, Ledger, Plan, cost_of
from crowdgram.privacy.ledger_file import body_of
from crowdgram.privacy.periods import Period, parse_every

from .flipped_bits import noticed_flips
from .forging import change as change_ledger
from .forging import rewrite, rows

TENTH = Guarantee(0.1)
EVENT = LaplaceEvent("counts", 1, 10.0, 3)
PLAN = Plan((cost_of([EVENT], TENTH),))
NAMES = {
    "day": ["2026-11-03", "2024-02-29", "0001-01-01"],
    "week": ["2026-W45", "2026-W53", "2020-W01"],
    "month": ["2026-11", "2026-12", "9999-01"],
    "quarter": ["2026-Q4", "2026-Q1"],
    "year": ["2026", "0001"],
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "visits.ledger"


@pytest.fixture
def ledger(path):
    return Ledger.create(path, 1.0, 1e-6, every="month")


def of(path, period, **more):
    return Ledger.open(path, period=period, **more)


def charge(ledger, plan=PLAN, guarantee=TENTH):
    return ledger.charge(plan, guarantee, mechanism="laplace", weight="rows").number


def fill(ledger):
    """Charge until nothing fits; how often it did."""
    for times in range(100):
        try:
            charge(ledger)
        except BudgetExceeded:
            return times
    raise AssertionError


def wider(terms):
    """Terms whose boxes promise more than their delta."""
    boxes = [box | {"mu": 2 * box["mu"]} for box in terms["filter"]["boxes"]]
    return terms | {"filter": terms["filter"] | {"boxes": boxes}}


class TestNames:
    @pytest.mark.parametrize(("every", "name"), [(every, name) for every, names in NAMES.items() for name in names])
    def test_a_period_holds_its_days_and_no_others(self, every, name):
        period = Period.parse(every, name)
        assert period.name == name
        days = (period.end - period.start).days
        assert days in {"day": [1], "week": [7], "month": [28, 29, 30, 31], "quarter": range(90, 93)}.get(
            every, [365, 366]
        )

    def test_periods_tile_the_calendar(self):
        """Every day is in one period, whatever spelling anybody may try: two names would be two budgets."""
        spelled = {
            "week": [f"{year}-W{week:02}" for year in range(2019, 2028) for week in range(100)],
            "month": [f"{year}-{month:02}" for year in range(2019, 2028) for month in range(100)],
            "quarter": [f"{year}-Q{quarter}" for year in range(2019, 2028) for quarter in range(10)],
            "year": [f"{year:04}" for year in range(2019, 2028)],
            "day": [f"{year}-{m:02}-{d:02}" for year in (2023, 2024) for m in range(20) for d in range(40)],
        }
        for every, names in spelled.items():
            found = []
            for name in names:
                try:
                    found.append(Period.parse(every, name))
                except InvalidArgument:
                    continue
            found.sort()
            assert len(found) > 5
            assert all(one.end == other.start for one, other in pairwise(found))

    @pytest.mark.parametrize(
        "name",
        [
            "2026-1", "2026-13", "2026-00", "2026-11-01", "202611", " 2026-11", "2026-11\n", "2026-1\u0661",
            "\uff12026-11", "0000-01", "9999-12", "", None, 202611, "2026-11' OR 1", b"2026-11", True,
            datetime.date(2026, 11, 1),
        ],
    )  # fmt: skip
    def test_what_is_no_month(self, ledger, path, name):
        with pytest.raises(InvalidArgument, match="needs to be the name of a month, such as '2026-11'"):
            Period.parse("month", name)
        if name is not None:
            with pytest.raises(InvalidArgument, match="period="):
                of(path, name)

    @pytest.mark.parametrize("every", ["months", "", 7, None, "MONTH"])
    def test_what_is_no_length(self, path, every):
        with pytest.raises(InvalidArgument, match="every="):
            parse_every(every)
        if every is not None:
            with pytest.raises(InvalidArgument, match="every="):
                Ledger.create(path, 1.0, every=every)
        assert not path.exists()


class TestKeeping:
    def test_budgets_are_apart(self, ledger, path):
        assert fill(of(path, "2026-11")) == 10
        assert fill(of(path, "2026-10")) == 10
        assert ledger.periods() == ["2026-10", "2026-11"]
        with pytest.raises(
            BudgetExceeded, match=r"left of its epsilon=1, delta=1e-06 for 2026-11\. Nothing was charged"
        ):
            charge(of(path, "2026-11"))
        assert of(path, "2026-12").fits(PLAN)
        assert [entry.number for entry in ledger.history()] == list(range(1, 21))

    def test_each_period_has_its_own_figures(self, ledger, path):
        november = of(path, "2026-11", period_column="day", label="monthly")
        charge(november)
        charge(november)
        charge(of(path, "2026-10"))
        assert of(path, "2026-10").spent() == pytest.approx(0.1)
        assert november.spent() == pytest.approx(0.2)
        assert (of(path, "2026-09").spent(), of(path, "2026-09").composition()) == (0.0, None)
        assert ledger.spent_overall() == pytest.approx(0.3)
        assert ledger.spent_by_period() == pytest.approx({"2026-10": 0.1, "2026-11": 0.2})
        assert list(ledger.spent_by_period()) == ledger.periods()
        assert [(entry.period, entry.period_column) for entry in ledger.history()] == [
            ("2026-11", "day"),
            ("2026-11", "day"),
            ("2026-10", None),
        ]
        ledger.check()

    def test_each_period_has_its_own_composition(self, path, ledger):
        whole = Guarantee(1.0, 1e-6)
        plan = Plan((Cost(1.0, 1e-6, mu_squared=1 / 17.8, dimension=1),))
        charge(of(path, "2026-10"), plan, whole)
        charge(of(path, "2026-11"))
        assert of(path, "2026-10").composition() == "plain"
        assert of(path, "2026-11").composition() == "tight"

    def test_the_last_of_a_period_is_recovered(self, ledger, path):
        for period, shown in (("2026-10", "a"), ("2026-11", "b"), ("2026-10", "c")):
            of(path, period).settle(charge(of(path, period)), [EVENT], shown)
        charge(of(path, "2026-11"))
        assert of(path, "2026-11").document() == "b"
        assert of(path, "2026-10").document() == ledger.document() == "c"
        assert of(path, "2026-11").document(1) == "a"  # numbers are the ledger's
        with pytest.raises(InvalidArgument, match="no finished release of 2026-09"):
            of(path, "2026-09").document()

    def test_what_is_unfinished_counts_in_full_in_its_period_and_overall(self, path):
        Ledger.create(path, 1.0, 1e-6, every="month", epsilon_overall=1.15)
        promise = Guarantee(0.6, 1e-8)
        either = Plan((Cost(0.6, 1e-8, 0.6, 0.6, 0.37), Cost(0.6, 1e-8, mu_squared=0.0169, dimension=4)))
        charge(of(path, "2026-10"), either, promise)
        assert not of(path, "2026-10").fits(either)
        assert not of(path, "2026-11").fits(either)
        of(path, "2026-10").settle(1, [], "shown")
        assert of(path, "2026-10").fits(either)
        assert of(path, "2026-11").fits(either)

    def test_a_period_is_never_guessed(self, ledger, path):
        for action in (lambda: charge(ledger), ledger.spent, ledger.composition, lambda: ledger.fits(PLAN)):
            with pytest.raises(InvalidArgument, match=r"^period=None: .* a budget for each month\. .*--period"):
                action()
        assert ledger.history() == []
        assert ledger.periods() == []
        assert ledger.spent_overall() == 0.0

    def test_a_ledger_without_periods_takes_none(self, path):
        plain = Ledger.create(path, 1.0)
        with pytest.raises(InvalidArgument, match="has one budget for all time"):
            of(path, "2026-11")
        assert (plain.every, plain.period, plain.overall, plain.periods()) == (None, None, None, [])
        assert plain.spent_by_period() == {}

    @pytest.mark.parametrize("column", ["", 7, "a\x00b", "\udc80", "x" * 501])
    def test_columns(self, ledger, path, column):
        with pytest.raises(InvalidArgument, match="period_column="):
            of(path, "2026-11", period_column=column)
        with pytest.raises(InvalidArgument, match=r"period_column='day': .*Give the period too"):
            Ledger.open(path, period_column="day")

    def test_one_column_tells_all_periods(self, ledger, path):
        """By two columns a row could be of two periods."""
        charge(of(path, "2026-10", period_column="ordered"))
        charge(of(path, "2026-11"))  # the operator answers for its rows
        with pytest.raises(InvalidArgument, match=r"period_column='delivered': .* by 'ordered'"):
            charge(of(path, "2026-11", period_column="delivered"))
        charge(of(path, "2026-11", period_column="ordered"))
        assert len(ledger.history()) == 3

    def test_a_subclass_of_text_is_the_text_that_it_holds(self, ledger, path):
        month = StrEnum("Month", {"NOVEMBER": "2026-11"}).NOVEMBER
        odd = type("Odd", (str,), {"__str__": lambda _: "2026-12"})("2026-11")
        for name in (month, odd):
            assert type(Period.parse("month", name).name) is str
            assert Period.parse("month", name).name == "2026-11"


class TestOverall:
    def test_all_periods_together_keep_the_limit(self, path):
        ledger = Ledger.create(path, 1.0, 1e-6, every="month", epsilon_overall=1.5)
        assert ledger.overall == Guarantee(1.5, 1e-6)
        assert fill(of(path, "2026-10")) == 10
        assert fill(of(path, "2026-11")) == 5
        with pytest.raises(BudgetExceeded, match=r"epsilon=1\.5, delta=1e-06 for all periods together"):
            charge(of(path, "2027-01"))
        assert ledger.spent_overall() == pytest.approx(1.5)

    def test_without_a_limit_there_is_none(self, ledger, path):
        assert ledger.overall is None
        whole = Guarantee(1.0)
        for month in range(1, 13):
            charge(of(path, f"2026-{month:02}"), Plan((cost_of([LaplaceEvent("counts", 1, 1.0, 3)], whole),)), whole)
        assert ledger.spent_overall() == pytest.approx(12.0)  # pure noise in large pieces: epsilons add

    def test_gaussian_noise_of_many_periods_costs_less_than_its_sum(self, ledger, path):
        """Twelve months of epsilon 1: mu^2 adds."""
        whole = Guarantee(1.0, 1e-6)
        plan = Plan((Cost(1.0, 1e-6, mu_squared=0.05, dimension=3),))
        for month in range(1, 13):
            charge(of(path, f"2026-{month:02}"), plan, whole)
        assert 3.0 < ledger.spent_overall() < 5.0

    def test_no_epsilon_at_this_delta(self, path):
        """Delta that adds outright does not fit that of one period: there is no epsilon to name."""
        ledger = Ledger.create(path, 1.0, 1e-6, every="month")
        whole = Guarantee(1.0, 1e-6)
        for month in ("2026-01", "2026-02"):
            charge(of(path, month), Plan((Cost(1.0, 1e-6, 1.0, 1.0, 1.0, outright=1e-6),)), whole)
        assert ledger.spent_overall() == float("inf")

    @pytest.mark.parametrize(
        ("given", "argument"),
        [
            ({"epsilon_overall": 3.0}, "epsilon_overall"),
            ({"every": "month", "delta_overall": 1e-5}, "delta_overall"),
            ({"every": "month", "epsilon_overall": 0.5}, "epsilon_overall"),
            ({"every": "month", "epsilon_overall": 3.0, "delta_overall": 1e-7}, "delta_overall"),
            ({"every": "month", "epsilon_overall": -1}, "epsilon"),
        ],
    )
    def test_a_bad_limit_makes_no_file(self, path, given, argument):
        with pytest.raises(InvalidArgument) as caught:
            Ledger.create(path, 1.0, 1e-6, **given)
        assert caught.value.argument == argument
        assert not path.exists()


class TestFiles:
    @pytest.mark.parametrize(
        "change",
        [
            ("charges", '"period": "2026-11"', '"period": "2026-10"'),
            ("charges", '"period_column": "day"', '"period_column": "dax"'),
            ("budget", '"every": "month"', '"every": "day"'),
            ("budget", '"every": "month"', '"evexy": "month"'),
        ],
        ids=str,
    )
    def test_changed_rows_are_noticed(self, ledger, path, change):
        charge(of(path, "2026-11", period_column="day"))
        table, old, new = change
        change_ledger(path, f"UPDATE {table} SET body = replace(body, '{old}', '{new}')")
        with pytest.raises(LedgerFailure, match="damaged"):
            Ledger.open(path).history()

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('"period": "2026-11"', '"period": "2026-1"'),
            ('"period": "2026-11"', '"period": null'),
            ('"period": "2026-11"', '"period": ["2026-11"]'),
            ('"period": "2026-11"', '"peri0d": "2026-11"'),
            ('"period_column": null', '"period_column": 7'),
            ('"overall_composition": null', '"overall_composition": "tight"'),
            ('"composition": "tight"', '"composition": "loose"'),
        ],
    )
    def test_rows_with_right_digests_and_wrong_content_are_refused(self, ledger, path, old, new):
        """Somebody rewrote the file: it may hold anything, and is read or refused, never misread."""
        charge(of(path, "2026-11"))
        body = body_of(rows(path, "charges")[1])
        changed = json.loads(body.replace(old, new))
        assert body_of(changed) != body
        rewrite(path, charges={1: changed})
        with pytest.raises(LedgerFailure, match="damaged"):
            ledger.history()

    @pytest.mark.parametrize(
        "change",
        [
            lambda terms: terms | {"every": "fortnight"},
            lambda terms: terms | {"every": ["month"]},
            lambda terms: terms | {"overall": None},
            lambda terms: terms | {"overall": terms["overall"] | {"guarantee": {"epsilon": 99.0, "delta": 1e-6}}},
            lambda terms: terms | {"overall": wider(terms["overall"])},
            lambda terms: terms | wider(terms),
            lambda terms: {name: value for name, value in terms.items() if name != "every"},
            lambda terms: terms | {"note": "added"},
            lambda terms: terms | {"network": False},
        ],
    )
    def test_terms_with_a_right_digest_and_wrong_content_are_refused(self, path, change):
        Ledger.create(path, 1.0, 1e-6, every="month", epsilon_overall=3.0)
        rewrite(path, budget=change(rows(path, "budget")[1]))
        with pytest.raises(LedgerFailure, match="damaged"):
            Ledger.open(path)

    @pytest.mark.slow
    def test_flipped_bits_never_make_it_cheaper(self, path, tmp_path):
        ledger = Ledger.create(path, 1.0, 1e-6, every="month", epsilon_overall=2.0)
        for turn in range(4):
            charge(of(path, f"2026-1{turn % 3}", period_column="day"))
        of(path, "2026-11").settle(2, [EVENT], "shown " * 50)

        def state(file: Path):
            found = Ledger.open(file)
            return found.every, found.overall, [(entry.period, entry.cost, entry.finished) for entry in found.history()]

        assert noticed_flips(path, tmp_path, state, 200, anywhere=False, seed=7) > 100
        ledger.check()
