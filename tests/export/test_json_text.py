"""JSON text: as Python writes it if lists are short, and the same values if they are long."""

from __future__ import annotations

import json

import numpy as np
import pytest

from crowdgram.export import json_file, json_text
from crowdgram.export.json_text import document_text

ODD = [0.0, -0.0, 1.0, 0.1, 1e-300, 5e-324, 1.7976931348623157e308, 1e21, 1e22, 123456789.0, 2.0**53, -1 / 3]


def test_short_documents_are_written_as_ever():
    nested = {"c": [1, {"d": None}], "e": []}
    document = {"a": 1, "b": nested, "f": np.array(ODD), "g": ["ä\n", True], "h": [], "i": [[1, 2], 3], "j": [(4, 5)]}
    plain = {**document, "f": ODD}
    assert document_text(document) == json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def test_long_lists_hold_the_same_values_on_one_line(monkeypatch):
    monkeypatch.setattr(json_text, "PIECE", 1000)  # a limit that a short list reaches
    drawn = np.random.default_rng(4).random(json_text.LONG_LIST - len(ODD) + 17) * 10.0 ** np.random.default_rng(
        5
    ).integers(-300, 300, json_text.LONG_LIST - len(ODD) + 17)
    numbers = np.concatenate([ODD, drawn])
    items = [f'"{number}"\n' for number in range(json_text.LONG_LIST)]
    text = document_text({"numbers": numbers, "part": numbers[::2][: json_text.LONG_LIST // 2], "items": items})
    assert len(text.splitlines()) < json_text.LONG_LIST
    read = json.loads(text)
    assert np.array(read["numbers"], dtype=np.float64).tobytes() == (numbers + 0.0).tobytes()
    assert read["items"] == items


@pytest.mark.parametrize(
    "items", [range(-5, json_text.LONG_LIST), [2**63, *range(json_text.LONG_LIST)], [True] * json_text.LONG_LIST]
)
def test_long_lists_of_numbers_are_written_as_they_are(items):
    assert json.loads(document_text({"items": list(items)}))["items"] == list(items)


def test_equal_numbers_are_written_alike():
    few = np.array([0.1, -0.0, 0.0, 1e-300, 1 / 3])
    numbers = np.tile(few, json_text.LONG_LIST)
    written = document_text({"numbers": numbers}).partition("[")[2].partition("]")[0].split(",")
    assert written[:5] * json_text.LONG_LIST == written
    assert [float(one) for one in written[:5]] == few.tolist()


@pytest.mark.parametrize("value", [0.0, -0.0, 0.1, 7])
def test_one_number_again_and_again_is_written_as_any(value):
    numbers = np.full(json_text.LONG_LIST, value)
    other = np.append(numbers, 3)  # which is not all one number
    written = document_text({"numbers": numbers}).partition("[")[2].partition("]")[0].split(",")
    mixed = document_text({"numbers": other}).partition("[")[2].partition("]")[0].split(",")
    assert written == mixed[:-1]
    assert float(written[0]) == value


@pytest.mark.parametrize("most", [2**63 - 1, 2**63])
def test_items_that_are_whole_numbers_are_json_numbers(most):
    items = (-(2**63), 0, most)
    assert json.loads(document_text({"items": json_file.items_to_json(items)}))["items"] == list(items)


def test_arrays_that_come_again_are_written_again():
    numbers = np.random.default_rng(6).random(json_text.LONG_LIST)
    other = numbers.copy()
    other[-1] = 0.5
    document = {"a": None, "b": numbers, "c": None, "d": other, "e": numbers.copy(), "f": numbers[::-1], "g": other}
    read = json.loads(document_text(document))
    assert list(read) == list(document)
    assert all(read[name] == (value if value is None else value.tolist()) for name, value in document.items())


@pytest.mark.parametrize("size", [3, json_text.LONG_LIST])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_json_has_no_word_for_is_refused(size, bad):
    numbers = np.zeros(size)
    numbers[1] = bad
    with pytest.raises(ValueError, match="Out of range float values"):
        document_text({"numbers": numbers})


@pytest.mark.parametrize("odd", ["", ",", "é漢😀\u2028\x7f", '"', '","', "\\", "\n", "\x00", "\x1f", 7, None, ["a"]])
def test_long_lists_of_strings_are_as_json_writes_them(odd) -> None:
    items = [*map(str, range(json_text.LONG_LIST)), odd]
    written = json.dumps(items, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    assert document_text({"items": items}) == f'{{\n "items": {written}\n}}\n'
