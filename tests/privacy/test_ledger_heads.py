"""Ledgers that were turned back, cut off, copied or rewritten, and the file systems that they may be on."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from dataclasses import replace

import pytest

from crowdgram.errors import InvalidArgument, LedgerFailure
from crowdgram.privacy import Guarantee, LaplaceEvent, Ledger, LedgerHead, Plan, cost_of, file_systems
from crowdgram.privacy.ledger_file import body_of

from .forging import change, rewrite, rows

TENTH = Guarantee(0.1)
EVENT = LaplaceEvent("counts", 1, 10.0, 3)
PLAN = Plan((cost_of([EVENT], TENTH),))
MONTH = {"every": "month", "epsilon_overall": 2.0}


def charge(ledger):
    return ledger.charge(PLAN, TENTH, mechanism="laplace", weight="rows")


class TestHeads:
    def test_a_head_counts_and_chains(self, ledger):
        heads = [ledger.head(), *(charge(ledger) for _ in range(3))]
        assert [head.number for head in heads] == [0, 1, 2, 3]
        assert {head.ledger for head in heads} == {heads[0].digest}
        assert len({head.digest for head in heads}) == 4
        assert ledger.head() == ledger.check(heads) == heads[-1]
        ledger.settle(2, [EVENT], "shown")  # when a release ends depends on the table: the head does not
        assert ledger.check(str(head) for head in heads) == heads[-1]
        assert ledger.check([head.digest for head in heads]) == heads[-1]

    def test_a_head_is_hidden(self, tmp_path):
        """Neither the time nor the label can be guessed from the digest, which is public."""
        one, two = (charge(Ledger.create(tmp_path / name, 1.0)) for name in "ab")
        assert one.ledger != two.ledger
        assert len({row["salt"] for name in "ab" for row in rows(tmp_path / name, "charges").values()}) == 2

    def test_a_restored_copy(self, ledger, path, tmp_path):
        early = charge(ledger)
        shutil.copy(path, tmp_path / "backup")
        late = charge(ledger)
        shutil.copy(tmp_path / "backup", path)
        found = Ledger.open(path)
        assert found.check([early]) == early  # nobody kept a later head: nothing can be told
        for head in (late, str(late)):
            with pytest.raises(LedgerFailure, match="has 1 charges, and had 2: it is an older copy"):
                found.check([early, head])
        with pytest.raises(LedgerFailure, match="has never stood at"):
            found.check([late.digest])
        other = charge(found)  # and the restored one goes its own way
        assert other.number == late.number
        with pytest.raises(LedgerFailure, match=r"has never stood at 2:[0-9a-f]{64}"):
            found.check([late])

    def test_a_ledger_that_is_open_remembers(self, ledger, path, tmp_path):
        charge(ledger)
        shutil.copy(path, tmp_path / "backup")
        late = charge(ledger)
        shutil.copy(tmp_path / "backup", path)
        for action in (lambda: charge(ledger), ledger.history, ledger.check, lambda: ledger.settle(1, [EVENT], "x")):
            with pytest.raises(LedgerFailure, match="has 1 charges, and had 2"):
                action()
        # Charged anew by somebody else: number 2 is another charge now.
        charge(Ledger.open(path))
        with pytest.raises(LedgerFailure, match="has never stood at"):
            Ledger.open(path).settle(late, [EVENT], "x")
        with pytest.raises(LedgerFailure, match="has never stood at"):
            ledger.spent()
        assert not any(entry.finished for entry in Ledger.open(path).history())

    def test_a_ledger_remembers_from_when_it_is_opened(self, ledger, path, tmp_path):
        shutil.copy(path, tmp_path / "backup")
        charge(ledger)
        opened = [Ledger.open(path) for _ in range(3)]  # none of them has looked at a charge
        shutil.copy(tmp_path / "backup", path)
        for one, action in zip(opened, (charge, Ledger.history, Ledger.check), strict=True):
            with pytest.raises(LedgerFailure, match="has 0 charges, and had 1"):
                action(one)
        assert Ledger.open(path).history() == []

    @pytest.mark.parametrize("change_of_head", ["DELETE FROM head", "UPDATE head SET number = 'x'"])
    def test_a_ledger_without_a_head_is_not_opened(self, ledger, path, change_of_head):
        change(path, change_of_head)
        with pytest.raises(LedgerFailure, match="is damaged"):
            Ledger.open(path)

    def test_a_last_charge_is_cut_off_by_plain_sql(self, ledger, path):
        """The head is set back by what the file holds: no digest is computed. It is as an older copy is."""
        early, late = charge(ledger), charge(ledger)
        change(path, "DELETE FROM charges WHERE number = 2")
        with pytest.raises(LedgerFailure, match="is damaged"):
            charge(Ledger.open(path))
        change(path, "UPDATE head SET number = 1, digest = (SELECT digest FROM charges WHERE number = 1)")
        assert Ledger.open(path).check([early]) == early
        with pytest.raises(LedgerFailure, match="had 2: it is an older copy, or was cut off"):
            Ledger.open(path).check([late])

    def test_two_copies_that_are_both_used(self, ledger, path, tmp_path):
        charge(ledger)
        shutil.copy(path, tmp_path / "copy")
        mine, theirs = charge(ledger), charge(Ledger.open(tmp_path / "copy"))
        for head in (theirs, theirs.digest):
            with pytest.raises(LedgerFailure, match="never stood"):
                ledger.check([mine, head])

    def test_another_ledger(self, ledger, tmp_path):
        other = Ledger.create(tmp_path / "other", 1.0, 1e-6)
        with pytest.raises(LedgerFailure, match="is another ledger"):
            ledger.check([other.head()])
        with pytest.raises(LedgerFailure, match="never stood"):
            ledger.check([str(other.head())])

    @pytest.mark.parametrize(
        "head", ["", "3", "x:" + "0" * 64, ":" + "0" * 64, "-1:" + "0" * 64, "1:" + "A" * 64, "٣:" + "0" * 64, 7, None]
    )
    def test_what_is_no_head(self, ledger, head):
        with pytest.raises(InvalidArgument, match="needs to be a head as"):
            ledger.check([head])

    @pytest.mark.parametrize(
        "values", [{"number": -1}, {"number": 2**63}, {"number": True}, {"number": 1.0}, {"digest": "x"}, {"ledger": 7}]
    )
    def test_heads_are_checked(self, ledger, values):
        with pytest.raises(InvalidArgument, match="its ledger head needs"):
            replace(ledger.head(), **values)
        assert LedgerHead.from_dict(ledger.head().to_dict()) == ledger.head()
        with pytest.raises(InvalidArgument, match="nothing else"):
            LedgerHead.from_dict({**ledger.head().to_dict(), "more": 1})


class TestForgers:
    """Somebody who can write the file, and makes every digest right again."""

    def test_a_charge_that_is_cut_off_or_taken_out(self, ledger, path):
        heads = [charge(ledger) for _ in range(3)]
        content = path.read_bytes()
        for number in (1, 2, 3):
            path.write_bytes(content)
            rewrite(path, charges={number: None})
            found = Ledger.open(path)
            assert len(found.history()) == 2
            assert found.check(heads[: number - 1]).number == 2  # older heads are there
            with pytest.raises(LedgerFailure, match="older copy"):
                found.check(heads[-1:])

    def test_charges_that_change_places(self, ledger, path):
        heads = [charge(ledger) for _ in range(2)]
        bodies = rows(path, "charges")
        rewrite(path, charges={1: bodies[2], 2: bodies[1]})
        for head in heads:
            with pytest.raises(LedgerFailure, match="never stood"):
                Ledger.open(path).check([head])

    def test_a_larger_budget_is_another_ledger(self, ledger, path, tmp_path):
        head = charge(ledger)
        Ledger.create(tmp_path / "large", 90.0, 1e-6)
        rewrite(path, budget=rows(tmp_path / "large", "budget")[1])
        with pytest.raises(LedgerFailure, match="is another ledger"):
            Ledger.open(path).check([head])
        for action in (lambda: charge(ledger), ledger.check):
            with pytest.raises(LedgerFailure, match="another one than was opened"):
                action()

    @pytest.mark.parametrize("terms", [{}, MONTH])
    def test_charges_beyond_the_budget(self, path, terms):
        Ledger.create(path, 1.0, 1e-6, **terms)
        ledger = Ledger.open(path, period="2026-11" if terms else None)
        for _ in range(10):
            charge(ledger)
        ledger.check()
        one = rows(path, "charges")[1]
        rewrite(path, charges={11: {**one, "salt": "0" * 32}})
        assert len(Ledger.open(path).history()) == 11
        with pytest.raises(LedgerFailure, match="charge 11 does not fit its budget"):
            Ledger.open(path).check()

    def test_charges_beyond_the_overall_limit(self, path):
        Ledger.create(path, 1.0, 1e-6, **MONTH)
        for month in ("2026-10", "2026-11"):
            for _ in range(10):
                charge(Ledger.open(path, period=month))
        Ledger.open(path).check()
        rewrite(path, charges={21: {**rows(path, "charges")[1], "period": "2026-12"}})
        with pytest.raises(LedgerFailure, match="charge 21 does not fit"):
            Ledger.open(path).check()

    @pytest.mark.parametrize("name", ["composition", "overall_composition"])
    def test_another_composition(self, path, name):
        Ledger.create(path, 1.0, 1e-6, **MONTH)
        charge(Ledger.open(path, period="2026-11"))
        rewrite(path, charges={1: {**rows(path, "charges")[1], name: "plain"}})
        with pytest.raises(LedgerFailure, match="charge 1 does not fit"):
            Ledger.open(path).check()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "body",
        [
            lambda body: body.replace('"label": ""', '"label": "", "label": ""'),  # a key twice
            lambda body: body.replace('"label": ""', '"label":""'),
            lambda body: body.replace("0.1", "1e-1"),
            lambda body: body.replace("0.1", "0.10000000000000001"),
            lambda body: body.replace('"delta": 0.0', '"delta": NaN'),
            lambda body: "[" * 100_000,
            lambda body: body_of({**json.loads(body), "label": {"a": 1}}),
            lambda body: body_of({**json.loads(body), "at": 7}),
            lambda body: body_of({**json.loads(body), "ways": []}),
            lambda body: body_of({**json.loads(body), "ways": [PLAN.ways[0].to_dict() | {"dimension": 10**400}]}),
            lambda body: body_of({**json.loads(body), "looks": "counts"}),
            lambda body: body_of({**json.loads(body), "looks": [[1]]}),
            lambda body: body_of({**json.loads(body), "known": 1}),
            lambda body: body_of({**json.loads(body), "guarantee": {**TENTH.to_dict(), "unit": "row"}}),
            lambda body: body_of({**json.loads(body), "guarantee": {**TENTH.to_dict(), "epsilon": 0.05}}),
            lambda body: body_of({**json.loads(body), "guarantee": {**TENTH.to_dict(), "adjacency": "replace"}}),
        ],
    )
    def test_bodies_that_no_ledger_writes(self, ledger, path, body):
        charge(ledger)
        old = body_of(rows(path, "charges")[1])
        new = body(old)
        assert new != old
        rewrite(path, charges={1: new})
        with pytest.raises(LedgerFailure, match="damaged"):
            Ledger.open(path).history()

    @pytest.mark.parametrize("box", [{"mu": -5.0}, {"mu": 0.0}, {"epsilon": -5.0}, {"epsilon": 5.0}, {"mu": 1e308}])
    def test_boxes_that_promise_nothing_and_hold_much(self, ledger, path, box):
        """Of a negative mu the curve is 0, and its square is large."""
        terms = rows(path, "budget")[1]
        boxes = [{"epsilon": 0.0, "mu": 0.1} | box]
        rewrite(path, budget={**terms, "filter": {**terms["filter"], "boxes": boxes}})
        with pytest.raises(LedgerFailure, match="damaged"):
            Ledger.open(path)

    def test_a_document_of_no_release(self, ledger, path):
        charge(ledger)
        change(path, "INSERT INTO documents VALUES (1, x'00')")
        with pytest.raises(LedgerFailure, match="damaged"):
            ledger.check()

    def test_a_settlement_above_its_plan(self, ledger, path):
        charge(ledger)
        ledger.settle(1, [EVENT], "shown")
        end = rows(path, "settlements")[1]
        rewrite(path, settlements={1: {**end, "cost": {**end["cost"], "pure": 0.2}}})
        with pytest.raises(LedgerFailure, match="damaged"):
            Ledger.open(path).history()

    def test_other_types_than_text(self, ledger, path):
        charge(ledger)
        content = path.read_bytes()
        for value in ("7", "x'7b7d'", "1.5"):
            path.write_bytes(content)
            change(path, f"UPDATE charges SET body = {value}")
            with pytest.raises(LedgerFailure, match="damaged"):
                Ledger.open(path).history()

    def test_a_document_that_cannot_be_unpacked(self, ledger, path):
        import hashlib

        charge(ledger)
        ledger.settle(1, [EVENT], "shown")
        for content in (b"no zlib", zlib.compress(b"\xff\xfe")):
            end = {**rows(path, "settlements")[1], "document": hashlib.sha256(content).hexdigest()}
            rewrite(path, settlements={1: end})
            change(path, ("UPDATE documents SET content = ?", (content,)))
            with pytest.raises(LedgerFailure, match="damaged"):
                Ledger.open(path).document(1)

    @pytest.mark.parametrize(
        "schema",
        [
            "CREATE TRIGGER t AFTER INSERT ON charges BEGIN DELETE FROM settlements; END",
            "CREATE TABLE more (x)",
            "CREATE VIEW v AS SELECT 1",
            "DROP TRIGGER charges_DELETE",
            "ALTER TABLE charges ADD COLUMN x",
            "CREATE INDEX i ON charges (body)",
        ],
    )
    def test_tables_and_triggers_of_others(self, ledger, path, schema):
        """A trigger, or a view in place of a table, could drop what is charged."""
        charge(ledger)
        with sqlite3.connect(path) as connection:
            connection.execute(schema)
        for action in (lambda: charge(ledger), lambda: Ledger.open(path)):
            with pytest.raises(LedgerFailure, match="tables or triggers that no ledger has"):
                action()


MOUNTS = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 27 0:40 / /net rw,relatime - nfs4 server:/data rw,vers=4.2
31 30 0:41 / /net/local rw - xfs /dev/sdb rw
32 27 0:42 / /with\040blank rw - cifs //server/share rw
33 27 0:43 / /twice rw - nfs server:/a rw
34 27 0:44 / /twice rw - tmpfs tmpfs rw
35 27 0:45 / /ssh rw - fuse.sshfs me@there: rw
36 27 0:46 / /crypt rw - fuse.gocryptfs /home/crypt rw
37 27 0:47 / /win rw - fuseblk /dev/sdc1 rw
a line that is none
"""


