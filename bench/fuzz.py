"""Throw odd input at Crowdgram: a valid release or a clear error, nothing else, and never a hang.

    python bench/fuzz.py [--cases 20000] [--seed 0] [--only KIND]

Kinds: arguments, domains, saved files, CSV, JSON, Parquet files, tables of odd schemas, databases, expressions,
shapes (counts, groups, several columns, items that are found), and outcomes: expressions over extreme rows, which may
fail on none of them and give each row a value that no other row decides over. Every case is made from the seed and its
number, so a failure can be run again: `--only KIND --seed S --first N --cases 1`. Exits with 1 if a case ended in
anything but a release or a CrowdgramError, took longer than TIMEOUT seconds, or said a value of the table (SECRETS).
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import signal
import sys
import tempfile
import time
import traceback
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
from odd_expressions import SOUND, extreme, grown, same_outcomes, sound, wide
from odd_files import csv_files, databases, json_files, parquet_files
from odd_values import ODD, SECRETS, checked, noise, release, tiny

import crowdgram
from crowdgram.errors import CrowdgramError
from crowdgram.tables import open_rows

TIMEOUT = 30


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


def arguments(rng: random.Random, _: Path) -> None:
    """Arguments of the wrong kind, one to three at a time."""
    names = [
        "user", "item", "epsilon", "delta", "domain", "adjacency", "weight", "mechanism", "max_rows_per_user",
        "rounds", "prior",
        "progress", "table",
    ]  # fmt: skip
    odd = {name: rng.choice(ODD + HOSTILE) for name in rng.sample(names, rng.choice([1, 1, 2, 3]))}
    if "rounds" in odd:
        odd["mechanism"] = crowdgram.Adaptive(rounds=odd.pop("rounds"))
    if "prior" in odd:
        given, form = odd.pop("prior"), rng.randrange(3)
        odd["mechanism"] = crowdgram.Auto(
            prior=[given, {"x": given}, {given: 1.0} if _hashable(given) else given][form]
        )
    checked(release(odd.pop("table", tiny()), **odd))


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


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


def expressions(rng: random.Random, _: Path) -> None:
    """Filters, computed items and users, and bins, some of which do not fit or are no expressions at all."""
    depth = rng.randrange(4)
    asked: dict[str, Any] = {"where": grown(rng, "truth", depth) if rng.random() < 0.9 else rng.choice(HOSTILE)}
    kind = rng.choice(["number", "text", "date", "truth"])
    domain: list[Any] | None = ["x", "y"]
    if rng.random() < 0.3:
        asked["user"] = {"made": grown(rng, rng.choice(["number", "text", "date", "truth"]), depth)}
    if rng.random() < 0.2:
        edges = rng.choice([[0, 1], [-1e308, -1, 0.5, 2**53, 1e308], range(200), *ODD])
        asked["item"], domain = {"made": crowdgram.Bins(grown(rng, "number", depth), edges)}, None
    elif rng.random() < 0.6:
        asked["item"] = {"made": grown(rng, kind, depth)}
        domain = {"number": [1, 2], "text": ["x", "y"], "date": ["2024-01-01"], "truth": [True, False]}[kind]
    table: Any = wide(rng)
    if rng.random() < 0.2:
        table = table.drop_columns(["raw"]).to_pandas()
    checked(release(table, domain=domain, **asked))


def outcomes(rng: random.Random, _: Path) -> None:
    """Expressions over extreme rows, over half of them, over one and over none."""
    whole = extreme(rng)
    tables = [whole, whole.slice(0, 40), whole.slice(rng.randrange(80), 1), whole.slice(0, 0)]
    kinds = [rng.choice(list(SOUND)) for _ in range(3)]
    same_outcomes(tables, [sound(rng, kind, rng.randrange(1, 5)) for kind in kinds])


def shapes(rng: random.Random, _: Path) -> None:
    """Counts, groups, several columns and items that are found, of columns that may not fit, with odd lists."""

    def mostly(values: list[Any], odd: tuple[Any, ...] = ODD) -> Any:
        return rng.choice(values if rng.random() < 0.93 else odd)

    lists: dict[str, list[Any]] = {
        "item": ["x", "y"],
        "text": ["x", "y", "12"],
        "whole": [0, 1, 2],
        "small": [0, 1, 127],
        "flag": [True, False],
        "day": [datetime.date(2024, 2, 29), "0001-01-01"],
        "moment": ["2024-02-29"],
        "real": [1.5],
        "raw": [b"x"],
    }
    names = list(lists)
    usual = names[:6]
    chosen = rng.sample(usual, rng.choice([1, 1, 1, 2, 3]))
    domain: Any = lists[chosen[0]] if len(chosen) == 1 else {name: lists[name] for name in chosen}
    if rng.random() < 0.4:
        domain = mostly([None, "discover"])
    elif len(chosen) > 1 and rng.random() < 0.3:
        domain = [tuple(lists[name][0] for name in chosen)]
    asked: dict[str, Any] = {
        "item": mostly([chosen if len(chosen) > 1 else chosen[0]], (*ODD, *names, ["item", "item"])),
        "domain": mostly([domain]),
        "delta": rng.choice([1e-6] * 8 + [0.0, 1e-100]),
        "mechanism": rng.choice(["laplace", "laplace", "laplace", "gaussian", "sample-one", "auto", "adaptive"]),
    }
    if rng.random() < 0.4:
        asked["count"] = mostly(["whole", "small"], (*ODD, *names))
    if rng.random() < 0.4:
        by = rng.choice([name for name in usual if name not in chosen])
        asked["by"] = mostly([by, by, {"made": grown(rng, "text", 1)}], (*ODD, *names))
        asked["groups"] = mostly([None, "discover", lists[by], ["x", "y"]])
    if rng.random() < 0.3:
        asked["other"] = mostly(["other", "x"], (*ODD, *HOSTILE))
    if rng.random() < 0.1:
        asked[rng.choice(["domain", "groups"])] = crowdgram.Discover(rng.choice([0.5, 0.001, 0.999, *ODD]))
    if rng.random() < 0.1:
        asked["where"] = grown(rng, "truth", 1)
    made: Any = release(wide(rng), **asked)
    made = made.joint if isinstance(made, crowdgram.GroupedRelease) else made
    checked(made)
    assert not any(str(secret) in repr(made.items) for secret in SECRETS)


def reaches(rng: random.Random, _: Path) -> None:
    """Users by item, of columns that may not fit, with odd bounds."""

    def mostly(values: list[Any]) -> Any:
        return rng.choice(values if rng.random() < 0.95 else ODD)

    lists: dict[str, list[Any]] = {"item": ["x", "y"], "whole": [0, 1, 2], "flag": [True, False], "real": [1.5]}
    names = list(lists)
    item = rng.choice(names[:3] if rng.random() < 0.9 else names)
    asked: dict[str, Any] = {
        "item": mostly([item]),
        "domain": mostly([None, lists[item], lists[item]]),
        "epsilon": mostly([1.0, 0.1]),
        "delta": mostly([1e-6] * 6 + [0.0, 1e-100]),
        "adjacency": mostly(["add-remove", "replace"]),
        "max_items_per_user": mostly([None, None, 1, 3, 10**9]),
    }
    if rng.random() < 0.3:
        asked["count"] = rng.choice(["whole", "small", *names, *ODD])
    if rng.random() < 0.3:
        asked["other"] = rng.choice(["other", "x", *ODD, *HOSTILE])
    if rng.random() < 0.2:
        asked["where"] = grown(rng, "truth", 1)
    if rng.random() < 0.3:
        by = rng.choice(names[:3])
        asked |= {"by": mostly([by]), "groups": mostly([None, lists[by], lists[by]])}
    found = crowdgram.reach(wide(rng), user="user", **asked)
    made = found.joint if isinstance(found, crowdgram.GroupedReach) else found
    assert (made.lower <= made.counts + 1e-9).all()
    assert (made.counts <= made.upper + 1e-9).all()
    assert made.users.lower <= made.users.value <= made.users.upper
    assert not any(str(secret) in repr(made.items) for secret in SECRETS)


KINDS: dict[str, Callable[[random.Random, Path], None]] = {
    "arguments": arguments,
    "domains": domains,
    "saved": saved,
    "csv": csv_files,
    "json": json_files,
    "parquet": parquet_files,
    "schemas": schemas,
    "databases": databases,
    "expressions": expressions,
    "shapes": shapes,
    "reach": reaches,
    "outcomes": outcomes,
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
        if any(str(secret) in str(error) for secret in SECRETS):
            raise AssertionError(f"{kind} {number}: a message with a value of the table: {error}") from error
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
