"""A release as an entry of the Differential Privacy Deployments Registry, in YAML. Costs no privacy.

The fields are those of the registry's own schema, of its highest tier (`schemas/deployments-schema.yaml` of
opendp/deployments-registry-data, as of October 2026). What a reviewer by NIST SP 800-226 asks beyond them (bias, small
items, common epsilon) stands in the fields for details. What only the operator knows is left empty, with a comment that
says so, unless the operator gives it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml

from ..errors import InvalidArgument, UnreadableSource
from ..escaping import printable
from ..privacy import Ledger
from ..results.grouped import GroupedRelease
from ..results.grouped_reach import GroupedReach
from ..results.reach import Reach
from ..results.release import Release
from .facts import facts

__all__ = ["read_operator", "record"]

_FIXED = ("variant_name", "privacy_parameters", "number_of_privacy_units", "tier", "url_slug")
"""Fields that the release states itself, or that follow: an operator may not give them."""
_SECURITY = (
    "Users are added up in bounded integers, and noise is drawn over the integers by exact samplers from "
    "the operating system's generator, so that no floating-point number of the table is noised. Engine errors, which "
    "may quote rows, are withheld. How long a release takes and how much memory it needs are not protected: releases "
    "are to be run where untrusted parties cannot measure these."
)


@dataclass(frozen=True)
class Field:
    """A field of the record. value: None if only the operator knows it. ask: what the operator should write or add."""

    value: Any = None
    ask: str | None = None


def record(
    result: Release | GroupedRelease | Reach | GroupedReach,
    *,
    operator: Mapping[str, Any] | None = None,
    ledger: Ledger | None = None,
    digest: str | None = None,
) -> str:
    """The record as YAML. operator: what `read_operator` read. ledger: the one that the release was charged to."""
    known = facts(result, ledger)
    fields = _fields(known, digest)
    if operator is not None:
        fields = _given(fields, operator, "")
    missing = sum(1 for _ in _asked(fields))
    left = "All fields are filled in." if not missing else f"{missing} fields are left for you: they say so."
    head = (
        "# An entry for the Differential Privacy Deployments Registry (https://registry.opendp.org), tier 3.\n"
        f"# Written by Crowdgram from the release itself. {left}\n"
    )
    return head + "".join(_lines(fields, 0))


def read_operator(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What an operator knows, from a YAML file with fields of the record, nested as there."""
    try:
        with open(path, encoding="utf-8") as file:
            found = yaml.safe_load(file)
    except OSError as error:
        raise UnreadableSource(f"--operator {os.fspath(path)!r} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError):
        raise UnreadableSource(f"--operator {os.fspath(path)!r}: needs to be YAML in UTF-8.") from None
    if not isinstance(found, dict) or not found:
        raise InvalidArgument(
            f"--operator {os.fspath(path)!r}: needs fields of the record, such as 'deployment:'. Write the record "
            "without it first, and take the fields from there.",
            argument="--operator",
        )
    return found


def _fields(known: Mapping[str, Any], digest: str | None) -> dict[str, Any]:
    """The whole record, section by section, in the order of the registry's template."""
    ledger, users, unit = known["ledger"], known["users"], known["unit"]
    every = None if ledger is None else ledger["every"]
    many = every is not None or (ledger is not None and ledger["releases"] > 1)
    parameters = {"epsilon": known["epsilon"], **({"delta": known["delta"]} if known["delta"] else {})}
    return {
        "url_slug": Field(re.sub(r"[^a-z0-9]+", "-", known["question"].lower()).strip("-")[:80] or "release"),
        "deployment": {
            "basic": {
                "name": Field(ask="the name of the data product"),
                "data_curators": Field(
                    ask="who publishes it: a list of data_curator_name and data_curator_type (Government, Industry or "
                    "Nonprofit)"
                ),
                "description": Field(_description(known), "say what the table is about"),
                "intended_use": Field(ask="what it is for"),
                "data_product_type": Field("Summary statistics"),
                "data_product_region": Field(ask="the region that the data describe, or whose laws apply"),
                "data_product_sector": Field(
                    ask="one of Technology, Healthcare, Education, Government, Energy, Finance"
                ),
                "publication_date": Field(known["released_on"], None if known["released_on"] else "as '2026-01-31'"),
            },
            "dp_variant": {
                "variant_name": Field("Approximate DP" if known["delta"] else "Pure DP"),
                "data_domain": Field(
                    f"All tables of rows, each of one {unit} and one item, with any number of rows of each {unit}.",
                    "add what the rows are, and over which time",
                ),
                "unprotected_quantities": Field("\n".join(f"- {one}" for one in known["unprotected"])),
            },
            "privacy_loss": {
                "privacy_unit": Field(
                    f"{unit.capitalize()}-level" if every is None else f"{unit.capitalize()}-{every}"
                ),
                "privacy_unit_details": Field(_unit(known)),
                "number_of_privacy_units": Field(
                    None if users is None else max(round(users["value"]), 0),
                    f"about how many {unit}s there are; the release did not measure it" if users is None else None,
                ),
                "privacy_parameters": Field(parameters),
                "privacy_parameters_details": Field(_parameters(known)),
            },
            "deployment_model": {
                "model_name": Field("Central"),
                "model_name_details": Field(
                    "The curator holds the table and runs Crowdgram on it. What leaves is the release alone."
                ),
                "trust_assumptions": Field(
                    "Whoever runs the release is trusted with the table, with the code and with not releasing it again "
                    "outside of the accounting. Readers are not trusted: they may know anything else."
                ),
                "actors": Field(ask="who holds the table, who runs releases, who reads them"),
                "release_type": Field(
                    "Many releases" if many else "One release",
                    None if ledger is not None else "One release or Many releases; give the ledger if there is one",
                ),
                "release_type_details": Field(_releases(known), None if ledger else "say whether there will be more"),
                "data_source_type": Field(
                    "Dynamic" if every else None, None if every else "Static or Dynamic: whether new data come in"
                ),
                "data_source_type_details": Field(
                    f"Rows are released by {every}." if every else None, None if every else "how often, if they do"
                ),
                "access_type": Field("Non-interactive"),
                "access_type_details": Field("Readers get the finished release, and cannot query the table."),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": Field(
                    f"Contribution bounds: {known['contribution_bounds']} Whatever is chosen by looking at the table "
                    "is chosen by noisy pilot queries, which are part of the budget.",
                    "add what was done to the table before, and how epsilon and delta were chosen",
                ),
                "mechanisms": Field(_mechanisms(known), "add how the table itself is protected"),
                "composition": Field(_composition(known)),
                "post_processing": Field(known["post_processing"]),
                "justification": Field(known["chosen"], "add why this epsilon, delta and unit"),
                "utility": Field(
                    f"- {known['utility']}\n- Bias of clipping: {known['clipping_bias']}\n"
                    f"- Small items: {known['small_items']}"
                ),
                "additional_information": Field(_additional(known, digest)),
            },
            "administrative": {
                "evidence_sources": Field(
                    ask="publications about the deployment, by keys of your own; or leave it out"
                ),
                "status": Field("Draft"),
                "registry_authors": Field(ask="who filled in this entry: a list of names"),
                "tier": Field(3),
            },
        },
    }


