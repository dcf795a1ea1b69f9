"""Releases as frames, CSV and Parquet."""

from __future__ import annotations

import json
import uuid

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

import crowdgram
from crowdgram import Other
from crowdgram.errors import (
    MissingDependency,
    UnwritableTarget,
)

from ..results.synthetic import exact, grouped, made, zipf


@pytest.fixture
def one():
    items = [f"item-{number:04}" for number in range(5)]
    return made(np.array([0.1, 0.4, 0.2, 0.2, 0.1]), np.full(5, 0.01), items, ("item",))


def test_frames(one):
    columns = ["item", "probability", "standard_error", "lower", "upper"]
    expected = [
        list(one.items),
        *(a.tolist() for a in (one.probabilities, one.standard_errors, one.lower, one.upper)),
    ]
    for frame in (one.to_arrow().to_pandas(), one.to_pandas(), one.to_polars().to_pandas()):
        assert list(frame.columns) == columns
        assert [frame[name].tolist() for name in columns] == expected


def test_frames_do_not_reach_into_the_release(one):
    frame = one.to_pandas()
    frame.loc[0, "probability"] = 7.0
    assert one.probabilities[0] != 7.0


def test_a_missing_library_is_named(one, monkeypatch):
    for library in ("pandas", "polars"):
        monkeypatch.setitem(__import__("sys").modules, library, None)
        with pytest.raises(MissingDependency, match=rf"crowdgram\[{library}\]") as caught:
            getattr(one, f"to_{library}")()
        assert caught.value.name == library


def test_frames_of_groups():
    made = grouped()
    for frame in (made.to_pandas(), made.to_arrow().to_pandas(), made.to_polars().to_pandas()):
        assert list(frame.columns) == ["country", "share", "page", "probability", "standard_error", "lower", "upper"]
        assert len(frame) == 9
        assert frame.groupby("country").probability.sum().tolist() == pytest.approx([1] * 3)


def test_exports(tmp_path):
    release = exact([0.5, 0.3, 0.2], [uuid.UUID(int=1), uuid.UUID(int=2), Other("other")])
    for one in (release, grouped()):
        one.to_csv(tmp_path / "r.csv", overwrite=True)
        one.to_parquet(tmp_path / "r.parquet", overwrite=True)
        table = pyarrow.parquet.read_table(tmp_path / "r.parquet")
        assert table.equals(one.to_arrow().replace_schema_metadata(None))
        assert len(pd.read_csv(tmp_path / "r.csv")) == table.num_rows
        metadata = table.schema.metadata
        assert json.loads(metadata[b"crowdgram.guarantee"]) == one.guarantee.to_dict()
        assert metadata[b"crowdgram.sentence"].decode() == one.guarantee.sentence()


def test_the_item_column_keeps_its_name(tmp_path):
    release = made(zipf(2), np.full(2, 1e-4), ["a", "b"], ("product",))
    assert list(release.to_pandas().columns)[:2] == ["product", "probability"]
    release.to_csv(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().startswith('"product","probability"')
    release.save(tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    assert crowdgram.load(tmp_path / "r.json").heads == ("product",)
    del document["item_columns"]  # a file of version 1 has no name
    (tmp_path / "r.json").write_text(json.dumps({**document, "schema_version": 1}))
    assert crowdgram.load(tmp_path / "r.json").to_arrow().column_names[0] == "item"
    clash = made(zipf(2), np.full(2, 1e-4), ["a", "b"], ("lower",))
    assert clash.to_arrow().column_names[:2] == ["item", "probability"]


def test_names_of_columns_are_no_formulas(tmp_path):
    joint = made(zipf(2), np.full(2, 1e-3), [(1, "a"), (2, "a")], ("=1+1", "page"))
    joint.to_csv(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().startswith('"\'=1+1","page"')


def test_exports_are_whole_or_not_there(tmp_path):
    with pytest.raises(UnwritableTarget):
        exact(zipf(3)).to_parquet(tmp_path / "none" / "r.parquet")
    with pytest.raises(UnwritableTarget):
        grouped().to_csv(tmp_path)
    assert list(tmp_path.iterdir()) == []
