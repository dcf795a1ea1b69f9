"""Ledgers that somebody changes who can write the file, and knows how it is made."""

from __future__ import annotations

import contextlib
import json
import sqlite3

from crowdgram.privacy.ledger_file import body_of, digest_of


def change(path, *statements):
    """Run SQL on a ledger as if nothing guarded its rows; tables and triggers are as before afterwards."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(*((statement,) if isinstance(statement, str) else statement))
        for _, sql in triggers:
            connection.execute(sql)


def rows(path, table):
    """The bodies of a table's rows as values, by number."""
    number = "id" if table == "budget" else "number"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return {place: json.loads(body) for place, body in connection.execute(f"SELECT {number}, body FROM {table}")}


def rewrite(path, *, budget=None, charges=None, settlements=None):
    """Put other bodies in place of some, and make every digest right again, as somebody can who can write the file.

    A charge or settlement whose new body is None is removed; the charges after it get the numbers that are free.
    """
    terms = {**rows(path, "budget"), **({} if budget is None else {1: budget})}[1]
    kept = {**rows(path, "charges"), **(charges or {})}
    settled = {**rows(path, "settlements"), **(settlements or {})}
    body = terms if isinstance(terms, str) else body_of(terms)
    before = digest_of("budget", "", body)
    made = [("INSERT INTO budget VALUES (1, ?, ?)", (body, before))]
    ends, number = [], 0
    for old, values in sorted(kept.items()):
        if values is None:
            continue
        number += 1
        body = values if isinstance(values, str) else body_of(values)
        before = digest_of("charge", before, body)
        made.append(("INSERT INTO charges VALUES (?, ?, ?)", (number, body, before)))
        end = settled.get(old)
        if end is not None:
            body = end if isinstance(end, str) else body_of(end)
            ends.append(
                ("INSERT INTO settlements VALUES (?, ?, ?)", (number, body, digest_of("settlement", before, body)))
            )
    emptied = [f"DELETE FROM {table}" for table in ("settlements", "charges", "budget")]
    change(path, *emptied, *made, *ends, ("UPDATE head SET number = ?, digest = ?", (number, before)))
