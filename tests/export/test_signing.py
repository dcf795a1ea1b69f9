"""Signatures of saved releases: what is covered, what is refused, and that others' tools agree."""

from __future__ import annotations

import base64
import json
import os
import stat
import sys

import pytest
from typer.testing import CliRunner

import crowdgram
from crowdgram.cli.app import app
from crowdgram.errors import (
    InvalidArgument,
    MissingDependency,
    SignatureFailure,
    UnreadableSource,
    UnwritableTarget,
)
from crowdgram.export import keys, signing
from crowdgram.synth import Crowd

pytest.importorskip("cryptography", reason="cryptography is not installed: pip install 'crowdgram[sign]'")
pytestmark = pytest.mark.filterwarnings("ignore::crowdgram.errors.AccuracyWarning")
CROWD = Crowd(users=40, rows=6, items=5, tail=0.5, seed=3, strings=True)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The text of a saved release, with a name outside of ASCII."""
    path = tmp_path_factory.mktemp("saved") / "r.json"
    domain = [*CROWD.item_names()[:-1], "naïve 😀"]
    crowdgram.release(
        CROWD.table(), user="user", item="item", epsilon=0.5, mechanism="laplace", domain=domain, max_rows_per_user=6
    ).save(path)
    return path.read_text()


@pytest.fixture
def folder(saved, tmp_path, monkeypatch):
    """A signed release with its key, in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.json").write_text(saved)
    crowdgram.make_key("me")
    crowdgram.sign("r.json", "me.key")
    return tmp_path


def command(*arguments, **more):
    return CliRunner().invoke(app, [str(one) for one in arguments], **more)


