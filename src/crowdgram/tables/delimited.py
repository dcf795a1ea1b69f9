"""CSV and TSV files as a stream of Arrow batches, cut where records end and nowhere else.

One user's text must not decide how another's rows are read. Fast CSV readers guess where a record begins when they
start in the middle of a file, and a quoted field with line breaks in it makes them guess wrongly: then one row destroys
or forges others. So a file is read from its beginning, and cut into blocks of whole records by one grammar:

    record = field, {delimiter, field}, line feed
    field  = '"', any bytes with '""' for a quote, '"', plain   (text after the closing quote belongs to the field)
           | plain, if it does not start with a quote
    plain  = bytes without delimiter and line feed

If the header line ends in a carriage return and a line feed, a carriage return before a record's line feed is no part
of the field. All other quotes and carriage returns are text. Each block is then written in the form that all readers
understand alike (RFC 4180), most often as it stands, and parsed by Arrow.

The grammar is one of UTF-8. Files in an encoding of one byte for each character (`Csv`) are brought to UTF-8 byte by
byte as they are read; a byte that is no character becomes one that UTF-8 has nowhere.

Left out are records with another number of fields than the header has, and records above `RECORD_LIMIT` bytes. A field
that is empty or not UTF-8 is null. All of this depends on the record alone. A quote that is
never closed takes the rest of the file into its field.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import csv

from ..errors import InvalidArgument
from .arrow import UTF8, as_text

__all__ = ["Csv", "delimited", "read_header"]

CHUNK, FIRST_READ = 2**23, 2**16
"""Bytes that are read at once, and those that are read first, for the header line."""

RECORD_LIMIT = 2**24
"""The longest record that is read. Beyond CHUNK, so that only unusual blocks have to be searched for longer ones."""

_BOM = b"\xef\xbb\xbf"


_ONE_BYTE = re.compile("ascii|iso8859-[0-9]+|cp125[0-8]|cp437|cp85[0-8]|cp86[0-356]|koi8-[rtu]|mac-roman")
"""Encodings, as Python calls them, in which every byte is a character and the first 128 are ASCII."""


@dataclass(frozen=True)
class Csv:
    """Text files of fields with a delimiter or an encoding of their own.

    path: a path or glob, or a list of these, whatever the names end in. delimiter: one ASCII character; by default a
    comma, or a tab in files whose names end in .tsv. encoding: UTF-8, or one of one byte for each character, such as
    "latin-1" or "cp1252". A field that is no text in it is missing.
    """

    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
    delimiter: str | None = None
    encoding: str = UTF8

    def __post_init__(self) -> None:
        paths = self.path if isinstance(self.path, list | tuple) else [self.path]
        if not paths or not all(isinstance(one, str | os.PathLike) for one in paths):
            raise InvalidArgument(f"path={self.path!r}: needs a path or glob, or a list of these.", argument="path")
        given = self.delimiter
        usable = given is None or (isinstance(given, str) and len(given) == 1 and given.isascii())
        if not usable or given in ('"', "\r", "\n", "\0"):
            raise InvalidArgument(
                f"delimiter={given!r}: needs to be one ASCII character, and no quote or line break. Try ';'.",
                argument="delimiter",
            )
        object.__setattr__(self, "encoding", _codec(self.encoding))


def _codec(encoding: object) -> str:
    """What Python calls the encoding."""
    try:
        name = codecs.lookup(encoding).name if isinstance(encoding, str) else ""
    except (LookupError, ValueError):
        name = ""
    if name != UTF8 and not _ONE_BYTE.fullmatch(name):
        raise InvalidArgument(
            f"encoding={encoding!r}: needs to be 'utf-8', or an encoding of one byte for each character, such as "
            "'latin-1' or 'cp1252'. Convert the file to UTF-8 first.",
            argument="encoding",
        )
    return name


def delimited(
    paths: Sequence[str], delimiter: str, header: Sequence[str], columns: Sequence[str], encoding: str = UTF8
) -> pa.RecordBatchReader:
    """The `columns` of all records but the header lines, as strings. Files are opened when rows are asked for."""
    schema = pa.schema([(name, pa.string()) for name in columns])
    batches = (_batches(path, delimiter.encode(), header, columns, encoding) for path in paths)
    return pa.RecordBatchReader.from_batches(schema, chain.from_iterable(batches))


def read_header(path: str, delimiter: str, encoding: str = UTF8) -> list[str] | None:
    """The names in the header line; None if there is no such line."""
    with _open(path, encoding) as file:
        record, _ = _first(file, delimiter.encode())
    if record is None:
        return None
    fields = _grammar(delimiter.encode(), crlf=record.endswith(b"\r\n")).fields(record)
    return [field.decode(errors="replace") for field in fields]


@contextmanager
def _open(path: str, encoding: str) -> Iterator[Any]:
    """The file, whose `read` gives UTF-8."""
    with gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb") as file:
        yield file if encoding == UTF8 else _Recoded(file, encoding)


class _Recoded:
    """A file of one byte for each character, in UTF-8."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._file, self._encoding = file, encoding

    def read(self, size: int) -> bytes:
        text: str = self._file.read(size).decode(self._encoding, errors="surrogateescape")
        return text.encode(errors=_NO_CHARACTER)


_NO_CHARACTER = "crowdgram-no-character"
codecs.register_error(_NO_CHARACTER, lambda error: (b"\xff" * (error.end - error.start), error.end))  # type: ignore[attr-defined]


