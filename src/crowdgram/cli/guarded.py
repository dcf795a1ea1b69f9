"""What becomes of an error: one line on standard error and an exit code."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import typer
from rich.console import Console

from ..errors import CrowdgramError, EngineFailure, PrivacyViolation

__all__ = ["guarded"]

F = TypeVar("F", bound=Callable[..., Any])


def guarded(command: F) -> F:
    """Errors become one line on standard error and an exit code; an unforeseen one shows its kind only."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except (EngineFailure, PrivacyViolation) as error:
            _fail(str(error), 1)
        except CrowdgramError as error:
            _fail(str(error), 2)
        except (typer.Exit, typer.Abort, typer.BadParameter, KeyboardInterrupt):
            raise
        except Exception as error:  # noqa: BLE001 (its message may quote rows)
            _fail(
                f"unexpected {type(error).__name__}; its message is withheld as it may quote rows. Please report it.",
                1,
            )

    return run  # type: ignore[return-value]


def _fail(message: str, code: int) -> NoReturn:
    from .display import printable

    Console(stderr=True, soft_wrap=True).print(
        f"error: {printable(message)}", style="red", markup=False, highlight=False
    )
    raise typer.Exit(code)