class TestKeys:
    def test_the_private_key_is_its_owners(self, folder):
        assert stat.S_IMODE((folder / "me.key").stat().st_mode) == 0o600
        assert sorted(os.listdir()) == ["me.key", "me.pub", "r.json", "r.json.sig"]
        text = keys.public_key("me.pub")
        assert text == keys.public_key("me.key") == keys.public_key(text)
        assert text.startswith("ed25519:")
        assert len(text) == 52

    @pytest.mark.parametrize("name", ["me.key", "me.pub"])
    def test_no_key_is_overwritten(self, folder, name):
        (folder / ("me.pub" if name == "me.key" else "me.key")).unlink()
        content = (folder / name).read_bytes()
        with pytest.raises(UnwritableTarget, match=f"{name}' exists, and a key is never overwritten"):
            crowdgram.make_key("me")
        assert (folder / name).read_bytes() == content
        assert not set(os.listdir()) - {name, "r.json", "r.json.sig"}

    def test_no_link_is_followed(self, folder):
        (folder / "link.key").symlink_to(folder / "elsewhere")
        with pytest.raises(UnwritableTarget):
            crowdgram.make_key("link")
        assert not (folder / "elsewhere").exists()

    def test_places_that_cannot_be(self, folder):
        with pytest.raises(UnwritableTarget, match="cannot be written"):
            crowdgram.make_key("none/me")

    @pytest.mark.parametrize("name", ["", ".", "none/", "a\0b"])
    def test_names_that_are_none(self, folder, name):
        before = sorted(os.listdir())
        with pytest.raises(UnwritableTarget, match="needs to be a name"):
            crowdgram.make_key(name)
        assert sorted(os.listdir()) == before

    @pytest.mark.parametrize("sign", [0, 0x80])
    def test_weak_keys(self, folder, sign):
        """By the neutral point as a key, this signature would hold for every message."""
        raw = b"\x01" + bytes(30) + bytes([sign])
        text = "ed25519:" + base64.b64encode(raw).decode()
        forged = json.loads((folder / "r.json.sig").read_text())
        forged |= {"public_key": text, "signature": base64.b64encode(b"\x01" + bytes(63)).decode()}
        (folder / "r.json.sig").write_text(json.dumps(forged))
        with pytest.raises(InvalidArgument, match="44 characters"):
            crowdgram.verify("r.json", text)
        with pytest.raises(UnreadableSource, match="damaged signature"):
            signing.check_signature("r.json", None)

    def test_a_passphrase(self, folder, monkeypatch):
        crowdgram.make_key("locked", "open, sesame")
        assert b"ENCRYPTED" in (folder / "locked.key").read_bytes()
        for given, words in ((None, "is encrypted"), ("wrong", "cannot be decrypted"), (lambda: "", "cannot be")):
            with pytest.raises(InvalidArgument, match=words):
                crowdgram.sign("r.json", "locked.key", "2.sig", passphrase=given)
        crowdgram.sign("r.json", "locked.key", "2.sig", passphrase="open, sesame")
        crowdgram.verify("r.json", "locked.pub", "2.sig")
        with pytest.raises(InvalidArgument, match="lone surrogates"):
            crowdgram.make_key("odd", "\udc80")
        monkeypatch.setenv("CROWDGRAM_PASSPHRASE", "open, sesame")
        assert command("sign", "r.json", "--key", "locked.key", "-o", "3.sig").exit_code == 0
        assert command("keys", "new", "also", "--passphrase").exit_code == 0
        assert b"ENCRYPTED" in (folder / "also.key").read_bytes()
        monkeypatch.delenv("CROWDGRAM_PASSPHRASE")
        told = command("sign", "r.json", "--key", "locked.key", "-o", "4.sig", input="open, sesame\n")
        assert told.exit_code == 0, told.output
        assert "sesame" not in told.output

    @pytest.mark.parametrize(
        "content",
        [b"", b"\xff\xfe", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", b"ed25519:AAAA"],
    )
    def test_what_is_no_key(self, folder, content):
        (folder / "bad").write_bytes(content)
        for action in (lambda: crowdgram.sign("r.json", "bad", "x.sig"), lambda: crowdgram.verify("r.json", "bad")):
            with pytest.raises(InvalidArgument, match=r"key='bad': needs to be an Ed25519 key in a PEM file"):
                action()
        assert not (folder / "x.sig").exists()

    def test_keys_of_another_kind(self, folder):
        from cryptography.hazmat.primitives import serialization as s
        from cryptography.hazmat.primitives.asymmetric import x25519

        other = x25519.X25519PrivateKey.generate()
        secret = other.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
        (folder / "x.key").write_bytes(secret)
        with pytest.raises(InvalidArgument, match="Ed25519"):
            crowdgram.sign("r.json", "x.key", "x.sig")
        (folder / "x.pub").write_bytes(
            other.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)
        )
        with pytest.raises(InvalidArgument, match=r"key='x\.pub': needs to be an Ed25519 key"):
            crowdgram.verify("r.json", "x.pub")

    def test_a_public_key_cannot_sign(self, folder):
        with pytest.raises(InvalidArgument, match="a private one is needed"):
            crowdgram.sign("r.json", "me.pub", "x.sig")

    @pytest.mark.parametrize("text", ["ed25519:", "ed25519:AAAA", "ed25519:" + "A" * 44, "ed25519:" + "é" * 44])
    def test_texts_that_are_no_key(self, folder, text):
        with pytest.raises(InvalidArgument, match="44 characters"):
            crowdgram.verify("r.json", text)

    def test_a_text_has_one_spelling(self, folder):
        """The last character of a base64 text has bits that count for nothing."""
        text = keys.public_key("me.pub")
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        last = alphabet.index(text[-2])
        other = f"{text[:-2]}{alphabet[last ^ 1]}="
        assert base64.b64decode(other[8:]) == base64.b64decode(text[8:])
        with pytest.raises(InvalidArgument, match="44 characters"):
            crowdgram.verify("r.json", other)

    def test_files_that_are_too_large(self, folder):
        with pytest.raises(UnreadableSource, match="too large"):
            crowdgram.verify("r.json", "/dev/zero")
        with pytest.raises(UnreadableSource, match="too large"):
            crowdgram.verify("r.json", "me.pub", "/dev/zero")

    def test_without_the_library(self, folder, monkeypatch):
        for name in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "cryptography", None)
        for action in (
            lambda: crowdgram.make_key("you"),
            lambda: crowdgram.sign("r.json", "me.key", "x.sig"),
            lambda: crowdgram.verify("r.json", "me.pub"),
        ):
            with pytest.raises(MissingDependency, match=r"pip install 'crowdgram\[sign\]'"):
                action()
        told = command("verify", "r.json")
        assert (told.exit_code, told.stdout) == (2, "")
        assert "crowdgram[sign]" in told.stderr


