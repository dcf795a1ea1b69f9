"""Who is one user, for every accepted type and every source in memory: no two users merge, and none is split.

Every row of a user has the user's number for its item, however often. So users are told apart as they should be if and
only if each item has one user and each user one item.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from itertools import count, product

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

from crowdgram import Ledger, release
from crowdgram.errors import CrowdgramError, InvalidTable
from crowdgram.tables import UNIT, CappedRows, count_rows, open_rows, read_domain, tally_rows

from ..thorough import THOROUGH, combined
from .cells import fetch_cells

DAY = datetime.date(2024, 2, 29)
CLOSE = [
    "a",
    "A",
    "a ",
    " a",
    "a\u00a0",
    "á",
    "a\u0301",
    "ａ",
    "ª",
    "",
    "a\0",
    "a\0b",
    "01",
    "1",
    "1.0",
    "ß",
    "ss",
    "\u200ba",
]
"""Strings that some collation, normalisation, trim or cast takes for one."""


def spread(low, high):
    return sorted(
        {value for value in (low, low + 1, -1, 0, 1, 2**53, 2**53 + 1, high - 1, high) if low <= value <= high}
    )


TYPES = {
    **{
        f"int{bits}": (getattr(pa, f"int{bits}")(), spread(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
        for bits in (8, 16, 32, 64)
    },
    **{f"uint{bits}": (getattr(pa, f"uint{bits}")(), spread(0, 2**bits - 1)) for bits in (8, 16, 32, 64)},
    "string": (pa.string(), CLOSE),
    "large_string": (pa.large_string(), CLOSE),
    "string_view": (pa.string_view(), CLOSE),
    "bool": (pa.bool_(), [True, False]),
    "date32": (pa.date32(), [DAY, DAY + datetime.timedelta(1), datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    "uuid": (pa.uuid(), [uuid.UUID(int=n) for n in (0, 1, 2**64, 2**127, 2**128 - 1)]),
}
REFUSED = {
    "date64": pa.date64(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "decimal": pa.decimal128(38, 0),
    "decimal with a scale": pa.decimal128(10, 2),
    "timestamp": pa.timestamp("us"),
    "timestamp of nanoseconds": pa.timestamp("ns"),
    "timestamp with a zone": pa.timestamp("ms", "Europe/Berlin"),
    "time": pa.time64("us"),
    "duration": pa.duration("us"),
    "binary": pa.binary(),
    "list": pa.list_(pa.int64()),
    "struct": pa.struct([("a", pa.int64())]),
}


def encoded(table, how):
    column = table.column("who").combine_chunks()
    return table.set_column(table.column_names.index("who"), "who", how(column))


def runs(column):
    return pa.compute.run_end_encode(column)


def in_pandas_arrow(table):
    columns = {name: pd.arrays.ArrowExtensionArray(table.column(name)) for name in table.column_names}
    return pd.DataFrame(columns)


def in_duckdb(table):
    connection = ibis.duckdb.connect()
    connection.con.register("given", table)
    connection.raw_sql("create table t as select * from given")
    return connection.table("t")


STORED = {
    "table": lambda table: table,
    "batch": lambda table: table.combine_chunks().to_batches()[0] if table.num_rows else table,
    "reader": lambda table: table.to_reader(),
    "dataset": lambda table: pa.dataset.dataset(table),
    "pandas": in_pandas_arrow,
    "polars": lambda table: pl.from_arrow(table),
    "relation": lambda table: duckdb.connect().from_arrow(table),
    "ibis": in_duckdb,
}
SHAPED = {
    "plain": lambda table: table,
    "dictionary": lambda table: encoded(table, lambda column: column.dictionary_encode()),
    "runs": lambda table: encoded(table, runs),
}


def rows_of(kind, users, repeats):
    numbers = [number for number, times in enumerate(repeats) for _ in range(times)]
    who = (
        pa.array([users[number] for number in numbers], kind)
        if kind != pa.uuid()
        else pa.ExtensionArray.from_storage(kind, pa.array([users[number].bytes for number in numbers], pa.binary(16)))
    )
    return pa.table({"who": who, "what": pa.array([f"i{number}" for number in numbers], pa.string())})


def made(shape, source, name, table):
    """The source, or None where it does not exist: no library can hold or encode every type."""
    try:
        shaped = SHAPED[shape](table)
        if source in ("relation", "ibis", "polars") and (shape == "runs" or name == "uuid"):
            return None  # or they make another type of it
        return STORED[source](shaped)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pl.exceptions.PolarsError, duckdb.Error):
        return None


def moved(source, domain, summed=True):
    """`CappedRows` of the table, every user with the same weight, if asked for; and who has what."""
    rows = open_rows(source, user="who", item="what")
    with rows.engine:
        counts = count_rows(rows, read_domain(domain, rows.item_type))
        cells = fetch_cells(counts)
        pairs = list(zip(cells["user"].to_pylist(), cells["idx"].to_pylist(), cells["n"].to_pylist(), strict=True))
        return counts.sum(CappedRows(1)).values if summed else None, pairs


def stored(types, whole=tuple(STORED), few=("int64", "uint64", "string", "date32")):
    """Every type in every source of `whole`, and a few in the others; in shapes that are not plain, so many of the few
    that each meets every shape and every source. All if thorough.
    """
    cases = [case for case in product(SHAPED, STORED, types) if THOROUGH or (case[0] == "plain" and case[1] in whole)]
    if not THOROUGH:
        cases += [("plain", source, name) for source in STORED if source not in whole for name in few]
        cases += combined([shape for shape in SHAPED if shape != "plain"], list(STORED), few)
    return pytest.mark.parametrize(("shape", "source", "name"), cases)


@pytest.mark.slow
@stored(TYPES, whole=("table", "reader", "pandas", "polars", "ibis"))
def test_users_are_told_apart(shape, source, name):
    kind, users = TYPES[name]
    repeats = [1 + number % 3 for number in range(len(users))]
    domain = [f"i{number}" for number in range(len(users))]
    table = made(shape, source, name, rows_of(kind, users, repeats))
    if table is None:
        pytest.skip(f"{source} has no {shape} {name}")
    with_neighbour = THOROUGH or (name == "string" and shape == "plain")
    sums, pairs = moved(table, domain, summed=with_neighbour)
    assert sorted((idx, n) for _, idx, n in pairs) == list(zip(count(), repeats))
    assert len({user for user, _, _ in pairs}) == len(users)
    if not with_neighbour:
        return
    # A neighbour without the last user: one unit, at that user's own item.
    without, _ = moved(made(shape, source, name, rows_of(kind, users[:-1], repeats[:-1])), domain)
    assert (sums - without).tolist() == [0] * (len(users) - 1) + [UNIT // repeats[-1] * repeats[-1]]


@pytest.mark.slow
@stored(REFUSED, few=("date64", "float64", "timestamp with a zone"))
def test_what_could_merge_users_is_refused_by_its_type_alone(shape, source, name):
    table = pa.table({"who": pa.nulls(0, REFUSED[name]), "what": pa.array([], pa.string())})
    try:
        given = made(shape, source, name, table)
    except (TypeError, ValueError, AttributeError):
        given = None
    if given is None:
        pytest.skip(f"{source} has no {shape} {name}")
    if name == "date64" and source in ("polars", "relation", "ibis"):
        pytest.skip("these have no date64: what they made of it is theirs")
    with pytest.raises(InvalidTable, match=r"who|types"):
        open_rows(given, user="who", item="what")


def test_a_date64_of_pandas_moved_a_sum_by_two_units():
    """The case that was found: two users within one day, through pandas."""
    moments = pa.array([0, 1], pa.int64()).cast(pa.date64())
    frame = pd.DataFrame({"who": pd.arrays.ArrowExtensionArray(pa.chunked_array([moments])), "what": ["a", "b"]})
    with pytest.raises(InvalidTable, match="date64"):
        open_rows(frame, user="who", item="what")
    category = pa.DictionaryArray.from_arrays(pa.array([0, 1]), moments)
    for given in (
        pa.table({"who": category, "what": ["a", "b"]}),
        pa.table({"who": category, "what": ["a", "b"]}).to_reader(),
    ):
        with pytest.raises(InvalidTable, match="date64"):
            open_rows(given, user="who", item="what")
    # As items, days are days.
    rows = open_rows(pa.table({"what": category, "who": ["a", "b"]}), user="who", item="what")
    with rows.engine as engine:
        assert engine.fetch(tally_rows(rows).table, "testing")["item"].to_pylist() == [datetime.date(1970, 1, 1)] * 2


class Stamp(pa.ExtensionType):
    """An extension that no engine knows."""

    def __init__(self, storage=None):
        super().__init__(storage or pa.date64(), "crowdgram.stamp")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls(storage)


def test_an_extension_is_as_what_it_stores():
    moments = pa.array([0, 1], pa.int64()).cast(pa.date64())
    for kind, storage in (
        (Stamp(), moments),
        (Stamp(pa.dictionary(pa.int64(), pa.date64())), pa.DictionaryArray.from_arrays(pa.array([0, 1]), moments)),
    ):
        table = pa.table({"who": pa.ExtensionArray.from_storage(kind, storage), "what": ["a", "b"]})
        for given in (table, table.to_reader(), pa.dataset.dataset(table)):
            with pytest.raises(InvalidTable, match="date64"):
                open_rows(given, user="who", item="what")
    numbers = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 2, 0], pa.int8()))
    sums, pairs = moved(pa.table({"who": numbers, "what": ["a", "b", "c"]}), ["a", "b", "c"])
    assert (len(pairs), sums.tolist()) == (3, [UNIT] * 3)


PANDAS = {
    "int": [1, 2, -1],
    "Int64": pd.array([1, 2, 3], "Int64"),
    "UInt8": pd.array([0, 255, 1], "UInt8"),
    "bool": [True, False],
    "boolean": pd.array([True, False], "boolean"),
    "string": pd.array(CLOSE, "string"),
    "string of Python": pd.array(CLOSE, "string[python]"),
    "objects": np.array(CLOSE, dtype=object),
    "categories": pd.Categorical(pd.array(CLOSE, "string[pyarrow]")),
    "categories of integers": pd.Categorical([3, 1, 2]),
    "categories of integers in Arrow": pd.Categorical(pd.array([1, 2, 2**62], pd.ArrowDtype(pa.int64()))),
    "objects that are dates": np.array([DAY, datetime.date(2024, 3, 1)], dtype=object),
    "objects that are UUIDs": np.array([uuid.UUID(int=1), uuid.UUID(int=2)], dtype=object),
    "objects that are integers": np.array([2**70, 2**70 + 1, 1], dtype=object),
    "objects that are floats": np.array([0.1, 0.1 + 2**-53, 1e16, 1e16 + 2], dtype=object),
    "objects that are bytes": np.array([b"a", b"a ", b"A"], dtype=object),
    "objects that are decimals": np.array([decimal.Decimal("1.10"), decimal.Decimal("1.2")], dtype=object),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PANDAS)
def test_users_of_pandas_are_told_apart(name):
    users = list(PANDAS[name])
    frame = pd.DataFrame({"who": PANDAS[name], "what": [f"i{number}" for number in range(len(users))]})
    sums, pairs = moved(pd.concat([frame, frame]), frame["what"].tolist())
    assert sorted((idx, n) for _, idx, n in pairs) == [(number, 2) for number in range(len(users))]
    assert len({user for user, _, _ in pairs}) == len(users)
    assert sums.tolist() == [UNIT] * len(users)


def test_objects_are_one_user_if_their_text_is_the_same():
    """Pandas reads one column of a long file as integers in one part and as text in another."""
    frame = pd.DataFrame({"who": np.array([1, "1", "01", None, float("nan"), pd.NA], dtype=object), "what": ["a"] * 6})
    _, pairs = moved(frame, ["a"])
    assert sorted(pairs) == [("01", 0, 1), ("1", 0, 2)]


OBJECTS = {
    "text": np.array(CLOSE, dtype=object),
    "text of Python": pd.array(CLOSE, "string[python]"),
    "equal numbers": np.array([7, 7.0, True, 1, "1"], dtype=object),
    "dates": np.array([DAY, datetime.date(2024, 3, 1)], dtype=object),
    "nothing": np.array([], dtype=object),
}


def in_categories_of_objects(values):
    """As pandas 2 makes them of text. Pandas 3 makes text of objects first, unless the categories say otherwise."""
    kinds = pd.Index(pd.unique(pd.Series(values)), dtype=getattr(values, "dtype", object))
    return pd.Categorical(values, categories=kinds)


@pytest.mark.parametrize("values", OBJECTS.values(), ids=OBJECTS)
def test_categories_of_objects_are_refused_by_their_type_alone(values):
    """To make them, pandas takes 7 and 7.0 for one, and before pandas 3 also "a" and "a\\0b": whichever comes first."""
    text = np.full(len(values), "y", dtype=object)
    frame = pd.DataFrame({"odd": in_categories_of_objects(values), "a": text, "b": text})
    for asked in (
        {"user": "odd", "item": "a"},
        {"user": "a", "item": "odd"},
        {"user": "a", "item": "b", "by": "odd"},
        {"user": "a", "item": "b", "where": "odd = 'a'"},
        {"user": "odd", "item": "a", "where": lambda t: t.b == "y"},
        {"user": {"u": "lower(odd)"}, "item": "a"},
    ):
        with pytest.raises(InvalidTable, match="column 'odd': has pandas categories of Python objects") as refused:
            open_rows(frame, **asked)
        assert refused.value.column == "odd"
    # Not read where it is not asked for, also if an Ibis expression might name any column.
    for where in (None, "b = 'y'", lambda t: t.b == "y"):
        open_rows(frame, user="a", item="b", where=where).engine.close()
    for asked in ({"item": "odd", "where": lambda t: t.b == "y"}, {"item": "b", "where": lambda t: t.odd == "y"}):
        with pytest.raises(CrowdgramError, match="So are pandas categories of Python objects"):
            open_rows(frame, user="a", **asked)


def test_categories_of_objects_are_refused_before_a_ledger_is_charged(tmp_path):
    frame = pd.DataFrame({"who": in_categories_of_objects(np.array(CLOSE, dtype=object)), "what": "x"})
    ledger = Ledger.create(tmp_path / "l.db", 1.0, 1e-6)
    with pytest.raises(InvalidTable, match=r"column 'who': .*string\[pyarrow\]"):
        release(frame, user="who", item="what", domain=["x"], epsilon=0.5, ledger=ledger)
    assert ledger.spent() == 0.0


ITEMS = {
    **{name: (kind, values) for name, (kind, values) in TYPES.items()},
    "date64": (pa.date64(), [DAY, DAY + datetime.timedelta(1)]),
    "timestamp": (pa.timestamp("us"), [datetime.datetime(2024, 2, 29, 1, 2, 3, n) for n in (0, 1, 999_999)]),
    "timestamp with a zone": (
        pa.timestamp("ms", "Asia/Tokyo"),
        [
            datetime.datetime(2024, 2, 29, 1, tzinfo=datetime.UTC),
            datetime.datetime(2024, 2, 29, 2, tzinfo=datetime.UTC),
        ],
    ),
}


@pytest.mark.slow
@stored(ITEMS, whole=("table", "pandas"), few=("int64", "string"))
def test_items_are_told_apart(shape, source, name):
    """Each of three users has every item: all counts are 1, at as many places as there are items."""
    kind, values = ITEMS[name]
    table = rows_of(kind, values, [1] * len(values)).rename_columns(["who", "unused"])
    table = pa.concat_tables([table.set_column(1, "what", pa.array([user] * len(values))) for user in "abc"])
    given = made(shape, source, name, table)
    if given is None:
        pytest.skip(f"{source} has no {shape} {name}")
    rows = open_rows(given, user="what", item="who")
    with rows.engine:
        counts = count_rows(rows, read_domain(values, rows.item_type))
        cells = fetch_cells(counts)
    found = sorted(zip(cells["user"].to_pylist(), cells["idx"].to_pylist(), cells["n"].to_pylist(), strict=True))
    assert found == [(user, place, 1) for user in "abc" for place in range(len(values))]
