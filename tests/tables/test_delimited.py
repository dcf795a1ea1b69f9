"""CSV files: whatever one user's fields hold, the rows of all others are read as they stand."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
from collections import Counter
from encodings.aliases import aliases
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdgram import Csv
from crowdgram.errors import CrowdgramError, InvalidArgument, UnreadableSource
from crowdgram.tables import delimited, open_rows, tally_rows
from crowdgram.tables.delimited import read_header

from ..thorough import examples

DELIMITERS = [",", ";", "|", "^", "]", "\\", "-", "\x01"]
FORGED = "\nvictim,evil\n"


def line(*fields, end="\n", delimiter=","):
    text = io.StringIO()
    csv.writer(text, lineterminator=end, delimiter=delimiter).writerow(fields)
    return text.getvalue().encode()


def users(path):
    """How many rows each user has, as a release would count them."""
    rows = open_rows(path, user="who", item="what")
    with rows.engine as engine:
        table = tally_rows(rows).table
        found = engine.fetch(table.group_by("user").agg(n=table.n.sum()), "testing")
    return dict(zip(found["user"].to_pylist(), found["n"].to_pylist(), strict=True))


def read(path, columns=("who", "what"), delimiter=","):
    table = delimited.delimited([str(path)], delimiter, read_header(str(path), delimiter), columns).read_all()
    return Counter(zip(*(table[name].to_pylist() for name in columns), strict=True))


def cut(chunk, limit=delimited.RECORD_LIMIT):
    """Files are read in pieces of so many bytes. A patch: no file of a test is as long as a real piece or record."""
    return mock.patch.multiple(delimited, CHUNK=chunk, FIRST_READ=max(chunk, 4), RECORD_LIMIT=limit)


@pytest.mark.slow
@pytest.mark.parametrize("place", [8_000_000, 2**23, 16_000_000], ids=str)
@pytest.mark.parametrize("size", [300, 300_000], ids=str)
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_a_quoted_field_over_any_boundary_changes_nobody_elses_rows(tmp_path, place, size, suffix):
    honest = b"".join(b"user%04d,item-%040d\n" % (j, j) for j in range(1000))
    before = (place - size // 2) // len(honest)
    path = tmp_path / f"t.{suffix}"
    attack = line("attacker", "x" * ((place - size // 2) % len(honest))) + line("attacker", FORGED * (size // 13))
    text = b"who,what\n" + honest * before + attack + honest * 40
    path.write_bytes(gzip.compress(text, 1) if suffix.endswith("gz") else text)
    assert users(path) == {f"user{j:04d}": before + 40 for j in range(1000)} | {"attacker": 2}


@pytest.mark.parametrize("quoted", [True, False])
def test_a_record_above_the_limit_is_left_out_and_no_other(tmp_path, quoted):
    long = b'attacker,"' + FORGED.encode() * (delimited.RECORD_LIMIT // 13 + 1) + b'"\n'
    text = b"who,what\n" + b"a,x\n" * 5 + (long if quoted else long.replace(b"\n", b"").replace(b'"', b"") + b"\n")
    (tmp_path / "t.csv").write_bytes(text + b"b,x\n" * 7)
    assert users(tmp_path / "t.csv") == {"a": 5, "b": 7}


def test_a_quoted_field_may_begin_where_a_record_above_the_limit_is_cut(tmp_path):
    for size in range(20, 50):  # one of them ends at an end of what is read
        long = line("attacker", "x" * size, "\nvictim,evil,n\n")
        (tmp_path / "t.csv").write_bytes(b"who,what,note\n" + long + b"a,x,n\n")
        with cut(10, 30):
            assert read(tmp_path / "t.csv") == {("a", "x"): 1}


PIECES = [
    "\n",
    "\r",
    "\r\n",
    '"',
    '""',
    ",",
    "a",
    FORGED,
    '"\nvictim,"x',
    "é",
    " ",
    ",,,",
    "\r\nvictim,evil\r\n",
    "x" * 50,
]
ODD = [
    b"attacker,\xff",
    b'attacker,"\xff\nvictim,evil\n\xfe"',
    b"attacker,a,b,c",
    b"attacker",
    b"",
    b"attacker,a\rvictim,evil",
    b"attacker,a\r",
    b'attacker,"a\nvictim,evil\n",q,r',
    b'attacker,"a"b"c',
    b'attacker,a"b',
    b'"attacker"z,a',
    b'attacker,"' + b"q\nvictim,evil\n" * 70 + b'"',
    b'attacker,"' + b'""' * 400 + b'"',
    b"attacker," + b"q" * 900,
]
written = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


@pytest.mark.slow
@examples(100, 3000)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["a", "b\nc", 'd"e', "f,g", "é", "h\ri"]), st.none() | written | st.sampled_from(ODD)
        ),
        min_size=1,
        max_size=25,
    ),
    end=st.sampled_from(["\n", "\r\n"]),
    chunk=st.sampled_from([1, 7, 50, 600]),
    more=st.sampled_from([1, 50, 1000]),
    bom=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    delimiter=st.sampled_from(DELIMITERS),
)
def test_a_user_changes_no_rows_but_their_own(tmp_path_factory, rows, end, chunk, more, bom, delimiter):
    honest, text = Counter(), bom + line("who", "what", end=end, delimiter=delimiter)
    for place, (item, attack) in enumerate(rows):
        honest[f"u{place}", item] += 1
        text += b'u%d%b"%b"' % (place, delimiter.encode(), item.replace('"', '""').encode()) + end.encode()
        if isinstance(attack, str):
            text += line("attacker", attack, end=end, delimiter=delimiter)
        elif attack is not None:
            text += attack.replace(b",", delimiter.encode()) + end.encode()
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(text)
    limit = max(300, chunk + more)
    with cut(chunk, limit):
        found = read(path, delimiter=delimiter)
    mine = {row: n for row, n in found.items() if row[0] is not None and row[0].startswith("attacker")}
    assert Counter({row: n for row, n in found.items() if row not in mine}) == honest
    with cut(delimited.CHUNK, limit):
        assert read(path, delimiter=delimiter) == found  # and where a file is cut plays no part


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('who,what\na,"x ""y"""\n', [("a", 'x "y"')]),
        ('who,what\na,x "y"\n', [("a", 'x "y"')]),
        ('who,what\na,"x"y\n', [("a", "xy")]),
        ("who,what\na,x\ry\n", [("a", "x\ry")]),
        ("who,what\na,x\r\n", [("a", "x\r")]),
        ("who,what\r\na,x\r\n", [("a", "x")]),
        ("who,what\r\na,x\r\r\n", [("a", "x\r")]),
        ("who,what\r\na,x\n", [("a", "x")]),
        ("who,what\na,x", [("a", "x")]),
        ('who,what\na,"x', []),
        ('who,what\na,x\nb,"y\nc,z\n', [("a", "x")]),
        ('who,what\n\n"",x\na,""\n', [(None, "x"), ("a", None)]),
        ('"wh\no",what\na,x\n', [("a", "x")]),
        ("who,what\na,x\0y\n", [("a", "x\0y")]),
        ("who,what\n", []),
        ("who,what", []),
    ],
)
def test_what_a_field_is(tmp_path, text, found):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    header = read_header(str(path), ",")
    for chunk in (1, 2, 2**23):
        with cut(chunk):
            assert read(path, header) == Counter(found)


