"""The file under a ledger: an SQLite database with a rollback journal, to which rows are only added.

Durable means `synchronous=EXTRA`: the journal, the database and the folder are synced, in SQLite's order, before a
transaction counts as committed. SQLite's errors become `LedgerFailure`. Each row has a digest over itself and the row
before it, since SQLite does not notice a flipped bit in a number.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crowdgram.errors import LedgerFailure

__all__ = [
    "PLAIN_VERSION",
    "body_of",
    "damaged",
    "digest_of",
    "make_file",
    "parsed",
    "reading",
    "version_of",
    "writing",
]

PLAIN_VERSION, PERIODS_VERSION = 1, 2
"""Schema versions. A ledger without periods keeps the first, which an older Crowdgram reads too; one with periods would
be misread there.
"""
APPLICATION = 0x43474C47  # "CGLG", at a fixed place of the file
LOCK_SECONDS = 30.0  # seconds that a process waits for another one's transaction

_TABLES = """
CREATE TABLE budget (id INTEGER PRIMARY KEY CHECK (id = 1), body TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE charges (number INTEGER PRIMARY KEY, body TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE settlements (number INTEGER PRIMARY KEY REFERENCES charges, body TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE documents (number INTEGER PRIMARY KEY REFERENCES settlements, content BLOB NOT NULL);
"""
_KEPT = "".join(
    f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'rows are kept'); END;"
    for table in ("budget", "charges", "settlements", "documents")
    for verb in ("UPDATE", "DELETE")
)


def make_file(path: Path, terms: dict[str, Any]) -> None:
    """A new ledger file with its budget, readable by its owner only; whole or not at all."""
    version = PERIODS_VERSION if "every" in terms else PLAIN_VERSION
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600))
    except FileExistsError:
        raise _refused(path, "is there already. Give another name.") from None
    except OSError as error:
        raise _refused(path, f"cannot be made: {error.strerror}.") from None
    try:
        with _connect(path, "rw") as connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _statements(_TABLES + _KEPT):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {version}")
            body = body_of(terms)
            connection.execute("INSERT INTO budget VALUES (1, ?, ?)", (body, digest_of("budget", body)))
            connection.execute("COMMIT")
        _sync_folder(path.parent)
    except BaseException:
        for made in (path, path.with_name(path.name + "-journal")):
            with contextlib.suppress(OSError):
                made.unlink()
        raise


@contextlib.contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A transaction that sees one state of the ledger."""
    _check_file(path)
    mode = "rw" if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else "ro"
    with _connect(path, mode) as connection:
        connection.execute("BEGIN")
        _check_kind(connection, path)
        yield connection
        connection.execute("ROLLBACK")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """A transaction under the lock for writing; on disk when it ends, undone if anything is raised in it."""
    _check_file(path)
    with _connect(path, "rw") as connection:
        connection.execute("BEGIN IMMEDIATE")
        _check_kind(connection, path)
        yield connection
        connection.execute("COMMIT")


@contextlib.contextmanager
def _connect(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """A connection for one transaction; SQLite's errors become ours, and an open transaction is rolled back."""
    failure: LedgerFailure | None = None
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode={mode}", uri=True, timeout=LOCK_SECONDS, isolation_level=None
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


def _failure(path: Path, error: sqlite3.Error) -> LedgerFailure:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return _refused(path, f"another process has used it for {LOCK_SECONDS:g} seconds. Try again.")
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return _refused(path, "it or its folder cannot be written to. Nothing was charged or stored.")
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return _refused(path, "the disk is full or failed. Nothing was charged or stored by this step.")
    if name.startswith("SQLITE_CANTOPEN"):
        return _refused(path, "it or its folder cannot be opened. Check both.")
    if name.startswith("SQLITE_NOTADB"):
        return _refused(path, "needs to be a ledger. Make one with 'crowdgram ledger create'.")
    return damaged(path)


def _refused(path: Path, said: str) -> LedgerFailure:
    return LedgerFailure(f"ledger={str(path)!r}: {said}", path=path)


def damaged(path: Path) -> LedgerFailure:
    """The error for a ledger whose rows cannot be trusted."""
    return _refused(
        path,
        "is damaged, so what was spent is not known. Do not release from this data set against it; "
        "restore a copy only if nothing was charged since.",
    )


def _check_file(path: Path) -> None:
    """A plain file of one name: links would let two processes miss each other's journals."""
    try:
        found = path.lstat()
    except OSError as error:
        raise _refused(
            path, f"cannot be opened: {error.strerror}. Make a ledger with 'crowdgram ledger create'."
        ) from None
    if not stat.S_ISREG(found.st_mode):
        raise _refused(path, "needs to be a file, not a link, a folder or a device. Give the ledger file itself.")
    if found.st_nlink > 1:
        raise _refused(path, "has several names (hard links), and needs one. Remove the others.")
    if found.st_size == 0:
        raise _refused(path, "is empty: it is no ledger, or was never completed. Remove it and make one.")


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION:
        raise _refused(path, "needs to be a ledger. Make one with 'crowdgram ledger create'.")
    version = version_of(connection)
    if version not in (PLAIN_VERSION, PERIODS_VERSION):
        raise _refused(
            path,
            f"has schema version {version}; this Crowdgram reads versions {PLAIN_VERSION} and {PERIODS_VERSION}. "
            "Install a newer Crowdgram.",
        )
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "delete":
        raise _refused(
            path,
            "another program changed its journal, so that it cannot be trusted. Let Crowdgram alone write to a ledger.",
        )


def version_of(connection: sqlite3.Connection) -> int:
    """The schema version of the file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def digest_of(before: str, body: str) -> str:
    """The digest of a row that follows the row with digest `before`."""
    return hashlib.sha256(f"{before}\n{body}".encode()).hexdigest()


def body_of(values: dict[str, Any]) -> str:
    """A row's values as it keeps them."""
    return json.dumps(values, sort_keys=True, allow_nan=False)


def parsed(body: str, path: Path) -> dict[str, Any]:
    """The values that `body_of` wrote."""
    try:
        values = json.loads(body)
    except ValueError:
        raise damaged(path) from None
    if not isinstance(values, dict):
        raise damaged(path)
    return values


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