def _description(known: Mapping[str, Any]) -> str:
    return f"{known['question']}: {known['items']:,} figures, with intervals and a predicted error."


def _unit(known: Mapping[str, Any]) -> str:
    said = [known["adjacent_tables"]]
    ledger = known["ledger"]
    if ledger is not None and ledger["every"] is not None:
        said.append(f"The budget is for the rows of one {known['unit']} in one {ledger['every']}.")
        if ledger["overall"] is not None:
            overall = ledger["overall"]
            said.append(
                f"All rows of one {known['unit']}, of all periods, are protected by an overall limit of "
                f"epsilon={overall['epsilon']:g}, delta={overall['delta']:g}."
            )
        else:
            said.append("There is no overall limit for one who is in all periods.")
        if ledger["periods_by_operator"]:
            said.append("For some releases the operator answers for which rows are of a period.")
    return " ".join(said)


def _parameters(known: Mapping[str, Any]) -> str:
    lines = [
        f"- {known['guarantee']}",
        f"- Original parameters: mu={known['mu']:.6g} of all Gaussian noise (Gaussian DP), and epsilon="
        f"{known['pure_epsilon']:.6g}, the sum over all pure draws.",
    ]
    if known["threshold_delta"]:
        lines.append(f"- The threshold for items takes {known['threshold_delta']:.3g} of delta.")
    at, common = known["common_delta"], known["epsilon_at_common_delta"]
    lines.append(
        f"- At delta={at:g} there is no finite epsilon."
        if common is None
        else f"- At delta={at:g}, all draws together have epsilon={common:.6g}."
    )
    return "\n".join(lines)


def _releases(known: Mapping[str, Any]) -> str:
    ledger, period = known["ledger"], known["period"]
    if ledger is None:
        return "" if period is None else f"It is the release of the period {period} of a ledger with periods."
    budget = f"epsilon={ledger['epsilon']:g}, delta={ledger['delta']:g}"
    if ledger["every"] is None:
        return (
            f"A ledger holds all releases of the table to {budget} together, for ever, and refuses a release that "
            f"would exceed it. So far {ledger['releases']} were charged."
        )
    return (
        f"A ledger holds the releases of each {ledger['every']} to {budget}, and refuses one that would exceed it: the "
        f"budget is new with each {ledger['every']}. So far {ledger['releases']} were charged."
    )


