"""Exception hygiene: an error leaves a release with its message, and with no variable or error from inside."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from ..errors import CrowdgramError, EngineFailure, PrivacyWarning
from ..interrupts import catch_interrupts
from ..shortage import is_near_limit, is_shortage

__all__ = ["sanitize_errors"]

P = ParamSpec("P")
T = TypeVar("T")


def sanitize_errors(*, then: Callable[[Any], None]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function that reads a private table: its errors leave without the frames and errors behind them.

    A traceback holds the variables of every frame that it passed, exact sums among them, and error reporters print
    them. So our errors start a new traceback here, with no cause and no context. The message of an unexpected error may
    quote rows, and its type may depend on them, so it becomes an `EngineFailure` that says neither. An error that the
    caller's own `progress` raises is passed on as it is, with the frames of `progress` and none of ours. Ctrl-C is a
    `KeyboardInterrupt`, whatever the engine made of it. A `PrivacyWarning` that the caller made an error depends on
    public arguments only, and is passed on.

    then: called with what the function returned; its own errors and warnings are not changed.
    """

    def decorate(call: Callable[P, T]) -> Callable[P, T]:
        return _sanitized(call, then)

    return decorate


def _sanitized(call: Callable[P, T], then: Callable[[Any], None]) -> Callable[P, T]:
    signature = inspect.signature(call)

    @functools.wraps(call)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        signature.bind(*args, **kwargs)  # an argument too many or too few is the caller's ordinary TypeError
        callers: list[tuple[BaseException, TracebackType | None]] = []  # with the frames of `progress`
        progress: Any = kwargs.get("progress")
        if callable(progress):

            def report(stage: str) -> None:
                try:
                    progress(stage)
                except BaseException as error:
                    frames = error.__traceback__  # of this function, and then of `progress`
                    callers.append((error, frames and frames.tb_next))
                    raise

            kwargs["progress"] = report
        left: BaseException | None = None
        with catch_interrupts() as raised:
            try:
                made = call(*args, **kwargs)
            except (CrowdgramError, PrivacyWarning) as error:
                left = error
            except ImportError as error:
                left = _in_our_words(error) if is_shortage(error) else error
            except BaseException as error:  # noqa: BLE001 (it is raised below)
                left = error if any(error is one for one, _ in callers) else _in_our_words(error)
        del args, kwargs  # the table, if it is a frame: it stays in the caller's frames only
        if left is None:
            then(made)
            return made
        left = raised[-1] if raised else left
        own = [frames for error, frames in callers if error is left]
        if own:
            left.__traceback__ = own[-1]
            _clear_behind(own[-1])
        else:
            left.__cause__ = left.__context__ = left.__traceback__ = None
        callers.clear()  # errors that were not the last, with all of their frames
        raised.clear()
        raise left

    return run


def _clear_behind(frames: TracebackType | None) -> None:
    """Take their variables from the frames that called these, which keep them, and have ended."""
    frame = None if frames is None else frames.tb_frame.f_back
    while frame is not None:
        with contextlib.suppress(RuntimeError):  # it still runs: the caller's own
            frame.clear()
        frame = frame.f_back


def _in_our_words(error: BaseException) -> BaseException:
    """What stands for an error that may quote rows; one that is no failure, such as Ctrl-C, stands for itself."""
    if isinstance(error, Exception) and is_shortage(error):
        return EngineFailure(
            "there is too little memory for this release. Nothing was released. Give it more, or ask for fewer items."
        )
    if isinstance(error, Exception) and is_near_limit():
        return EngineFailure(
            "an error stopped the release, and the process has come near the limit of its memory. Details are withheld "
            "because they could reveal rows. Nothing was released. Give it more memory, and report it if that does not "
            "help."
        )
    if isinstance(error, Exception):
        return EngineFailure(
            "an unexpected error stopped the release. Details are withheld because they could reveal rows. "
            "Nothing was released. Please report it."
        )
    return error
