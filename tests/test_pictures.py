"""README's pictures and table agree with the records that they are made of, and name tables as people would."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path

import pytest
from PIL import Image

import crowdgram
from crowdgram.samples import Diaries

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"


@pytest.fixture
def pictures(monkeypatch):
    """The script, as it is when it is run."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    yield importlib.import_module("pictures")
    for name in ("names", "peers", "peers.presenting", "pictures"):
        sys.modules.pop(name, None)


@pytest.fixture
def record(pictures):
    return pictures.shown_part(pictures.read_record())


def digest_in(file):
    with Image.open(file) as image:
        return image.info["Record"]


def test_readme_and_pictures_agree_with_the_records(pictures, record):
    """If this fails: run `make pictures`."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert pictures.with_table(text, record) == text
    assert record["how"] in text.replace("Means", "means")
    for name in ("accuracy.png", "demo.png"):
        assert f"](docs/images/{name})" in text
    assert digest_in(IMAGES / "accuracy.png") == pictures.digest(record)
    assert digest_in(IMAGES / "demo.png") == pictures.digest_of_file(pictures.RESULTS / "demo.json")


def test_the_comparison_with_other_tools_agrees_with_its_record(pictures):
    """If this fails: run `make pictures`. Another figure changes the tables and the digest of the picture."""
    peers = pictures.read_record(pictures.RESULTS / "peers.json")
    text = pictures.BENCH_README.read_text(encoding="utf-8")
    made = pictures.presenting.markdown(peers)
    assert pictures.with_part(text, "peers", made) == text
    assert digest_in(IMAGES / "peers.png") == pictures.presenting.digest(peers)
    assert "](docs/images/peers.png)" in (ROOT / "README.md").read_text(encoding="utf-8")
    for line in peers["tables"][0]["lines"]:
        line["errors"] = {
            measure: error * (3 if line["tool"] == "pydp" else 1) for measure, error in line["errors"].items()
        }
    assert pictures.presenting.markdown(peers) != made
    assert digest_in(IMAGES / "peers.png") != pictures.presenting.digest(peers)


def test_another_record_is_noticed(pictures, record):
    """A new figure, or a new name, changes the table and the digest of the picture."""
    before = pictures.digest(record), pictures.markdown(record)
    record["lines"][3]["auto"] *= 1.1
    changed = pictures.digest(record), pictures.markdown(record)
    assert changed[0] != before[0]
    assert changed[1] != before[1]
    sys.modules["names"].NAMES["msnbc"] = "pages"
    assert pictures.digest(record) != changed[0]
    assert "| pages |" in pictures.markdown(record)


def test_every_table_has_a_name_that_people_understand(pictures):
    """Those of the benches, and those of the records; none is an identifier."""
    names = sys.modules["names"].NAMES
    invented = importlib.import_module("invented").INVENTED
    known = {*pictures.SHOWN, *invented, *(line["name"] for line in pictures.read_record()["lines"])}
    assert known <= set(names)
    assert len(set(names.values())) == len(names)
    for name in names.values():
        assert "_" not in name
        assert " " in name
    identifiers = [name for name in names if "_" in name]
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert not [name for name in identifiers if name in text], page


def test_the_lower_error_is_bold(pictures):
    line = {"name": "msnbc", "weight": "rows", "users": 1200, "items": 17, "floor": 0.0, "auto_se": None}
    tuned = {"laplace": {"mean": 0.2}, "gaussian": {"mean": 0.1}}
    lines = [{**line, "tuned": tuned, "auto": auto} for auto in (0.05, 0.101, 0.3)]
    made = pictures.markdown({"lines": lines, "how": "invented"}).splitlines()[2:5]
    cells = [re.findall(r"[^| ][^|]*[^| ]", row)[-2:] for row in made]
    assert cells == [["0.10", "**0.050**"], ["**0.10**", "**0.10**"], ["**0.10**", "0.30"]]
    assert made[0].startswith("| sections of a news site, by rows | 1,200 / 17 | 0 |")


@pytest.mark.slow
def test_pictures_are_drawn_from_a_record_alone(pictures, record, tmp_path, monkeypatch, capsys):
    """In a copy of the folders: the same pictures, and README as it is. Nothing is released."""

    def released(*_, **__):
        pytest.fail("a release was made")

    monkeypatch.setattr(crowdgram, "release", released)
    readme = tmp_path / "README.md"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    readme.write_text(text.replace(pictures.markdown(record), "old\n"), encoding="utf-8")
    bench, text_of_bench = tmp_path / "bench.md", pictures.BENCH_README.read_text(encoding="utf-8")
    bench.write_text(text_of_bench, encoding="utf-8")
    monkeypatch.setattr(pictures, "README", readme)
    monkeypatch.setattr(pictures, "BENCH_README", bench)
    monkeypatch.setattr(pictures, "IMAGES", tmp_path)
    pictures.main(["--from-record"])
    assert readme.read_text(encoding="utf-8") == text
    assert "11 lines" in capsys.readouterr().out
    assert bench.read_text(encoding="utf-8") == text_of_bench
    for name in ("accuracy.png", "demo.png", "peers.png"):
        with Image.open(tmp_path / name) as made, Image.open(IMAGES / name) as kept:
            assert made.info["Record"] == kept.info["Record"]
            assert len(made.convert("RGB").getcolors(made.width * made.height)) > 10  # NumPy would sort all pixels


def test_a_record_that_lacks_a_table_is_refused(pictures, tmp_path):
    found = pictures.read_record()
    found["lines"] = [line for line in found["lines"] if line["name"] != "msnbc"]
    file = tmp_path / "a.json"
    file.write_text(json.dumps(found))
    with pytest.raises(SystemExit, match="no line by rows for msnbc"):
        pictures.shown_part(pictures.read_record(file))
    with pytest.raises(SystemExit, match="once"):
        pictures.with_table("no marks", found)


def test_the_picture_of_the_demo_is_of_the_table_that_comes_with_the_package(pictures):
    made, truth = crowdgram.load(pictures.RESULTS / "demo.json"), Diaries().average_day()
    assert [str(item) for item in made.items] == Diaries().activities()
    assert (made.weight, made.guarantee.epsilon) == ("users", 1.0)
    assert sum(abs(made.probability(name) - share) for name, share in truth.items()) < 0.02
