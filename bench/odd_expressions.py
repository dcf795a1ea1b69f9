"""Expressions at random for the fuzzer, wild or sound, and tables of extreme rows to try them on."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from hostile import HOSTILE

from crowdgram.errors import CrowdgramError
from crowdgram.tables.expressions import evaluate
from crowdgram.tables.roles import WHERE
from crowdgram.tables.sources import open_source


def wide(rng: random.Random) -> pa.Table:
    """A table with a column of most types, whose values are secret."""
    rows = rng.randrange(1, 9)
    text = ["x", "y", "", "s3cret", "12", "s3cret 2024-01-01", "\u00fc" * 3, None, *HOSTILE[:40]]
    whole = [0, 1, 2, -1, 914872635, 2**31, 2**62, 2**63 - 1, -(2**63), None]
    real = [0.0, 1.5, -1e308, 914872635.5, float("nan"), float("inf"), 5e-324, None]
    moments = [
        datetime.datetime(2024, 2, 29, 23, 59),
        datetime.datetime(1, 1, 1),
        datetime.datetime(9999, 12, 31),
        None,
    ]

    def some(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([rng.choice(values) for _ in range(rows)], kind)

    return pa.table(
        {
            "user": some(["s3cret a", "s3cret b", "c", None], pa.string()),
            "item": some(["x", "y", "s3cret"], pa.string()),
            "text": some(text, pa.string()),
            "whole": some(whole, pa.int64()),
            "small": some([0, 1, 127, -128, None], pa.int8()),
            "real": some(real, pa.float64()),
            "flag": some([True, False, None], pa.bool_()),
            "day": some([None if m is None else m.date() for m in moments], pa.date32()),
            "moment": some(moments, pa.timestamp("us")),
            "price": some([decimal.Decimal("914872635.25"), decimal.Decimal(0), None], pa.decimal128(18, 2)),
            "raw": some([b"s3cret", None], pa.binary()),
        }
    )


WILD = (
    "text", "whole", "real", "flag", "day", "moment", "price", "raw", "user", "missing", "0", "1e308", "''", "NULL",
    "9223372036854775807", "DATE '2024-01-01'", "INTERVAL 1 DAY", "*", "count(*)", "random()", "now()", "(SELECT 1)",
    "?", "$1", "x'00'", "'[('", "t.text", '"text"', "sum(whole)", "row_number() OVER ()", "error(text)", "raw[1]",
    "text -- ", "1; 2", "((1)", "hash(text)", "strptime(text, text)", "chr(whole)", "repeat(text, whole)",
    "EXISTS (SELECT 1)", "text COLLATE NOCASE", "1 << whole", "lpad(text, whole, text)", "date_trunc(text, day)",
)  # fmt: skip


TYPED = {
    "number": (
        "whole", "small", "price", "1", "-1", "7", "9223372036854775807", "{number} + {number}",
        "{number} - {number}",
        "{number} * {number}", "{number} / {number}", "{number} % {number}", "{number} // {number}", "-{number}",
        "abs({number})", "round({number}, 2)", "floor({number})", "sqrt({number})", "ln({number})", "length({text})",
        "power({number}, {number})", "CAST({text} AS INTEGER)", "TRY_CAST({text} AS INTEGER)", "real",
        "CAST({number} AS DECIMAL(4, 2))", "CAST({number} AS TINYINT)", "year({date})", "extract(month FROM {date})",
        "coalesce({number}, {number})", "nullif({number}, {number})", "greatest({number}, {number})",
        "CASE WHEN {truth} THEN {number} ELSE {number} END",
    ),
    "text": (
        "text", "item", "'x'", "''", "lower({text})", "upper({text})", "trim({text})",
        "replace({text}, {text}, {text})",
        "substring({text}, {number}, {number})", "left({text}, {number})", "concat({text}, {text})",
        "{text} || {text}",
        "CAST({number} AS TEXT)", "CAST({date} AS TEXT)", "split_part({text}, {text}, {number})",
        "coalesce({text}, 'x')",
        "regexp_replace({text}, {text}, {text})", "strftime({date}, '%Y-%m')", "CASE WHEN {truth} THEN {text} END",
        "CASE {text} WHEN {text} THEN {text} ELSE {text} END",
    ),
    "date": (
        "day", "moment", "date_trunc('month', {date})", "DATE '2024-01-01'", "CAST({text} AS DATE)",
        "CAST({date} AS DATE)",
        "TRY_CAST({text} AS DATE)", "{date} + INTERVAL 1 DAY", "{date} - INTERVAL 999999 YEAR",
        "coalesce({date}, day)",
    ),
    "truth": (
        "flag", "true", "{number} = {number}", "{number} < {number}", "{text} = {text}", "{text} LIKE {text}",
        "NOT {truth}",
        "{text} IN ('x', {text})", "{number} BETWEEN {number} AND {number}", "{truth} AND {truth}",
        "{truth} OR {truth}",
        "{date} < {date}", "{number} IS NULL", "regexp_matches({text}, {text})", "starts_with({text}, {text})",
        "{number} IN (1, 2)", "{text} IS NOT NULL",
    ),
}  # fmt: skip


def grown(rng: random.Random, kind: str, depth: int) -> str:
    """An expression of a kind, so many shapes deep; now and then a part of it is something else."""
    if rng.random() < 0.04:
        return rng.choice(WILD)
    shapes = [shape for shape in TYPED[kind] if depth > 0 or "{" not in shape]
    shape = rng.choice(shapes)
    for _ in range(shape.count("{")):
        part = shape[shape.index("{") + 1 : shape.index("}")]
        shape = shape.replace("{" + part + "}", grown(rng, part, depth - 1), 1)
    return shape


EXTREME: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "whole": (pa.int64(), (2**62, -(2**62), 2**63 - 1, -(2**63), 2**52 + 1, -(2**31), -1, 0, 1, 7, None)),
    "small": (pa.int8(), (127, -128, 0, -1, 3, None)),
    "real": (
        pa.float64(),
        (float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, -0.0, 0.5, 2.0**63, -(2.0**52), None),
    ),
    "text": (
        pa.string(),
        (
            "", " ", "x", "12", "-7", "9" * 18, "9" * 19, "1" * 400, "-9223372036854775808", "nan", "-inf", "1e999",
            "0x10", "1_0", "true", "2024-02-29", "2024-02-30", "0000-01-01", "99999-01-01", "infinity", "-infinity",
            "290309-12-22 (BC)", "2024-02-29 25:00", "2024-01-01 00:00:00+99", "epoch", "24:00", "a\\E(b", "[(", "%_\\",
            "\u0130\u00df\ufb03", "e\u0301", "\U0001f600", "x" * 300_000, "\u00fc" * 70_000, None,
        ),
    ),
    "flag": (pa.bool_(), (True, False, None)),
    "day": (
        pa.date32(),
        (datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1969, 2, 28), datetime.date(2024, 2, 29)),
    ),
    "moment": (
        pa.timestamp("us"),
        (
            datetime.datetime(1, 1, 1),
            datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
            datetime.datetime(2024, 2, 29),
            None,
        ),
    ),
}  # fmt: skip
"""Columns with the values at which functions fail, if they do."""


def extreme(rng: random.Random, rows: int = 80) -> pa.Table:
    """Rows of extreme values: each is there, in company that is drawn."""
    made: dict[str, pa.Array] = {"user": pa.array([f"u{k}" for k in range(rows)])}
    for name, (kind, values) in EXTREME.items():
        column = [*values, *(rng.choice(values) for _ in range(rows - len(values)))]
        made[name] = pa.array(rng.sample(column, rows), kind)
    return pa.table(made)


SOUND = {
    "whole": (
        "whole", "small", "0", "1", "-1", "3", "4611686018427387904", "9223372036854775807", "{whole} + {whole}",
        "{whole} - {whole}", "{whole} * {whole}", "{whole} // {whole}", "{whole} % {whole}", "-({whole})",
        "abs({whole})", "length({text}) * 0 + 4611686018427387904", "length({text})", "floor({real})", "ceil({real})",
        "round({real})", "floor({whole})", "cast({text} as bigint)", "cast({truth} as integer)", "year({moment})",
        "extract(quarter from {date})", "isodow({date})", "dayofweek({moment})", "second({moment})", "hour({moment})",
        "coalesce({whole}, {whole})", "nullif({whole}, {whole})", "greatest({whole}, {whole})",
        "case when {truth} then {whole} else {whole} end", "if({truth}, {whole}, null)", "null + {whole}",
    ),
    "real": (
        "real", "0.5", "1e308", "-1e308", "5e-324", "0.0", "{real} + {real}", "{real} - {whole}", "{whole} * {real}",
        "{whole} / {whole}", "{real} / {real}", "-({real})", "abs({real})", "cast({text} as double)",
        "cast({whole} as double)", "nullif({whole}, {real})", "nullif({real}, {whole})", "coalesce({whole}, {real})",
        "least({whole}, {real})", "case when {truth} then {whole} else {real} end",
    ),
    "text": (
        "text", "'x'", "''", "'\\'", "lower({text})", "upper({text})", "trim({text})", "concat({text}, {text})",
        "{text} || {text}", "{text} || {text} || {text}", "cast({whole} as text)", "cast({real} as text)",
        "cast({date} as text)", "cast({moment} as text)", "cast({truth} as text)", "left({text}, 999999999)",
        "right({text}, 999999999)", "substring({text}, 999999999, 999999999)", "substring({text}, 2)",
        "split_part({text}, '-', 2)", "split_part({text}, '\\E(', 1)", "split_part({text}, '.', 999999999)",
        "split_part({text}, 'x', 3)", "strftime({date}, 'T%Y''%j')", "strftime({moment}, '%y-%m-%d %H:%M:%S')",
        "coalesce({text}, {text})", "nullif({text}, {text})", "case {text} when {text} then {text} end",
    ),
    "date": (
        "day", "date '9999-12-31'", "cast({text} as date)", "cast({moment} as date)", "date_trunc('week', {date})",
        "date_trunc('year', {date})", "coalesce({date}, {date})", "greatest({date}, {date})",
    ),
    "moment": (
        "moment", "cast({text} as timestamp)", "cast({date} as timestamp)", "date_trunc('hour', {moment})",
        "date_trunc('week', {moment})", "date_trunc('second', {date})", "coalesce({date}, {moment})",
        "nullif({moment}, {date})",
    ),
    "truth": (
        "flag", "true", "null", "{whole} = {whole}", "{real} < {whole}", "{text} <= {text}", "{date} < {moment}",
        "not ({truth})", "({truth}) and ({truth})", "({truth}) or ({truth})", "{text} like '%\\_x'",
        "{text} ilike '\\%'", "{whole} in (1, {whole}, 0.5)", "{text} in ('x', {text})",
        "{whole} between {whole} and {real}",
        "{text} is null", "({truth}) is not true", "({whole} is not distinct from {whole}) = ({truth})",
        "({truth}) is distinct from ({truth})", "starts_with({text}, {text})", "ends_with({text}, {text})",
        "contains({text}, {text})", "cast({text} as boolean)", "cast({whole} as boolean)", "day > '2024-02-01'",
    ),
}  # fmt: skip
"""Shapes of expressions that may be used, by the type of what they give."""


def sound(rng: random.Random, kind: str, depth: int) -> str:
    """An expression of a kind of allowed pieces only, at most so many shapes deep."""
    shapes = [shape for shape in SOUND[kind] if depth > 0 or "{" not in shape]
    # Shapes without parts are half of the leaves only: else most expressions would be shallow.
    deep = [shape for shape in shapes if "{" in shape]
    shape = rng.choice(deep if deep and rng.random() < 0.8 else shapes)
    for _ in range(shape.count("{")):
        part = shape[shape.index("{") + 1 : shape.index("}")]
        inner = sound(rng, part, depth - 1)
        shape = shape.replace("{" + part + "}", inner if inner.isidentifier() else f"({inner})", 1)
    return shape


def same_outcomes(tables: list[Any], texts: list[str]) -> None:
    """Compute the expressions for each table, the first of which has all rows: none fails, and a row has one value.

    For the first table without the engine's TRY: the functions that expressions are made of may not need it.
    """
    known: dict[str, dict[str, Any]] = {}
    for number, given in enumerate(tables):
        engine, opened = open_source(given, None, "user")
        table = engine.as_ibis(opened)
        if number == 0:
            engine.tried = lambda value: value  # type: ignore[method-assign]
        with engine:
            made = {f"v{k}": evaluate(text, engine, table, WHERE) for k, text in enumerate(texts)}
            try:
                found = engine.fetch(table.select("user", **made), "testing").to_pylist()
            except CrowdgramError:
                raise AssertionError(f"table {number}: one of {texts} fails on some row") from None
        for row in found:
            values = {name: repr(value) for name, value in row.items()}
            assert known.setdefault(row["user"], values) == values, (texts, number, row["user"])
        assert number > 0 or len(found) == len(known)
