"""A picture that a notebook shows. It needs matplotlib, so it is imported when something is drawn."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["Picture"]


class Picture(Figure):
    """A figure that belongs to no window: a notebook shows it as the value of a cell, and nothing shows it twice.

    Matplotlib's own figures are shown only after pyplot was imported.
    """

    def _repr_png_(self) -> bytes:
        drawn = io.BytesIO()
        self.savefig(drawn, format="png")
        return drawn.getvalue()
