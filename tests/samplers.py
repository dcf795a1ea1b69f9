"""Samplers for tests, handed to `Spending` or to `releases.pipeline.run` in place of OpenDP's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from crowdgram.privacy import EXACT


def _unused(*_: Any) -> Any:
    pytest.fail("noise was drawn")


@dataclass(frozen=True)
class Scripted:
    """Draws what its functions say: each takes the values and the scale. What has none fails the test."""

    laplace_by: Callable[..., Any] = _unused
    gaussian_by: Callable[..., Any] = _unused
    choose_by: Callable[..., Any] = _unused

    def laplace(self, values, scale, _labels, /):
        return self.laplace_by(values, scale)

    def gaussian(self, values, sigma, _labels, /):
        return self.gaussian_by(values, sigma)

    def choose(self, scores, scale, /):
        return self.choose_by(scores, scale)

    def salt(self):
        return EXACT.salt()


NO_NOISE = Scripted()
"""Fails the test on any draw."""


def exact(values, _scale):
    """The values themselves."""
    return np.asarray(values)


def laplace_for(factor):
    """Laplace noise of another scale than the one that is asked for."""
    return lambda values, scale: EXACT.laplace(values, factor * scale, None)


def gaussian_for(factor):
    """Gaussian noise of another sigma than the one that is asked for."""
    return lambda values, sigma: EXACT.gaussian(values, factor * sigma, None)


@dataclass
class Recording:
    """OpenDP's draws, until `closed`; then none."""

    closed: bool = False
    seen: list[str] = field(default_factory=list)

    def _open(self, kind):
        self.seen.append(kind)
        if self.closed:
            _unused()

    def laplace(self, values, scale, labels, /):
        self._open("laplace")
        return EXACT.laplace(values, scale, labels)

    def gaussian(self, values, sigma, labels, /):
        self._open("gaussian")
        return EXACT.gaussian(values, sigma, labels)

    def choose(self, scores, scale, /):
        self._open("choose")
        return EXACT.choose(scores, scale)

    def salt(self):
        return EXACT.salt()
