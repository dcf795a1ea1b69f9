"""`crowdgram report`: one or several results as a page, and a record for the registry."""

from __future__ import annotations

import hashlib
import html
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import crowdgram
from crowdgram.cli.app import app

from ..results.synthetic import exact, grouped
from ..results.test_reach import made as reach_of


def run(*arguments):
    return CliRunner().invoke(app, ["report", *arguments])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exact([0.5, 0.3, 0.2]).save("one.json")
    exact([0.2, 0.3, 0.5]).save("two.json")
    grouped().save("groups.json")
    reach_of().save("reach.json")
    return tmp_path


def test_one(folder):
    for name in ("one.json", "groups.json", "reach.json"):
        assert run(name, "-o", "page.html", "--force").output == "Wrote page.html.\n"
        text = (folder / "page.html").read_text(encoding="utf-8")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() in text  # of the file that was read


@pytest.mark.usefixtures("folder")
def test_a_file_is_read_once(monkeypatch):
    """Else the page could show one release, and the digest of another that took its place meanwhile."""
    seen = []

    def watched(read):
        return lambda path, *given, **named: seen.append(path) or read(path, *given, **named)

    for name in ("read_bytes", "read_text"):
        monkeypatch.setattr(Path, name, watched(getattr(Path, name)))
    assert run("one.json", "-o", "page.html").exit_code == 0
    assert run("one.json", "--registry", "-o", "entry.yaml").exit_code == 0
    assert seen.count(Path("one.json")) == 2  # by each


def test_several(folder):
    assert run("one.json", "two.json", "reach.json", "-o", "page.html").exit_code == 0
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert "Releases compared" in text
    assert all(f"<bdi>{name}</bdi>" in text for name in ("one", "two", "reach"))
    done = run("one.json", "one.json", "--label", "first", "--label", "<b>", "-o", "page.html", "--force", "--quiet")
    assert done.output == ""
    assert "<bdi>&lt;b&gt;</bdi>" in (folder / "page.html").read_text(encoding="utf-8")


def test_a_record(folder):
    assert run("one.json", "--registry", "-o", "entry.yaml").output == "Wrote entry.yaml.\n"
    found = yaml.safe_load((folder / "entry.yaml").read_text(encoding="utf-8"))
    assert found["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == 1.0
    (folder / "operator.yaml").write_text("deployment: {basic: {name: Mine}}")
    printed = run("one.json", "--registry", "--operator", "operator.yaml", "-o", "-")
    assert yaml.safe_load(printed.stdout)["deployment"]["basic"]["name"] == "Mine"
    assert not (folder / "-").exists()


@pytest.mark.slow
def test_a_record_of_a_release_that_a_ledger_holds(folder):
    crowdgram.synth.Visits(seed=1).write("visits.csv")
    crowdgram.Ledger.create("visits.ledger", 3.0, 1e-6)
    made = crowdgram.release(
        "visits.csv", user="user", item="page", epsilon=1.0, delta=1e-7, ledger="visits.ledger"
    )  # fmt: skip
    made.save("charged.json")
    printed = run("charged.json", "--registry", "--ledger", "visits.ledger", "-o", "-")
    assert printed.exit_code == 0, printed.output
    found = yaml.safe_load(printed.stdout)["deployment"]
    assert "holds all releases of the table to epsilon=3" in found["deployment_model"]["release_type_details"]
    assert "Epsilon spent so far" in found["implementation"]["composition"]
    assert found["basic"]["publication_date"] == made.parameters["released_on"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("one.json", "-o", "page.yaml"), "must end in .html"),
        (("one.json", "--registry", "-o", "page.html"), "must end in .yaml"),
        (("one.json", "--operator", "o.yaml", "-o", "page.html"), "needs --registry"),
        (("one.json", "--ledger", "l", "-o", "page.html"), "needs --registry"),
        (("one.json", "--registry", "--title", "x", "-o", "-"), "--title: is for a page"),
        (("one.json", "two.json", "--registry", "-o", "-"), "Give one file"),
        (("one.json", "--registry", "--operator", "none.yaml", "-o", "-"), "cannot be read"),
        (("one.json", "--registry", "--ledger", "none", "-o", "-"), "none"),
        (("one.json", "two.json", "--label", "a", "-o", "page.html"), "is given 1 times for 2 releases"),
        (("one.json", "two.json", "--label", "a", "--label", "a", "-o", "page.html"), "names two releases"),
        (("one.json", "reach.json", "--measure", "counts", "-o", "page.html"), "is a reach"),
        (("one.json", "none.json", "-o", "page.html"), "none.json"),
    ],
)
def test_what_is_refused_writes_nothing(folder, arguments, said):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert said in html.unescape(" ".join(result.stderr.split()))
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