def test_tabs(tmp_path):
    (tmp_path / "t.tsv").write_text('who\twhat\na\tx,"y"\n"b\tc"\tz\n')
    assert read(tmp_path / "t.tsv", delimiter="\t") == Counter([("a", 'x,"y"'), ("b\tc", "z")])


def test_a_record_of_another_width_that_is_no_text_is_left_out(tmp_path, capfd):
    """Arrow decodes such a record before it asks whether to skip it, and fails."""
    file = tmp_path / "odd.csv"
    file.write_bytes(b"who,what\na,x\nmallory,caf\xe9,more\nb,caf\xe9\nc,y\n")
    assert read(file) == Counter({("a", "x"): 1, ("b", None): 1, ("c", "y"): 1})
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("before", [b"", b"3,w\n", b"3,w\n" * 9])
def test_a_byte_order_mark_is_text_wherever_a_block_begins(tmp_path, before):
    file = tmp_path / "marked.csv"
    file.write_bytes(b"who,what\n" + before + b"\xef\xbb\xbf1,x\n1,y\n")
    with cut(8):
        found = read(file)
    del found["3", "w"]
    assert found == Counter({("\ufeff1", "x"): 1, ("1", "y"): 1})


# --- delimiters and encodings of one's own


@pytest.mark.parametrize("delimiter", [*DELIMITERS, "\t", " ", "a"])
def test_any_delimiter(tmp_path, delimiter):
    path = tmp_path / "t.txt"
    rows = [("u1", 'x"y'), ("u2", f"x{delimiter}y"), ("u3", "x\ny"), ("u3", ",")]
    path.write_bytes(b"".join(line(*row, delimiter=delimiter) for row in [("who", "wh@t"), *rows]))
    found = open_rows(Csv(path, delimiter=delimiter), user="who", item="wh@t")
    with found.engine as engine:
        table = engine.fetch(found.table, "testing")
    assert Counter(zip(table["user"].to_pylist(), table["item"].to_pylist(), strict=True)) == Counter(rows)


