"""Statistical tests alarm falsely with probability 1e-6 each, and must reject a scale wrong by 10%."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata

import numpy as np
import pytest
from scipy import stats

import crowdgram
from crowdgram.errors import InvalidArgument, MissingDependency
from crowdgram.privacy import LaplaceEvent, noise
from crowdgram.privacy.noise import MAX_SCALE, add_discrete_gaussian, add_discrete_laplace, choose_each, fresh_salt

FALSE_ALARM = 1e-6
DRAWS = 20_000
BINS = 24
Adder = Callable[..., np.ndarray]


def pmf(add: Adder, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The distribution that `add` promises, from its definition."""
    reach = int(40 * scale) + 10
    z = np.arange(-reach, reach + 1)
    weights = np.exp(-(z**2) / (2 * scale**2) if add is add_discrete_gaussian else -np.abs(z) / scale)
    return z, weights / weights.sum()


def variance_p_value(sample: np.ndarray, z: np.ndarray, p: np.ndarray) -> float:
    """Two-sided, for the mean of squares; normal by the central limit theorem over 20,000 draws."""
    second, fourth = (p * z.astype(float) ** 2).sum(), (p * z.astype(float) ** 4).sum()
    score = ((sample.astype(float) ** 2).mean() - second) / math.sqrt((fourth - second**2) / len(sample))
    return 2 * stats.norm.sf(abs(score))


def fit_p_value(sample: np.ndarray, z: np.ndarray, p: np.ndarray) -> float:
    """Pearson's chi-square over bins of roughly equal probability."""
    groups = np.minimum(((np.cumsum(p) - p / 2) * BINS).astype(int), BINS - 1)
    groups = np.unique(groups, return_inverse=True)[1]
    expected = np.bincount(groups, weights=p) * len(sample)
    inside = np.clip(sample - z[0], 0, len(z) - 1)
    observed = np.bincount(groups[inside], minlength=len(expected))
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


@pytest.mark.slow
@pytest.mark.parametrize("add", [add_discrete_gaussian, add_discrete_laplace])
@pytest.mark.parametrize("scale", [1.0, 3.7, 1000.3])
def test_noise_has_its_distribution(add: Adder, scale: float) -> None:
    sample = add(np.zeros(DRAWS, dtype=np.int64), scale)
    assert sample.dtype == np.int64
    assert variance_p_value(sample, *pmf(add, scale)) > FALSE_ALARM
    assert fit_p_value(sample, *pmf(add, scale)) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("add", [add_discrete_gaussian, add_discrete_laplace])
@pytest.mark.parametrize("scale", [3.7, 1000.3])
@pytest.mark.parametrize("wrong", [1.1, 1 / 1.1])
def test_a_scale_wrong_by_a_tenth_is_rejected(add: Adder, scale: float, wrong: float) -> None:
    # Powers above 1 - 1e-6: the variance is off by 17 to 21%, 10 to 21 standard errors.
    broken = add(np.zeros(DRAWS, dtype=np.int64), scale * wrong)
    assert variance_p_value(broken, *pmf(add, scale)) < FALSE_ALARM
    assert fit_p_value(broken, *pmf(add, scale)) < FALSE_ALARM


@pytest.mark.parametrize(
    ("add", "other"),
    [(add_discrete_gaussian, add_discrete_laplace), (add_discrete_laplace, add_discrete_gaussian)],
)
def test_the_wrong_shape_is_rejected(add: Adder, other: Adder) -> None:
    matched = 50.0 * (math.sqrt(2) if add is add_discrete_gaussian else 1 / math.sqrt(2))
    broken = add(np.zeros(DRAWS, dtype=np.int64), matched)  # the other's variance, but not its shape
    assert fit_p_value(broken, *pmf(other, 50.0)) < FALSE_ALARM


