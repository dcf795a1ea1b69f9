"""What the page can ask for: an estimate, the columns of a table, a check, a release. One thing at a time."""

from __future__ import annotations

import contextlib
import hmac
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .. import releases
from ..errors import AccuracyWarning, InvalidArgument, PrivacyWarning
from ..escaping import printable
from ..export.documents import to_text
from ..planning.quick import RUNS, Estimate, quick_estimate
from ..present.report import page
from ..privacy import Guarantee
from ..releases.checking import check
from .access import unguessable
from .jobs import Job, number, optional, path, read_job, whole
from .schema import columns_of

__all__ = ["Busy", "Made", "Repeated", "Work"]


class Busy(Exception):
    """A release is being made already."""


class Repeated(Exception):
    """The page has made this release before. made: how many it has made, which says so if it is meant."""

    def __init__(self, place: int, made: int) -> None:
        super().__init__(
            f"Release {place} of this page asked for the same, and nothing was spent now. Another one spends the "
            "budget again: press Release once more if you mean it."
        )
        self.made = made


@dataclass(frozen=True)
class Made:
    """A release that is made: its number on this page, its name in addresses, its report (empty if it could not be
    drawn), its file, and what was said of it.
    """

    place: int
    name: str
    job: Job
    report: str
    document: str
    warnings: tuple[str, ...]

    def shown(self) -> dict[str, Any]:
        """What the page's script needs to show it."""
        return {
            "place": self.place,
            "at": f"/releases/{self.name}",
            "report": bool(self.report),
            "warnings": list(self.warnings),
        }


