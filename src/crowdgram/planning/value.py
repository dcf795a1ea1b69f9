"""The plan: what comes out. A frozen value, from public figures only."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument
from ..mechanisms import Weight
from ..privacy import Guarantee
from .expected import Bound, Expected

if TYPE_CHECKING:
    import matplotlib.figure

    from ..releases.checking import Checked

__all__ = ["Plan"]


@dataclass(frozen=True, eq=False)
class Plan:
    """The error to expect of a release that is not made yet.

    users, rows_per_user, items: the crowd; rows are a mean. guarantee, weight: as of the release. tails: sigma of
    log-normal rows per user. tastes: the chance that two rows of one user have the same item because they are that
    user's. share: of the item whose error is shown. discovery_share: the part of the budget that finds the items, of
    which all are taken as found; None if they are listed. expected: of `auto`, of plain noise at its best bound, and
    without privacy; none if only a table was checked. bounds: the paper's. target_error, against, solved: what was
    asked for, against which answer, and which value was found for it. checked: what was found right about a table,
    without reading a row of it.
    """

    guarantee: Guarantee
    weight: Weight
    users: int | None = None
    rows_per_user: float | None = None
    items: int | None = None
    tails: float = 0.0
    tastes: float = 0.0
    share: float = 0.01
    expected: tuple[Expected, ...] = ()
    bounds: tuple[Bound, ...] = ()
    target_error: float | None = None
    against: str = "table"
    solved: str | None = None
    checked: Checked | None = None
    discovery_share: float | None = None

    def __getitem__(self, way: str) -> Expected:
        """What to expect of "auto", "laplace", "gaussian" or "no privacy"."""
        for one in self.expected:
            if one.way == way:
                return one
        if not self.expected:
            raise InvalidArgument(
                "users, rows_per_user: were not given, so that the table was checked and nothing was planned. Give "
                "both for an expected error.",
                argument="users",
            )
        listed = ", ".join(repr(one.way) for one in self.expected)
        raise InvalidArgument(f"way={way!r}: needs to be one of {listed}.", argument="way")

    @property
    def epsilon(self) -> float:
        return self.guarantee.epsilon

    @property
    def l1_error(self) -> float:
        """The expected l1 error of a release by `auto`, against the table's own answer."""
        return self["auto"].l1_error

    @property
    def within(self) -> float:
        """What an item of `share` is known to within, by `auto`, in 19 of 20 releases."""
        return self["auto"].within

    def sentences(self) -> list[str]:
        """The plan in words."""
        from .view import sentences

        return sentences(self)

    def plot(self) -> matplotlib.figure.Figure:
        """A picture of the errors to expect, with the paper's bounds."""
        from .view import plot

        return plot(self)

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values, for JSON."""
        return {
            "users": self.users,
            "rows_per_user": self.rows_per_user,
            "items": self.items,
            "guarantee": self.guarantee.to_dict(),
            "weight": self.weight,
            "tails": self.tails,
            "tastes": self.tastes,
            "share": self.share,
            "discovery_share": self.discovery_share,
            "target_error": self.target_error,
            "against": self.against,
            "solved": self.solved,
            "expected": [{**asdict(one), "population_error": one.population_error} for one in self.expected],
            "bounds": [asdict(one) for one in self.bounds],
            "checked": None if self.checked is None else self.checked.to_dict(),
            "sentences": self.sentences(),
        }

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        from .view import html

        return html(self)
