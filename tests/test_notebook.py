"""The example notebook runs from top to bottom, shows what it says, and is kept without outputs."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

import crowdgram

from .notebooks import read_notebook, run_notebook, source_of
from .test_docs import lost_links

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.fixture
def quiet_pictures():
    """Draw without a screen, and leave no figure open."""
    import matplotlib
    import matplotlib.pyplot as plt

    before = matplotlib.get_backend()
    matplotlib.use("agg")
    yield plt
    plt.close("all")
    matplotlib.use(before)


def faults(notebook):
    """What is not as a notebook under version control should be."""
    found = [] if (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5) else ["format"]
    if (
        set(notebook["metadata"]) - {"kernelspec", "language_info"}
        or "version" in notebook["metadata"]["language_info"]
    ):
        found.append("metadata")
    ids = [cell["id"] for cell in notebook["cells"]]
    if len(set(ids)) < len(ids):
        found.append("ids")
    for cell in notebook["cells"]:
        code = cell["cell_type"] == "code"
        if code and (cell["outputs"] != [] or cell["execution_count"] is not None):
            found.append(f"outputs of {cell['id']}")
        if set(cell) != {"cell_type", "id", "metadata", "source", *(("execution_count", "outputs") if code else ())}:
            found.append(f"fields of {cell['id']}")
        if cell["metadata"]:
            found.append(f"metadata of {cell['id']}")
        if not source_of(cell).strip():
            found.append(f"nothing in {cell['id']}")
    return found


def test_there_is_one():
    assert [path.name for path in NOTEBOOKS] == ["notebook.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_it_is_kept_without_outputs(path):
    assert faults(read_notebook(path)) == []


def test_outputs_are_noticed():
    clean = read_notebook(NOTEBOOKS[0])
    place = next(n for n, cell in enumerate(clean["cells"]) if cell["cell_type"] == "code")
    for field, value in (("outputs", [{"output_type": "stream", "text": "1"}]), ("execution_count", 1)):
        kept = copy.deepcopy(clean)
        kept["cells"][place][field] = value
        assert faults(kept) == [f"outputs of {clean['cells'][place]['id']}"]
    kept = copy.deepcopy(clean)
    kept["metadata"]["widgets"] = {}
    kept["cells"][0]["metadata"] = {"scrolled": True}
    assert faults(kept) == ["metadata", f"metadata of {clean['cells'][0]['id']}"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_its_links_lead_somewhere(path):
    text = "\n\n".join(source_of(cell) for cell in read_notebook(path)["cells"] if cell["cell_type"] == "markdown")
    assert "](../docs/tutorial.md)" in text
    assert not lost_links(path, text)


@pytest.mark.slow
def test_every_cell_runs(tmp_path, monkeypatch, quiet_pictures):
    """In order, in an empty folder, with every view that a notebook would show."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ran = run_notebook(read_notebook(NOTEBOOKS[0]), "notebook.ipynb")
    assert len(ran) == sum(cell["cell_type"] == "code" for cell in read_notebook(NOTEBOOKS[0])["cells"])
    kinds = [type(one.value) for one in ran]
    for kind in (crowdgram.Plan, crowdgram.Release, crowdgram.Reach):
        assert kind in kinds  # each shows itself as the last value of a cell
        assert "<table" in ran[kinds.index(kind)].forms["_repr_html_"]
    drawn = [one.forms["_repr_png_"] for one in ran if "_repr_png_" in one.forms]
    assert len(drawn) == 2
    assert all(picture.startswith(b"\x89PNG") for picture in drawn)
    assert len(quiet_pictures.get_fignums()) == 2  # those of matplotlib itself, which a notebook shows by itself
    printed = "".join(one.printed for one in ran)
    assert "minutes a day more than reading, talking and games together" in printed
    assert "has left of its" in printed  # the refusal
    assert ran[-1].value == ["day.json", "diaries.html", "survey.ledger"]


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("1 / 0", ZeroDivisionError),
        ("unknown", NameError),
        ("%matplotlib inline", SyntaxError),
        ("class Odd:\n    def _repr_html_(self):\n        raise ValueError\nOdd()", ValueError),
    ],
)
def test_a_cell_that_fails_fails(source, error):
    cells = [{"cell_type": "code", "source": [text]} for text in ("x = 1", source)]
    with pytest.raises(error):
        run_notebook({"cells": cells}, "broken")


def test_cells_share_their_names_and_run_in_order():
    sources = (["x = 1\n", "x + 1"], ["print(x)\n", "x = 5"], ["x"])
    ran = run_notebook({"cells": [{"cell_type": "code", "source": source} for source in sources]}, "plain")
    assert [(one.value, one.printed) for one in ran] == [(2, ""), (None, "1\n"), (5, "")]
