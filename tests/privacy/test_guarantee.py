from __future__ import annotations

import json
import math

import numpy as np
import pytest

from crowdgram.errors import InvalidArgument
from crowdgram.privacy.guarantee import Adjacency, Guarantee


def test_sentences() -> None:
    assert Guarantee(1.0, 1e-6).sentence() == (
        "Adding or removing all rows of any one user changes the probability of any outcome by at most "
        "a factor of e^1 = 2.72, except for a chance of 1e-06."
    )
    assert Guarantee(0.5, adjacency=Adjacency.REPLACE, unit="household").sentence() == (
        "Replacing all rows of any one household by any others changes the probability of any outcome by "
        "at most a factor of e^0.5 = 1.65."
    )


@pytest.mark.parametrize(("epsilon", "factor"), [(0.01, "1.0101"), (3.0, "20.1"), (10.0, "22026"), (100.0, "2.69e+43")])
def test_factors_for_people(epsilon: float, factor: str) -> None:
    assert f"e^{epsilon:g} = {factor}." in Guarantee(epsilon).sentence()


@pytest.mark.parametrize("epsilon", [0, -1.0, 100.1, math.nan, math.inf, True, np.True_, "1", None, [1]])
def test_epsilon_must_be_sensible(epsilon: object) -> None:
    with pytest.raises(InvalidArgument, match=r"^epsilon=.*Try epsilon=1"):
        Guarantee(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 2, math.nan, math.inf, False, "0", None])
def test_delta_must_be_a_probability(delta: object) -> None:
    with pytest.raises(InvalidArgument, match=r"^delta=.*Try delta=1e-6"):
        Guarantee(1.0, delta)  # type: ignore[arg-type]


def test_adjacency_lists_its_choices() -> None:
    assert Adjacency.parse("replace") is Adjacency.REPLACE
    assert Adjacency.parse(Adjacency.ADD_REMOVE) is Adjacency.ADD_REMOVE
    for bad in ("swap", None, 3):
        with pytest.raises(InvalidArgument, match="'add-remove' or 'replace'"):
            Adjacency.parse(bad)
    with pytest.raises(InvalidArgument, match=r"^adjacency='swap': needs"):
        Guarantee(1.0, 0.0, "swap")  # type: ignore[arg-type]


def test_unit_must_be_a_word() -> None:
    with pytest.raises(InvalidArgument, match="unit"):
        Guarantee(1.0, unit=" ")


def test_round_trip_and_plain_values() -> None:
    guarantee = Guarantee(np.float32(0.5), 0, "replace")  # type: ignore[arg-type]
    assert type(guarantee.epsilon) is float
    assert guarantee.adjacency is Adjacency.REPLACE
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee


@pytest.mark.parametrize("values", [{}, {"delta": 0.1}, {"epsilon": 1.0, "rho": 2.0}])
def test_unknown_dicts_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument, match="keys"):
        Guarantee.from_dict(values)
