"""`--prior`: a saved release, or a list of items and shares; what is wrong with a file is said before a row is read."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.parquet
import pytest

import crowdgram

from .test_app import folder, release, run

__all__ = ["folder"]


def saved(**options):
    assert release(delta="1e-6", **options).exit_code == 0
    return crowdgram.load("r.json")


@pytest.mark.usefixtures("folder")
def test_a_saved_release_is_a_prior():
    assert release(delta="1e-6", output="last.json").exit_code == 0
    assert saved(prior="last.json").parameters["prior"] == "given"
    made = release(prior="last.json", output="last.json")
    assert made.exit_code == 2
    assert "would overwrite the input 'last.json'" in made.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["known.csv", "known.json", "known.jsonl", "known.parquet"])
def test_a_list_is_a_prior(folder, name):
    rows = [{"item": "item-0000", "share": 0.7}, {"item": "item-0001", "share": 0.3}]
    if name.endswith(".parquet"):
        pa.parquet.write_table(pa.Table.from_pylist(rows), name)
    else:
        texts = {
            "known.csv": "item,share\nitem-0000,0.7\nitem-0001,0.3\n",
            "known.json": json.dumps(rows),
            "known.jsonl": "\n".join(map(json.dumps, rows)),
        }
        (folder / name).write_text(texts[name])
    assert saved(prior=name).parameters["prior"] == "given"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("gone.json", None, "--prior: 'gone.json' cannot be read"),
        ("gone.csv", None, "--prior='gone.csv'"),
        ("other.json", '{"schema": "something"}', "--prior: 'other.json' is not a saved release"),
        ("no-share.csv", "item,count\na,1\n", "column 'share' is not in 'no-share.csv'"),
        ("text.csv", "item,share\na,many\n", "has 'many' in its column 'share'"),
        ("below.csv", "item,share\na,-1\n", r"prior: has -1\.0 for 'a'"),
        ("twice.csv", "item,share\na,1\na,2\n", "prior: has 'a' more than once"),
        ("strange.csv", "item,share\na,1\n", "prior: has none of the items of domain"),
        ("prior.xlsx", "", "--prior='prior.xlsx': is of an unknown kind"),
    ],
)
def test_a_bad_file_is_refused(folder, name, text, said):
    if text is not None:
        (folder / name).write_text(text)
    made = release(prior=name)
    assert made.exit_code == 2
    assert not (folder / "r.json").exists()
    assert re.search(said, made.stderr.replace("\n", " ")), made.stderr


@pytest.mark.usefixtures("folder")
def test_it_is_for_some_mechanisms():
    assert release(output="last.json").exit_code == 0
    made = release(prior="last.json", mechanism="laplace")
    assert made.exit_code == 2
    assert "prior=<Prior>: has no meaning for mechanism='laplace'" in made.stderr
    assert "--prior" in run("release", "--help").stdout
