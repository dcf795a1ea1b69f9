"""Ed25519 keys to sign with: PEM files, and public keys as a line of text. The only place that uses `cryptography`."""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..errors import InvalidArgument, MissingDependency, UnreadableSource, UnwritableTarget
from ..shortage import is_shortage
from .writing import write_whole

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["ALGORITHM", "Passphrase", "holds", "make_key", "public_key", "public_text", "read_private", "read_small"]

ALGORITHM = "ed25519"
LARGEST = 2**16
"""Bytes that a file of a key or a signature may have."""
WEAK = frozenset(
    (
        "0" * 64,
        "01" + "0" * 62,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        *(f"{first}{'f' * 60}7f" for first in ("ec", "ed", "ee")),
    )
)
"""Public keys of small order, but for their sign: there are signatures by them that hold for many messages."""

_NEEDED = "needs to be an Ed25519 key in a PEM file. Make one with 'crowdgram keys new'"

Saved = str | os.PathLike[str]
Passphrase = Callable[[], str] | str | None


def make_key(path: Saved, passphrase: str | None = None) -> str:
    """Make a key to sign with: PATH.key, which only its owner can read, and PATH.pub, for everybody, both PEM files.

    passphrase: encrypts the private key. Returns the public key as text, such as "ed25519:9sUO...".
    """
    kinds, s = _library()
    name = os.fspath(path)
    if os.path.basename(name) in ("", ".", "..") or "\x00" in name:
        raise UnwritableTarget(f"path={name!r}: needs to be a name, to which .key and .pub are added. Try 'curator'.")
    private, public = (Path(f"{name}.{kind}") for kind in ("key", "pub"))
    for target in (private, public):
        if os.path.lexists(target):
            raise UnwritableTarget(f"{str(target)!r} exists, and a key is never overwritten. Give another name.")
    made = kinds.Ed25519PrivateKey.generate()
    locked = s.BestAvailableEncryption(_bytes(passphrase)) if passphrase else s.NoEncryption()
    write_whole(private, made.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, locked), private=True)
    try:
        write_whole(public, made.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo))
    except BaseException:
        with contextlib.suppress(OSError):
            private.unlink()  # nothing was signed by it
        raise
    return public_text(made)


def public_key(key: Saved) -> str:
    """A public key as text: from its file, from that of its private key, or from that text itself."""
    if isinstance(key, str) and key.startswith(f"{ALGORITHM}:"):
        _raw(key)
        return key
    kinds, s = _library()
    content = read_small(key)
    with contextlib.suppress(Exception):  # the library raises many kinds for what is no key
        found = s.load_pem_public_key(content)
        if isinstance(found, kinds.Ed25519PublicKey) and _raw(_text(found)):
            return _text(found)
    if b"PUBLIC KEY" in content:
        raise _no_key(key, _NEEDED)
    return public_text(read_private(key))


def read_private(key: Saved, passphrase: Passphrase = None) -> Ed25519PrivateKey:
    """A private key from its PEM file. passphrase: if it is encrypted; or a function that asks for it."""
    kinds, s = _library()
    content = read_small(key)
    if b"PUBLIC KEY" in content:
        raise _no_key(key, "is a public key, and a private one is needed to sign. Give the file that ends in .key")
    found: Any = None
    try:
        found = s.load_pem_private_key(content, password=None)
    except TypeError:  # it is encrypted
        given = passphrase() if callable(passphrase) else passphrase
        if given is None:
            raise _no_key(key, "is encrypted. Give its passphrase, or, for a public key, the file .pub") from None
        with contextlib.suppress(Exception):
            found = s.load_pem_private_key(content, password=_bytes(given))
        if found is None:
            raise _no_key(key, "cannot be decrypted by this passphrase. Try again") from None
    except Exception:  # noqa: BLE001 (the library raises many kinds for what is no key)
        found = None
    if not isinstance(found, kinds.Ed25519PrivateKey):
        raise _no_key(key, _NEEDED)
    return cast("Ed25519PrivateKey", found)


def public_text(key: Ed25519PrivateKey) -> str:
    """The public part of a private key, as text."""
    return _text(key.public_key())


def holds(public: str, signature: bytes, message: bytes) -> bool:
    """Whether a signature is one of the message by the key with this public text."""
    kinds, _ = _library()
    from cryptography.exceptions import InvalidSignature

    try:
        kinds.Ed25519PublicKey.from_public_bytes(_raw(public)).verify(signature, message)
        return True
    except (InvalidSignature, ValueError):
        return False


def read_small(path: Saved) -> bytes:
    """The content of a file that has to be small; no more of it is read."""
    where = os.fspath(path)
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise UnreadableSource(f"{where!r} cannot be read: {error.strerror or type(error).__name__}.") from None
    except ValueError:  # a null character in its name
        raise UnreadableSource(f"{where!r} cannot be read: it is no name of a file.") from None
    if len(content) > LARGEST:
        raise UnreadableSource(f"{where!r} is too large for a key or a signature. Give another file.")
    return content


def _bytes(passphrase: str) -> bytes:
    with contextlib.suppress(UnicodeEncodeError):
        return passphrase.encode()
    raise InvalidArgument("passphrase: needs to be text without lone surrogates.", argument="passphrase")


def _text(public: Any) -> str:
    return f"{ALGORITHM}:{base64.b64encode(public.public_bytes_raw()).decode()}"


def _raw(text: str) -> bytes:
    """The 32 bytes of a public key's text, which has one spelling."""
    with contextlib.suppress(ValueError):
        raw = base64.b64decode(text.removeprefix(f"{ALGORITHM}:"), validate=True)
        weak = len(raw) == 32 and (raw[:31] + bytes([raw[31] & 0x7F])).hex() in WEAK
        if len(raw) == 32 and not weak and text == f"{ALGORITHM}:{base64.b64encode(raw).decode()}":
            return raw
    raise InvalidArgument(
        f"key={text!r:.80}: needs to be '{ALGORITHM}:' and 44 characters, as 'crowdgram keys show' prints it.",
        argument="key",
    )


def _no_key(key: Saved, said: str) -> InvalidArgument:
    return InvalidArgument(f"key={os.fspath(key)!r}: {said}.", argument="key")


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        if is_shortage(error):
            raise
        raise MissingDependency(
            "cryptography is not installed: pip install 'crowdgram[sign]'.", name="cryptography"
        ) from None
    return ed25519, serialization