class TestSignatures:
    def test_what_is_verified_is_what_is_read(self, folder):
        assert crowdgram.verify("r.json", "me.pub") == crowdgram.load("r.json")
        assert crowdgram.verify("r.json", keys.public_key("me.key")) == crowdgram.load("r.json")

    def test_nobody_is_trusted_by_default(self, folder):
        with pytest.raises(InvalidArgument, match="may be anybody's"):
            crowdgram.verify("r.json", None)

    def test_the_message_is_documented(self, folder):
        """docs/reference/signature.md: anybody can check a signature without Crowdgram."""
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        document = json.loads((folder / "r.json").read_text())
        message = b"crowdgram-signature 1\n" + json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
        signature = json.loads((folder / "r.json.sig").read_text())
        assert set(signature) == {"schema", "schema_version", "algorithm", "public_key", "signature"}
        key = load_pem_public_key((folder / "me.pub").read_bytes())
        key.verify(base64.b64decode(signature["signature"]), message)

    def test_a_signature_of_before_is_read(self, folder):
        """RFC 8032's first secret key and a document that never changes: the format must not either."""
        document = {
            "b": [1, 1.0, 1e-07, 1e16, -0.0, True, None],
            "a": 'é😀\x7f"\\/\n',
            "ä": {"z": 0.1, "10": 2, "9": 1},
        }
        content = signing.canonical(document)
        assert content == (
            b'{"a":"\\u00e9\\ud83d\\ude00\\u007f\\"\\\\/\\n","b":[1,1.0,1e-07,1e+16,-0.0,true,null],'
            b'"\\u00e4":{"10":2,"9":1,"z":0.1}}'
        )
        public = (
            "ed25519:"
            + base64.b64encode(
                bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
            ).decode()
        )
        signed = bytes.fromhex(KNOWN)
        assert keys.holds(public, signed, signing.CONTEXT + content)
        assert not keys.holds(public, signed, content)

    def test_form_is_not_covered(self, folder):
        """A release that was printed, indented or sorted anew says the same."""
        document = json.loads((folder / "r.json").read_text())
        for text in (
            json.dumps(document),
            json.dumps(document, indent=4, sort_keys=True),
            json.dumps(dict(reversed(document.items())), ensure_ascii=False, indent="\t"),
        ):
            (folder / "r.json").write_text(text)
            assert crowdgram.verify("r.json", "me.pub")
        told = command("export", "r.json", "-o", "-")
        (folder / "r.json").write_text(told.stdout)
        assert crowdgram.verify("r.json", "me.pub")

    @pytest.mark.parametrize(
        "change",
        [
            lambda d: d["probabilities"].__setitem__(0, d["probabilities"][0] * (1 + 2**-52)),
            lambda d: d["parameters"].__setitem__("note", "added"),
            lambda d: d.__setitem__("note", "a key that nobody reads"),
            lambda d: d["events"].append(d["events"][0]) or d["guarantee"].__setitem__("epsilon", 50.0),
            lambda d: d["items"].__setitem__(0, d["items"][0] + "\u200b"),
            lambda d: d["items"].__setitem__(4, "nai\u0308ve 😀"),
            lambda d: d["versions"].__setitem__("crowdgram", "9"),
            lambda d: d.__setitem__("ledger", {"id": "0" * 64, "number": 1, "head": "0" * 64}),
            lambda d: d.__setitem__("confidence", float(d["confidence"]) + 1e-12),
        ],
    )
    def test_every_value_is_covered(self, folder, change):
        document = json.loads((folder / "r.json").read_text())
        before = json.dumps(document)
        change(document)
        assert json.dumps(document) != before
        (folder / "r.json").write_text(json.dumps(document))
        with pytest.raises(SignatureFailure, match=r"'r\.json' is not what was signed"):
            crowdgram.verify("r.json", "me.pub")

    def test_an_integer_is_no_float(self, folder):
        document = json.loads((folder / "r.json").read_text())
        document["guarantee"]["delta"] = 0
        (folder / "r.json").write_text(json.dumps(document))
        with pytest.raises(SignatureFailure):
            crowdgram.verify("r.json", "me.pub")

    def test_a_key_that_is_there_twice(self, folder, saved):
        for more in ('"weight": "rows"', '"weight": "users"'):
            (folder / "r.json").write_text(saved.replace("{", "{" + more + ",", 1))
            with pytest.raises(UnreadableSource, match="not JSON"):
                crowdgram.verify("r.json", "me.pub")

    @pytest.mark.parametrize("more", ['"x": NaN', '"x": 1e999', '"x": ' + "[" * 2000 + "]" * 2000])
    def test_values_that_json_has_not(self, folder, saved, more):
        (folder / "r.json").write_text(saved.replace("{", "{" + more + ",", 1))
        with pytest.raises((UnreadableSource, SignatureFailure)):
            crowdgram.verify("r.json", "me.pub")

    def test_the_guarantee_is_recomputed(self, folder):
        """A signature by the right key, over a promise that the events do not keep: neither made nor believed."""
        document = json.loads((folder / "r.json").read_text())
        document["guarantee"]["epsilon"] = 0.1
        (folder / "r.json").write_text(json.dumps(document))
        with pytest.raises(UnreadableSource, match="events do not keep its guarantee"):
            crowdgram.sign("r.json", "me.key", "2.sig")
        signed = keys.read_private("me.key").sign(signing.CONTEXT + signing.canonical(document))
        forged = json.loads((folder / "r.json.sig").read_text()) | {"signature": base64.b64encode(signed).decode()}
        (folder / "2.sig").write_text(json.dumps(forged))
        with pytest.raises(UnreadableSource, match="events do not keep its guarantee"):
            crowdgram.verify("r.json", "me.pub", "2.sig")

    def test_another_key(self, folder):
        crowdgram.make_key("eve")
        crowdgram.sign("r.json", "eve.key", overwrite=True)
        with pytest.raises(
            SignatureFailure, match=r"is signed by ed25519:.*, and not by the key that was given"
        ) as caught:
            crowdgram.verify("r.json", "me.pub")
        assert caught.value.path.name == "r.json"
        # and if she says that it is of the other key
        forged = json.loads((folder / "r.json.sig").read_text()) | {"public_key": keys.public_key("me.pub")}
        (folder / "r.json.sig").write_text(json.dumps(forged))
        with pytest.raises(SignatureFailure, match="not what was signed"):
            crowdgram.verify("r.json", "me.pub")

    def test_a_signature_of_another_release(self, folder, saved):
        document = json.loads(saved)
        document["parameters"]["released_on"] = "2020-01-01"
        (folder / "other.json").write_text(json.dumps(document))
        crowdgram.sign("other.json", "me.key")
        with pytest.raises(SignatureFailure):
            crowdgram.verify("r.json", "me.pub", "other.json.sig")

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda d: d | {"schema": "x"}, "no signature"),
            (lambda d: [], "no signature"),
            (lambda d: d | {"schema_version": 2}, "newer"),
            (lambda d: d | {"schema_version": True}, "newer"),
            (lambda d: d | {"schema_version": 1.0}, "newer"),
            (lambda d: d | {"algorithm": "none"}, "newer"),
            (lambda d: d | {"algorithm": None}, "newer"),
            (lambda d: d | {"signature": d["signature"][:-4]}, "damaged"),
            (lambda d: d | {"signature": "é"}, "damaged"),
            (lambda d: d | {"signature": 7}, "damaged"),
            (lambda d: d | {"public_key": None}, "damaged"),
            (lambda d: d | {"public_key": "me.pub"}, "damaged"),
            (lambda d: d | {"public_key": "ed25519:AAAA"}, "damaged"),
            (lambda d: d | {"note": 1}, "damaged"),
            (lambda d: {name: d[name] for name in d if name != "signature"}, "damaged"),
        ],
    )
    def test_damaged_signatures(self, folder, change, words):
        (folder / "r.json.sig").write_text(json.dumps(change(json.loads((folder / "r.json.sig").read_text()))))
        for key in ("me.pub", None):
            with pytest.raises(UnreadableSource, match=words):
                signing.check_signature("r.json", key)

    def test_signatures_that_are_no_text(self, folder):
        for content, words in ((b"\xff", "damaged"), (b"", "not JSON"), (b"{" * 60_000, "not JSON")):
            (folder / "r.json.sig").write_bytes(content)
            with pytest.raises(UnreadableSource, match=words):
                crowdgram.verify("r.json", "me.pub")

    def test_no_signature(self, folder):
        (folder / "r.json.sig").unlink()
        with pytest.raises(UnreadableSource, match=r"'r\.json\.sig' cannot be read"):
            crowdgram.verify("r.json", "me.pub")

    def test_nothing_is_overwritten(self, folder):
        content = (folder / "r.json.sig").read_bytes()
        with pytest.raises(UnwritableTarget, match="exists"):
            crowdgram.sign("r.json", "me.key")
        for target in ("r.json", "me.key"):
            told = command("sign", "r.json", "--key", "me.key", "-o", target, "--force")
            assert told.exit_code == 2
            assert "needs to be no input" in told.stderr
        assert (folder / "r.json.sig").read_bytes() == content
        assert command("sign", "r.json", "--key", "me.key", "--force").exit_code == 0

    def test_older_readers_read_a_signed_release(self, folder, saved):
        assert (folder / "r.json").read_text() == saved


