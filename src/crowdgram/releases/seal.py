"""What an error takes along when it leaves a release: its message, and nothing that it came through."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ..errors import CrowdgramError, EngineFailure
from ..interrupts import noted

__all__ = ["sealed", "sealed_then"]

P = ParamSpec("P")
T = TypeVar("T")


def sealed_then(after: Callable[[Any], None]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """`sealed`, and `after` called with what was returned, outside the seal."""

    def decorate(call: Callable[P, T]) -> Callable[P, T]:
        return sealed(call, after)

    return decorate


def sealed(call: Callable[P, T], after: Callable[[Any], None] | None = None) -> Callable[P, T]:
    """Let errors out of `call` without the frames and errors behind them. `after` is called with what it returned.

    A traceback holds the variables of every frame that it passed, exact sums among them, and error reporters print
    them. So our errors start a new traceback here, with no cause and no context; an error that nobody foresaw, whose
    message may quote rows and whose kind may depend on them, becomes an `EngineFailure` that says neither. What a
    caller's own `progress` raises is passed on as it is. Ctrl-C is a `KeyboardInterrupt`, whatever the engine made of
    it.
    """

    signature = inspect.signature(call)

    @functools.wraps(call)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        signature.bind(*args, **kwargs)  # an argument too many or too few is the caller's ordinary TypeError
        callers: list[BaseException] = []
        progress: Any = kwargs.get("progress")
        if callable(progress):

            def watched(stage: str) -> None:
                try:
                    progress(stage)
                except BaseException as error:
                    callers.append(error)
                    raise

            kwargs["progress"] = watched
        left: BaseException | None = None
        with noted() as raised:
            try:
                made = call(*args, **kwargs)
            except (CrowdgramError, ImportError) as error:
                left = error
            except Exception as error:
                if any(error is one for one in callers):
                    raise
                left = EngineFailure(
                    "an unexpected error stopped the release; what it is stays untold, because that may depend on "
                    "rows. Nothing was released. Please report it."
                )
            except BaseException as error:
                if any(error is one for one in callers):
                    raise
                left = error
        del args, kwargs  # the table itself, where it is a frame: it is the caller's, and in the caller's frames
        if left is None:
            if after is not None:
                after(made)
            return made
        left = raised[-1] if raised else left
        left.__cause__ = left.__context__ = left.__traceback__ = None
        raise left

    return run
