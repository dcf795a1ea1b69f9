"""An environment for each tool, installed by name from PyPI, in .peers/ (not under version control)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["NEEDS", "Unavailable", "program", "python_of", "version_of"]

FOLDER = Path(__file__).parents[2] / ".peers"
NEEDS = {
    "opendp": ("opendp[polars]", "pandas", "pyarrow"),
    "tumult": ("tmlt.analytics",),
    "pipelinedp": ("pipeline-dp", "pandas", "pyarrow"),
    "smartnoise": ("smartnoise-sql", "pyarrow"),
    "diffprivlib": ("diffprivlib", "scikit-learn<1.9", "pandas", "pyarrow"),
    "pydp": ("python-dp", "pandas", "pyarrow"),
    "tpch": ("tpchgen-cli",),
}
"""The packages of each; the first is the tool. diffprivlib 0.6.6 does not import with scikit-learn 1.9."""


class Unavailable(Exception):
    """A tool that cannot be installed or run here, with the reason."""


def python_of(tool: str) -> Path:
    """The interpreter of a tool's environment, which is made at the first call."""
    home = FOLDER / tool
    ready = home / ".ready"
    if not ready.exists():
        print(f"installing {', '.join(NEEDS[tool])} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        install = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*install, *NEEDS[tool]], capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"pip: {done.stderr.strip().splitlines()[-1]}")
        ready.touch()
    return home / "bin" / "python"


def program(tool: str, name: str) -> Path:
    """A program of a tool's environment."""
    return python_of(tool).parent / name


def version_of(tool: str) -> str:
    package = NEEDS[tool][0].split("[")[0]
    ask = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([str(python_of(tool)), "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
