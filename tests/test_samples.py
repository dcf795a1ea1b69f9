"""The table of real people that comes with the package: as its README says, and made by the tool that is there."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import crowdgram.samples
from crowdgram.cli.app import app
from crowdgram.errors import InvalidArgument, UnwritableTarget
from crowdgram.samples import Diaries
from crowdgram.synth import Visits

ROOT = Path(__file__).parents[1]
FOLDER = Path(crowdgram.samples.__file__).parent


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("sample_diaries", ROOT / "tools" / "sample_diaries.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_as_its_readme_says():
    frame = Diaries().table().to_pandas()
    assert list(frame) == ["person", "activity", "quarter_hours"]
    assert sorted(set(frame.person)) == list(range(1, Diaries.PEOPLE + 1))
    assert not frame.duplicated(["person", "activity"]).any()
    assert frame.quarter_hours.min() >= 1
    assert 95 < frame.groupby("person").quarter_hours.sum().mean() < 97
    activities = Diaries().activities()
    assert activities == sorted(set(activities))
    assert set(frame.activity) < set(activities)  # the list is the survey's: one of it occurs in no diary
    said = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"\b{len(activities)}\s+activities in words", said)
    assert f"{Diaries.PEOPLE:,} of 181,335" in said
    assert (FOLDER / "diaries.parquet").stat().st_size < 200_000  # it is in every installation


def test_the_average_day_is_that_of_the_table():
    frame, truth = Diaries().table().to_pandas(), Diaries().average_day()
    own = frame.quarter_hours / frame.groupby("person").quarter_hours.transform("sum")
    exact = own.groupby(frame.activity).sum() / Diaries.PEOPLE
    assert list(truth) == Diaries().activities()
    assert {name: share for name, share in truth.items() if share} == pytest.approx(exact.to_dict())
    assert truth["personal emergencies"] == 0
    assert sum(truth.values()) == pytest.approx(1)


def test_the_tool_makes_it(tool, tmp_path):
    assert sorted(set(tool.ACTIVITIES.values())) == Diaries().activities()
    labels = ["10101", "10102", "120303", "120304", "181101"]
    pa.parquet.write_table(pa.table({"item": range(5), "label": labels}), tmp_path / "atus_activity.vocab.parquet")
    rows = pa.table({"user": [0, 0, 0, 1, 2, 2, 2], "item": [0, 0, 1, 4, 2, 3, 0]})
    pa.parquet.write_table(rows, tmp_path / "atus_activity.parquet")
    made = tool.excerpt(tmp_path, 2)
    assert made.schema.equals(Diaries().table().schema)
    assert list(zip(*made.to_pydict().values(), strict=True)) == [
        (1, "lying awake", 1),
        (1, "sleeping", 2),
        (2, "other travel", 1),
    ]
    assert tool.excerpt(tmp_path, 3).slice(3).to_pydict()["quarter_hours"] == [1, 2]  # both codes of television


def test_every_code_of_the_survey_has_words(tool):
    """Every two digits that the survey has, so that no quarter of an hour is lost."""
    for major in [*range(1, 17), 18]:
        assert tool.activity(f"{major}9999")


@pytest.mark.parametrize(("made", "items"), [(Diaries(), Diaries().activities()), (Visits(), list(Visits.PAGES))])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_sample_is_written_with_its_list(made, items, suffix, tmp_path):
    path, domain = tmp_path / f"table{suffix}", tmp_path / "items.txt"
    assert made.write(path, domain) == made.table().num_rows
    assert domain.read_text(encoding="utf-8").splitlines() == items
    domain.unlink()
    with pytest.raises(UnwritableTarget, match="exists"):
        made.write(path, domain)
    assert not domain.exists()
    with pytest.raises(InvalidArgument, match="different files"):
        made.write(tmp_path / f"other{suffix}", tmp_path / f"other{suffix}")
    assert sorted(one.name for one in tmp_path.iterdir()) == [path.name]


def test_the_command_names_the_source(tmp_path):
    path, domain = tmp_path / "diaries.parquet", tmp_path / "activities.txt"
    done = CliRunner().invoke(app, ["sample", str(path), "--table", "diaries", "--domain", str(domain)])
    assert done.exit_code == 0
    assert "of 10000 people" in done.stdout
    assert "U.S. Bureau of Labor Statistics" in done.stdout
    assert pa.parquet.read_table(path).num_rows == Diaries().table().num_rows
    quiet = CliRunner().invoke(app, ["sample", str(path), "--table", "diaries", "--force", "--quiet"])
    assert (quiet.exit_code, quiet.stdout) == (0, "")
    assert CliRunner().invoke(app, ["sample", str(path), "--table", "none"]).exit_code == 2
