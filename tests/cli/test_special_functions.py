"""The functions that a command has of scipy.special are those of scipy.special."""

from __future__ import annotations

import subprocess
import sys

import pytest

DEFERRED = """
import sys
from crowdgram.cli.special_functions import defer_scipy_special
defer_scipy_special()
from scipy.special import betainc, erfcx, gammaln, ndtr, ndtri
from scipy import special
assert "scipy.special._basic" not in sys.modules  # the package itself is not loaded
assert "scipy._lib._array_api" not in sys.modules  # nor, by another one, what wraps functions for other libraries
early = betainc, erfcx, gammaln, ndtr, ndtri
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_they_are_the_very_same_functions():
    run(
        f"{DEFERRED}"
        "assert special.comb(5, 2) == 10  # no ufunc: the package is loaded now\n"
        "import scipy.special as whole\n"
        "assert whole is not special\n"
        "assert early == tuple(getattr(whole, one.__name__) for one in early)\n"
        "assert special.ndtr is whole.ndtr\n"
    )


def test_what_builds_on_the_package_finds_it():
    run(f"{DEFERRED}import scipy.stats\nassert scipy.stats.norm.cdf(0.0) == 0.5\nassert scipy.special.ndtr is ndtr")


def test_linear_algebra_is_the_package_itself():
    """A module of it may be loaded with the functions; the package around it is loaded by whoever asks for it."""
    run(
        f"{DEFERRED}"
        "assert 'scipy.linalg' not in sys.modules\n"
        "import scipy.linalg\n"
        "from scipy.linalg import cython_lapack\n"
        "assert type(scipy.linalg).__name__ == 'module'\n"
        "assert scipy.linalg.solve([[2.0]], [4.0]) == [2.0]\n"
        "assert special.ndtr is ndtr\n"
    )


def test_linear_algebra_that_is_loaded_is_left_alone():
    run(
        "import scipy.linalg\nbefore = scipy.linalg\n"
        "from crowdgram.cli.special_functions import defer_scipy_special\ndefer_scipy_special()\n"
        "import sys\nfrom scipy.special import ndtr\n"
        "assert sys.modules['scipy.linalg'] is before\n"
    )


def test_threads_that_load_the_package_at_once_all_find_it():
    run(
        f"{DEFERRED}"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "import importlib, time\n"
        "load = importlib.import_module\n"
        "def slow(name, *more):\n"
        "    time.sleep(0.1 * name.endswith('_ufuncs'))  # so that all of them are inside\n"
        "    return load(name, *more)\n"
        "importlib.import_module = slow\n"
        "with ThreadPoolExecutor(4) as pool:\n"
        "    found = list(pool.map(lambda name: getattr(special, name), ['comb', 'logsumexp'] * 2))\n"
        "import scipy.special as whole\n"
        "assert found == [whole.comb, whole.logsumexp] * 2\n"
    )


def test_what_is_not_there_is_missed():
    run(f"{DEFERRED}assert not hasattr(special, 'no_such_function')")


@pytest.mark.parametrize("before", ["import scipy.special", "import os\nos.environ['SCIPY_ARRAY_API'] = '1'"])
def test_a_package_that_is_loaded_or_wraps_its_functions_is_left_alone(before):
    run(
        f"{before}\nfrom crowdgram.cli.special_functions import defer_scipy_special\ndefer_scipy_special()\n"
        "import scipy.special\nassert type(scipy.special).__name__ == 'module'"
    )
