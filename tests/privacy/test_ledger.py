"""The ledger's file: what it keeps, what it refuses, and that nothing makes it forget."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from crowdgram.errors import BudgetExceeded, InvalidArgument, LedgerFailure, PrivacyViolation
from crowdgram.privacy import Cost, Guarantee, LaplaceEvent, Ledger, Plan, cost_of
from crowdgram.privacy import ledger_file as module

from .flipped_bits import noticed_flips
from .forging import change

TENTH = Guarantee(0.1)
EVENT = LaplaceEvent("counts", 1, 10.0, 3)
PLAN = Plan((cost_of([EVENT], TENTH),))


def charge(ledger, plan=PLAN, guarantee=TENTH, label=None, **more):
    ledger = ledger if label is None else Ledger.open(ledger.path, label=label)
    return ledger.charge(plan, guarantee, **{"mechanism": "laplace", "weight": "rows", **more}).number


def state(path):
    """All that a ledger has charged."""
    return [(entry.number, entry.cost, entry.finished) for entry in Ledger.open(path).history()]


def in_child(action):
    """Run in a forked child, so that limits and identity are its own; what it raised, as text."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            action()
            os.write(sender, b"fine")
        except BaseException as error:  # noqa: BLE001
            os.write(sender, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as pipe:
        told = pipe.read().decode()
    os.waitpid(child, 0)
    return told


class TestKeeping:
    def test_a_new_file_is_its_owner_s(self, ledger, path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [one.name for one in path.parent.iterdir()] == [path.name]
        assert ledger.budget == Guarantee(1.0, 1e-6)
        assert (ledger.history(), ledger.composition(), ledger.spent()) == ([], None, 0.0)

    def test_charges_and_settlements(self, ledger, path):
        assert charge(ledger, label="first") == 1
        assert charge(ledger, label="second") == 2
        ledger.settle(2, [EVENT], "what it shows é")
        first, second = Ledger.open(path).history()
        assert (first.number, first.label, first.finished, first.cost) == (1, "first", False, PLAN.most)
        assert (second.number, second.label, second.finished, second.cost) == (2, "second", True, PLAN.ways[0])
        assert (second.mechanism, second.weight, second.guarantee) == ("laplace", "rows", TENTH)
        assert ledger.document() == ledger.document(2) == "what it shows é"
        assert ledger.spent() == pytest.approx(0.2)
        ledger.check()

    def test_no_time_of_ending_is_kept(self, ledger, path):
        # How long a release takes depends on the private table.
        charge(ledger)
        ledger.settle(1, [EVENT], "shown")
        with sqlite3.connect(path) as connection:
            body, _ = connection.execute("SELECT body, digest FROM settlements").fetchone()
        assert set(json.loads(body)) == {"cost", "document"}

    def test_only_what_finished_can_be_recovered(self, ledger):
        with pytest.raises(InvalidArgument, match="no finished release"):
            ledger.document()
        charge(ledger)
        with pytest.raises(InvalidArgument, match="was not finished"):
            ledger.document(1)
        for number in (0, 2, -1, True, "1"):
            with pytest.raises(InvalidArgument, match="needs to be a release of this ledger"):
                ledger.document(number)

    def test_settling_twice_or_the_unknown_or_too_much_is_a_bug(self, ledger):
        charge(ledger)
        with pytest.raises(PrivacyViolation):
            ledger.settle(2, [EVENT], "shown")
        with pytest.raises(PrivacyViolation):
            ledger.settle(1, [EVENT, EVENT], "shown")
        assert not ledger.history()[0].finished
        ledger.settle(1, [EVENT], "shown")
        with pytest.raises(PrivacyViolation):
            ledger.settle(1, [EVENT], "other")
        assert ledger.document(1) == "shown"

    def test_overspending_is_refused_and_charges_nothing(self, ledger):
        for _ in range(10):
            charge(ledger)
        before = ledger.history()
        with pytest.raises(BudgetExceeded, match=r"epsilon=0\.1.*left of its epsilon=1, delta=1e-06"):
            charge(ledger)
        assert ledger.history() == before
        assert not ledger.fits(PLAN)

    def test_what_is_unfinished_counts_in_full(self, ledger):
        promise = Guarantee(0.6, 1e-8)
        either = Plan((Cost(0.6, 1e-8, 0.6, 0.6, 0.37), Cost(0.6, 1e-8, mu_squared=0.0169, dimension=4)))
        assert charge(ledger, either, promise) == 1
        assert not ledger.fits(either)  # 0.6 and 0.6, and Gaussian noise as well
        ledger.settle(1, [], "shown")
        assert ledger.fits(either)

    def test_a_plan_is_for_its_guarantee(self, ledger):
        with pytest.raises(InvalidArgument, match="needs to be for the guarantee"):
            charge(ledger, guarantee=Guarantee(0.2))
        assert ledger.history() == []

    def test_adjacency_must_agree(self, ledger):
        with pytest.raises(InvalidArgument, match=r"^adjacency='replace':.*'add-remove'"):
            charge(ledger, guarantee=Guarantee(0.1, adjacency="replace"))
        assert ledger.history() == []

    @pytest.mark.parametrize("label", ["x" * 501, 7, None, "a\x00b", "\udc80"])
    def test_labels(self, ledger, label):
        with pytest.raises(InvalidArgument, match="label"):
            Ledger.open(ledger.path, label=label)

    def test_the_first_release_fixes_the_composition(self, tmp_path):
        for name, epsilon, expected in (("a", 0.1, "tight"), ("b", 1.0, "plain")):
            ledger = Ledger.create(tmp_path / name, 1.0, 1e-6)
            promise = Guarantee(epsilon, 1e-6)
            charge(ledger, Plan((Cost(epsilon, 1e-6, mu_squared=epsilon**2 / 17.8, dimension=1),)), promise)
            assert ledger.composition() == expected

    def test_rows_are_kept(self, ledger, path):
        charge(ledger)
        for statement in ("DELETE FROM charges", "UPDATE charges SET body = ''", "UPDATE budget SET body = ''"):
            with sqlite3.connect(path) as connection, pytest.raises(sqlite3.IntegrityError, match="rows are kept"):
                connection.execute(statement)


class TestRefusing:
    @pytest.mark.parametrize("values", [{"epsilon": 0}, {"epsilon": 1, "delta": 1}, {"epsilon": 1, "adjacency": "x"}])
    def test_a_bad_budget_makes_no_file(self, path, values):
        with pytest.raises(InvalidArgument):
            Ledger.create(path, **values)
        assert not path.exists()

    def test_what_is_there_is_left_alone(self, ledger, path):
        content = path.read_bytes()
        with pytest.raises(LedgerFailure, match="is there already"):
            Ledger.create(path, 100.0)
        assert path.read_bytes() == content

    def test_a_dangling_link_is_not_followed(self, tmp_path, path):
        path.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(LedgerFailure):
            Ledger.create(path, 1.0)
        assert not (tmp_path / "elsewhere").exists()

    def test_places_that_cannot_be(self, tmp_path):
        for bad in (tmp_path / "none" / "x.ledger", tmp_path):
            with pytest.raises(LedgerFailure):
                Ledger.create(bad, 1.0)

    def test_what_is_not_a_ledger(self, tmp_path, path):
        (tmp_path / "text").write_text("user,item\n1,zebra\n" * 100)
        (tmp_path / "empty").touch()
        with sqlite3.connect(tmp_path / "other.db") as other:
            other.execute("CREATE TABLE budget (x)")
        for name, words in (
            ("text", "needs to be a ledger"),
            ("empty", "is empty"),
            ("other.db", "needs to be a ledger"),
            ("missing", "cannot be opened"),
            (".", "a link, a folder or a device"),
        ):
            with pytest.raises(LedgerFailure, match=words) as caught:
                Ledger.open(tmp_path / name)
            assert "zebra" not in str(caught.value)
        assert (tmp_path / "text").read_text().startswith("user,item")

    def test_links(self, ledger, path, tmp_path):
        (tmp_path / "soft").symlink_to(path)
        with pytest.raises(LedgerFailure, match="a link"):
            Ledger.open(tmp_path / "soft")
        (tmp_path / "hard").hardlink_to(path)
        with pytest.raises(LedgerFailure, match="several names"):
            charge(ledger)

    def test_odd_names(self, tmp_path):
        for name in ("a?mode=memory", "b#c", "100%41", ":memory:", "sp ace", "é"):
            made = Ledger.create(tmp_path / name, 1.0)
            charge(made)
            assert len(state(tmp_path / name)) == 1
        assert {one.name for one in tmp_path.iterdir()} >= {"a?mode=memory", ":memory:", "100%41"}

    def test_messages_name_the_path_as_it_was_written(self, ledger, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        opened = Ledger.open("./visits.ledger")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir("elsewhere")
        assert charge(opened) == 1  # the same file, wherever the program goes
        with pytest.raises(InvalidArgument) as wrong:
            opened.check_adjacency(Guarantee(0.1, adjacency="replace"))
        opened.path.write_bytes(b"")
        with pytest.raises(LedgerFailure) as empty:
            charge(opened)
        with pytest.raises(LedgerFailure) as missing:
            Ledger.open(Path("missing.ledger"))
        for caught, name in ((wrong, "./visits.ledger"), (empty, "./visits.ledger"), (missing, "missing.ledger")):
            assert repr(name) in str(caught.value)
            assert str(tmp_path) not in str(caught.value)
        assert empty.value.path == opened.path == tmp_path / "visits.ledger"

    def test_a_file_that_would_be_taken_for_its_journal(self, tmp_path, path):
        (tmp_path / "visits.ledger-journal").write_text("something else")
        with pytest.raises(LedgerFailure, match=r"has 'visits\.ledger-journal' beside it"):
            Ledger.create(path, 1.0)
        assert [one.name for one in tmp_path.iterdir()] == ["visits.ledger-journal"]

    @pytest.mark.parametrize(
        ("version", "said"),
        [(0, "Make a new one"), (1, "Make a new one"), (2, "Make a new one"), (4, "newer Crowdgram")],
    )
    def test_another_version(self, ledger, path, version, said):
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        for action in (lambda: Ledger.open(path), lambda: charge(ledger)):
            with pytest.raises(LedgerFailure, match=rf"schema version {version}.*{said}"):
                action()

    def test_another_journal(self, ledger, path):
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        with pytest.raises(LedgerFailure, match="another program"):
            charge(ledger)

    def test_another_ledger_in_its_place(self, ledger, path):
        for epsilon, delta in ((100.0, 0.0), (1.0, 1e-6)):
            path.unlink()
            Ledger.create(path, epsilon, delta)
            with pytest.raises(LedgerFailure, match="another one than was opened"):
                charge(ledger)
            assert state(path) == []

    def test_changed_figures_are_noticed(self, ledger, path):
        charge(ledger)
        charge(ledger)
        ledger.settle(1, [EVENT], "shown")
        content = path.read_bytes()
        for statement in (
            "UPDATE charges SET body = replace(body, '0.1', '0.0') WHERE number = 1",
            "UPDATE budget SET body = replace(body, '1.0', '9.0')",
            "UPDATE settlements SET body = replace(body, '0.1', '0.0')",
            "DELETE FROM charges WHERE number = 1",
            "DELETE FROM charges WHERE number = 2",
            "DELETE FROM budget",
            "DELETE FROM head",
            "UPDATE head SET number = 1",
        ):
            path.write_bytes(content)
            change(path, statement)
            assert path.read_bytes() != content
            with pytest.raises(LedgerFailure, match="damaged"):
                Ledger.open(path).history()
        path.write_bytes(content)
        assert len(state(path)) == 2

    def test_a_changed_document_is_noticed(self, ledger, path):
        charge(ledger)
        ledger.settle(1, [EVENT], "shown")
        change(path, "UPDATE documents SET content = x'00'")
        for action in (ledger.document, ledger.check):
            with pytest.raises(LedgerFailure, match="damaged"):
                action()

    @pytest.mark.slow
    def test_flipped_bits_never_make_it_cheaper(self, ledger, path, tmp_path):
        for turn in range(4):
            charge(ledger, label=f"number {turn}")
        ledger.settle(2, [EVENT], "shown " * 50)
        assert noticed_flips(path, tmp_path, state, 300, anywhere=True, seed=5) > 100

    def test_a_cut_file(self, ledger, path):
        charge(ledger)
        content = path.read_bytes()
        for size in (1, 100, 4096, len(content) // 2, len(content) - 4096):
            path.write_bytes(content[:size])
            with pytest.raises(LedgerFailure):
                state(path)

    def test_a_busy_ledger(self, ledger, path, monkeypatch):
        monkeypatch.setattr(module, "LOCK_SECONDS", 0.1)  # a lock is waited for no longer than this
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerFailure, match="another process has used it"):
            charge(ledger)
        other.execute("ROLLBACK")
        other.close()
        assert charge(ledger) == 1

    def test_a_full_disk(self, ledger, path):
        # No file may grow: the journal cannot be written, then the database cannot.
        charge(ledger)
        content, truth = path.read_bytes(), state(path)

        def limited(size, action):
            def run():
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
                action()

            return in_child(run)

        for size in (0, 600, len(content) // 2, len(content)):
            told = limited(size, lambda: [charge(ledger, label="x" * 400) for _ in range(30)])
            assert told.startswith("LedgerFailure"), told
            assert "disk is full" in told
            found = state(path)
            assert found[: len(truth)] == truth  # some may have fitted; none is half there
            ledger.check()
        told = limited(len(content), lambda: ledger.settle(1, [EVENT], os.urandom(10**6).hex()))
        assert told.startswith("LedgerFailure"), told
        assert not ledger.history()[0].finished
        path.unlink()
        told = limited(600, lambda: Ledger.create(path, 1.0))
        assert told.startswith("LedgerFailure"), told
        assert list(path.parent.iterdir()) == []  # a ledger is made whole or not at all

    def test_no_room_for_what_is_to_come(self, ledger, monkeypatch):
        # a disk that is nearly full
        monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 10**5))
        with pytest.raises(LedgerFailure, match=r"needs .* MB of room"):
            charge(ledger)
        assert ledger.history() == []

    def test_a_file_that_cannot_be_written(self):
        # In a folder of its own, which others may enter: root writes anywhere, so that a child becomes nobody.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "visits.ledger"
            charge(Ledger.create(path, 1.0))

            def as_nobody(action):
                def run():
                    if os.getuid() == 0:
                        os.setuid(65534)
                    action()

                return in_child(run)

            path.chmod(0o444)
            Path(folder).chmod(0o555)
            told = as_nobody(lambda: charge(Ledger.open(path)))
            assert told.startswith("LedgerFailure"), told
            assert "cannot be written" in told
            assert as_nobody(lambda: Ledger.open(path).history()) == "fine"  # looking is allowed
            path.chmod(0o400)
            if os.getuid() == 0:
                assert as_nobody(lambda: Ledger.open(path)).startswith("LedgerFailure")
            Path(folder).chmod(0o755)
            assert len(state(path)) == 1


SPENDER = """
import sys
from crowdgram.errors import BudgetExceeded
from crowdgram.privacy import Guarantee, LaplaceEvent, Ledger, Plan, cost_of
ledger, tenth = Ledger.open(sys.argv[1]), Guarantee(0.1)
plan = Plan((cost_of([LaplaceEvent("counts", 1, 10.0, 3)], tenth),))
sys.stdin.readline()
for _ in range(8):
    try:
        print(ledger.charge(plan, tenth, mechanism="laplace", weight="rows").number)
    except BudgetExceeded:
        print("refused")
"""


@pytest.mark.slow
def test_processes_cannot_spend_the_same_budget(ledger, path):
    children = [
        subprocess.Popen(
            [sys.executable, "-c", SPENDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for child in children:  # all start at once
        child.stdin.write("go\n")
        child.stdin.flush()
    told = [line for child in children for line in child.communicate(timeout=60)[0].split()]
    assert sorted(int(one) for one in told if one != "refused") == list(range(1, 11))
    assert told.count("refused") == 4 * 8 - 10
    assert len(ledger.history()) == 10


def test_a_crash_within_a_transaction_is_undone(ledger, path):
    charge(ledger)
    truth = state(path)

    def die():
        with ledger._writing() as connection:
            connection.execute("PRAGMA cache_spill = 1")
            connection.execute("PRAGMA cache_size = 1")
            connection.execute("INSERT INTO charges VALUES (2, 'half', 'half')")
            connection.execute("INSERT INTO documents VALUES (2, zeroblob(2000000))")  # spills into the file itself
            os._exit(1)

    in_child(die)
    assert path.with_name(path.name + "-journal").exists()  # it died in the middle
    assert stat.S_IMODE(path.with_name(path.name + "-journal").stat().st_mode) == 0o600
    assert state(path) == truth
    assert charge(ledger) == 2