@pytest.mark.parametrize("add", [add_discrete_gaussian, add_discrete_laplace])
def test_noise_at_the_largest_scale(add: Adder) -> None:
    sample = add(np.zeros(DRAWS, dtype=np.int64), MAX_SCALE) / MAX_SCALE
    law = stats.norm() if add is add_discrete_gaussian else stats.laplace()
    assert stats.kstest(sample, law.cdf).pvalue > FALSE_ALARM
    assert stats.kstest(sample * 1.25, law.cdf).pvalue < FALSE_ALARM


@pytest.mark.parametrize("add", [add_discrete_gaussian, add_discrete_laplace])
def test_noise_is_added_to_its_own_value_in_order(add: Adder) -> None:
    values = np.arange(-10_000, 10_000, dtype=np.int64) * 1000
    # 60 scales: exceeded with probability below 20,000 exp(-60) = 2e-22.
    assert np.abs(add(values, 2.0) - values).max() < 120


@pytest.mark.parametrize("add", [add_discrete_gaussian, add_discrete_laplace])
def test_no_draw_is_used_twice(add: Adder) -> None:
    # Across chunks, threads and calls. 20,000 draws of scale 2^56 collide with probability below 1e-8.
    zeros = np.zeros(5_000, dtype=np.int64)
    with ThreadPoolExecutor(4) as pool:
        draws = np.concatenate(list(pool.map(lambda _: add(zeros, MAX_SCALE), range(4))))
    assert len(np.unique(draws)) == 20_000


@pytest.mark.slow
def test_a_fork_does_not_repeat_the_noise_of_its_parent() -> None:
    script = """
import json, os, numpy as np
from crowdgram.privacy.noise import add_discrete_gaussian, add_discrete_laplace, choose_each, fresh_salt
zeros = np.zeros(3000, dtype=np.int64)  # two chunks: threads on both sides of the fork
def draw():
    both = [add(zeros, 2.0**50).tolist() for add in (add_discrete_gaussian, add_discrete_laplace)]
    return both[0] + both[1] + [fresh_salt()]
draw()  # whatever state there is, is there before the fork
pipes = []
for _ in range(2):
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(read)
        with os.fdopen(write, "w") as out:
            json.dump(draw(), out)
        os._exit(0)
    os.close(write)
    pipes.append(read)
mine = draw()
print(json.dumps([mine] + [json.load(os.fdopen(read)) for read in pipes]))
"""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, check=True)
    draws = json.loads(run.stdout)
    everything = [draw for process in draws for draw in process]
    # 18,000 draws of scale 2^50 share at most a value or two by chance (probability of 3 or more below
    # 1e-15); a repeated generator would share thousands.
    assert len(everything) == 3 * 6001
    assert len(everything) - len(set(everything)) <= 2


def test_values_beyond_the_clamp_and_saturation() -> None:
    ends = [2**62, 2**80, 2**63 - 1, -(2**62), -(2**80), -(2**63)]
    noisy = add_discrete_laplace(ends, 1.0)
    assert np.abs(np.abs(noisy.astype(object)) - 2**62).max() < 100
    assert np.abs(add_discrete_gaussian(np.array([2**64 - 1], dtype=np.uint64), 1.0) - 2**62).max() < 100
    assert np.abs(add_discrete_gaussian(np.array([-(2**63)]), 1.0) + 2**62).max() < 100
    assert np.abs(add_discrete_gaussian(np.array([-5, 5], dtype=np.int8), 1.0)).max() < 100
    # 2^62 = 64 scales of Laplace noise at the largest scale: half of int64 is never left (probability e^-64 a
    # draw), and the end of int64 saturates and does not wrap.
    high = add_discrete_laplace([2**62] * 2000, MAX_SCALE)
    assert high.min() > 0


def test_opendp_saturates_rather_than_wraps() -> None:
    from crowdgram.privacy.noise import _laplace_measurement

    noisy = _laplace_measurement(MAX_SCALE)([2**63 - 1] * 200)
    assert min(noisy) > 0
    assert noisy.count(2**63 - 1) > 40  # about half; below 40 with probability 1e-18


