"""The mechanisms by name: the only list of them."""

from __future__ import annotations

from dataclasses import fields

from ..errors import InvalidArgument
from ..mechanisms import Adaptive, Auto, Gaussian, Laplace, Mechanism, SampleOne
from ..paper import Paper

__all__ = ["MECHANISMS", "as_mechanism", "make_mechanism"]

MECHANISMS: dict[str, type[Mechanism]] = {
    kind.name: kind for kind in (Auto, Adaptive, Laplace, Gaussian, SampleOne, Paper)
}


def as_mechanism(given: object) -> Mechanism:
    """A mechanism of the list, given by its name or as an object with options."""
    if isinstance(given, Mechanism) and type(given) in MECHANISMS.values():
        return given
    if isinstance(given, str) and given in MECHANISMS:
        return MECHANISMS[given]()
    raise InvalidArgument(
        f"mechanism={given!r}: needs to be one of {', '.join(map(repr, MECHANISMS))}, or one with options, such as "
        "crowdgram.Adaptive(rounds=3).",
        argument="mechanism",
    )


def make_mechanism(name: str, **options: object) -> Mechanism:
    """The mechanism of this name, with those of its options that are not None."""
    mechanism = as_mechanism(name)
    given = {option: value for option, value in options.items() if value is not None}
    for option, value in given.items():
        if option not in _options(type(mechanism)):
            others = " or ".join(repr(other) for other, kind in MECHANISMS.items() if option in _options(kind))
            raise InvalidArgument(
                f"{option}={_short(value)}: has no meaning for mechanism={name!r}. Leave it out, or use {others}.",
                argument=option,
            )
    return type(mechanism)(**given)


def _short(value: object) -> str:
    """A value as an error quotes it; of a whole distribution, its type."""
    return repr(value) if isinstance(value, bool | int | float | str) else f"<{type(value).__name__}>"


def _options(kind: type[Mechanism]) -> set[str]:
    return {field.name for field in fields(kind)}
