"""How many users are needed for an l1 error of alpha, by rows per user: measured, and bounded from both sides.

Each mechanism is run as it is on fresh synthetic tables. `auto` and the paper's algorithm go through
`releases.release`. Laplace and Gaussian noise look at summed counts only, and users who are alike sum up to one
multinomial, so for them the sums are drawn at once (`Crowd.item_counts`) and given to the same noise and the same
estimate: millions of users cost no more than ten.
"""

from __future__ import annotations

import csv
import io
import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Any

import numpy as np
from rich.table import Table

from .. import theory
from ..arrays import Floats, Integers
from ..errors import AccuracyWarning, InvalidArgument
from ..mechanisms.estimate import from_noisy_sums
from ..paper import Paper
from ..privacy import Adjacency, Guarantee, Spending
from ..releases import release
from ..results import Release
from ..synth import Crowd
from ..tables import UNIT
from ..theory import MeasuredUsers, OutOfRange

__all__ = ["COMPARED", "Line", "Question", "as_csv", "as_json", "measure", "tables"]

Announce = Callable[[str], None]

COMPARED = {
    "no-privacy": "no privacy",
    "auto": "auto",
    "paper-tight": "paper, tight",
    "paper": "paper, as printed",
    "laplace": "Laplace",
    "gaussian": "Gaussian",
}
"""What can be measured, with the name to show."""

SERVE_PURE = frozenset({"no-privacy", "auto", "laplace"})
"""Those that can serve delta=0."""

BOUNDS = {
    "any": "any mechanism needs",
    "counts only": "summed counts need (Thm 1)",
    "laplace": "Laplace suffices (Lemma 1)",
    "gaussian": "Gaussian suffices (Lemma 1)",
    "tight": "Theorem 2, tight",
    "paper": "Theorem 2, as printed",
}

_MOST_USERS = 10**9
_REPEAT_SUMS = 10  # runs on sums drawn at once are cheap


@dataclass(frozen=True)
class Question:
    """The problem: its public numbers, and how closely to look."""

    items: int
    alpha: float
    zipf: float
    epsilon: float
    delta: float
    adjacency: Adjacency
    repetitions: int
    step: float
    most_rows: int

    def guarantee(self) -> Guarantee:
        return Guarantee(self.epsilon, self.delta, self.adjacency)

    def crowd(self, users: int, rows: int, seed: int) -> Crowd:
        return Crowd(users=users, rows=rows, items=self.items, zipf=self.zipf, seed=seed)


@dataclass(frozen=True)
class Line:
    """At `rows` rows a user: the users measured by mechanism, and the bounds; None if a theorem does not apply."""

    rows: int
    measured: Mapping[str, MeasuredUsers]
    bounds: Mapping[str, int | None]


def measure(question: Question, rows: Sequence[int], mechanisms: Sequence[str], announce: Announce) -> Iterator[Line]:
    """One line for each number of rows. Bounds come first: they refuse a question that makes no sense."""
    bounds = [_bounds(question, m) for m in rows]
    for m, bound in zip(rows, bounds, strict=True):
        yield Line(m, {name: _measure(question, m, name, announce) for name in mechanisms}, bound)