def test_a_field_that_is_no_text_in_the_encoding_is_missing(tmp_path):
    """And nothing else: byte 0x81 is no character of cp1252, and one of latin-1."""
    path = tmp_path / "t.csv"
    path.write_bytes(b'who,what\nJ\xfcrgen,caf\xe9\nb,\x81\nc,\x80\n\x81,y\n\x81,y,z\nd,"\xe9\n"\n')
    for chunk in (1, 7, 2**23):
        with cut(chunk):
            assert users(Csv(path, encoding="cp1252")) == {"J\u00fcrgen": 1, "c": 1, "d": 1}
    assert users(Csv(path, encoding="latin-1")) == {"J\u00fcrgen": 1, "b": 1, "c": 1, "\x81": 1, "d": 1}
    assert users(Csv(path, encoding="ascii")) == {}
    path.write_bytes(b"who,what\n\xc3\xbe,x\na,x\n")  # two bytes that are no characters of iso-8859-3, and one of UTF-8
    assert users(Csv(path, encoding="iso-8859-3")) == {"a": 1}
    assert users(Csv(path)) == {"\u00fe": 1, "a": 1}
    path.write_bytes(b"who,what\n\xe9,x\n")
    assert users(Csv(path)) == {}
    assert users(path) == {}


def taken():
    """What Python has of encodings that serve."""
    for name in sorted(set(aliases.values())):
        with contextlib.suppress(InvalidArgument):
            yield Csv("t.csv", encoding=name).encoding


@pytest.mark.parametrize(
    "name", ["latin-1", "windows-1251", "ISO-8859-15", "us-ascii", *sorted(set(taken()) - {"utf-8"})]
)
def test_every_byte_is_a_character_of_its_own(name):
    """So that no delimiter, quote or line feed is a part of one."""
    codec = Csv("t.csv", encoding=name).encoding
    assert bytes(range(128)).decode(codec) == "".join(map(chr, range(128)))
    assert len(bytes(range(256)).decode(codec, errors="replace")) == 256
    for high in range(128, 256):
        assert len(bytes([high, 0x22]).decode(codec, errors="replace")) == 2


@pytest.mark.parametrize(
    "name", ["utf-16", "utf-7", "shift_jis", "gbk", "big5", "cp037", "cp500", "cp864", "hex", "rot13", "none", 7, ""]
)
def test_encodings_that_cannot_serve(name):
    with pytest.raises(InvalidArgument, match=f"encoding={name!r}: needs to be 'utf-8'"):
        Csv("t.csv", encoding=name)


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n", "\r", "\0", "\u00a7", 7])
def test_delimiters_that_cannot_serve(delimiter):
    with pytest.raises(InvalidArgument, match=r"delimiter=.*needs to be one ASCII character"):
        Csv("t.csv", delimiter=delimiter)


def test_files_that_are_no_csv(tmp_path):
    for path in (7, [], [7], None):
        with pytest.raises(InvalidArgument, match=r"path=.*needs a path"):
            Csv(path)
    with pytest.raises(UnreadableSource, match="is no CSV by its name"):
        open_rows(Csv(tmp_path / "t.parquet", delimiter=";"), user="who", item="what")
    with pytest.raises(CrowdgramError, match="no file matches it"):
        open_rows(Csv(tmp_path / "t.csv", delimiter=";"), user="who", item="what")


def test_tabs_by_name_and_several_files(tmp_path):
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_bytes("who\twhat\n\u00fc\tx\n".encode("latin-1"))
    (tmp_path / "c.tsv.gz").write_bytes(gzip.compress("who\twhat\n\u00fc\tx\n".encode("latin-1")))
    (tmp_path / "d.csv").write_bytes((tmp_path / "a.tsv").read_bytes())
    named = [tmp_path / name for name in ("[ab].tsv", "c.tsv.gz")]
    assert users(Csv(named, encoding="latin-1")) == {"\u00fc": 3}
    with pytest.raises(UnreadableSource, match="another kind"):
        users(Csv([*named, tmp_path / "d.csv"], encoding="latin-1"))
    assert users(Csv([*named, tmp_path / "d.csv"], delimiter="\t", encoding="latin-1")) == {"\u00fc": 4}
