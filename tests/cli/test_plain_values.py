"""Values that are converted without pydantic are those that Typer has."""

from __future__ import annotations

import copy
import os

import pytest
import typer
from typer.main import get_command

from crowdgram.adjacency import Adjacency
from crowdgram.cli.app import app
from crowdgram.cli.plain_values import _NOT_PLAIN, _plain, with_plain_values

NUMBERS = [
    "0",
    "1",
    "7",
    "007",
    "-1",
    "+1",
    "1.5",
    "1.",
    ".5",
    "1e-6",
    "1E3",
    "1e400",
    "1_000",
    " 2",
    "nan",
    "inf",
    "٣",
]
WORDS = ["", "-", "rows", "ROWS", "replace", "add-remove", "visits.csv", "a b", "naïve", "\udcff", "True", "10" * 20]
GIVEN = [None, *NUMBERS, *WORDS, 0, 3, 10, 0.5, float("inf"), True, Adjacency.REPLACE]


def commands(group, name=""):
    for each in group.commands.values():
        if hasattr(each, "commands"):
            yield from commands(each, f"{name} {each.name}")
        else:
            yield f"{name} {each.name}".strip(), each


COMMANDS = dict(commands(get_command(app)))
BARE = {name: copy.deepcopy(command.params) for name, command in COMMANDS.items()}  # before anybody has asked for them


def outcome(parameter, context, value):
    try:
        found = parameter.process_value(context, value)
    except Exception as error:  # noqa: BLE001 (a bad or missing value; an older Typer has more to say of an odd one)
        return type(error), str(error)
    return type(found), repr(found)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_has_the_value_that_typer_has(name, tmp_path):
    command = COMMANDS[name]
    unreadable = tmp_path / "unreadable"
    unreadable.touch(mode=0)
    several = [(), ("a",), ("a", "b"), ("1", "x"), [str(tmp_path)]]
    context = typer.Context(command)
    for ours, theirs in zip(with_plain_values(copy.deepcopy(BARE[name])), BARE[name], strict=True):
        multiple = getattr(ours, "multiple", False) or ours.nargs == -1
        values = [None, *several] if multiple else [*GIVEN, str(tmp_path), str(unreadable), ours.default]
        for value in values:
            assert outcome(ours, context, value) == outcome(theirs, context, value), (ours.name, value)


def test_what_a_release_is_given_is_plain():
    given = {"source": "a.csv", "user": "user", "item": ("page",), "epsilon": "0.5", "delta": "1e-6", "weight": "users"}
    given |= {"output": "r.json", "top": "3", "max_rows_per_user": "12", "adjacency": "replace", "domain": ("p.txt",)}
    for one in BARE["release"]:
        described = getattr(one, "type_descriptor", None)
        if described is None:
            pytest.skip("this Typer converts values without pydantic")
        value, several = given.get(one.name, one.default), getattr(one, "multiple", False)
        plain = _plain(value, described.annotation, described.parameter_info, several=several)
        assert plain is not _NOT_PLAIN or type(value) is bool, one.name  # of a flag Typer takes it as it is


def test_what_is_not_readable_is_left_to_typer(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    [output] = [one for one in with_plain_values(copy.deepcopy(BARE["release"])) if one.name == "output"]
    with pytest.raises(typer.BadParameter, match="not readable"):
        output.process_value(typer.Context(COMMANDS["release"]), str(tmp_path))
