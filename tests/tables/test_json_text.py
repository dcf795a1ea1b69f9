"""JSON lines whose strings are not UTF-8: the engine's reader passes over them, so that nothing has to look again."""

from __future__ import annotations

import pytest

from crowdgram.tables import count_rows, open_rows, read_domain

from .cells import fetch_cells

NO_TEXT = [
    b"\xff",
    b"\x80",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xe2\x82",
    b"\xf4\x90\x80\x80",
    b"\xf8\x88\x80\x80\x80",
    rb"\ud800",
    rb"\udc00\ud800",
]


@pytest.mark.parametrize("form", ['"a%bz"', '{"k": "%b"}', '["%b"]', '{"%b": 1}'], ids=["text", "value", "list", "key"])
def test_strings_that_are_no_text_are_passed_over(form, tmp_path):
    lines = [b'{"who": "ok", "what": "a"}', *(b'{"who": "ok%d", "what": "a"}' % number for number in range(3))]
    lines += [b'{"who": %b, "what": "a"}' % (form.encode() % bad) for bad in NO_TEXT]
    lines += [b'{"who": "ok", "what": "a%b"}' % bad for bad in NO_TEXT]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    rows = open_rows(str(path), user="who", item="what")
    with rows.engine:
        cells = fetch_cells(count_rows(rows, read_domain(["a"], rows.item_type)))
    assert sorted(zip(cells["user"].to_pylist(), cells["n"].to_pylist(), strict=True)) == [
        ("ok", 1),
        ("ok0", 1),
        ("ok1", 1),
        ("ok2", 1),
    ]
