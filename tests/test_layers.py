"""The check of layers: the real tree passes, and each rule catches a tree that breaks it."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "check_layers.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("check_layers", TOOL)
    made = sys.modules["check_layers"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    yield made
    del sys.modules["check_layers"]


@pytest.fixture
def run(tool):
    """Arguments -> the exit code, and the lines that were printed."""

    def main(*arguments: str | Path) -> tuple[int, list[str]]:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = tool.main([str(argument) for argument in arguments])
        return code, printed.getvalue().splitlines()

    return main


def grow(folder: Path, files: dict[str, str]) -> Path:
    root = folder / "crowdgram"
    for name, text in {"__init__.py": "", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


METHOD = """class Release:
    def save(self, path):
        'Write it.'
        from ..export import save

        save(self, path)
"""
"""The one way in which results may call a higher layer."""


@pytest.mark.slow
def test_the_real_tree_is_in_order(run) -> None:
    code, lines = run()
    assert code == 0, "\n".join(lines)
    assert len(lines) == 1
    assert lines[0].startswith("layers: ")
    assert lines[0].endswith(" modules, in order")


def test_the_command_ends_with_its_verdict(tmp_path: Path) -> None:
    root = grow(tmp_path, {"errors.py": "import random\n"})
    done = subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (1, "")
    assert "`random` belongs nowhere" in done.stdout


def test_a_tree_that_uses_all_it_may(run, tmp_path: Path) -> None:
    root = grow(
        tmp_path,
        {
            "__init__.py": "from . import cli, errors, synth\nfrom crowdgram.audit import run\n",
            "errors.py": "import os\n",
            "theory/bounds.py": "import math\nimport numpy\nfrom scipy import stats\nfrom . import other\n",
            "theory/other.py": "from ..arrays import A\n",
            "synth.py": "import numpy as np, pyarrow\nfrom .errors import A\nnp.random.default_rng()\n",
            "privacy/__init__.py": "from .noise import draw\n",
            "privacy/noise.py": "import secrets\nimport opendp.prelude as dp\nfrom ..errors import A\n",
            "privacy/ledger.py": "import dp_accounting\nfrom .. import theory\n",
            "tables/source.py": "import ibis, duckdb, pyspark.sql, sqlglot\nfrom ..privacy import Guarantee\n",
            "mechanisms/a.py": "import crowdgram.tables.source\nfrom crowdgram.mechanisms import b\n",
            "mechanisms/b.py": "from importlib import import_module\nimport_module('crowdgram.tables')\n",
            "paper.py": "from crowdgram import errors, mechanisms, privacy, tables\n",
            "results/release.py": METHOD + "def f():\n    from .sampling import sample\n",
            "results/sampling.py": "import numpy as np\nnp.random.default_rng()\n",
            "inference.py": "from .results.release import R\n",
            "export.py": "from . import arrays, escaping, inference, results\n",
            "present.py": "from .export import e\n",
            "releases/__init__.py": "from ..paper import B\nfrom ..present import p\nself.random = 1\n",
            "planning/simulation.py": "import numpy as np\nrun(sampler=np.random.default_rng())\n",
            "audit.py": "from .privacy import noise\nfrom .synth import Crowd\nrun(sampler=noise)\n",
            "cli/__init__.py": "import typer\nfrom .. import audit\nfrom ..releases import R\nfrom .main import run\n",
            "cli/main.py": "",
        },
    )
    assert run(root) == (0, ["layers: 22 modules, in order"])


@pytest.mark.parametrize(
    ("name", "text", "line", "words"),
    [
        # Up the layers, in every way to write it.
        (
            "errors.py",
            "\nfrom crowdgram.privacy import x",
            2,
            "`errors` may not import the higher layer `privacy`",
        ),
        ("errors.py", "from .theory import x", 1, "may not import `theory`"),
        ("privacy/a.py", "import crowdgram.tables.source", 1, "higher layer `tables`"),
        ("privacy/a.py", "from .. import tables", 1, "higher layer `tables`"),
        ("privacy/a/b.py", "from ...tables.source import x", 1, "higher layer `tables`"),
        ("privacy/__init__.py", "from ..tables import x", 1, "higher layer `tables`"),
        ("tables/a.py", "from crowdgram import errors, mechanisms", 1, "higher layer `mechanisms`"),
        ("tables/a.py", "import os, crowdgram.paper as p", 1, "higher layer `paper`"),
        ("mechanisms/a.py", "def f():\n    from ..releases import x", 2, "higher layer `releases`"),
        ("paper.py", "if TYPE_CHECKING:\n    from .releases import x", 2, "higher layer `releases`"),
        ("releases/a.py", "try:\n    from ..cli import x\nexcept ImportError: pass", 2, "higher layer `cli`"),
        ("releases/a.py", "import importlib\nimportlib.import_module('crowdgram.audit')", 2, "`audit`"),
        ("releases/a.py", "import_module('..audit', __package__)", 1, "higher layer `audit`"),
        ("export/a.py", "from ..present import x", 1, "higher layer `present`"),
        ("inference/a.py", "from ..export import x", 1, "higher layer `export`"),
        # Results call what is above them in methods of one call, in two files.
        ("results/release.py", "from ..export import save", 1, "higher layer `export`"),
        ("results/release.py", "def f(x):\n    from ..export import save\n    save(x)", 2, "higher layer `export`"),
        ("results/release.py", METHOD + "        print()", 4, "higher layer `export`"),
        ("results/release.py", METHOD.replace("  save(self", "  x = save(self"), 4, "higher layer `export`"),
        ("results/release.py", METHOD.replace("export", "releases"), 4, "higher layer `releases`"),
        ("results/marginals.py", METHOD, 4, "higher layer `export`"),
        # Siblings.
        ("mechanisms/a.py", "from ..paper import x", 1, "`mechanisms` may not import the higher layer `paper`"),
        ("interrupts.py", "from .errors import x", 1, "its sibling `errors`"),
        ("audit.py", "from .cli import x", 1, "the higher layer `cli`"),
        # The package itself imports everything, so it is above everything.
        ("tables/a.py", "import crowdgram", 1, "in no layer"),
        ("cli/a.py", "from crowdgram import release", 1, "`crowdgram.release`, which is in no layer"),
        ("cli/a.py", "from .. import *", 1, "in no layer"),
        ("cli/a.py", "from crowdgram.nowhere import x", 1, "`crowdgram.nowhere.x`, which is in no layer"),
        ("cli/a.py", "from .... import x", 1, "above the package"),
        # theory and synth.
        (
            "theory/a.py",
            "from ..errors import x",
            1,
            "`theory` may import arrays of crowdgram, not `errors`",
        ),
        ("theory/a.py", "import crowdgram", 1, "arrays of crowdgram, not `crowdgram`"),
        ("theory/a.py", "import math, pandas", 1, "standard library only, not `pandas`"),
        ("theory.py", "import pyarrow", 1, "standard library only, not `pyarrow`"),
        (
            "synth.py",
            "from .theory import x",
            1,
            "`synth` may import arrays and errors and files of crowdgram, not `theory`",
        ),
        ("synth.py", "from .tables import x", 1, "not `tables`"),
        ("mechanisms/a.py", "from ..synth import Crowd", 1, "`mechanisms` may not import `synth`"),
        ("releases/a.py", "from ..samples import Diaries", 1, "`releases` may not import `samples`"),
        ("samples/__init__.py", "from ..releases import release", 1, "`samples` may import synth of crowdgram"),
        # Engines.
        ("mechanisms/a.py", "import ibis", 1, "`ibis` belongs under tables only"),
        ("mechanisms/a.py", "from ibis.expr import types", 1, "`ibis` belongs"),
        ("cli/a.py", "def f():\n    import duckdb", 2, "`duckdb` belongs"),
        ("releases/a.py", "from pyspark.sql import x", 1, "`pyspark` belongs"),
        ("releases/a.py", "__import__('pyspark')", 1, "`pyspark` belongs"),
        ("privacy/a.py", "import sqlglot", 1, "`sqlglot` belongs"),
        ("__init__.py", "import duckdb", 1, "`duckdb` belongs"),
        # Randomness.
        # Noise is drawn through `Spending`, by the sampler that only an audit replaces.
        ("mechanisms/a.py", "from ..privacy import noise", 1, "`privacy.noise` is for privacy and audit only"),
        ("tables/a.py", "from ..privacy.noise import draw", 1, "draw through a phase of `Spending`"),
        ("releases/a.py", "f(1)\nrun(1, sampler=x)", 2, "only an audit hands a sampler in"),
        ("mechanisms/a.py", "phase._spending.laplace()", 1, "only an audit hands a sampler in"),
        ("mechanisms/a.py", "spending.sampler = x", 1, "only an audit hands a sampler in"),
        ("mechanisms/a.py", "run(**{'sampler': x})", 1, "only an audit hands a sampler in"),
        ("releases/a.py", "from ..privacy import OPENDP", 1, "only an audit hands a sampler in"),
        ("privacy/ledger.py", "import opendp.prelude as dp", 1, "`opendp` belongs in privacy/noise.py only"),
        ("mechanisms/noise.py", "from opendp import x", 1, "`opendp` belongs"),
        (
            "privacy/discrete.py",
            "import os\nbits = os.urandom(2)",
            2,
            "random bytes come through privacy/noise.py only",
        ),
        ("tables/a.py", "from os import getrandom", 1, "random bytes come through privacy/noise.py only"),
        ("tables/a.py", "import secrets", 1, "`secrets` belongs in privacy/noise.py only"),
        ("synth.py", "from secrets import x", 1, "`secrets` belongs"),
        ("privacy/a.py", "from cryptography import x", 1, "`cryptography` belongs in export/keys.py only"),
        ("privacy/noise.py", "import random", 1, "`random` belongs nowhere"),
        ("synth.py", "from random import x", 1, "`random` belongs nowhere"),
        ("__init__.py", "import random", 1, "`random` belongs nowhere"),
        ("theory.py", "import random", 1, "`random` belongs nowhere"),
        (
            "privacy/noise.py",
            "import numpy.random",
            1,
            "numpy.random belongs in synth.py, results/sampling.py and planning/simulation.py only",
        ),
        ("releases/a.py", "import numpy as np\nnp.random.default_rng()", 2, "numpy.random belongs"),
        ("planning/a.py", "import numpy as np\nnp.random.default_rng()", 2, "numpy.random belongs"),
        ("planning/a.py", "run(sampler=1)", 1, "only an audit hands a sampler in"),
        ("releases/a.py", "from ..planning import plan", 1, "may not import the higher layer `planning`"),
        ("releases/pipeline.py", "from ..results.sampling import sample", 1, "results/release.py only"),
        ("cli/a.py", "from ..results.sampling import sample", 1, "results/release.py only"),
        ("tables/synth.py", "from numpy.random import default_rng", 1, "numpy.random belongs"),
        ("tables/a.py", "from numpy import array, random as r", 1, "numpy.random belongs"),
        ("theory.py", "import numpy as np\nnp.random.default_rng()", 2, "numpy.random belongs"),
        ("theory.py", "import numpy\nx = numpy.random", 2, "numpy.random belongs"),
        ("theory.py", "import numpy as n\nn.random.random()", 2, "numpy.random belongs"),
        (
            "audit.py",
            "def f(x: 'int') -> None:\n    import numpy as q\n    q.random.seed(1)",
            3,
            "numpy.random",
        ),
        # What is not in the layers, or cannot be read.
        ("helpers.py", "", 1, "`helpers` is unknown: add it to the layers"),
        ("extras/a.py", "", 1, "`extras` is unknown: add it to the layers"),
        ("paper.py", "x = 1\ndef", 2, "cannot be parsed"),
    ],
)
def test_each_breach_is_caught(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, line: int, words: str
) -> None:
    grow(tmp_path, {name: text})
    monkeypatch.chdir(tmp_path)
    code, lines = run("crowdgram")
    assert code == 1
    assert len(lines) == 1
    where = f"{Path('crowdgram') / name}:{line}: "
    assert lines[0].startswith(where)
    assert words in lines[0]


def test_all_breaches_are_listed_in_order(run, tmp_path: Path) -> None:
    root = grow(
        tmp_path,
        {"privacy/a.py": "import random\nfrom ..cli import a, b\n", "errors.py": "import ibis, duckdb\n"},
    )
    code, lines = run(root)
    assert code == 1
    assert [line.removeprefix(f"{root.resolve()}/").split(" ")[0] for line in lines] == [
        "errors.py:1:",
        "errors.py:1:",
        "privacy/a.py:1:",
        "privacy/a.py:2:",
    ]


def test_an_empty_folder_is_no_success(run, tmp_path: Path) -> None:
    code, lines = run(tmp_path / "nowhere")
    assert code == 1
    assert "no Python files" in lines[0]