class Work:
    """The state of a page: which releases it has made, and what is going on."""

    def __init__(self) -> None:
        self.made: list[Made] = []
        self.stage = ""
        self._uncharged: list[Guarantee] = []
        self._releasing = threading.Lock()
        self._turn = threading.Lock()  # warnings are caught for the whole process, so nothing else may run meanwhile
        self._estimate = lru_cache(maxsize=4096)(quick_estimate)

    def estimate(self, form: Mapping[str, Any]) -> dict[str, Any]:
        """The error to expect, from public figures."""
        asked = _crowd(form)
        with self._turn:
            found = self._estimate(**asked)
        return {**_figures(found), "settings": _settings(asked)}

    def columns(self, form: Mapping[str, Any]) -> dict[str, Any]:
        source, table = path(form, "table", "the path of a table"), optional(form, "database_table")
        with self._turn:
            found = columns_of(source, table)
        return {"columns": None if found is None else [[name, kind] for name, kind in found.items()]}

    def copies(self, form: Mapping[str, Any]) -> dict[str, Any]:
        """The job as a command and as Python; the lists that were pasted, for download. The table is not opened."""
        job = read_job(form)
        lists = {one.saved_as: one.pasted for one in (job.domain, job.groups) if one is not None}
        return {
            "command": job.command(),
            "python": job.python(),
            "lists": {name: "\n".join(pasted) + "\n" for name, pasted in lists.items() if pasted is not None},
        }

    def check(self, form: Mapping[str, Any]) -> dict[str, Any]:
        """What a release would refuse, and the error to expect. No row is read, and nothing is charged."""
        job = read_job(form)
        with self._turn, _own_warnings() as caught:
            checked = check(
                job.given_table,
                guarantee=Guarantee(job.epsilon, job.delta),
                ledger=job.open_ledger(),
                **job.arguments(),
            )
            said = [printable(one) for one in (*(str(one.message) for one in caught), *checked.sentences())]
            if not form.get("users") or not form.get("rows_per_user"):
                return {"sentences": [*said, "For the planned error, say how many users and rows there may be."]}
            if checked.items == 1:
                return {"sentences": [*said, "With one item, there is no error of shares to plan."]}
            crowd = _crowd({**form, "items": form.get("items") if checked.items is None else checked.items})
            if checked.items is None:
                crowd["discovery_share"] = checked.discovery_share
                said.append(
                    f"Planned for {crowd['items']:,} items, all of them found, with {checked.discovery_share:.0%} of "
                    "the budget spent on finding them."
                )
            found = self._estimate(**crowd)
        return {"sentences": [*said, *found.sentences()], "settings": _settings(crowd)}

    def release(self, form: Mapping[str, Any]) -> dict[str, Any]:
        """Make a release, and keep it. It is spent from here on, whatever the browser does.

        again: for a job that was released before, how many releases the page has made. So a request that is sent twice,
        by a second click or by a browser that tries again, is answered once.
        """
        job = read_job(form)
        if not self._releasing.acquire(blocking=False):
            raise Busy
        try:
            same, again = [one.place for one in self.made if one.job == job], form.get("again")
            if same and (again is True or again != len(self.made)):
                raise Repeated(same[-1], len(self.made))
            with self._turn:
                made = self._release(job)
                self.made.append(made)
        finally:
            self.stage = ""
            self._releasing.release()
        return {**made.shown(), "spent": self.spent()}

    def list_made(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """The releases of this page, for a browser that loads it again; and what is going on."""
        running = self._releasing.locked()  # before the list, so that one that ends meanwhile is not missed
        return {
            "made": [one.shown() for one in self.made],
            "spent": self.spent(),
            "running": running,
            "stage": self.stage,
        }

    def find(self, name: str) -> Made | None:
        return next((one for one in self.made if hmac.compare_digest(one.name.encode(), name.encode())), None)

    def _release(self, job: Job) -> Made:
        with _own_warnings() as caught:
            made: Any = releases.release(
                job.given_table,
                epsilon=job.epsilon,
                delta=job.delta,
                ledger=job.open_ledger(),
                progress=self._report,
                **job.arguments(),
            )
            if job.ledger is None:
                self._uncharged.append((made if job.by is None else made.joint).guarantee)
            self.stage = "writing the report"
            document, report = to_text(made), ""
            with contextlib.suppress(Exception):  # what is paid for is kept, whatever becomes of its report
                report = page(made)
            said = [printable(str(one.message)) for one in caught]
            if not report:
                said.append("The report could not be drawn. The release is made: download it, and report this, please.")
            return Made(len(self.made) + 1, unguessable(), job, report, document, tuple(said))

    def _report(self, stage: str) -> None:
        self.stage = str(stage)

    def spent(self) -> str:
        """What the releases of this page add up to, for a user who is in all of their tables."""
        free = self._uncharged
        if not free:
            return ""
        epsilon, delta = sum(one.epsilon for one in free), sum(one.delta for one in free)
        many = "1 release" if len(free) == 1 else f"{len(free)} releases"
        return (
            f"Without a ledger, this page has made {many}: for a user who is in all of them, epsilon={epsilon:g} and "
            f"delta={delta:g} together. A ledger keeps count for you, and adds up tighter."
        )


@contextlib.contextmanager
def _own_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """What the library warns of meanwhile, to be shown on the page and nowhere else."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        for category in (AccuracyWarning, PrivacyWarning):
            warnings.simplefilter("always", category)
        yield caught


def _crowd(form: Mapping[str, Any]) -> dict[str, Any]:
    weight = form.get("weight") or "rows"
    if weight not in ("rows", "users"):
        raise InvalidArgument(f"weight={weight!r:.40}: needs to be 'rows' or 'users'.", argument="weight")
    asked = {
        "users": whole(form, "users"),
        "rows_per_user": number(form, "rows_per_user"),
        "items": whole(form, "items"),
        "epsilon": number(form, "epsilon"),
        "delta": number(form, "delta", 0.0),
        "weight": weight,
    }
    presets = {name: str(form.get(name) or "typical").replace("-", " ") for name in ("tails", "tastes")}
    return {**asked, **presets}


def _figures(found: Estimate) -> dict[str, Any]:
    return {
        "l1_error": found.auto.l1_error,
        "population_error": found.auto.population_error,
        "sampling_error": found.sampling.sampling_error,
        "within": found.auto.within,
        "share": found.share,
        "sentences": found.sentences(),
    }


def _settings(asked: Mapping[str, Any]) -> str:
    return (
        f"Estimated for {asked['users']:,} users, {asked['rows_per_user']:,.4g} rows each, {asked['items']:,} items; "
        f"epsilon={asked['epsilon']:g}, delta={asked['delta']:g}, by {asked['weight']}; tails {asked['tails']}, tastes "
        f"{asked['tastes']}. The mean of {RUNS} simulated releases; no table was read."
    )
