"""Synthetic tables: what they promise about shape, truth, memory and files.

The statistical tests use fixed seeds, so they cannot fail by chance; their limits are wide enough (p-value
1e-6) to survive a new version of numpy, and each proves its power on a wrong mutant.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy import stats

from crowdgram import synth
from crowdgram.errors import CrowdgramError, InvalidArgument, UnwritableTarget
from crowdgram.synth import Crowd, Visits, _word


def columns(crowd: Crowd) -> tuple[np.ndarray, np.ndarray]:
    table = crowd.table()
    return table["user"].to_numpy(), table["item"].to_numpy()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("users", 0),
        ("users", 1.5),
        ("users", True),
        ("rows", 0),
        ("rows", 1_000_001),
        ("items", 0),
        ("items", "ten"),
        ("items", 10**9),
        ("zipf", -0.1),
        ("zipf", float("nan")),
        ("zipf", float("inf")),
        ("zipf", "one"),
        ("tail", -1.0),
        ("tail", float("inf")),
        ("differ", 1.0),
        ("differ", -0.5),
        ("differ", float("nan")),
        ("differ", False),
        ("seed", -1),
        ("seed", 0.5),
        ("strings", "yes"),
    ],
)
def test_refuses_bad_fields_by_name_and_value(field: str, value: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"^{field}=.*: needs to be ") as caught:
        Crowd(**{field: value})
    assert repr(value) in str(caught.value)


def test_accepts_numpy_numbers_and_the_edges() -> None:
    crowd = Crowd(users=np.int64(1), rows=1, items=1, zipf=np.float64(0), seed=np.int64(0))
    assert crowd.table().to_pydict() == {"user": [0], "item": [0]}


def test_distribution_is_zipf() -> None:
    assert Crowd(items=3, zipf=1.0).distribution() == pytest.approx([6 / 11, 3 / 11, 2 / 11])
    assert Crowd(items=4, zipf=0.0).distribution() == pytest.approx([0.25] * 4)
    assert Crowd(items=1000, zipf=500.0).distribution().sum() == pytest.approx(1.0)


def test_names() -> None:
    assert Crowd(items=3).item_names() == [0, 1, 2]
    assert Crowd(items=2, strings=True).item_names() == ["item-0000", "item-0001"]
    wide = Crowd(items=10_001, strings=True).item_names()
    assert (wide[7], wide[-1]) == ("item-00007", "item-10000")


def test_strings_are_the_same_table_by_other_names() -> None:
    numbers, words = (Crowd(users=20, rows=5, items=7, seed=3, strings=strings).table() for strings in (False, True))
    assert numbers.schema == pa.schema([("user", pa.int64()), ("item", pa.int64())])
    assert words.schema == pa.schema([("user", pa.string()), ("item", pa.string())])
    assert words["user"].to_pylist() == [f"u{user:06}" for user in numbers["user"].to_pylist()]
    assert words["item"].to_pylist() == [f"item-{item:04}" for item in numbers["item"].to_pylist()]


@pytest.mark.parametrize("differ", [0.0, 0.4])
def test_every_user_has_the_fixed_number_of_rows(differ: float) -> None:
    user, item = columns(Crowd(users=50, rows=7, items=9, differ=differ, seed=1))
    assert np.bincount(user).tolist() == [7] * 50
    assert item.min() >= 0
    assert item.max() < 9


def test_heavy_tail_keeps_the_median_and_everybody() -> None:
    crowd = Crowd(users=4001, rows=20, tail=1.5, seed=1)
    rows_of = np.bincount(columns(crowd)[0], minlength=crowd.users)
    assert rows_of.min() >= 1
    assert rows_of.max() > 500
    assert 17 <= np.median(rows_of) <= 23  # the median of the logarithm errs by 1.5 * 1.25 / sqrt(4001) = 0.03
    assert np.log(rows_of[rows_of > 20] / 20).mean() == pytest.approx(1.5 * np.sqrt(2 / np.pi), abs=0.1)


def test_a_wild_tail_is_capped_at_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synth, "_BATCH_ROWS", 100)  # a limit that a small table reaches
    rows_of = np.bincount(columns(Crowd(users=30, rows=10, tail=1e300, seed=1))[0], minlength=30)
    assert set(rows_of.tolist()) == {1, 100}


def test_seeds() -> None:
    crowd = Crowd(users=30, rows=5, differ=0.2, tail=0.5, seed=4)
    assert crowd.table().equals(crowd.table())
    assert not crowd.table().equals(Crowd(users=30, rows=5, differ=0.2, tail=0.5, seed=5).table())
    fresh = Crowd(users=30, rows=5)
    assert not fresh.table().equals(fresh.table())


@pytest.mark.parametrize("tail", [0.0, 1.0])
def test_batches_hold_whole_users_and_few_rows(monkeypatch: pytest.MonkeyPatch, tail: float) -> None:
    monkeypatch.setattr(synth, "_BATCH_ROWS", 64)  # a limit that a small table reaches
    seen: list[int] = []
    sizes = []
    for batch in Crowd(users=150, rows=5, tail=tail, seed=2).batches():
        assert 0 < batch.num_rows <= 64
        users = set(batch["user"].to_pylist())
        assert not users & set(seen)
        seen += sorted(users)
        sizes.append(batch.num_rows)
    assert seen == list(range(150))
    assert len(sizes) < 150 / 3


def test_rows_are_shuffled_within_a_batch() -> None:
    user, _ = columns(Crowd(users=100, rows=20, seed=1))
    neighbours = (user[1:] == user[:-1]).mean()
    assert neighbours < 0.05


@pytest.mark.parametrize("differ", [0.0, 0.3])
def test_items_follow_the_distribution(differ: float) -> None:
    # One row per user (the first of each) is an independent draw from p, however users differ.
    crowd = Crowd(users=50_000, rows=2, items=12, zipf=0.8, differ=differ, seed=7)
    user, item = columns(crowd)
    first = np.unique(user, return_index=True)[1]
    counts = np.bincount(item[first], minlength=12)
    assert stats.chisquare(counts, crowd.distribution() * counts.sum()).pvalue > 1e-6
    wrong = Crowd(items=12, zipf=0.85).distribution()
    assert stats.chisquare(counts, wrong * counts.sum()).pvalue < 1e-6


def test_counts_drawn_at_once_are_distributed_as_the_rows_are() -> None:
    crowd = Crowd(users=500, rows=40, items=30, seed=8)
    counts = crowd.item_counts()
    assert counts.sum() == 500 * 40
    assert np.array_equal(counts, crowd.item_counts())
    assert stats.chisquare(counts, crowd.distribution() * counts.sum()).pvalue > 1e-6
    wrong = Crowd(users=500, rows=40, items=30, zipf=1.2).distribution()
    assert stats.chisquare(counts, wrong * counts.sum()).pvalue < 1e-6
    assert Crowd(users=10**9, rows=1000, items=5).item_counts().sum() == 10**12
    for unlike in ({"differ": 0.5}, {"tail": 1.0}):
        with pytest.raises(InvalidArgument, match="need to be 0 for counts drawn at once"):
            Crowd(users=10, rows=3, items=2, **unlike).item_counts()


def test_differing_users_are_dirichlet_multinomial() -> None:
    # With two items and p = 1/2 the number of a user's rows that show item 0 is beta-binomial(a/2, a/2).
    differ, rows = 0.25, 6
    user, item = columns(Crowd(users=40_000, rows=rows, items=2, zipf=0.0, differ=differ, seed=5))
    zeros = np.bincount(user, weights=item == 0).astype(int)
    counts = np.bincount(zeros, minlength=rows + 1)

    def pvalue(differ: float) -> float:
        half = (1 - differ) / differ / 2
        expected = stats.betabinom(rows, half, half).pmf(np.arange(rows + 1)) * counts.sum()
        return float(stats.chisquare(counts, expected).pvalue)

    assert pvalue(differ) > 1e-6
    assert pvalue(differ + 0.03) < 1e-6


def test_differ_runs_from_alike_to_one_item() -> None:
    def distinct(differ: float) -> float:
        user, item = columns(Crowd(users=200, rows=30, items=50, zipf=0.0, differ=differ, seed=6))
        return len(np.unique(user * 50 + item)) / 200

    assert distinct(0.0) == pytest.approx(50 * (1 - (1 - 1 / 50) ** 30), rel=0.05)
    assert distinct(1e-320) == pytest.approx(distinct(0.0), rel=0.05)
    assert distinct(0.0) > distinct(0.1) > distinct(0.5) > distinct(0.9) > 1
    assert distinct(1 - 1e-9) == 1


@pytest.mark.parametrize("strings", [False, True])
@pytest.mark.parametrize("name", ["crowd.parquet", "crowd.CSV"])
def test_write_and_read_back(tmp_path: Path, name: str, strings: bool) -> None:
    crowd = Crowd(users=40, rows=5, items=6, tail=0.5, seed=9, strings=strings)
    rows = crowd.write(tmp_path / name, truth=tmp_path / "truth.csv", domain=str(tmp_path / "domain.txt"))
    read = pa.csv.read_csv if name.endswith("CSV") else pa.parquet.read_table
    table = read(tmp_path / name)
    assert table.equals(crowd.table())
    assert table.num_rows == rows
    with open(tmp_path / "truth.csv", newline="") as file:
        header, *lines = csv.reader(file)
    assert header == ["item", "probability"]
    assert [item for item, _ in lines] == [str(item) for item in crowd.item_names()]
    assert [float(probability) for _, probability in lines] == crowd.distribution().tolist()
    assert (tmp_path / "domain.txt").read_text() == "".join(f"{item}\n" for item in crowd.item_names())
    assert len(list(tmp_path.iterdir())) == 3


def test_csv_is_plain(tmp_path: Path) -> None:
    Crowd(users=1, rows=1, items=1, strings=True).write(tmp_path / "one.csv")
    assert (tmp_path / "one.csv").read_bytes() == b"user,item\nu000000,item-0000\n"


@pytest.mark.parametrize("taken", ["crowd.csv", "truth.csv", "domain.txt"])
def test_nothing_is_overwritten_unless_it_is_asked_for(tmp_path: Path, taken: str) -> None:
    targets = {"truth": tmp_path / "truth.csv", "domain": tmp_path / "domain.txt"}
    (tmp_path / taken).write_text("old")
    with pytest.raises(UnwritableTarget, match=f"{taken}' exists.*overwrite=True"):
        Crowd(users=1).write(tmp_path / "crowd.csv", **targets)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [(taken, "old")]
    Crowd(users=1).write(tmp_path / "crowd.csv", **targets, overwrite=True)
    assert "old" not in (tmp_path / taken).read_text()
    with pytest.raises(UnwritableTarget, match="exists"):
        Visits(users=100).write(tmp_path / "crowd.csv")
    assert Visits(users=100).write(tmp_path / "crowd.csv", overwrite=True) > 100


def test_files_have_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "ordinary").touch()
    Crowd(users=1).write(tmp_path / "one.csv")
    assert (tmp_path / "one.csv").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


@pytest.mark.parametrize(
    ("path", "extras", "error", "words"),
    [
        ("crowd.txt", {}, InvalidArgument, ".parquet or .csv"),
        ("crowd", {}, InvalidArgument, ".parquet or .csv"),
        ("crowd.csv", {"truth": "crowd.csv"}, InvalidArgument, "different files"),
        ("missing/crowd.csv", {}, UnwritableTarget, "needs the folder"),
        ("crowd.csv", {"domain": "missing/domain.txt"}, UnwritableTarget, "needs the folder"),
        ("folder.csv", {}, UnwritableTarget, "is a folder"),
    ],
)
def test_refuses_targets(
    tmp_path: Path, path: str, extras: dict[str, str], error: type[CrowdgramError], words: str
) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(error, match=words):
        Crowd(users=1).write(tmp_path / path, **{key: tmp_path / value for key, value in extras.items()})
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder.csv"]


@pytest.mark.parametrize("name", ["crowd.parquet", "crowd.csv"])
@pytest.mark.parametrize("failure", [OSError(28, os.strerror(28)), KeyboardInterrupt()])
def test_a_failure_midway_leaves_the_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, failure: BaseException
) -> None:
    (tmp_path / name).write_text("old")
    whole = Crowd.batches

    def broken(self: Crowd) -> Any:
        yield next(whole(self))
        raise failure

    monkeypatch.setattr(Crowd, "batches", broken)  # a fault, as of a full disk
    expected = UnwritableTarget if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        Crowd(users=3).write(tmp_path / name, domain=tmp_path / "domain.txt", overwrite=True)
    if isinstance(failure, OSError):
        assert os.strerror(28) in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "old"


def test_a_failure_of_a_side_file_leaves_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Crowd, draft: Path) -> None:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(Crowd, "_write_domain", broken)  # a fault, as of a full disk
    with pytest.raises(UnwritableTarget):
        Crowd(users=3).write(tmp_path / "crowd.csv", domain=tmp_path / "domain.txt")
    assert list(tmp_path.iterdir()) == []


# --- the sample table of the examples


@pytest.mark.slow
def test_the_sample_is_what_it_says():
    visits = Visits()
    table = visits.table()
    assert table.equals(Visits().table())
    assert not table.equals(Visits(seed=2).table())
    frame = table.to_pandas()
    assert list(frame.columns) == ["user", "country", "page", "word", "n"]
    assert not frame.isna().any().any()
    assert set(frame.country) == set(Visits.COUNTRIES)
    assert set(frame.page) == set(Visits.PAGES)
    assert frame.n.between(1, 3).all()
    rows = frame.groupby("user").size()
    robots = frame[frame.user % 100 == 99]
    assert len(rows) == visits.users
    assert rows[rows.index % 100 == 99].eq(300).all()
    assert set(robots.page) == {"search"}
    assert 8 <= rows.median() <= 12
    shares = frame[frame.user % 100 != 99].groupby("country").page.value_counts(normalize=True).unstack()
    assert shares.loc["FR", "wine"] > 2 * shares.loc["DE", "wine"]
    users = frame.groupby("word").user.nunique()
    assert (users == 1).sum() > 500  # words that must not come out
    assert users.max() > 2000
    assert len({_word(number) for number in range(70_000)}) == 70_000


def test_the_sample_is_written_whole_or_not_at_all(tmp_path):
    rows = Visits(users=100).write(tmp_path / "visits.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "visits.parquet").num_rows == rows
    assert Visits(users=100).write(tmp_path / "visits.csv") == rows
    for path in (tmp_path / "visits.txt", tmp_path / "none" / "visits.csv", tmp_path):
        with pytest.raises(CrowdgramError):
            Visits(users=100).write(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["visits.csv", "visits.parquet"]
    with pytest.raises(InvalidArgument, match=r"^users=5: needs"):
        Visits(users=5)