class TestFileSystems:
    @pytest.mark.parametrize(
        ("folder", "kind"),
        [
            ("/", "ext4"),
            ("/home/me", "ext4"),
            ("/net", "nfs4"),
            ("/net/me", "nfs4"),
            ("/network", "ext4"),
            ("/net/local/me", "xfs"),
            ("/with blank/me", "cifs"),
            ("/twice", "tmpfs"),
        ],
    )
    def test_kinds(self, folder, kind):
        assert file_systems.kind_of(folder, MOUNTS) == kind

    @pytest.mark.parametrize(
        ("folder", "kind"),
        [("/home", None), ("/net/a", "nfs4"), ("/ssh/a", "fuse.sshfs"), ("/crypt/a", None), ("/win/a", None)],
    )
    def test_networks(self, tmp_path, monkeypatch, folder, kind):
        (tmp_path / "mountinfo").write_text(MOUNTS)
        monkeypatch.setattr(file_systems, "MOUNTS", tmp_path / "mountinfo")  # a machine with these mounts
        assert file_systems.network_of(folder) == kind

    def test_elsewhere_nothing_is_known(self, tmp_path, monkeypatch):
        monkeypatch.setattr(file_systems, "MOUNTS", tmp_path / "none")  # a machine with these mounts
        assert file_systems.network_of(tmp_path) is None

    def test_a_ledger_there_needs_its_makers_word(self, tmp_path, monkeypatch):
        local = Ledger.create(tmp_path / "local", 1.0)
        (tmp_path / "mountinfo").write_text(f"30 27 0:40 / {tmp_path} rw,relatime - nfs4 server:/data rw\n")
        monkeypatch.setattr(file_systems, "MOUNTS", tmp_path / "mountinfo")  # a machine with these mounts
        with pytest.raises(LedgerFailure, match=r"network .*\(nfs4\).*Nothing was charged\..*--network"):
            Ledger.create(tmp_path / "there", 1.0)
        assert not (tmp_path / "there").exists()
        with pytest.raises(LedgerFailure, match=r"network .*\(nfs4\)"):
            charge(local)
        assert local.history() == []  # looking is allowed
        made = Ledger.create(tmp_path / "there", 1.0, network=True)
        assert charge(Ledger.open(made.path)).number == 1

    def test_a_file_that_is_mounted_by_itself_is_not_charged(self, tmp_path, monkeypatch):
        """A volume of one file, as containers have: a crash elsewhere leaves a journal there, which later undid what
        was charged here, so that 1.8 of an epsilon of 1 were spent.
        """
        ledger = Ledger.create(tmp_path / "a ledger", 1.0)
        charge(ledger)
        mounted = str(ledger.path).replace(" ", r"\040")
        (tmp_path / "mountinfo").write_text(f"30 27 254:0 /home/l {mounted} rw,relatime - ext4 /dev/vda rw\n")
        monkeypatch.setattr(file_systems, "MOUNTS", tmp_path / "mountinfo")
        with pytest.raises(LedgerFailure, match=r"mounted by itself.*Nothing was charged\. Mount the ledger's folder"):
            charge(ledger)
        assert len(ledger.history()) == 1
        (tmp_path / "mountinfo").write_text(f"30 27 254:0 /home {tmp_path} rw,relatime - ext4 /dev/vda rw\n")
        assert charge(ledger).number == 2
