"""The comparison with other tools: bounds, scores, and how a run is measured. No other tool is run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

ROOT = Path(__file__).parents[1]
SCRIPT = '''"""A tool that answers with its bound."""
import json, sys

BOUNDS = {"rows": "rows", "found_users": None}


def helper(x):
    """Doubled."""
    return 2 * x


def rows(table, items, rows):
    if rows > 100:
        raise ValueError("too many")
    held = bytearray(60_000_000)
    busy = sum(range(3_000_000))
    return {"rows": {item: helper(rows) for item in items}}


if __name__ == "__main__":
    use, table, items, bound, out = sys.argv[1:]
    found = rows(table, open(items).read().split(), **json.loads(bound))
    json.dump({"seconds": 0.5, "values": found}, open(out, "w"))
'''


@pytest.fixture
def peers(monkeypatch):
    """The modules, as they are when the benchmark is run."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import peers.bounds
    import peers.measuring
    import peers.scoring

    yield peers
    for name in [one for one in sys.modules if one == "names" or one.split(".")[0] == "peers"]:
        sys.modules.pop(name)


@pytest.fixture
def tool(peers, tmp_path):
    file = tmp_path / "fake_tool.py"
    file.write_text(SCRIPT)
    (tmp_path / "caller.py").write_text("")
    return peers.measuring.Tool.read(file)


def test_a_script_is_read_without_being_run(tool):
    assert tool.name == "fake"
    bounds = {"rows": {"rows": {"rows": 7}}, "found": {}}
    assert tool.bound("rows", bounds) == {"rows": 7}
    assert tool.bound("found_users", bounds) == {}
    assert tool.lines("rows") == 5 + 1  # its own, and the helper's without the docstring


def test_every_use_of_every_tool_has_its_function_and_its_bound(peers):
    counts = sparse.csr_matrix(np.array([[3.0, 1.0, 0.0], [1.0, 0.0, 5.0], [2.0, 2.0, 2.0]]))
    bounds = peers.bounds.bounds_of(counts, 1.0, 1e-6)
    found = {tool.name: tool for tool in peers.measuring.tools(ROOT / "bench" / "peers" / "tools")}
    assert next(iter(found)) == "crowdgram"
    assert {*found} == {"crowdgram", *peers.measuring.environments.NEEDS} - {"tpch"}
    for one in found.values():
        for use in one.bounds:
            assert one.lines(use) > 0
            assert (one.bound(use, bounds) == {}) == (one.name == "crowdgram")


def test_a_run_is_measured_with_its_answer(peers, tool, tmp_path):
    items = tmp_path / "items.txt"
    items.write_text("4\n5\n")
    out = tmp_path / "out.json"
    made = peers.measuring.run(tool, Path(sys.executable), "rows", tmp_path, items, {"rows": 7}, out)
    assert made.values == {"rows": {"4": 14, "5": 14}}
    assert made.inside == 0.5
    assert made.cpu > 0
    assert made.peak_mb > 60
    with pytest.raises(peers.measuring.Failed, match="too many"):
        peers.measuring.run(tool, Path(sys.executable), "rows", tmp_path, items, {"rows": 700}, out)


def test_errors(peers):
    truths = {"rows": np.array([6.0, 2.0, 2.0]), "users": np.array([4.0, 1.0, 0.0])}
    score = peers.scoring.errors_of
    found = score({"rows": {"1": 3.0, "2": 1.0, "3": 1.0}}, [1, 2, 3], truths, shares=True)
    assert found == pytest.approx({"shares": 0.0, "rows": 0.5})
    found = score({"rows": {"1": 6.0, "2": -5.0}}, [1, 2, 3], truths, shares=False)
    assert found == pytest.approx({"rows": 0.4})  # what is negative or missing counts as 0
    found = score({"users": {"1": 4.0, "3": 2.0}}, [1, 2, 3], truths, shares=True)
    assert found == pytest.approx({"users": 0.6})
    found = score({"shares": {"1": 0.5, "2": 0.5}}, [1, 2, 3], truths, shares=True)
    assert found == pytest.approx({"shares": 0.1 + 0.3 + 0.2})


def test_bounds_are_the_best_of_their_kind(peers):
    """With 4,000 users of ten rows each, the bound on rows is ten: less loses rows, more adds noise. One heavy user of
    another taste does not move it far.
    """
    rng = np.random.default_rng(1)
    counts = rng.multinomial(10, np.array([8, 4, 2, 1, 1]) / 16, size=4_000).astype(float)
    best = peers.bounds.bounds_of(sparse.csr_matrix(counts), 1.0, 1e-6)
    assert best["rows"]["rows"]["rows"] <= 10
    assert best["found"]["rows"]["rows"] == 10
    assert best["users"]["most_laplace"]["most"] == 5
    heavy = np.vstack([counts, [[0.0, 0, 0, 0, 3_000]]])
    assert peers.bounds.bounds_of(sparse.csr_matrix(heavy), 1.0, 1e-6)["found"]["rows"]["rows"] < 40


def test_the_table_says_where_we_do_not_lead(peers):
    import peers.presenting

    def line(tool, use, error):
        measure = "shares" if use == "shares" else "rows"
        errors = {measure: error} | ({"shares": error} if use.startswith("rows") else {})
        return {"tool": tool, "use": use, "errors": errors, "cpu": 2.0, "peak_mb": 300.0, "lines_of_code": 4, "runs": 1}

    lines = [line("crowdgram", "shares", 0.1), line("crowdgram", "rows", 0.1), line("opendp", "rows", 0.2)]
    table = {"name": "msnbc", "lines": [*lines, line("opendp", "rows_strong", 0.05)]}
    made = peers.presenting.markdown({"tables": [table]})
    assert made.count("| 2x / 0.5x |") == 1
    assert made.count("| **no** |") == 1
    table["lines"] = table["lines"][:-1]
    assert peers.presenting.markdown({"tables": [table]}).count("| yes |") == 1
    assert json.dumps(peers.presenting.ratios(table, "users")) == "{}"