class TestCommands:
    def test_from_end_to_end(self, folder):
        told = command("keys", "new", "you")
        assert told.exit_code == 0, told.output
        text = command("keys", "show", "you.pub").stdout.strip()
        assert text in told.stdout
        assert command("sign", "r.json", "--key", "you.key", "-o", "by-you.sig").exit_code == 0
        told = command("verify", "r.json", "--key", text, "--signature", "by-you.sig")
        assert (told.exit_code, told.stderr) == (0, "")
        assert f"r.json is what {text} signed." in told.stdout
        assert "epsilon 0.5" in told.stdout
        told = command("verify", "r.json", "--key", "me.pub", "--json")
        assert json.loads(told.stdout)["trusted"] is True

    def test_without_a_key_there_is_a_warning(self, folder):
        told = command("verify", "r.json")
        assert told.exit_code == 0
        assert "may be anybody's" in told.stderr
        assert json.loads(command("verify", "r.json", "--json").stdout)["trusted"] is False

    def test_what_does_not_hold_exits_with_1(self, folder, saved):
        command("keys", "new", "you")
        told = command("verify", "r.json", "--key", "you.pub")
        assert (told.exit_code, told.stdout) == (1, "")
        (folder / "r.json").write_text(saved.replace('"released_on": "20', '"released_on": "19'))
        told = command("verify", "r.json", "--key", "me.pub")
        assert (told.exit_code, told.stdout) == (1, "")
        assert "is not what was signed" in told.stderr

    @pytest.mark.parametrize(
        "arguments",
        [
            ("verify", "none.json"),
            ("verify", "r.json", "--key", "none.pub"),
            ("verify", "r.json", "--key", "r.json"),
            ("verify", "r.json", "--signature", "me.pub"),
            ("sign", "r.json", "--key", "me.pub"),
            ("sign", "me.key", "--key", "me.key"),
            ("sign", "r.json", "--key", "none"),
            ("sign", "r.json", "--key", "me.key", "-o", "-"),
            ("keys", "new", "me"),
            ("keys", "show", "r.json"),
        ],
    )
    def test_mistakes_exit_with_2_and_one_line(self, folder, arguments):
        told = command(*arguments)
        assert (told.exit_code, told.stdout) == (2, "")
        assert told.stderr.startswith("error: ")
        assert "unexpected" not in told.stderr
        assert "PRIVATE KEY" not in told.output


KNOWN = (
    "401d592af49f150053eea65e14b581ec476f9793ca2add6ff80b4b1865966172"
    "5a1be82ee384f6d5bc601a373cd25c56b30bb431e7c32e0b18148535c729cb06"
)
