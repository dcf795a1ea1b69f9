"""Run the tests with the lowest or the newest versions that pyproject.toml allows, each in an environment of its own.

    python tools/versions.py --python 3.11 --python 3.13 --versions lowest -- -m "not slow and not spark" tests/tables

"lowest" is the lowest version of each package that crowdgram names itself, with the newest of what these need. Tools
that only run the tests are the newest. "newest" pays no heed to constraints.txt. Without --python, every CPython from
3.11 to 3.14 is used that is found: in PATH, or among those of pyenv and uv. Environments are kept in .versions/, and
made anew if pyproject.toml changed. What follows `--` is for pytest. If uv is missing, it is installed there too.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
VERSIONS = {"lowest": "lowest-direct", "newest": "highest"}
TEST_TOOLS = ("httpx", "hypothesis", "mpmath", "pytest", "pytest-xdist")
DEFAULT_TESTS = ("-q", "-m", "not slow and not spark and not browser")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--python", action="append", choices=PYTHONS, help="again for more; default: all that are there"
    )
    parser.add_argument("--versions", action="append", choices=tuple(VERSIONS), help="default: both")
    parser.add_argument("--install-only", action="store_true", help="make the environments, and list what is in them")
    parser.add_argument("--folder", type=Path, default=ROOT / ".versions")
    parser.add_argument("tests", nargs="*", help=f"for pytest; default: {' '.join(DEFAULT_TESTS)}")
    asked = parser.parse_args()
    asked.folder.mkdir(exist_ok=True)
    uv = find_uv(asked.folder)
    outcomes = {}
    for python in asked.python or PYTHONS:
        interpreter = find_interpreter(uv, python)
        for versions in asked.versions or VERSIONS:
            name = f"{python}-{versions}"
            if interpreter is None:
                outcomes[name] = "no interpreter"
                continue
            made = make_environment(uv, asked.folder / name, interpreter, versions)
            if made is None:
                outcomes[name] = "cannot be installed"
            elif asked.install_only:
                outcomes[name] = "installed"
                subprocess.run([uv, "pip", "list", "--python", made], check=True)
            else:
                outcomes[name] = run_tests(made, asked.tests or DEFAULT_TESTS)
    for name, outcome in outcomes.items():
        print(f"{name:16} {outcome}")
    # An interpreter that was asked for and is not there is a failure; of all of them, it is not.
    fine = {"passed", "installed"} | (set() if asked.python else {"no interpreter"})
    return int(not set(outcomes.values()) <= fine or set(outcomes.values()) == {"no interpreter"})


def find_uv(folder: Path) -> str:
    """The path of uv, which is installed into an environment of its own if there is none."""
    found = shutil.which("uv")
    if found:
        return found
    own = folder / "uv"
    if not (own / "bin" / "uv").exists():
        venv.create(own, with_pip=True, clear=True)
        subprocess.run([own / "bin" / "python", "-m", "pip", "install", "--quiet", "uv"], check=True)
    return str(own / "bin" / "uv")


def find_interpreter(uv: str, python: str) -> str | None:
    """The path of a CPython of this version that is on this machine; none is downloaded."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for folder in sorted(pyenv.glob(f"{python}.*")):
        if (folder / "bin" / "python").exists():
            return str(folder / "bin" / "python")
    asked = [uv, "python", "find", "--no-python-downloads", "--no-project", f"cpython@{python}"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def make_environment(uv: str, folder: Path, interpreter: str, versions: str) -> str | None:
    """The path of its Python; None if the versions cannot be installed together."""
    python, mark = folder / "bin" / "python", folder / ".made-for"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + interpreter.encode()).hexdigest()
    if mark.exists() and mark.read_text() == wanted:
        return str(python)
    shutil.rmtree(folder, ignore_errors=True)
    install = [uv, "pip", "install", "--quiet", "--python", str(python)]
    steps = (
        [uv, "venv", "--quiet", "--python", interpreter, str(folder)],
        [*install, "--resolution", VERSIONS[versions], "--editable", f"{ROOT}[all]"],
        [*install, *TEST_TOOLS],
    )
    for step in steps:
        if subprocess.run(step, check=False).returncode:
            return None
    mark.write_text(wanted)
    return str(python)


def run_tests(python: str, tests: tuple[str, ...] | list[str]) -> str:
    print(f"--- {python} -m pytest {' '.join(tests)}", flush=True)
    # Of this checkout, whatever PYTHONPATH says.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [python, "-m", "pytest", "-p", "no:cacheprovider", *tests], cwd=ROOT, env=environment, check=False
    )
    return "passed" if ended.returncode == 0 else f"failed ({ended.returncode})"


if __name__ == "__main__":
    sys.exit(main())
