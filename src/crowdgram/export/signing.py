"""Signatures of saved releases: Ed25519 over all that a file says, in a file of its own beside it.

What is signed is `canonical` of the file's JSON, not its bytes: blanks, the order of keys and how a number is spelled
may change on the way, and nothing that a reader is told may. docs/reference/signature.md defines it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidArgument, SignatureFailure, UnreadableSource
from ..results.grouped import GroupedRelease
from ..results.grouped_reach import GroupedReach
from ..results.reach import Reach
from ..results.release import Release
from .documents import parse_values
from .json_file import read_document, read_text
from .json_text import document_text
from .keys import ALGORITHM, Passphrase, holds, public_key, public_text, read_private, read_small
from .writing import write_whole

__all__ = ["Verified", "canonical", "check_signature", "sign", "signature_path", "verify"]

SCHEMA, SIGNATURE_VERSION = "crowdgram-signature", 1
CONTEXT = f"{SCHEMA} {SIGNATURE_VERSION}\n".encode()
"""Before what is signed, so that a signature means nothing in any other format or version."""
_KEYS = {"schema", "schema_version", "algorithm", "public_key", "signature"}

Saved = str | os.PathLike[str]


@dataclass(frozen=True)
class Verified:
    """A release whose signature holds. key: the public key that it was signed by, as text."""

    release: Release | GroupedRelease | Reach | GroupedReach
    key: str


def sign(
    path: Saved, key: Saved, output: Saved | None = None, *, passphrase: Passphrase = None, overwrite: bool = False
) -> str:
    """Sign a saved release by a private key, and write the signature to `output`, or beside it as PATH.sig.

    key: a PEM file, as `make_key` writes it. passphrase: of the key, or a function that asks for it. The release is
    read first, as `load` does, so that nothing is signed whose guarantee does not follow from its events. Returns the
    public key as text.
    """
    private = read_private(key, passphrase)
    content, _ = _read(path)
    public = public_text(private)
    document = {
        "schema": SCHEMA,
        "schema_version": SIGNATURE_VERSION,
        "algorithm": ALGORITHM,
        "public_key": public,
        "signature": base64.b64encode(private.sign(CONTEXT + content)).decode(),
    }
    write_whole(output or signature_path(path), document_text(document), overwrite=overwrite)
    return public


def verify(path: Saved, key: Saved, signature: Saved | None = None) -> Release | GroupedRelease | Reach | GroupedReach:
    """Read a saved release whose signature by `key` holds; SignatureFailure if it does not.

    key: the public key of somebody you trust: its file, or its text. signature: its file; PATH.sig if it is not given.
    What is returned is what was verified: the file is read once. As `load` does, it recomputes the guarantee from the
    recorded events.
    """
    if key is None:
        raise InvalidArgument(
            "key=None: needs to be the public key of somebody you trust, or the signature may be anybody's.",
            argument="key",
        )
    return check_signature(path, key, signature).release


def check_signature(path: Saved, key: Saved | None, signature: Saved | None = None) -> Verified:
    """The same, with who signed. Without a key it may be anybody: then it says only that nothing changed since."""
    where, beside = os.fspath(path), signature or signature_path(path)
    trusted = None if key is None else public_key(key)
    stated, signed = _read_signature(beside)
    content, release = _read(path)
    if trusted is not None and trusted != stated:
        raise SignatureFailure(
            f"{where!r} is signed by {stated}, and not by the key that was given, {trusted}. Do not trust it unless "
            "you trust that key.",
            path=Path(path),
        )
    if not holds(stated, signed, CONTEXT + content):
        raise SignatureFailure(
            f"{where!r} is not what was signed: it, or {os.fspath(beside)!r}, was changed. Do not trust it.",
            path=Path(path),
        )
    return Verified(release, stated)


def signature_path(path: Saved) -> Path:
    """Where the signature of a file is, if nobody says otherwise."""
    return Path(f"{os.fspath(path)}.sig")


def canonical(document: dict[str, Any]) -> bytes:
    """The bytes that stand for a JSON document, whoever wrote it: two documents have the same if they say the same.

    Formula: JSON in ASCII, without blanks, keys in the order of their code points, all other characters escaped as
    \\uXXXX, numbers as Python writes them: integers with all digits, others with the fewest digits that give the
    double back.
    """
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def _read(path: Saved) -> tuple[bytes, Release | GroupedRelease | Reach | GroupedReach]:
    """A saved release: what is signed of it, and what it says, from the same bytes."""
    where = os.fspath(path)
    document = read_document(read_text(path), where)
    release = parse_values(document, where)
    with contextlib.suppress(ValueError, RecursionError):  # infinities in a field that nobody reads, and the like
        return canonical(document), release
    raise UnreadableSource(f"{where!r} is a damaged release: it has a number or a depth that JSON does not allow.")


def _read_signature(path: Saved) -> tuple[str, bytes]:
    """The public key that a signature states, and the signature."""
    where = os.fspath(path)
    damaged = UnreadableSource(f"{where!r} is a damaged signature. Get it again from whoever signed.")
    try:
        document = read_document(read_small(path).decode(), where)
    except UnicodeDecodeError:
        raise damaged from None
    if document.get("schema") != SCHEMA:
        raise UnreadableSource(f"{where!r} is no signature of a release. Give the file that 'crowdgram sign' wrote.")
    version, algorithm = document.get("schema_version"), document.get("algorithm")
    if type(version) is not int or version != SIGNATURE_VERSION or algorithm != ALGORITHM:
        raise UnreadableSource(
            f"{where!r} is a signature of version {version!r:.20} by {algorithm!r:.20}; this Crowdgram reads version "
            f"{SIGNATURE_VERSION} by {ALGORITHM!r}. Install a newer Crowdgram."
        )
    with contextlib.suppress(KeyError, TypeError, ValueError):
        stated, signed = document["public_key"], base64.b64decode(document["signature"], validate=True)
        stated = stated if isinstance(stated, str) and stated.startswith(f"{ALGORITHM}:") else f"{ALGORITHM}:"
        if set(document) == _KEYS and len(signed) == 64 and public_key(stated) == stated:
            return stated, signed
    raise damaged