def _composition(known: Mapping[str, Any]) -> str:
    ledger, said = known["ledger"], [known["composition"]]
    if ledger is None:
        if known["period"] is not None:
            said.append(f"It was charged to the period {known['period']} of a ledger.")
        return " ".join(said)
    said.append("Releases are composed by a privacy filter, so that each may depend on the results of those before.")
    if isinstance(ledger["spent"], dict):
        each = ", ".join(f"{period}: {spent:.4g}" for period, spent in ledger["spent"].items())
        said.append(f"Epsilon spent by period, at delta={ledger['delta']:g}: {each or 'none'}.")
        if ledger["spent_overall"] is not None:
            said.append(f"For one who is in all periods: {ledger['spent_overall']:.4g}.")
    else:
        said.append(f"Epsilon spent so far, at delta={ledger['delta']:g}: {ledger['spent']:.4g}.")
    return " ".join(said)


def _mechanisms(known: Mapping[str, Any]) -> str:
    lines = []
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for draw in known["draws"]:
        kinds.setdefault(draw["kind"], []).append(draw)
    for kind, draws in kinds.items():
        purposes = ", ".join(
            dict.fromkeys(re.sub(r",? (round|look) \d+|round \d+: ", "", one["purpose"]) for one in draws)
        )
        lines.append(
            f"- {kind[0].upper()}{kind[1:]}, {len(draws)} {'draw' if len(draws) == 1 else 'draws'}: {purposes}."
        )
    parts = ", ".join(f"{one['for'].lower()} {one['share']:.1%}" for one in known["budget"])
    lines.append(f"- Parts of the budget: {parts}.")
    lines.append(f"- Implementation: Crowdgram's mechanism '{known['mechanism']}'. {_SECURITY}")
    versions = ", ".join(f"{name} {version}" for name, version in known["versions"].items())
    lines.append(f"- Versions: {versions or 'not recorded'}.")
    return "\n".join(lines)


def _additional(known: Mapping[str, Any], digest: str | None) -> str:
    said = [f"Question: {known['question']}."]
    if known["rows"] is not None:
        rows = known["rows"]
        said.append(f"Rows that count: about {rows['value']:,.0f} ({rows['lower']:,.0f} to {rows['upper']:,.0f}).")
    if digest is not None:
        said.append(f"SHA-256 of the saved release: {digest}.")
    return " ".join(said)


def _given(fields: Mapping[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields with what the operator gave in their place."""
    made = dict(fields)
    for key, value in given.items():
        path = f"{where}{key}"
        if key not in made:
            raise InvalidArgument(
                f"--operator: {path!r} is no field of the record. Its fields here are {', '.join(fields)}.",
                argument="--operator",
            )
        own = made[key]
        if isinstance(own, Mapping):
            if not isinstance(value, Mapping):
                raise InvalidArgument(f"--operator: {path!r} needs fields of its own.", argument="--operator")
            made[key] = _given(own, value, f"{path}.")
            continue
        if key in _FIXED and own.value is not None:
            raise InvalidArgument(
                f"--operator: {path!r} is what the release says itself. Leave it out.", argument="--operator"
            )
        if value is None or value in ("", [], {}):
            continue
        made[key] = replace(own, value=value, ask=None)
    return made


def _asked(fields: Mapping[str, Any]) -> Iterator[Field]:
    for own in fields.values():
        if isinstance(own, Mapping):
            yield from _asked(own)
        elif own.value in (None, ""):
            yield own


class _Dumper(yaml.SafeDumper):
    """Long texts as blocks, which keep their lines."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """A text that steers no terminal: what could is escaped, but for the breaks between its lines."""
    shown = "\n".join(map(printable, text.split("\n")))
    style = "|" if "\n" in shown or len(shown) > 80 else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", shown, style=style)


_Dumper.add_representer(str, _text)


def _lines(fields: Mapping[str, Any], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for key, own in fields.items():
        if isinstance(own, Mapping):
            yield f"{indent}{key}:\n"
            yield from _lines(own, depth + 1)
            continue
        if own.value in (None, ""):
            yield f"{indent}{key}: ''  # for you: {own.ask or 'more, if there is more'}\n"
            continue
        if own.ask is not None:
            yield f"{indent}# for you: {own.ask}\n"
        text = yaml.dump({key: own.value}, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=10_000)
        yield "".join(f"{indent}{line}\n" if line else "\n" for line in text.splitlines())
