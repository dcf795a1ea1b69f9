"""The file under a ledger: an SQLite database with a rollback journal, to which rows are only added.

Durable means `synchronous=EXTRA`: the journal, the database and the folder are synced, in SQLite's order, before a
transaction counts as committed. SQLite's errors become `LedgerFailure`. Charges are a chain: each has a digest over
itself and the digest of the charge before it, and the last one, the *head*, is kept beside their number. So a flipped
bit in a charge, a charge that is missing and one in another place are noticed, unless somebody sets the head back too.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from crowdgram.errors import LedgerFailure

__all__ = [
    "VERSION",
    "LedgerPath",
    "body_of",
    "damaged",
    "digest_of",
    "journals_of",
    "make_file",
    "parsed",
    "reading",
    "refused",
    "writing",
]

VERSION = 3
"""Of the schema. Versions 1 and 2, with and without periods, were never published: they had no head."""
APPLICATION = 0x43474C47  # "CGLG", at a fixed place of the file
LOCK_SECONDS = 30.0  # seconds that a process waits for another one's transaction

_TABLES = """
CREATE TABLE budget (id INTEGER PRIMARY KEY CHECK (id = 1), body TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE charges (number INTEGER PRIMARY KEY, body TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE settlements (number INTEGER PRIMARY KEY REFERENCES charges, body TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE documents (number INTEGER PRIMARY KEY REFERENCES settlements, content BLOB NOT NULL);
CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 1), number INTEGER NOT NULL, digest TEXT NOT NULL);
"""
_KEPT = "".join(
    f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'rows are kept'); END;"
    for table, verb in (
        *(
            (table, verb)
            for table in ("budget", "charges", "settlements", "documents")
            for verb in ("UPDATE", "DELETE")
        ),
        ("head", "DELETE"),
    )
)
_COUNTED = """
CREATE TRIGGER head_UPDATE BEFORE UPDATE ON head WHEN NEW.id <> 1 OR NEW.number <> OLD.number + 1
BEGIN SELECT RAISE(ABORT, 'the counter only grows'); END;
"""
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"


@dataclass(frozen=True, slots=True)
class LedgerPath:
    """Where a ledger is. file: its absolute path, whatever folder a program goes to later. written: the path as the
    caller wrote it, which messages name.
    """

    file: Path
    written: str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> LedgerPath:
        return cls(Path(path).absolute(), os.fspath(path))


def journals_of(file: Path) -> list[Path]:
    """The files that SQLite may keep beside a ledger: it takes what has such a name for its own, and removes it."""
    return [file.with_name(file.name + end) for end in ("-journal", "-wal", "-shm")]


def make_file(path: LedgerPath, terms: dict[str, Any]) -> None:
    """A new ledger file with its budget, readable by its owner only; whole or not at all."""
    taken = [one.name for one in journals_of(path.file) if os.path.lexists(one)]
    if taken:
        raise refused(path, f"has {taken[0]!r} beside it, which would be taken for its journal. Give another name.")
    try:
        os.close(os.open(path.file, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600))
    except FileExistsError:
        raise refused(path, "is there already. Give another name.") from None
    except OSError as error:
        raise refused(path, f"cannot be made: {error.strerror}.") from None
    try:
        with _connect(path, "rw") as connection:
            connection.execute("BEGIN IMMEDIATE")
            _make_tables(connection)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            body = body_of(terms)
            digest = digest_of("budget", "", body)
            connection.execute("INSERT INTO budget VALUES (1, ?, ?)", (body, digest))
            connection.execute("INSERT INTO head VALUES (1, 0, ?)", (digest,))
            connection.execute("COMMIT")
        _sync_folder(path.file.parent)
    except BaseException:
        for made in (path.file, journals_of(path.file)[0]):
            with contextlib.suppress(OSError):
                made.unlink()
        raise


@contextlib.contextmanager
def reading(path: LedgerPath) -> Iterator[sqlite3.Connection]:
    """A transaction that sees one state of the ledger."""
    _check_file(path)
    writable = os.access(path.file, os.W_OK) and os.access(path.file.parent, os.W_OK)
    with _connect(path, "rw" if writable else "ro") as connection:
        connection.execute("BEGIN")
        _check_kind(connection, path)
        yield connection
        connection.execute("ROLLBACK")


@contextlib.contextmanager
def writing(path: LedgerPath) -> Iterator[sqlite3.Connection]:
    """A transaction under the lock for writing; on disk when it ends, undone if anything is raised in it."""
    _check_file(path)
    with _connect(path, "rw") as connection:
        connection.execute("BEGIN IMMEDIATE")
        _check_kind(connection, path)
        yield connection
        connection.execute("COMMIT")


@contextlib.contextmanager
def _connect(path: LedgerPath, mode: str) -> Iterator[sqlite3.Connection]:
    """A connection for one transaction; SQLite's errors become ours, and an open transaction is rolled back."""
    failure: LedgerFailure | None = None
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(
            f"{path.file.as_uri()}?mode={mode}", uri=True, timeout=LOCK_SECONDS, isolation_level=None
        )
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        yield connection
    except sqlite3.Error as error:
        failure = _failure(path, error)
    except UnicodeDecodeError:  # SQLite's text, from a file that is not text where it should be
        failure = damaged(path)
    finally:
        if connection is not None:
            connection.close()  # rolls back what was not committed
    if failure is not None:
        raise failure


def _failure(path: LedgerPath, error: sqlite3.Error) -> LedgerFailure:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return refused(path, f"another process has used it for {LOCK_SECONDS:g} seconds. Try again.")
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return refused(path, "it or its folder cannot be written to. Nothing was charged or stored.")
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return refused(path, "the disk is full or failed. Nothing was charged or stored by this step.")
    if name.startswith("SQLITE_CANTOPEN"):
        return refused(path, "it or its folder cannot be opened. Check both.")
    if name.startswith("SQLITE_NOTADB"):
        return refused(path, "needs to be a ledger. Make one with 'crowdgram ledger create'.")
    return damaged(path)


def refused(path: LedgerPath, said: str) -> LedgerFailure:
    """The error for a ledger that is not used, with what is to be done about it."""
    return LedgerFailure(f"ledger={path.written!r}: {said}", path=path.file)


def damaged(path: LedgerPath) -> LedgerFailure:
    """The error for a ledger whose rows cannot be trusted."""
    return refused(
        path,
        "is damaged, so what was spent is not known. Do not release from this data set against it; "
        "restore a copy only if nothing was charged since.",
    )


def _check_file(path: LedgerPath) -> None:
    """A plain file of one name: links would let two processes miss each other's journals."""
    try:
        found = path.file.lstat()
    except OSError as error:
        raise refused(
            path, f"cannot be opened: {error.strerror}. Make a ledger with 'crowdgram ledger create'."
        ) from None
    if not stat.S_ISREG(found.st_mode):
        raise refused(path, "needs to be a file, not a link, a folder or a device. Give the ledger file itself.")
    if found.st_nlink > 1:
        raise refused(path, "has several names (hard links), and needs one. Remove the others.")
    if found.st_size == 0:
        raise refused(path, "is empty: it is no ledger, or was never completed. Remove it and make one.")


def _check_kind(connection: sqlite3.Connection, path: LedgerPath) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION:
        raise refused(path, "needs to be a ledger. Make one with 'crowdgram ledger create'.")
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version != VERSION:
        step = (
            "Install a newer Crowdgram."
            if version > VERSION
            else "It was made before Crowdgram 0.1.0. Make a new one with what is left of its budget."
        )
        raise refused(path, f"has schema version {version}; this Crowdgram reads version {VERSION}. {step}")
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "delete":
        raise refused(
            path,
            "another program changed its journal, so that it cannot be trusted. Let Crowdgram alone write to a ledger.",
        )
    if _schema_of(connection) != _expected_schema():
        raise refused(
            path,
            "has tables or triggers that no ledger has, and they could drop what is charged. Do not release against "
            "it. Let Crowdgram alone write to a ledger.",
        )


def digest_of(kind: Literal["budget", "charge", "settlement"], before: str, body: str) -> str:
    """The digest of a row that follows the row with digest `before`. None of its parts has a line break."""
    return hashlib.sha256(f"crowdgram ledger {VERSION}\n{kind}\n{before}\n{body}".encode()).hexdigest()


def body_of(values: dict[str, Any]) -> str:
    """A row's values as it keeps them: JSON on one line, with sorted keys."""
    return json.dumps(values, sort_keys=True, allow_nan=False)


def parsed(body: object, path: LedgerPath) -> dict[str, Any]:
    """The values that `body_of` wrote; refused if it would have written them otherwise, such as a key twice."""
    try:
        values = json.loads(body) if isinstance(body, str) else None
        right = isinstance(values, dict) and body_of(values) == body
    except (ValueError, RecursionError):
        right = False
    if not right:
        raise damaged(path)
    assert isinstance(values, dict)
    return values


@functools.cache
def _expected_schema() -> list[tuple[str, ...]]:
    """The tables and triggers of a ledger, as SQLite tells them."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        _make_tables(connection)
        return _schema_of(connection)


def _schema_of(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    return [tuple(" ".join(str(one).split()) for one in row) for row in connection.execute(_SCHEMA)]


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in _statements(_TABLES + _KEPT + _COUNTED):
        connection.execute(statement)


def _statements(script: str) -> list[str]:
    """The statements of a script, so that they can run inside one transaction."""
    found, pending = [], ""
    for part in script.split(";"):
        pending += part + ";"
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
