"""`crowdgram paper`, as a person meets it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from typer.testing import CliRunner

from crowdgram import release
from crowdgram.cli import complexity
from crowdgram.cli.app import app
from crowdgram.cli.figures import figure1_panels
from crowdgram.paper import errata
from crowdgram.paper.errata import ERRATA, Erratum, Measured
from crowdgram.privacy import Adjacency
from crowdgram.synth import Crowd
from crowdgram.tables import UNIT
from crowdgram.theory import binomial_distance, counts_only_users, joined_users, laplace_users, private_users, replaced

TINY = ("--items", "3", "--fast", "--repetitions", "1")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["paper", *map(str, arguments)])


def colors(path):
    """The distinct colours of a picture, like "#08519c"."""
    picture = np.rint(matplotlib.image.imread(path)[..., :3] * 255).astype(int)
    return {f"#{one:06x}" for one in np.unique(picture @ [65536, 256, 1])}


# --- figure1


def test_figure1():
    result = run("figure1")
    assert result.exit_code == 0, result.stderr
    assert "m ≤ 20: linear in m: l1 = 0.0016" in result.stdout
    assert "larger m: linear in √m: l1 = 0.0076" in result.stdout
    assert {"#08519c", "#e6550d"} <= colors("figure1.png")  # distances and fits


def test_the_panels_are_exact_and_their_lines_fit():
    small, large = figure1_panels(0.01, 0.011)
    assert small.x.tolist() == list(range(1, 21))
    assert small.distance[4] == pytest.approx(float(binomial_distance(5, 0.01, 0.011)))
    assert large.distance[-1] == pytest.approx(float(binomial_distance(4000, 0.01, 0.011)))
    for panel in (small, large):
        assert panel.explained > 0.99
        left = panel.distance - panel.slope * panel.x - panel.intercept
        assert abs(left.sum()) < 1e-9  # least squares leaves nothing linear
        assert abs(left @ panel.x) < 1e-9
    # By the central limit theorem the slope in sqrt(m) starts at sqrt(2/pi) |p-q| / sqrt(p(1-p)).
    assert large.slope == pytest.approx(np.sqrt(2 / np.pi) * 0.001 / np.sqrt(0.0099), rel=0.07)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--p", "2"), "Theorem 5 needs p and q from 0 to 1"),
        (("--q", "0.01"), "the distance is 0"),
        (("-o", "figure.pdf"), "must end in .png"),
        (("-o", "nowhere/figure.png"), "cannot be written"),
    ],
)
def test_figure1_refuses(arguments, words):
    result = run("figure1", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert list(Path().iterdir()) == []


# --- complexity


@pytest.mark.slow
def test_complexity_from_end_to_end():
    chosen = "no-privacy,auto,laplace,gaussian"
    size = (*TINY, "--alpha", "0.5", "--rows", "9")
    result = run("complexity", *size, "--mechanisms", chosen, "--data", "c.json", "-o", "c.png")
    assert result.exit_code == 0, result.stderr
    for words in ("Users needed for a mean l1 error of 0.5", "no privacy", "Laplace", "Theorem 2, as printed"):
        assert words in result.stdout
    assert "9 rows a user: auto with" in result.stderr
    document = json.loads(Path("c.json").read_text())
    assert (document["items"], document["alpha"], document["adjacency"]) == (3, 0.5, "add-remove")
    assert [line["rows"] for line in document["lines"]] == [9]
    for line in document["lines"]:
        assert list(line["measured"]) == chosen.split(",")
        for one in line["measured"].values():
            assert one["users"] > one["not_enough"]
            assert one["error"] <= 0.5
            assert not one["more"]
        at = replaced(1.0, 1e-6)
        assert line["bounds"] == {
            "laplace": laplace_users(3, line["rows"], 0.5, 1.0),
            "counts only": counts_only_users(3, line["rows"], 0.5, *at),
            "any": private_users(3, line["rows"], 0.5, *at),
            "gaussian": line["bounds"]["gaussian"],
            "tight": joined_users(3, line["rows"], 0.5, 1.0, 1e-6, "tight"),
            "paper": joined_users(3, line["rows"], 0.5, 1.0, 1e-6, "paper"),
        }
    assert {"#08519c", "#e6550d", "#a63603"} <= colors("c.png")  # auto, Laplace, Gaussian


@pytest.mark.slow
def test_complexity_as_csv_and_where_it_gives_up():
    size = (*TINY, "--alpha", "0.01", "--rows", "4,16")
    result = run("complexity", *size, "--mechanisms", "auto", "--most-rows", "64", "--data", "c.csv")
    assert result.exit_code == 0, result.stderr
    assert "> 16" in result.stdout
    assert "more than were tried, which was up to 64 rows" in result.stdout
    lines = list(csv.DictReader(Path("c.csv").read_text().splitlines()))
    measured = [line for line in lines if line["kind"] == "measured"]
    assert [(line["rows"], line["users"], line["more"]) for line in measured] == [
        ("4", "16", "True"),
        ("16", "4", "True"),
    ]
    assert {line["name"] for line in lines if line["kind"] == "bound"} == set(complexity.BOUNDS)


@pytest.mark.slow
def test_the_paper_s_algorithm_is_measured_too():
    size = ("--items", "3", "--alpha", "0.6", "--rows", "9", "--fast", "--repetitions", "1", "--most-rows", "90000")
    result = run("complexity", *size, "--mechanisms", "paper-tight,paper", "--adjacency", "replace", "--data", "c.json")
    assert result.exit_code == 0, result.stderr
    (line,) = json.loads(Path("c.json").read_text())["lines"]
    assert line["measured"]["paper-tight"]["users"] < 10_000
    assert line["measured"]["paper"]["users"] <= 10_000
    assert line["bounds"]["any"] == private_users(3, 9, 0.6, 1.0, 1e-6)  # replaced, as the bounds have it


@pytest.mark.slow
def test_beyond_a_theorem_s_range_there_is_no_bound_but_a_measurement():
    result = run(
        "complexity",
        *TINY,
        "--alpha",
        "0.5",
        "--rows",
        "4,16",
        "--epsilon",
        "2",
        "--delta",
        "0",
        "--mechanisms",
        "laplace,gaussian",
        "--data",
        "c.json",
    )
    assert result.exit_code == 0, result.stderr
    for line in json.loads(Path("c.json").read_text())["lines"]:
        assert line["bounds"]["paper"] is None
        assert line["bounds"]["laplace"] >= line["measured"]["laplace"]["users"]
        assert "gaussian" not in line["measured"]  # it cannot be pure


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_sums_drawn_at_once_get_the_noise_of_a_release(name, adjacency, monkeypatch):
    question = complexity.Question(5, 0.1, 1.0, 0.7, 1e-6, adjacency, 1, 1.25, 10**6)
    crowd = Crowd(users=400, rows=7, items=5, seed=1)
    seen = []
    real = complexity.from_noisy_sums
    # a watch on what is handed on
    monkeypatch.setattr(complexity, "from_noisy_sums", lambda *given: seen.append(given) or real(*given))
    assert complexity._RUNS[name](question, crowd).sum() == pytest.approx(1.0)
    made = release(
        crowd.table(),
        user="user",
        item="item",
        domain=crowd.item_names(),
        epsilon=0.7,
        delta=1e-6,
        adjacency=adjacency,
        mechanism=name,
        max_rows_per_user=7,
    )
    (noisy, event, _) = seen[0]
    assert (event,) == made.events
    deviation = getattr(event, "scale", None) or event.sigma
    assert abs(noisy.sum() - 400 * 7 * (UNIT // 7)) < 60 * deviation * np.sqrt(5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--alpha", "0"), "Lemma 1 (Laplace) needs alpha to be above 0 and at most 1"),
        (("--alpha", "1.5"), "Lemma 1 (Laplace) needs alpha to be above 0 and at most 1"),
        (("--items", "1"), "Lemma 1 (Laplace) needs items to be a whole number of at least 2"),
        (("--epsilon", "0"), "epsilon"),
        (("--delta", "1"), "delta"),
        (("--rows", "10,x"), "--rows '10,x'"),
        (("--rows", "0"), "at least 1"),
        (("--rows", "10000000"), "rows"),
        (("--zipf", "-1"), "zipf"),
        (("--mechanisms", "auto,magic"), "'magic'"),
        (("--repetitions", "0"), "--repetitions is 0"),
        (("--most-rows", "0"), "--most-rows 0"),
        (("--data", "c.txt"), "must end in .json or .csv"),
        (("--output", "nowhere/c.png"), "cannot be written"),
    ],
)
def test_complexity_refuses_before_it_measures(arguments, words, monkeypatch):
    # a watch: measuring takes long
    monkeypatch.setattr(complexity, "_measure", lambda *_: pytest.fail("something was measured"))
    result = run("complexity", *arguments)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert list(Path().iterdir()) == []


# --- errata


def test_errata_with_their_measurements():
    result = run("errata")
    assert result.exit_code == 0, result.stderr
    for erratum in ERRATA:
        assert f"{erratum.number}. {erratum.title}" in result.stdout
    assert result.stdout.count("measured") >= 6
    assert sum(erratum.measure is not None for erratum in ERRATA) == result.stdout.count(", claimed ")


def test_errata_without(monkeypatch):
    broken = Erratum(1, "T[red]itle", "as printed", "as it should be", "privacy", lambda: pytest.fail("measured"))
    monkeypatch.setattr(errata, "ERRATA", (broken,))  # an erratum of another form than the real ones
    result = run("errata", "--no-measure")
    assert result.exit_code == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert lines == [
        ["1.", "T[red]itle"],
        ["breaks", "privacy"],
        ["printed", "as", "printed"],
        ["correct", "as", "it", "should", "be"],
    ]


@pytest.mark.parametrize(("exact", "relation"), [(True, "is 2.5"), (False, "is at least 2.5")])
def test_a_bound_is_not_called_exact(exact, relation, monkeypatch):
    found = Erratum(1, "One", "p", "c", "privacy", lambda: Measured(0.5, 2.5, exact, "by hand"))
    monkeypatch.setattr(errata, "ERRATA", (found,))  # an erratum of another form than the real ones
    assert f"epsilon {relation}, claimed 0.5: by hand" in run("errata").stdout
