"""Tables of Spark, by way of Arrow: from rows, Spark would start processes of Python that turn them into its own."""

from __future__ import annotations

import pyarrow as pa

from crowdgram.tables.sources import open_source

KINDS = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "timestamp_ntz": pa.timestamp("us"),
    "date": pa.date32(),
    "boolean": pa.bool_(),
}


def arrow_of(rows, schema):
    """Rows as an Arrow table; the schema is "name type, ...", in Spark's words."""
    fields = [pair.split() for pair in schema.split(", ")]
    return pa.table({name: pa.array([row[j] for row in rows], KINDS[kind]) for j, (name, kind) in enumerate(fields)})


def frame_of(session, rows, schema):
    """The same as a data frame of Spark."""
    return session.createDataFrame(arrow_of(rows, schema))


def open_in_ibis(source, columns, user):
    """An engine, and the opened table as one of Ibis, of which expressions are made."""
    engine, table = open_source(source, columns, user)
    return engine, engine.as_ibis(table)
