"""Throw odd input at Crowdgram: a valid release or a clear error, nothing else, and never a hang.

    python bench/fuzz.py [--cases 20000] [--seed 0] [--only KIND]

Kinds: arguments, domains, saved files, CSV, JSON, Parquet files, tables of odd schemas. Every case is made from the
seed and its number, so a failure can be run again: `--seed S --first N --cases 1`. Exits with 1 if a case ended in
anything but a release or a CrowdgramError, or took longer than TIMEOUT seconds.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import gzip
import inspect
import json
import random
import signal
import sys
import tempfile
import time
import traceback
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from hostile import HOSTILE

import crowdgram
from crowdgram import releases
from crowdgram.errors import CrowdgramError
from crowdgram.tables import open_rows

TIMEOUT = 30

unsealed: Any = inspect.unwrap(releases.release)

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -(2**70), 0.0, 1.0, -1.0, 1e-300, 1e300, float("nan"),
    float("inf"), "", "1", "-1", b"x", [], {}, (), set(), object(), [1, 1], ["a", None], [[1]], {"a": 1}, range(3), 1j,
    decimal.Decimal("1.5"), datetime.date(2024, 1, 1), uuid.UUID(int=1), np.float32(1), np.int64(1), np.array([1, 2]),
    np.array([[1]]), Path("/nonexistent"), "/nonexistent.csv", "/", ".", "*.csv", crowdgram,
)  # fmt: skip


class Hang(BaseException):
    """A case took too long. No error handler may swallow it."""


@contextmanager
def patience(seconds: int) -> Iterator[None]:
    """Raise `Hang` after so many seconds."""

    def give_up(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def tiny() -> pa.Table:
    return pa.table({"user": ["a", "a", "b"], "item": ["x", "y", "x"]})


def checked(made: crowdgram.Release, items: list[Any] | None = None) -> None:
    """Whether a release is one: a distribution over its items, with intervals around it."""
    p = made.probabilities
    assert abs(float(p.sum()) - 1) < 1e-6
    assert np.all(np.isfinite(p))
    assert np.all(p >= 0)
    assert np.all(made.lower <= p + 1e-9)
    assert np.all(p - 1e-9 <= made.upper)
    assert items is None or list(made.items) == items
    repr(made), made._repr_html_(), made.top(3)


def release(table: object, **changes: Any) -> crowdgram.Release:
    usual = {
        "user": "user",
        "item": "item",
        "epsilon": 1.0,
        "domain": ["x", "y"],
        "mechanism": "laplace",
        "weight": "users",
    }
    # Unsealed, so that an error nobody foresaw is seen as what it is.
    return unsealed(table, **(usual | changes))


def arguments(rng: random.Random, _: Path) -> None:
    """Arguments of the wrong kind, one to three at a time."""
    names = [
        "user", "item", "epsilon", "delta", "domain", "adjacency", "weight", "mechanism", "max_rows_per_user", "rounds",
        "progress", "table",
    ]  # fmt: skip
    odd = {name: rng.choice(ODD + HOSTILE) for name in rng.sample(names, rng.choice([1, 1, 2, 3]))}
    checked(release(odd.pop("table", tiny()), **odd))


def domains(rng: random.Random, folder: Path) -> None:
    """Lists, files and columns that are not quite a domain."""
    from crowdgram.tables import read_domain

    kind = open_types(rng)
    pool = HOSTILE + ODD if rng.random() < 0.5 else HOSTILE
    values = [rng.choice(pool) for _ in range(rng.randrange(6))]
    form = rng.randrange(6)
    domain: Any = values
    if form == 1:
        domain = folder / rng.choice(["d.txt", "d.csv", "d.json", "d"])
        domain.write_bytes("\n".join(map(str, values)).encode(errors="surrogatepass") + noise(rng))
    elif form == 2:
        domain = (v for v in values)
    elif form == 3:
        domain = np.array([str(v) for v in values])
    elif form == 4:
        domain = rng.choice(ODD)
    elif form == 5:
        domain = pa.array([str(v).encode(errors="replace").decode() for v in values])
    read = read_domain(domain, kind, item="item")
    assert len(set(read.items)) == len(read.items) > 0


def open_types(rng: random.Random) -> Any:
    """The item type of a table of strings or of integers."""
    if not _TYPES:
        for values in (["x"], [1]):
            rows = open_rows(pa.table({"user": ["a"], "item": values}), user="user", item="item")
            with rows.engine:
                _TYPES.append(rows.item_type)
    return rng.choice(_TYPES)


_TYPES: list[Any] = []


def saved(rng: random.Random, folder: Path) -> None:
    """A saved release with a few bytes or values changed."""
    if not _SAVED:
        path = folder / "good.json"
        release(tiny()).save(path)
        _SAVED.append(path.read_text())
    text = _SAVED[0]
    if rng.random() < 0.4:
        data = bytearray(text.encode())
        for _ in range(rng.randrange(1, 8)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        raw = bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
    else:
        document = json.loads(text)
        for _ in range(rng.randrange(1, 4)):
            spoil(rng, document)
        raw = json.dumps(document, default=str).encode()
    path = folder / "r.json"
    path.write_bytes(raw)
    checked(crowdgram.load(path))


_SAVED: list[str] = []


def spoil(rng: random.Random, node: Any) -> None:
    """Change, drop or add something somewhere in a JSON document."""
    while isinstance(node, (dict, list)) and node:
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        if isinstance(node[key], (dict, list)) and node[key] and rng.random() < 0.6:
            node = node[key]
            continue
        act = rng.randrange(4)
        if act == 0:
            del node[key]
        elif act == 1 and isinstance(node, dict):
            node[rng.choice(HOSTILE)] = rng.choice(HOSTILE)
        elif act == 2:
            node[key] = rng.choice([-1, 1e999, 2**70, None, True, [], {}, [[]], "", *HOSTILE[:8]])
        else:
            node[key] = [node[key]] * rng.randrange(4)
        return


def csv_files(rng: random.Random, folder: Path) -> None:
    """CSV that is quoted badly, ragged, of odd encodings, without a header, or of one column."""
    cells = [*HOSTILE, "x", "y", "a", "b", "", '"', '""', '"x', 'x"y', "\x00"]
    name = rng.choice(["t.csv", "t.csv", "t.csv", "t.tsv", "t.csv.gz"])
    sep = rng.choice([",", ";", "\t", "|"]) if rng.random() < 0.1 else "\t" if name == "t.tsv" else ","
    header = rng.choice(
        [
            "user,item",
            "user,item",
            "user,item",
            "item,user,more",
            "user",
            "user,user,item",
            "",
            '"user,item',
            "user,item,",
            "\ufeffuser,item",
        ]
    )
    lines = [header.replace(",", sep)]
    for _ in range(rng.randrange(30)):
        lines.append(sep.join(quoted(rng, rng.choice(cells)) for _ in range(rng.choice([2, 2, 2, 1, 3, 0]))))
    data = (
        rng.choice(["\n", "\n", "\r\n", "\r"])
        .join(lines)
        .encode(rng.choice(["utf-8"] * 8 + ["utf-16", "latin-1"]), "replace")
    )
    path = folder / name
    data += noise(rng)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") and rng.random() < 0.7 else data)
    checked(release(path), ["x", "y"])


def quoted(rng: random.Random, text: str) -> str:
    how = rng.randrange(4)
    if how == 0:
        return '"' + text.replace('"', '""') + '"'
    return '"' + text if how == 1 and rng.random() < 0.3 else text


def json_files(rng: random.Random, folder: Path) -> None:
    """JSON lines or arrays with odd records, or cut short."""
    values = [*HOSTILE, "x", "y", 1, 1.5, None, True, [], {}, ["x"], {"a": 1}, 2**70, 1e308]
    records: list[Any] = []
    for _ in range(rng.randrange(20)):
        keys = rng.choice([["user", "item"]] * 4 + [["user"], ["item", "user", "z"], [], ["USER", "item"]])
        records.append({key: rng.choice(values) for key in keys} if rng.random() < 0.9 else rng.choice(values))
    text = "\n".join(map(json.dumps, records)) if rng.random() < 0.5 else json.dumps(records)
    data = text.encode(errors="surrogatepass")
    if rng.random() < 0.3:
        data = data[: rng.randrange(len(data) + 1)]
    path = folder / rng.choice(["t.json", "t.jsonl", "t.ndjson"])
    path.write_bytes(data + noise(rng))
    checked(release(path), ["x", "y"])


def parquet_files(rng: random.Random, folder: Path) -> None:
    """Parquet with bytes changed or missing."""
    path = folder / "t.parquet"
    pyarrow.parquet.write_table(tiny(), path)
    data = bytearray(path.read_bytes())
    for _ in range(rng.randrange(0, 12)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(bytes(data[: rng.choice([len(data), len(data), rng.randrange(len(data))])]))
    checked(release(path), ["x", "y"])


def schemas(rng: random.Random, _: Path) -> None:
    """Tables with columns of every type, odd names, repeated names, or no rows."""
    kinds = [
        pa.string(), pa.large_string(), pa.int8(), pa.int64(), pa.uint64(), pa.float64(), pa.bool_(), pa.date32(),
        pa.null(), pa.timestamp("us"), pa.binary(), pa.list_(pa.int64()), pa.struct([("a", pa.int64())]),
        pa.decimal128(10, 2), pa.dictionary(pa.int32(), pa.string()), pa.duration("s"), pa.time64("us"), pa.float16(),
        pa.string_view(), pa.map_(pa.string(), pa.int64()), pa.binary(4), pa.decimal256(50, 3),
        pa.month_day_nano_interval(),
    ]  # fmt: skip
    rows = rng.randrange(4)
    names = [rng.choice(["user", "item", "User", " user", *HOSTILE]) for _ in range(rng.randrange(3))]
    names = rng.sample([*names, "user", "item"], len(names) + 2)
    columns = [
        pa.nulls(rows, rng.choice(kinds[:4] if name in ("user", "item") and rng.random() < 0.5 else kinds))
        for name in names
    ]
    table = pa.Table.from_arrays(columns, names=names)
    if rng.random() < 0.3:
        form = rng.randrange(3)
        table = (
            table.to_pandas()
            if form == 0
            else table.to_batches()[0]
            if form == 1 and table.num_rows
            else table.to_reader()
        )
    domain: list[Any] = rng.choice([["x", "y"], [1, 2], ["1"], [rng.choice(HOSTILE)]])
    checked(release(table, domain=domain, user=rng.choice(["user", *names]), item=rng.choice(["item", *names])))


def noise(rng: random.Random) -> bytes:
    """Nothing, mostly; else a few bytes of any kind."""
    return rng.randbytes(rng.randrange(1, 20)) if rng.random() < 0.1 else b""


KINDS: dict[str, Callable[[random.Random, Path], None]] = {
    "arguments": arguments,
    "domains": domains,
    "saved": saved,
    "csv": csv_files,
    "json": json_files,
    "parquet": parquet_files,
    "schemas": schemas,
}


def run(kind: str, seed: int, number: int, folder: Path) -> str | None:
    """One case: the error's name, None for a release, and what went wrong as an AssertionError."""
    rng = random.Random(f"{kind}-{seed}-{number}")
    try:
        with patience(TIMEOUT), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            KINDS[kind](rng, folder)
    except CrowdgramError as error:
        if not str(error).strip():
            raise AssertionError(f"{kind} {number}: an error without a message") from error
        return type(error).__name__
    except Hang:
        raise AssertionError(f"{kind} {number}: still running after {TIMEOUT} s") from None
    except BaseException as error:
        raise AssertionError(f"{kind} {number}: {traceback.format_exc()}") from error
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", choices=sorted(KINDS))
    options = parser.parse_args()
    started, wrong = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for kind in [options.only] if options.only else KINDS:
            ended: Counter[str] = Counter()
            for number in range(
                options.first, options.first + max(1, options.cases // (1 if options.only else len(KINDS)))
            ):
                try:
                    ended[run(kind, options.seed, number, Path(folder)) or "release"] += 1
                except AssertionError as error:
                    wrong += 1
                    print(error, file=sys.stderr)
            print(f"{kind}: " + ", ".join(f"{count} {name}" for name, count in ended.most_common()), flush=True)
    print(f"{wrong} cases ended wrongly; {time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
