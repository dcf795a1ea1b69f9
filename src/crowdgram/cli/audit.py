"""The command `crowdgram audit`: mechanisms under attack, as a table."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..audit import (
    MUTANTS,
    Case,
    Finding,
    Form,
    SelfTest,
    attack,
    attack_releases,
    attack_sampler,
    cases,
    check_draws,
    check_effort,
    chosen_forms,
    release_cases,
)
from ..mechanisms import Weight
from ..privacy import Adjacency, Guarantee
from .progress import Stages

__all__ = ["Options", "run"]

NUMERIC = ("claimed epsilon", "delta", "at least")
NOISE_KINDS: tuple[tuple[Literal["laplace", "gaussian"], float], ...] = (("laplace", 0.0), ("gaussian", 1e-6))
"""Kinds of noise, with a delta that each can serve."""
FORM_RUNS = 2000
TWIN_RUNS = 1000
"""Releases of each table that a broken twin is caught by, of however many there are of its form."""


@dataclass(frozen=True)
class Options:
    """What to attack, and how hard. mechanisms: None for all. releases: names of whole releases, None for all; each by
    `release_mechanisms`. forms: names of forms to attack from outside. black_box: how many releases of each table for
    attacks from outside; None for FORM_RUNS of forms and no others.
    """

    mechanisms: Iterable[str] | None
    releases: Iterable[str] | None
    release_mechanisms: Iterable[str]
    forms: Iterable[str]
    weights: Iterable[Weight]
    adjacencies: Iterable[Adjacency]
    epsilon: float
    delta: float
    runs: int
    black_box: int | None
    confidence: float
    mutants: bool


@dataclass(frozen=True)
class _Line:
    """One attack and whether it ended as it should."""

    finding: Finding
    verdict: str
    good: bool


def run(options: Options, console: Console, *, as_json: bool) -> bool:
    """Test the sampler, attack, show a table, and tell whether every claim stood and every mutant was caught.

    A sampler that fails its self-test ends the audit: all that follows takes its word.
    """
    check_effort(options.runs, options.confidence)
    chosen, forms = _chosen(options), tuple(chosen_forms(options.forms))
    with Stages(Console(stderr=True)) as stages:
        stages("testing the sampler against exact probabilities")
        tests = [check_draws(kind) for kind, _ in NOISE_KINDS]
        sound = all(test.passed for test in tests)
        lines = [*_lines(chosen, options, stages), *_form_lines(forms, options, stages)] if sound else []
    if as_json:
        plain = [*(_plain_test(test) for test in tests), *(_plain(line) for line in lines)]
        console.print(json.dumps(plain, indent=1), markup=False, highlight=False)
    else:
        for test in tests:
            console.print(_said(test), markup=False, highlight=False, soft_wrap=not console.is_terminal)
        if sound:
            console.print()
            _show(console, lines, options)
    return sound and all(line.good for line in lines)


def _said(test: SelfTest) -> str:
    worst = f"{test.event} at scale {test.scale:.4g}: expected {test.expected:.4f}, seen {test.seen:.4f}"
    if test.passed:
        return f"Sampler of {test.kind} noise: {test.events} probabilities fit. Worst: {worst}."
    return (
        f"Sampler of {test.kind} noise: REFUTED. {worst}; a right sampler is so far off with chance {test.chance:.1g}. "
        "Do not release anything with it: install Crowdgram and NumPy anew."
    )


def _plain_test(test: SelfTest) -> dict[str, object]:
    return {
        "self_test": test.kind,
        "verdict": "stands" if test.passed else "REFUTED",
        "worst_event": test.event,
        "scale": test.scale,
        "expected": test.expected,
        "seen": test.seen,
        "chance": test.chance,
        "events": test.events,
    }


def _chosen(options: Options) -> tuple[Case, ...]:
    """All attacks at once: bad input is refused before the first."""
    return (
        *cases(
            options.epsilon,
            options.delta,
            mechanisms=options.mechanisms,
            weights=options.weights,
            adjacencies=options.adjacencies,
        ),
        *release_cases(
            options.epsilon,
            options.delta,
            names=options.releases,
            mechanisms=options.release_mechanisms,
            weights=options.weights,
            adjacencies=options.adjacencies,
        ),
    )


def _lines(chosen: Iterable[Case], options: Options, stages: Stages) -> Iterator[_Line]:
    cases = list(chosen)
    parts = len(cases) + (len(NOISE_KINDS) + len(MUTANTS) if options.mutants else 0)
    for number, case in enumerate(cases):
        title = f"attacking {case.name} by {case.weight}, {case.claim.adjacency.value}"
        stages(title, number / parts)
        yield _judge(attack(case, runs=options.runs, confidence=options.confidence))
        if options.black_box and case.pairs is None:
            stages(f"{title}, from outside", number / parts)
            yield _judge(attack_releases(case, runs=options.black_box, confidence=options.confidence))
    if not options.mutants:
        return
    for number, (kind, delta) in enumerate(NOISE_KINDS, len(cases)):
        stages(f"attacking the sampler of {kind} noise", number / parts)
        yield _judge(attack_sampler(kind, Guarantee(4.0, delta), confidence=options.confidence))
    for number, mutant in enumerate(MUTANTS, len(cases) + len(NOISE_KINDS)):
        stages(f"attacking {mutant.broken.name}, which is broken on purpose", number / parts)
        found = attack(mutant.broken, runs=options.runs, confidence=options.confidence, pairs=mutant.pairs)
        yield _catch(found, mutant.what)
        yield _judge(attack(mutant.healthy, runs=options.runs, confidence=options.confidence, pairs=mutant.pairs))


def _form_lines(forms: tuple[Form, ...], options: Options, stages: Stages) -> Iterator[_Line]:
    runs = FORM_RUNS if options.black_box is None else options.black_box
    for number, form in enumerate(forms):
        stages(f"attacking {form.name} from outside", number / len(forms))
        yield _judge(attack_releases(form.honest, runs=runs, confidence=options.confidence))
        stages(f"attacking {form.broken.name}, which is broken on purpose", (number + 0.5) / len(forms))
        broken = attack_releases(form.broken, runs=min(runs, TWIN_RUNS), confidence=options.confidence)
        yield _catch(broken, form.what)


def _catch(found: Finding, what: str) -> _Line:
    return _Line(replace(found, how=what), "caught" if found.refuted else "MISSED", found.refuted)


def _judge(finding: Finding) -> _Line:
    return _Line(finding, "REFUTED" if finding.refuted else "stands", not finding.refuted)


def _show(console: Console, lines: list[_Line], options: Options) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("mechanism", "weight", "adjacency", *NUMERIC, "verdict"):
        table.add_column(name, justify="right" if name in NUMERIC else "left", no_wrap=True)
    for line in lines:
        found, claim = line.finding, line.finding.claim
        table.add_row(
            found.name,
            found.weight,
            claim.adjacency.value,
            f"{claim.epsilon:g}",
            f"{claim.delta:g}",
            f"{found.epsilon:.3f}",
            Text(line.verdict, style="" if line.good else "bold red"),
        )
    console.print(table)
    console.print(
        f"\nEach bound holds with {options.confidence:.0%} confidence. A claim that stands was not refuted by these "
        "attacks; the proofs say why it holds.",
        markup=False,
        highlight=False,
        soft_wrap=not console.is_terminal,
    )
    for line in lines:
        if not line.good or line.finding.refuted:
            console.print(
                f"{line.finding.name}: {line.finding.how} ({line.finding.where}).", markup=False, highlight=False
            )


def _plain(line: _Line) -> dict[str, object]:
    finding, claim = line.finding, line.finding.claim
    return {
        "mechanism": finding.name,
        "weight": finding.weight,
        "claim": claim.to_dict(),
        "epsilon_at_least": finding.epsilon if math.isfinite(finding.epsilon) else "infinite",
        "confidence": finding.confidence,
        "verdict": line.verdict,
        "tables": finding.where,
        "how": finding.how,
        "runs": finding.runs,
    }
