"""The package as a whole: light to import, complete, and of one version."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import itertools
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import crowdgram

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "src" / "crowdgram").rglob("*.py"))
HEAVY = [
    "ibis", "duckdb", "pyarrow", "numpy", "scipy", "opendp", "dp_accounting",
    "pandas", "polars", "matplotlib", "pyspark", "typer", "rich",
]  # fmt: skip


def imported_by(code):
    """The heavy packages that are loaded after `code` has run in a fresh interpreter."""
    program = f"{code}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}} & set({HEAVY!r})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.split()


def test_import_is_light():
    assert imported_by("import crowdgram; crowdgram.__version__; dir(crowdgram)") == []


@pytest.mark.slow
def test_a_release_does_not_load_what_it_does_not_need():
    code = "import crowdgram\ncrowdgram.release"
    assert not {"opendp", "pandas", "polars", "matplotlib", "pyspark", "duckdb"} & set(imported_by(code))
    assert "numpy" in imported_by(code)  # so the check above can see what is loaded


def command(arguments):
    """A program that runs the command line and goes on."""
    return (
        f"import sys\nsys.argv = ['crowdgram', *{arguments!r}]\nfrom crowdgram.cli import main\n"
        "import contextlib, io\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n    main()"
    )


def test_the_version_needs_no_library():
    assert imported_by(command(["--version"])) == []


def test_the_help_loads_neither_numbers_nor_engines():
    assert set(imported_by(command(["--help"]))) - {"rich"} == {"typer"}  # an older Typer writes its help with rich


@pytest.mark.slow
def test_the_command_loads_what_it_uses(tmp_path):
    """pandas comes with many a function of pyarrow, scipy.optimize with a search for a root, Ibis with columns that are
    computed, pydantic with the values of options, masked arrays with some functions of NumPy, and rich with what a
    command has to say.
    """
    table, output = tmp_path / "visits.parquet", tmp_path / "release.json"
    users = [str(user) for user in range(3000)]  # so many that there is nothing to warn of
    parquet.write_table(pa.table({"user": users, "page": [f"p{int(user) % 3}" for user in users]}), table)
    (tmp_path / "pages.txt").write_text("p0\np1\np2\n")
    asked = ["release", str(table), "--user", "user", "--item", "page", "--epsilon", "1", "--delta", "1e-6", "-q"]
    asked += ["--domain", str(tmp_path / "pages.txt"), "-o", str(output)]
    unneeded = {
        "scipy.optimize",
        "pydantic",
        "numpy.ma",
        "rich",
        "sqlite3",
        "crowdgram.paper.variable",
        "crowdgram.privacy.ledger",
        "crowdgram.theory",
    }
    unneeded -= set(imported_by("import typer"))  # an older one loads rich
    loaded = imported_by(
        f"{command(asked)}\nassert not {unneeded!r} & set(sys.modules), {unneeded!r} & set(sys.modules)"
    )
    assert output.exists()
    assert {"duckdb", "numpy", "pyarrow"} <= set(loaded)
    assert not {"dp_accounting", "ibis", "matplotlib", "opendp", "pandas", "polars", "pyspark"} & set(loaded)


def test_nobody_can_hand_in_noise():
    """A sampler is given inside, by an audit or a test: nothing public takes one."""
    public = [getattr(crowdgram, name) for name in crowdgram.__all__]
    for call in filter(callable, public):
        methods = [call, *(value for _, value in inspect.getmembers(call, callable) if not isinstance(value, type))]
        for one in methods:
            with contextlib.suppress(ValueError, TypeError):  # built in: no signature
                assert not [name for name in inspect.signature(one).parameters if "sampler" in name]
    with pytest.raises(TypeError, match="sampler"):
        crowdgram.release([], user="u", item="i", epsilon=1.0, sampler=None)


def test_all_is_complete_and_resolves():
    public = {
        "Adaptive",
        "Adjacency",
        "Auto",
        "Bins",
        "CrowdgramError",
        "Csv",
        "Database",
        "Difference",
        "Discover",
        "DuckDB",
        "GroupedReach",
        "GroupedRelease",
        "Guarantee",
        "ItemCount",
        "ItemCounts",
        "ItemEstimate",
        "Ledger",
        "LedgerHead",
        "Other",
        "Paper",
        "Plan",
        "Quantity",
        "Reach",
        "ReachedItem",
        "Release",
        "Series",
        "SeriesPoint",
        "Spark",
        "__version__",
        "load",
        "make_key",
        "plan",
        "reach",
        "recover",
        "release",
        "report",
        "sign",
        "verify",
        "verify_ledger",
    }
    assert set(crowdgram.__all__) == public
    assert list(crowdgram.__all__) == sorted(crowdgram.__all__)
    for name in crowdgram.__all__:
        assert getattr(crowdgram, name) is not None
    assert dir(crowdgram) == sorted({*crowdgram.__all__, "errors", "paper", "samples", "synth", "theory"})
    with pytest.raises(AttributeError, match="nothing"):
        crowdgram.nothing  # noqa: B018


@pytest.mark.slow
def test_modules_are_there_in_a_fresh_interpreter():
    """One by one, as if each were the first: what the last one loaded is forgotten."""
    script = (
        "import sys\n"
        "for module in ('errors', 'paper', 'samples', 'synth', 'theory'):\n"
        "    for name in [name for name in sys.modules if name.split('.')[0] == 'crowdgram']:\n"
        "        del sys.modules[name]\n"
        "    import crowdgram\n"
        "    print(getattr(crowdgram, module).__name__)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [f"crowdgram.{module}" for module in ("errors", "paper", "samples", "synth", "theory")]


@pytest.mark.parametrize(
    "package", ["errors", "privacy", "tables", "mechanisms", "releases", "audit", "samples", "synth", "theory", "cli"]
)
def test_what_packages_list_exists(package):
    module = importlib.import_module(f"crowdgram.{package}")
    assert module.__all__
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert hasattr(module, name)


def test_every_module_has_a_docstring_and_modern_annotations():
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path
        futures = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
        assert any(alias.name == "annotations" for node in futures for alias in node.names), path


def constants(tree):
    """The public constants of a module, in capitals."""
    targets = [node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)] for node in tree.body]
    names = [name for target in itertools.chain(*targets) if target is not None for name in ast.walk(target)]
    return [name.id for name in names if isinstance(name, ast.Name) and re.fullmatch(r"[A-Z][A-Z0-9_]+", name.id)]


def test_no_two_constants_have_one_name():
    found = {}
    for path in MODULES:
        for name in constants(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(name, []).append(path)
    assert len(found) > 100
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_constants_are_found():
    assert constants(ast.parse("A1 = B_C = 1\nDD, EE = 1, 2\nFF: int = 3\n_GG = h = 4\ndef f():\n    HH = 5")) == [
        "A1",
        "B_C",
        "DD",
        "EE",
        "FF",
    ]


def test_modules_were_found():
    assert len(MODULES) > 25


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == crowdgram.__version__
    assert importlib.metadata.version("crowdgram") == crowdgram.__version__
    assert f"## [{crowdgram.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_types_are_shipped():
    assert resources.files("crowdgram").joinpath("py.typed").is_file()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_the_source_archive_has_all_that_is_tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {path.split("/")[0] for path in listed.split("\0") if path}
    archive = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]
    assert {name.removeprefix("/") for name in archive["include"]} == tracked


def test_every_error_is_ours_and_a_builtin():
    from crowdgram import errors

    for name in errors.__all__:
        kind = getattr(errors, name)
        if issubclass(kind, UserWarning):
            assert name in errors.__doc__
            continue
        assert issubclass(kind, errors.CrowdgramError)
        if kind is not errors.CrowdgramError:
            assert any(issubclass(kind, one) for one in (ValueError, OSError, ImportError, RuntimeError))
            assert name in errors.__doc__


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_says_that_a_python_cannot_be_run(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    command = ["make", "PYTHON=/none/python", "setup"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode != 0
    assert "/none/python cannot be run" in made.stdout
    assert "needs Python" not in made.stdout


@pytest.mark.slow
def test_a_release_does_not_load_the_slow_part_of_scipy():
    """scipy.stats takes longer to load than most releases take to run."""
    code = "import sys, crowdgram.releases.pipeline, crowdgram.mechanisms; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_array_types_have_one_home():
    """A type of arrays of one kind of number is defined in `arrays` alone, and called by the same name everywhere."""
    package = Path(crowdgram.__file__).parent
    homes = {
        path.name for path in package.rglob("*.py") if re.search(r"^\w+ = \S*NDArray\[", path.read_text(), re.MULTILINE)
    }
    assert homes == {"arrays.py"}
