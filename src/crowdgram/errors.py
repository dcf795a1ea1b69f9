"""Every error that Crowdgram raises on purpose.

A message says `argument=value: what is needed. What to do.`, without the value if that is long or private. Neither it
nor a field holds a row's content or a figure that depends on the private table.

    CrowdgramError
    ├── InvalidArgument (ValueError)       a parameter is out of range or contradicts another
    │   └── UnknownItem (KeyError)         an item or a group is not in the release
    ├── InvalidTable (ValueError)          a column is missing or has a type that cannot serve
    ├── InvalidDomain (ValueError)         a list of items or groups is empty, repeated or wrong, or tells nothing
    ├── UnreadableSource (OSError)         a file or object cannot be read as a table
    ├── UnwritableTarget (OSError)         a file cannot be written, or is there already
    ├── LedgerFailure (OSError)            a ledger cannot be read, written or trusted
    ├── SignatureFailure (ValueError)      a release is not what was signed, or somebody else signed it
    ├── BudgetExceeded (ValueError)        a release would spend more than its ledger has left: nothing is charged
    ├── MissingDependency (ImportError)    an optional library is not installed
    ├── EngineFailure (RuntimeError)       the engine failed; its message is withheld, as it may quote rows
    └── PrivacyViolation (RuntimeError)    a check of the guarantee failed: a bug, and nothing is returned

    AccuracyWarning (UserWarning)          mostly noise, or a bound on the error does not apply; privacy holds
    PrivacyWarning (UserWarning)           the requested guarantee is weak
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

__all__ = [
    "AccuracyWarning",
    "BudgetExceeded",
    "CrowdgramError",
    "EngineFailure",
    "InvalidArgument",
    "InvalidDomain",
    "InvalidTable",
    "LedgerFailure",
    "MissingDependency",
    "PrivacyViolation",
    "PrivacyWarning",
    "SignatureFailure",
    "UnknownItem",
    "UnreadableSource",
    "UnwritableTarget",
]


class CrowdgramError(Exception):
    """The root of all errors raised on purpose."""

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Fields are given by name, also when an error comes out of another process."""
        fields = {name: value for name, value in vars(self).items() if name != "__notes__"}
        return partial(type(self), **fields), self.args


class InvalidArgument(CrowdgramError, ValueError):
    """A parameter is out of range or contradicts another. argument: its name, or None if none is at fault by itself."""

    def __init__(self, message: str, *, argument: str | None) -> None:
        super().__init__(message)
        self.argument = argument


class UnknownItem(InvalidArgument, KeyError):
    """An item or a group is not in the release. item: which."""

    def __init__(self, message: str, *, argument: str | None, item: object) -> None:
        super().__init__(message, argument=argument)
        self.item = item

    __str__ = Exception.__str__  # a KeyError would show the quoted repr of its message


class InvalidTable(CrowdgramError, ValueError):
    """A column is missing or has a type that cannot serve. column: its name, if one is at fault."""

    def __init__(self, message: str, *, column: str | None = None) -> None:
        super().__init__(message)
        self.column = column


class InvalidDomain(CrowdgramError, ValueError):
    """A list of items or groups is empty, repeated or of the wrong type, or has one item, whose share is 1, with a
    mechanism that measures nothing else. argument: `domain` or `groups`.
    """

    def __init__(self, message: str, *, argument: str) -> None:
        super().__init__(message)
        self.argument = argument


class UnreadableSource(CrowdgramError, OSError):
    """A file or object cannot be read as a table."""


class UnwritableTarget(CrowdgramError, OSError):
    """A file cannot be written, or is there already."""


class LedgerFailure(CrowdgramError, OSError):
    """A ledger cannot be read, written or trusted. path: its file."""

    def __init__(self, message: str, *, path: Path) -> None:
        super().__init__(message)
        self.path = path


class SignatureFailure(CrowdgramError, ValueError):
    """A release is not what was signed, or was signed by another key. path: the file of the release."""

    def __init__(self, message: str, *, path: Path) -> None:
        super().__init__(message)
        self.path = path


class BudgetExceeded(CrowdgramError, ValueError):
    """A release would spend more than its ledger has left. Nothing was charged, and no row was read.

    epsilon, delta: what was asked for. remaining: the largest epsilon that a release like it may still have, 0 if there
    is none; None if that was not worked out, which `Ledger.charge` leaves to `release`.
    """

    def __init__(self, message: str, *, epsilon: float, delta: float, remaining: float | None = None) -> None:
        super().__init__(message)
        self.epsilon = epsilon
        self.delta = delta
        self.remaining = remaining


class MissingDependency(CrowdgramError, ImportError):
    """An optional library is not installed. name: which, as of any ImportError."""

    __reduce__ = ImportError.__reduce__


class EngineFailure(CrowdgramError, RuntimeError):
    """The engine failed while it worked on the table. stage: what it did, or None if that is not known."""

    def __init__(self, message: str, *, stage: str | None = None) -> None:
        super().__init__(message)
        self.stage = stage


class PrivacyViolation(CrowdgramError, RuntimeError):
    """A bug: recorded events exceed the guarantee, or a filter or query looks at other rows. Nothing is returned."""


class AccuracyWarning(UserWarning):
    """The release is mostly noise, or a bound on its error does not apply. The guarantee holds all the same. Depends on
    public and noisy values only.
    """


class PrivacyWarning(UserWarning):
    """The requested guarantee is weak. Depends on public arguments only."""
