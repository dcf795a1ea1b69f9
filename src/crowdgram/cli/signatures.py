"""The commands `sign` and `verify`, and those of `crowdgram keys`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidArgument
from .command import ForceOption, QuietOption
from .streams import is_standard

__all__ = ["SIGNATURE_COMMANDS", "new", "show"]

PASSPHRASE = "CROWDGRAM_PASSPHRASE"
"""The environment variable that has the passphrase of a key, for programs."""


def sign(
    path: Annotated[Path, typer.Argument(help="A saved release.", show_default=False)],
    key: Annotated[Path, typer.Option(help="The private key, as 'crowdgram keys new' wrote it.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write the signature. [default: beside the release, with .sig]"),
    ] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Sign a saved release, so that others can tell that it is yours and unchanged. Costs no privacy."""
    from ..export import sign as sign_file
    from ..export.signing import signature_path

    target = output or signature_path(path)
    if is_standard(target):
        raise InvalidArgument(
            "--output '-': needs to be a file. Leave it out for one beside the release.", argument="--output"
        )
    if target.resolve() in (path.resolve(), key.resolve()):
        raise InvalidArgument(
            f"--output {str(target)!r}: needs to be no input, as that would be overwritten. Give another name.",
            argument="--output",
        )
    public = sign_file(path, key, target, passphrase=_ask, overwrite=force)
    if not quiet:
        _say(f"Signed by {public}. The signature is {target}.")


def verify(
    path: Annotated[Path, typer.Argument(help="A saved release.", show_default=False)],
    key: Annotated[
        str | None,
        typer.Option(help="Public key of somebody you trust: its file, or its text, ed25519:...", show_default=False),
    ] = None,
    signature: Annotated[
        Path | None, typer.Option(help="The signature. [default: beside the release, with .sig]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Check who signed a saved release, that it was not changed since, and that its events keep its guarantee.

    Exits with 1 if it is not what was signed, or somebody else signed it.
    """
    from ..export.signing import check_signature
    from .asking import say_on_error

    found = check_signature(path, key, signature)
    g, head = found.release.guarantee, found.release.ledger_head
    if key is None:
        say_on_error(
            f"warning: no --key was given, so the signature may be anybody's. Ask whoever published the release "
            f"whether {found.key} is their key.",
            "yellow",
        )
    if as_json:
        values = {"key": found.key, "trusted": key is not None, "guarantee": g.to_dict()}
        typer.echo(json.dumps({**values, "ledger": None if head is None else head.to_dict()}))
    elif not quiet:
        _say(f"{path} is what {found.key} signed.")
        _say(f"Its events keep its guarantee: epsilon {g.epsilon:g}, delta {g.delta:g}, {g.adjacency.value}.")
        if head is not None:
            _say(f"It is charge {head.number} of the ledger {head.ledger[:16]}...")


def new(
    path: Annotated[Path, typer.Argument(metavar="NAME", help="Writes NAME.key and NAME.pub.", show_default=False)],
    passphrase: Annotated[
        bool, typer.Option("--passphrase", help="Ask for a passphrase, and encrypt the key.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Make a key to sign releases with: NAME.key, to be kept secret, and NAME.pub, to be published."""
    from ..export import make_key

    asked = os.environ.get(PASSPHRASE) if passphrase else None
    if passphrase and not asked:
        asked = str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True))
    public = make_key(path, asked)
    if not quiet:
        _say(f"Made {path}.key, which only you can read. Keep it secret.")
        _say(f"Made {path}.pub. Publish it, or this line: {public}")


def show(
    key: Annotated[str, typer.Argument(help="A file of a public or private key.", show_default=False)],
) -> None:
    """Print the public key of a file, as a line of text."""
    from ..export.keys import public_key

    typer.echo(public_key(key))


SIGNATURE_COMMANDS = (sign, verify)


def _ask() -> str:
    return os.environ.get(PASSPHRASE) or str(typer.prompt("Passphrase of the key", hide_input=True, err=True))


def _say(text: str) -> None:
    from rich.console import Console

    from .display import printable

    Console().print(printable(text), markup=False, highlight=False, soft_wrap=True)