def _batches(
    path: str, delimiter: bytes, header: Sequence[str], columns: Sequence[str], encoding: str
) -> Iterator[pa.RecordBatch]:
    names = [str(place) for place in range(len(header))]
    parse = csv.ParseOptions(
        delimiter=delimiter.decode(), newlines_in_values=True, invalid_row_handler=lambda _: "skip"
    )
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.binary()),
        include_columns=[names[list(header).index(name)] for name in columns],
        null_values=[""],
        strings_can_be_null=True,
    )
    with _open(path, encoding) as file:
        for block in _blocks(file, delimiter, len(header)):
            # An empty line first, which is passed over: a byte order mark is one at the beginning of a file alone.
            read = csv.ReadOptions(column_names=names, block_size=len(block) + 2, use_threads=False)
            table = csv.read_csv(pa.BufferReader(b"\n" + block), read, parse, convert)
            for batch in table.to_batches():
                yield pa.record_batch([as_text(values) for values in batch.columns], names=list(columns))


def _blocks(file: Any, delimiter: bytes, width: int) -> Iterator[bytes]:
    """Blocks of whole records in the form of RFC 4180, without the header line."""
    header, rest = _first(file, delimiter)
    if header is None:
        return
    grammar = _grammar(delimiter, crlf=header.endswith(b"\r\n"))
    more = True
    while more:
        chunk = file.read(CHUNK)
        more = bool(chunk)
        rest += chunk if more or rest.endswith(b"\n") else b"\n"  # the last line ends, too
        block, rest = grammar.cut(rest)
        if len(rest) > RECORD_LIMIT:
            rest = grammar.shortened(rest, width)
        if block:
            yield block if _is_text(block) else grammar.of_width(block, width)


def _is_text(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _first(file: Any, delimiter: bytes) -> tuple[bytes | None, bytes]:
    """The header line, if there is one, and what was read beyond it."""
    record, text = _grammar(delimiter, crlf=False).record, file.read(FIRST_READ).removeprefix(_BOM)
    while text:
        more = file.read(len(text))
        found = record.match(text if more or text.endswith(b"\n") else text + b"\n")
        if found is not None:
            return found.group(), text[found.end() :] + more
        if not more or len(text) > RECORD_LIMIT:
            break
        text += more
    return None, b""


class _Grammar:
    """The records of a file with this delimiter, and with carriage returns at the ends of its lines or without."""

    def __init__(self, delimiter: bytes, *, crlf: bool) -> None:
        self._delimiter, self._crlf = delimiter, crlf
        delimiter = re.escape(delimiter)
        opened, plain = rb'"(?:[^"]++|"")*+', rb"[^%b\n]*+" % delimiter
        field = rb'(?:%b"%b|(?!")%b)' % (opened, plain, plain)
        record = rb"%b(?:%b%b)*+\n" % (field, delimiter, field)
        # What all readers understand alike: no quote and no carriage return but where RFC 4180 has one.
        usual = rb'(?:%b"|[^"%b\r\n]*+)' % (opened, delimiter)
        line = rb"%b(?:%b%b)*+%b" % (usual, delimiter, usual, rb"\r?\n" if crlf else rb"\n")
        self.record, self._line = re.compile(record), re.compile(line)
        self._parts = re.compile(rb"(?P<lines>(?:%b)++)|(?P<odd>%b)|(?s:.+)" % (line, record))
        self._field = re.compile(rb'"((?:[^"]++|"")*+)"(%b)|(%b)' % (plain, plain))
        self._unfinished = re.compile(rb"(?:%b%b)*+(%b)?" % (field, delimiter, opened))

    def cut(self, text: bytes) -> tuple[bytes, bytes]:
        """The whole records that `text` starts with, in the form of RFC 4180, and the rest."""
        if b'"' not in text and b"\r" not in text:
            end = text.rfind(b"\n") + 1
            return self._within_limit(text[:end]), text[end:]
        done, rest = [], b""
        for part in self._parts.finditer(text):
            if part["lines"] is not None:
                done.append(self._within_limit(part["lines"]))
            elif part["odd"] is None:
                rest = part.group()
            elif len(part["odd"]) <= RECORD_LIMIT:
                quoted = (b'"' + field.replace(b'"', b'""') + b'"' for field in self.fields(part["odd"]))
                done.append(self._delimiter.join(quoted) + b"\n")
        return b"".join(done), rest

    def _within_limit(self, lines: bytes) -> bytes:
        if len(lines) <= RECORD_LIMIT:
            return lines
        return b"".join(line.group() for line in self._line.finditer(lines) if len(line.group()) <= RECORD_LIMIT)

    def of_width(self, block: bytes, width: int) -> bytes:
        """A block without the records that are not UTF-8 and have another number of fields: Arrow fails on these, where
        it passes over others of another width.
        """
        records = (found.group() for found in self.record.finditer(block))
        return b"".join(one for one in records if _is_text(one) or len(self.fields(one)) == width)

    def fields(self, record: bytes) -> list[bytes]:
        """The fields of one record."""
        text = record.removesuffix(b"\n").removesuffix(b"\r" if self._crlf else b"")
        values, place = [], 0
        while place <= len(text):
            found = self._field.match(text, place)
            assert found is not None  # it may be empty
            quoted, after, plain = found.groups()
            values.append(plain if quoted is None else quoted.replace(b'""', b'"') + after)
            place = found.end() + 1
        return values

    def shortened(self, rest: bytes, width: int) -> bytes:
        """A short beginning of a record in place of one above the limit: it ends in the same state, within quotes, at
        the start of a field or neither, and has too many fields to be read.
        """
        found = self._unfinished.match(rest)
        assert found is not None
        after = rest[found.end() :]
        # At the start of a field a quote may come that opens it. At the end of one it may close it, or be the first of
        # two.
        opened = b"" if found.group(1) is None else b'"'
        return self._delimiter * width + (opened + after if after in (b"", opened) else b"x")


@lru_cache
def _grammar(delimiter: bytes, *, crlf: bool) -> _Grammar:
    return _Grammar(delimiter, crlf=crlf)
