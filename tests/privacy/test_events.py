from __future__ import annotations

import json
import math

import numpy as np
import pytest

from crowdgram.errors import InvalidArgument
from crowdgram.privacy.events import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    SelectionEvent,
    SparseLaplaceEvent,
    ThresholdEvent,
    event_from_dict,
    event_to_dict,
    to_dp_event,
)

EVENTS: list[Event] = [
    GaussianEvent("round 1", 3.5, 1234.5, 100),
    LaplaceEvent("profile", 2, 40.1, 16),
    ExponentialEvent("choice", 0.1, 3),
    SelectionEvent("choices", 0.01, 300, 50, 20),
    SparseLaplaceEvent("counts", 1024, 40960.5, 50, 20),
    ThresholdEvent("items", 2.5e-7),
]


@pytest.mark.parametrize("event", EVENTS)
def test_round_trip_through_json(event: Event) -> None:
    assert event_from_dict(json.loads(json.dumps(event_to_dict(event)))) == event


def test_kinds() -> None:
    assert [event_to_dict(event)["kind"] for event in EVENTS] == [
        "gaussian",
        "laplace",
        "exponential",
        "selection",
        "sparse-laplace",
        "threshold",
    ]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"kind": "cauchy"},
        {"kind": ["gaussian"]},
        {"kind": "exponential", "purpose": "c", "epsilon": 0.1},
        {"kind": "exponential", "purpose": "c", "epsilon": 0.1, "choices": 3, "more": 1},
    ],
)
def test_unknown_dicts_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        event_from_dict(values)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, True, "1", None])
def test_numbers_must_be_positive_and_finite(bad: object) -> None:
    for make in (
        lambda: GaussianEvent("p", bad, 10.0, 1),
        lambda: GaussianEvent("p", 1.0, bad, 1),
        lambda: LaplaceEvent("p", 1, bad, 1),
        lambda: ExponentialEvent("p", bad, 1),
        lambda: ThresholdEvent("p", bad),
    ):
        with pytest.raises(InvalidArgument, match=r"(sensitivity|sigma|scale|epsilon|delta)=.*: needs"):
            make()


@pytest.mark.parametrize("bad", [0, -1, 1.0, True, "1", None])
def test_counts_must_be_whole_numbers(bad: object) -> None:
    for make in (
        lambda: GaussianEvent("p", 1.0, 10.0, bad),
        lambda: LaplaceEvent("p", bad, 10.0, 1),
        lambda: LaplaceEvent("p", 1, 10.0, bad),
        lambda: ExponentialEvent("p", 1.0, bad),
    ):
        with pytest.raises(InvalidArgument, match=r"(dimension|sensitivity|choices)=.*: needs"):
            make()


def test_purpose_is_needed() -> None:
    with pytest.raises(InvalidArgument, match="purpose"):
        ExponentialEvent("", 1.0, 2)


def test_a_sensitivity_between_two_doubles_is_rounded_up() -> None:
    assert GaussianEvent("p", 2**60 + 1, 10.0, 1).sensitivity > 2**60
    assert LaplaceEvent("p", 2**60 + 1, 10.0, 1).sensitivity == 2**60 + 1
    with pytest.raises(InvalidArgument, match="exactly"):
        GaussianEvent("p", 1.0, 2**60 + 1, 1)


def test_numpy_scalars_become_plain_numbers() -> None:
    event = GaussianEvent("p", np.float64(2.0), np.float32(10.0), np.int64(4))  # type: ignore[arg-type]
    assert [type(value) for value in (event.sensitivity, event.sigma, event.dimension)] == [float, float, int]


def test_in_the_words_of_dp_accounting() -> None:
    import dp_accounting

    with pytest.raises(InvalidArgument, match=r"2\.5e-07.*without_thresholds"):
        to_dp_event(EVENTS)
    gaussian, laplace, choice, choices, counts = to_dp_event(EVENTS, without_thresholds=True).events
    assert choices == dp_accounting.ZCDpEvent(20 * 0.01**2 / 8)
    assert counts.count == 20
    assert counts.event.noise_multiplier == pytest.approx(40.0, rel=1e-4)
    assert isinstance(gaussian, dp_accounting.GaussianDpEvent)
    exact = math.sqrt(1234.5**2 - 4) / 3.5
    assert exact * (1 - 1e-12) < gaussian.noise_multiplier < exact
    assert isinstance(laplace, dp_accounting.LaplaceDpEvent)
    assert laplace.noise_multiplier == pytest.approx(20.05)
    assert isinstance(choice, dp_accounting.ZCDpEvent)
    assert choice.rho == pytest.approx(0.00125)
    hopeless = to_dp_event([GaussianEvent("p", 1.0, 1.5, 1)]).events[0]
    assert isinstance(hopeless, dp_accounting.NonPrivateDpEvent)


def test_a_threshold_leaves_something() -> None:
    with pytest.raises(InvalidArgument, match="below 1"):
        ThresholdEvent("p", 1.0)