def test_empty_vectors_stay_empty() -> None:
    for add in (add_discrete_gaussian, add_discrete_laplace):
        for empty in ([], np.array([], dtype=np.int64)):
            noisy = add(empty, 2.0)
            assert noisy.shape == (0,)
            assert noisy.dtype == np.int64


@pytest.mark.parametrize("bad", [0.999, 0.0, -1.0, math.nan, math.inf, 2.0**56 * 1.01, True, "2", None])
def test_bad_scales_are_refused(bad: object) -> None:
    with pytest.raises(InvalidArgument, match=rf"^sigma={re.escape(repr(bad))}"):
        add_discrete_gaussian([1], bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=rf"^scale={re.escape(repr(bad))}"):
        add_discrete_laplace([1], bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad",
    [
        np.array([1.0]),
        np.array([True]),
        np.array(["1"]),
        np.array([[1]]),
        [1.5],
        [True],
        [None],
        np.array([1, 2.5], dtype=object),
        np.ma.masked_array([1, 2], mask=[False, True]),
    ],
)
def test_values_that_are_not_integers_are_refused_and_not_quoted(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="values") as caught:
        add_discrete_gaussian(bad, 2.0)  # type: ignore[arg-type]
    assert "2.5" not in str(caught.value)


class Unmoved(np.ndarray):
    """An array to which nothing can be added."""

    def __add__(self, _: object) -> Unmoved:
        return self


def test_an_array_that_adds_in_its_own_way_is_taken_as_plain_numbers() -> None:
    for add in (add_discrete_gaussian, add_discrete_laplace):
        noisy = add(np.zeros(50, dtype=np.int64).view(Unmoved), 2.0**30)
        assert type(noisy) is np.ndarray
        assert noisy.any()


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_a_scale_that_no_double_holds_is_refused_whatever_its_type(kind: type) -> None:
    with pytest.raises(InvalidArgument, match=r"^scale=9007199254740993"):
        add_discrete_laplace([1], kind(2**53 + 1))
    with pytest.raises(InvalidArgument, match=r"^scale=9007199254740993"):
        LaplaceEvent(purpose="p", sensitivity=1, scale=kind(2**53 + 1), dimension=1)


def test_salts_are_fresh() -> None:
    salts = {fresh_salt() for _ in range(100)}
    assert len(salts) == 100
    assert all(re.fullmatch(r"[0-9a-f]{32}", salt) for salt in salts)


CHOICES = 6_000


def chosen_among(scores: list[int], scale: float) -> np.ndarray:
    return np.bincount(choose_each(np.tile(np.array(scores), (CHOICES, 1)), scale), minlength=len(scores))


def choice_p_value(found: np.ndarray, scores: list[int], scale: float) -> float:
    weights = np.exp((np.array(scores) - max(scores)) / scale)
    return float(stats.chisquare(found, CHOICES * weights / weights.sum()).pvalue)


@pytest.mark.slow
@pytest.mark.parametrize(("scores", "scale"), [([0, 1, 3, 4, 2], 2.0), ([-5, 300, 100, 0, 300, 299], 150.5)])
def test_choices_follow_the_exponential_mechanism(scores: list[int], scale: float) -> None:
    found = chosen_among(scores, scale)
    assert choice_p_value(found, scores, scale) > FALSE_ALARM
    assert choice_p_value(found, scores, 1.4 * scale) < FALSE_ALARM  # its power
    assert choice_p_value(found, scores, 0.7 * scale) < FALSE_ALARM


