"""A ledger against the releases that were charged to it."""

from __future__ import annotations

import hashlib
import json
import shutil
import zlib

import pytest
from typer.testing import CliRunner

import crowdgram
from crowdgram import Ledger, verify_ledger
from crowdgram.cli.app import app
from crowdgram.errors import InvalidArgument, LedgerFailure, UnreadableSource
from crowdgram.synth import Crowd

from ..privacy.forging import change, rewrite, rows

pytestmark = pytest.mark.filterwarnings("ignore::crowdgram.errors.AccuracyWarning")
CROWD = Crowd(users=40, rows=6, items=5, tail=0.5, seed=3, strings=True)


def release(ledger, **more):
    options = {"user": "user", "item": "item", "epsilon": 0.3, "mechanism": "laplace", "domain": CROWD.item_names()}
    return crowdgram.release(CROWD.table(), **{**options, "max_rows_per_user": 6, **more}, ledger=ledger)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A ledger with two releases and a reach, their files, and a copy from before the last one."""
    folder = tmp_path_factory.mktemp("made")
    ledger = Ledger.create(folder / "visits.ledger", 3.0, 1e-5)
    release(ledger, mechanism="gaussian", delta=1e-8).save(folder / "1.json")
    release(ledger).save(folder / "2.json")
    shutil.copy(ledger.path, folder / "early.ledger")
    asked = {"user": "user", "item": "item", "epsilon": 0.3, "domain": CROWD.item_names()}
    crowdgram.reach(CROWD.table(), **asked, ledger=ledger).save(folder / "3.json")
    release(None).save(folder / "free.json")
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "made")


def files(folder):
    return [folder / f"{number}.json" for number in (1, 2, 3)]


def command(*arguments):
    return CliRunner().invoke(app, ["ledger", "verify", *map(str, arguments)])


def test_a_release_knows_its_charge(folder):
    ledger = Ledger.open(folder / "visits.ledger")
    heads = [crowdgram.load(path).ledger_head for path in files(folder)]
    assert [head.number for head in heads] == [1, 2, 3]
    assert {head.ledger for head in heads} == {ledger.head().ledger}
    assert [head.digest for head in heads] == [entry.digest for entry in ledger.history()]
    assert crowdgram.load(folder / "free.json").ledger_head is None
    assert verify_ledger(ledger, releases=files(folder), heads=map(str, heads)) == heads[-1] == ledger.head()
    document = json.loads((folder / "2.json").read_text())
    assert document["ledger"] == {"id": heads[1].ledger, "number": 2, "head": heads[1].digest}
    assert str(folder) not in (folder / "2.json").read_text()  # no path


def test_the_command(folder):
    told = command(folder / "visits.ledger")
    assert told.exit_code == 0, told.output
    assert "3 charges in an unbroken chain" in told.output
    assert "cannot be told" in told.output
    told = command(folder / "visits.ledger", *(part for path in files(folder) for part in ("--release", path)))
    assert told.exit_code == 0, told.output
    assert "not turned back behind 3" in told.output
    told = command(folder / "visits.ledger", "--json", "--head", told.output.split()[-1])
    assert json.loads(told.output)["charges"] == 3
    assert json.loads(told.output)["compared_with"] == 1


def test_a_restored_copy_is_told_by_a_later_release(folder):
    early = folder / "early.ledger"
    assert verify_ledger(early, releases=files(folder)[:2]).number == 2
    with pytest.raises(LedgerFailure, match="has 2 charges, and had 3: it is an older copy"):
        verify_ledger(early, releases=files(folder))
    told = command(early, "--release", files(folder)[2])
    assert (told.exit_code, told.stdout) == (2, "")
    assert "older copy" in told.stderr
    release(early, epsilon=0.1)  # it goes its own way
    with pytest.raises(LedgerFailure, match="never stood"):
        verify_ledger(early, releases=files(folder))


def test_another_ledger_and_no_ledger(folder, tmp_path):
    other = Ledger.create(tmp_path / "other", 3.0, 1e-5)
    with pytest.raises(LedgerFailure, match="is another ledger"):
        verify_ledger(other, releases=files(folder)[:1])
    with pytest.raises(InvalidArgument, match="charged to a ledger"):
        verify_ledger(other, releases=[folder / "free.json"])
    for path, words in ((tmp_path / "none.json", "cannot be read"), (other.path, "not JSON text")):
        with pytest.raises(UnreadableSource, match=words):
            verify_ledger(other, releases=[path])


def test_a_file_that_was_changed(folder):
    path = folder / "2.json"
    document = json.loads(path.read_text())
    document["predicted_l1_error"] *= 0.999
    path.write_text(json.dumps(document))
    with pytest.raises(LedgerFailure, match="is not the one that it stores"):
        verify_ledger(folder / "visits.ledger", releases=[path])


def test_a_lost_settlement(folder):
    ledger = folder / "visits.ledger"
    change(ledger, "DELETE FROM documents WHERE number = 2")
    rewrite(ledger, settlements={2: None})
    assert not Ledger.open(ledger).history()[1].finished
    verify_ledger(ledger, heads=[Ledger.open(ledger).head()])
    with pytest.raises(LedgerFailure, match="says that it was not"):
        verify_ledger(ledger, releases=files(folder))


def stored(ledger, number, text):
    """Put another document in place, with all digests right."""
    content = zlib.compress(text.encode())
    end = {**rows(ledger, "settlements")[number], "document": hashlib.sha256(content).hexdigest()}
    rewrite(ledger, settlements={number: end})
    change(ledger, ("UPDATE documents SET content = ? WHERE number = ?", (content, number)))


def test_a_cheaper_settlement(folder):
    """Its cost has to be that of the events of the stored release."""
    ledger = folder / "visits.ledger"
    end = rows(ledger, "settlements")[1]
    assert end["cost"]["mu_squared"] > 0
    cheap = {**end["cost"], "mu_squared": end["cost"]["mu_squared"] / 2}
    rewrite(ledger, settlements={1: {**end, "cost": cheap}})
    assert Ledger.open(ledger).check().number == 3  # the rows alone are in order
    with pytest.raises(LedgerFailure, match="release 1 cost something else than its events say"):
        verify_ledger(ledger)


def test_documents_that_change_places(folder):
    ledger = folder / "visits.ledger"
    text = Ledger.open(ledger).document(1)
    stored(ledger, 2, text)
    with pytest.raises(LedgerFailure, match="release 2 is stored with another promise or charge"):
        verify_ledger(ledger)
    stored(ledger, 2, "{}")
    with pytest.raises(LedgerFailure, match="release 2 cannot be read"):
        verify_ledger(ledger)


def test_a_forged_release_is_told_by_the_real_one_only(folder):
    """Events, cost and document that fit together are a ledger's: only who holds the release can tell."""
    ledger = folder / "visits.ledger"
    document = json.loads(Ledger.open(ledger).document(2))
    document["upper"][0] += 1e-6
    stored(ledger, 2, json.dumps(document))
    assert verify_ledger(ledger, releases=files(folder)[2:]).number == 3
    with pytest.raises(LedgerFailure, match="is not the one that it stores"):
        verify_ledger(ledger, releases=files(folder))