def _measure(question: Question, m: int, name: str, announce: Announce) -> MeasuredUsers:
    k, alpha = question.items, question.alpha
    on_sums = name in ("no-privacy", "laplace", "gaussian")
    run = _RUNS[name]
    seeds = count(1_000 * m)

    def error_of(_: int, rows: int, users: int, p: Floats) -> float:
        announce(f"{rows} rows a user: {COMPARED[name]} with {users} users")
        estimate = run(question, question.crowd(users, rows, seed=next(seeds)))
        return float(np.abs(estimate - p).sum())

    most = _MOST_USERS if on_sums else max(1, question.most_rows // m)
    naive = k / (alpha * question.epsilon)
    guess = {
        "no-privacy": k / (m * alpha**2),
        "auto": naive / math.sqrt(m),
        "paper-tight": 5 * naive / math.sqrt(m),
        "paper": most,  # its constants ask for more than any table has: whether the largest is enough comes first
        "laplace": naive,
        "gaussian": 3 * naive,
    }[name]
    return theory.measured_users(
        error_of,
        rows=m,
        alpha=alpha,
        distributions=[question.crowd(1, m, seed=0).distribution()],
        repetitions=question.repetitions * (_REPEAT_SUMS if on_sums else 1),
        step=question.step,
        guess=max(1, round(guess)),
        most=most,
    )


def _without_privacy(_: Question, crowd: Crowd) -> Floats:
    shares: Floats = crowd.item_counts() / (crowd.users * crowd.rows)
    return shares


def _laplace(question: Question, crowd: Crowd) -> Floats:
    """`mechanisms.Laplace` with the row cap known, on sums drawn at once."""
    spending = Spending(replace(question.guarantee(), delta=0.0)).open().looks().finish_purely()
    noisy, event = spending.laplace("counts by item", _sums(crowd), bound=UNIT, epsilon=spending.remaining_epsilon())
    return from_noisy_sums(noisy, event, {}).probabilities


def _gaussian(question: Question, crowd: Crowd) -> Floats:
    """`mechanisms.Gaussian` with the row cap known, on sums drawn at once."""
    spending = Spending(question.guarantee()).open().looks().rounds()
    mu = spending.remaining_mu(crowd.items)
    noisy, event = spending.gaussian("counts by item", _sums(crowd), bound=UNIT, mu=mu, non_negative=True)
    return from_noisy_sums(noisy, event, {}).probabilities


def _sums(crowd: Crowd) -> Integers:
    """What `tables.CappedRows` gives for this crowd with a row cap of its rows per user."""
    return crowd.item_counts() * (UNIT // crowd.rows)


def _auto(question: Question, crowd: Crowd) -> Floats:
    return _release(question, crowd, mechanism="auto")


def _paper(question: Question, crowd: Crowd) -> Floats:
    """As printed, so with the cover and the accuracy that the theorem takes for alpha."""
    return _release(question, crowd, mechanism=Paper(alpha=question.alpha), known=True)


def _paper_tight(question: Question, crowd: Crowd) -> Floats:
    """With the accuracy that the mechanism predicts to be best."""
    return _release(question, crowd, mechanism=Paper(constants="tight"), known=True)


def _release(question: Question, crowd: Crowd, *, known: bool = False, **options: Any) -> Floats:
    """A release of a fresh table; `known`: the rows a user are given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)  # that a bound does not apply: here the error is measured
        made: Release = release(
            crowd.table(),
            user="user",
            item="item",
            epsilon=question.epsilon,
            delta=question.delta,
            adjacency=question.adjacency,
            domain=crowd.item_names(),
            max_rows_per_user=crowd.rows if known else None,
            **options,
        )
    return made.probabilities


_RUNS: dict[str, Callable[[Question, Crowd], Floats]] = {
    "no-privacy": _without_privacy,
    "auto": _auto,
    "paper-tight": _paper_tight,
    "paper": _paper,
    "laplace": _laplace,
    "gaussian": _gaussian,
}


def _bounds(question: Question, m: int) -> dict[str, int | None]:
    """Lower bounds for the adjacency asked; upper bounds as the paper has them, for replacing a user."""
    k, alpha, epsilon, delta = question.items, question.alpha, question.epsilon, question.delta
    try:
        found: dict[str, int | None] = {"laplace": theory.laplace_users(k, m, alpha, epsilon)}
        at = (epsilon, delta) if question.adjacency is Adjacency.REPLACE else theory.replaced(epsilon, delta)
        found["counts only"] = theory.counts_only_users(k, m, alpha, *at)
        found["any"] = theory.private_users(k, m, alpha, *at) if delta > 0 else theory.pure_users(k, m, alpha, at[0])
    except OutOfRange as error:
        raise InvalidArgument(str(error), argument=None) from None
    suffices: dict[str, Callable[[], int]] = {
        "gaussian": lambda: theory.gaussian_users(k, m, alpha, epsilon, delta),
        "tight": lambda: theory.joined_users(k, m, alpha, epsilon, delta, "tight"),
        "paper": lambda: theory.joined_users(k, m, alpha, epsilon, delta, "paper"),
    }
    for name, bound in suffices.items():
        try:
            found[name] = bound()
        except OutOfRange:
            found[name] = None
    return found


def tables(lines: Sequence[Line]) -> tuple[Table, Table]:
    """Users measured, and users bounded."""
    measured = _table(["rows a user", *(COMPARED[name] for name in lines[0].measured)])
    for line in lines:
        measured.add_row(f"{line.rows:,}", *(_shown(one) for one in line.measured.values()))
    bounded = _table(["rows a user", *BOUNDS.values()])
    for line in lines:
        bounded.add_row(
            f"{line.rows:,}", *("-" if bound is None else _number(bound) for bound in map(line.bounds.get, BOUNDS))
        )
    return measured, bounded


def _table(columns: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _shown(one: MeasuredUsers) -> str:
    return ("> " if one.more else "") + _number(one.users)


def _number(value: int) -> str:
    return f"{value:,}" if value < 10**7 else f"{value:.1e}"


def as_json(question: Question, lines: Sequence[Line]) -> str:
    """Every figure."""
    document = {**asdict(question), "adjacency": question.adjacency.value}
    document["lines"] = [
        {
            "rows": line.rows,
            "measured": {name: _plain(one) for name, one in line.measured.items()},
            "bounds": dict(line.bounds),
        }
        for line in lines
    ]
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def as_csv(lines: Sequence[Line]) -> str:
    """One row for each figure: rows a user, kind (measured or bound), name, users, error, standard error, more."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("rows", "kind", "name", "users", "error", "standard_error", "more"))
    for line in lines:
        for name, one in line.measured.items():
            writer.writerow((line.rows, "measured", name, *(_plain(one)[key] for key in _COLUMNS)))
        for name, bound in line.bounds.items():
            writer.writerow((line.rows, "bound", name, "" if bound is None else bound, "", "", ""))
    return text.getvalue()


_COLUMNS = ("users", "error", "standard_error", "more")


def _plain(one: MeasuredUsers) -> dict[str, int | float | bool | None]:
    """As a dictionary; what is not a number is None."""
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value for name, value in asdict(one).items()
    }