@pytest.mark.slow
def test_choices_are_independent_of_each_other() -> None:
    chosen = choose_each(np.zeros((CHOICES, 2), dtype=np.int64) + np.array([0, 1]), 2.0)
    pairs = np.bincount(2 * chosen[:-1:2] + chosen[1::2], minlength=4)
    p = math.exp(0.5) / (1 + math.exp(0.5))
    expected = np.array([(1 - p) ** 2, p * (1 - p), p * (1 - p), p**2]) * (CHOICES // 2)
    assert stats.chisquare(pairs, expected).pvalue > FALSE_ALARM


@pytest.mark.slow
def test_a_choice_among_one_and_among_equals() -> None:
    assert choose_each(np.zeros((3, 1), dtype=np.int64), 5.0).tolist() == [0, 0, 0]
    assert choice_p_value(chosen_among([7] * 6, 3.0), [7] * 6, 3.0) > FALSE_ALARM
    assert choose_each(np.array([[0, 2**61]]), 1.0).tolist() == [1]


@pytest.mark.parametrize("bad", [np.zeros((2, 2)), np.zeros(3, dtype=np.int64), np.zeros((2, 0), dtype=np.int64)])
def test_scores_must_be_whole_numbers_in_rows(bad: np.ndarray) -> None:
    with pytest.raises(InvalidArgument, match="scores: need to be"):
        choose_each(bad, 5.0)


@pytest.fixture
def opendp_is(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str | None], None]]:
    """A function that sets which version of OpenDP seems to be installed; None for one without a version."""

    def pretend(version: str | None) -> None:
        def found(package: str) -> str:
            if version is None:
                raise metadata.PackageNotFoundError(package)
            return version

        monkeypatch.setattr(noise.metadata, "version", found)  # another sampler, or none, as if installed
        noise.check_sampler.cache_clear()

    yield pretend
    noise.check_sampler.cache_clear()


@pytest.mark.parametrize("version", ["0.14.0", "0.14.1", "0.14.2.dev20250701001", "0.13.0", "0.14", "nightly", None])
def test_a_version_whose_noise_is_wrong_draws_nothing(version, opendp_is, monkeypatch) -> None:
    opendp_is(version)
    drawn = []
    for made in ("_laplace_measurement", "_gaussian_measurement", "_choice_measurement"):
        # a watch: nothing may be built to draw with
        monkeypatch.setattr(noise, made, lambda scale: drawn.append(scale))
    zeros = np.zeros(3, dtype=np.int64)
    for draw in (
        lambda: noise.OPENDP.laplace(zeros, 3.0, None),
        lambda: noise.OPENDP.gaussian(zeros, 3.0, None),
        lambda: choose_each(zeros.reshape(1, 3), 3.0),
    ):
        with pytest.raises(MissingDependency, match=r"opendp>=0\.14\.2"):
            draw()
    assert not drawn


@pytest.mark.parametrize("version", ["0.14.2", "0.15.0", "0.16.0", "1.0.0"])
def test_later_versions_draw(version, opendp_is) -> None:
    opendp_is(version)
    assert noise.OPENDP.laplace([0], 3.0, None).shape == (1,)


def test_a_release_is_refused_before_its_ledger_is_charged(opendp_is, tmp_path) -> None:
    ledger = crowdgram.Ledger.create(tmp_path / "ledger", epsilon=1, delta=1e-6)
    opendp_is("0.14.1")
    with pytest.raises(MissingDependency, match=r"0\.14\.1"):
        crowdgram.release(
            tmp_path / "no such table.csv", user="u", item="i", epsilon=0.5, domain=["a"], ledger=ledger.path
        )
    assert not crowdgram.Ledger.open(ledger.path).history()


def test_a_library_that_cannot_be_loaded_is_said_without_its_own_words() -> None:
    """With too little memory OpenDP raises a plain Exception that names files. In a process of its own: it is loaded
    here.
    """
    script = """
import sys
from crowdgram.errors import EngineFailure
from crowdgram.privacy.noise import choose_each
import numpy as np

class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "opendp.mod":
            raise Exception("Unable to load OpenDP shared library", "/some/file", OSError("cannot map"))

sys.meta_path.insert(0, Broken())
try:
    choose_each(np.zeros((1, 2), dtype=np.int64), 1.0)
except EngineFailure as error:
    print(error, error.__cause__)
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "cannot be loaded" in said
    assert "/some/file" not in said
