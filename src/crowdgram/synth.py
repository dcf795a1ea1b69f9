"""Synthetic tables of (user, item) rows whose true distribution is known.

What is made here is public: it describes no person, so ordinary seeded randomness is right, and this is the
only module that may use `numpy.random`. Nothing here may take part in a release.

    >>> crowd = Crowd(users=3, rows=4, items=5, seed=1)
    >>> crowd.table().num_rows
    12
"""

from __future__ import annotations

import csv
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from .arrays import Floats, Integers
from .errors import InvalidArgument, UnwritableTarget
from .files import exists_already, put_in_place

__all__ = ["Crowd", "Visits"]

# A batch holds whole users and at most this many rows; so no single user may have more.
_BATCH_ROWS = 1_000_000


@dataclass(frozen=True)
class Crowd:
    """Users who draw their rows from one public distribution, or each from their own around it.

    Attributes:
        users: How many users; each has at least one row.
        rows: Rows per user: the exact number if `tail` is 0, else the median. At most a million.
        items: Size of the domain.
        zipf: Item i (from 1) has probability proportional to `i ** -zipf`; 0 is uniform.
        tail: 0: every user has `rows` rows. Otherwise rows per user are log-normal with this sigma, rounded,
            at least 1 and at most a million.
        differ: How much users differ, in [0, 1): the chance that a user's second row repeats the first
            instead of being drawn from `distribution()`. 0: all users are alike. Otherwise each user draws
            from their own distribution, Dirichlet(p * (1 - differ) / differ) where p is `distribution()`;
            near 1 almost all their rows are one item. The average over users is p for every value.
        seed: The same seed gives the same table (with one version of numpy); None: a new one at each call.
        strings: Users like "u000123" and items like "item-0007" instead of integers from 0.
    """

    users: int = 1000
    rows: int = 100
    items: int = 100
    zipf: float = 1.0
    tail: float = 0.0
    differ: float = 0.0
    seed: int | None = None
    strings: bool = False

    def __post_init__(self) -> None:
        _check_whole("users", self.users, low=1, high=10**12)
        _check_whole("rows", self.rows, low=1, high=_BATCH_ROWS)
        _check_whole("items", self.items, low=1, high=10**8)
        _check_real("zipf", self.zipf)
        _check_real("tail", self.tail)
        _check_real("differ", self.differ, below=1.0)
        if self.seed is not None:
            _check_whole("seed", self.seed, low=0)
        if not isinstance(self.strings, bool):
            raise InvalidArgument(f"strings={self.strings!r}: needs to be True or False.", argument="strings")

    def distribution(self) -> Floats:
        """The truth: the probability of each item, in the order of `item_names()`."""
        weights = np.arange(1, self.items + 1, dtype=np.float64) ** -self.zipf
        p: Floats = weights / weights.sum()
        return p

    def item_names(self) -> list[int] | list[str]:
        """The domain, the most probable item first."""
        names: list[int] | list[str] = self._items().to_pylist()
        return names

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, shuffled, in batches of whole users and of at most a million rows."""
        rng = np.random.default_rng(self.seed)
        cdf = np.cumsum(self.distribution())
        cdf /= cdf[-1]
        names = self._items()
        for first_user, rows_of in self._cut(rng):
            # Inverse CDF: uniform numbers are below 1 and the CDF ends at 1, so the index is in range.
            item = np.searchsorted(cdf, rng.random(int(rows_of.sum())), side="right")
            if self.differ > 0:
                item = item[_urn(rng, rows_of, self.differ)]
            user = np.repeat(np.arange(len(rows_of)), rows_of)
            order = rng.permutation(len(user))
            users = self._names(first_user, len(rows_of), "u", 6, self.users)
            columns = [users.take(pa.array(user[order])), names.take(pa.array(item[order]))]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema())

    def table(self) -> pa.Table:
        """The whole table in memory."""
        return pa.Table.from_batches(self.batches(), schema=self._schema())

    def item_counts(self) -> Integers:
        """How often each item occurs in the whole table, drawn at once instead of row by row.

        Distributed as the counts of `table()` are, though not the same numbers for the same seed. Only for users who
        are alike (`differ` and `tail` are 0), whose counts are one multinomial.
        """
        if self.differ > 0 or self.tail > 0:
            raise InvalidArgument(
                f"differ={self.differ}, tail={self.tail}: both need to be 0 for counts drawn at once. "
                "Count the rows of table() instead.",
                argument="differ",
            )
        rng = np.random.default_rng(self.seed)
        counts: Integers = rng.multinomial(self.users * self.rows, self.distribution())
        return counts

    def write(
        self,
        path: str | os.PathLike[str],
        truth: str | os.PathLike[str] | None = None,
        domain: str | os.PathLike[str] | None = None,
        *,
        overwrite: bool = False,
    ) -> int:
        """Write the table and return its number of rows.

        Every file is first written whole beside its target, and moved into place once all are there: a
        failure to write leaves the targets as they were.

        Args:
            path: The table, as Parquet or CSV by its suffix: columns `user` and `item`.
            truth: If given, a CSV file of `distribution()`: columns `item` and `probability`.
            domain: If given, a text file with one item a line.
            overwrite: Whether files that are there are replaced; it is an error otherwise.
        """
        target = Path(path)
        if target.suffix.lower() not in (".parquet", ".csv"):
            raise InvalidArgument(f"path={str(target)!r}: needs a name that ends in .parquet or .csv.", argument="path")
        write_table = self._write_csv if target.suffix.lower() == ".csv" else self._write_parquet
        targets = [target, *(Path(extra) for extra in (truth, domain) if extra is not None)]
        _check_targets(targets, overwrite=overwrite)
        try:
            with ExitStack() as stack:
                drafts = [Path(stack.enter_context(_folder_beside(one)), one.name) for one in targets]
                remaining = iter(drafts)
                rows = write_table(next(remaining))
                if truth is not None:
                    self._write_truth(next(remaining))
                if domain is not None:
                    self._write_domain(next(remaining))
                for draft, one in zip(drafts, targets, strict=True):
                    put_in_place(draft, one, overwrite=overwrite)
        except UnwritableTarget:
            raise
        except OSError as error:
            listed = ", ".join(f"'{one}'" for one in targets)
            reason = error.strerror or type(error).__name__
            raise UnwritableTarget(
                f"path, truth, domain: cannot be written ({listed}: {reason}). Choose a folder with room and with "
                "permission to write."
            ) from error
        return rows

    def _cut(self, rng: np.random.Generator) -> Iterator[tuple[int, Integers]]:
        """Yield (number of the first user, rows of each user) for each batch.

        Users are taken a million at a time, so that memory does not grow with their number.
        """
        for block in range(0, self.users, _BATCH_ROWS):
            count = min(_BATCH_ROWS, self.users - block)
            if self.tail > 0:
                # The cap is put on the exponent, where it cannot overflow.
                exponent = math.log(self.rows) + self.tail * rng.standard_normal(count)
                spread = np.rint(np.exp(np.minimum(exponent, math.log(_BATCH_ROWS))))
                rows_of = np.clip(spread, 1, _BATCH_ROWS).astype(np.int64)
            else:
                rows_of = np.full(count, self.rows, dtype=np.int64)
            ends = np.cumsum(rows_of)
            start = 0
            while start < count:
                done = ends[start - 1] if start else 0
                stop = int(np.searchsorted(ends, done + _BATCH_ROWS, side="right"))
                yield block + start, rows_of[start:stop]
                start = stop

    def _schema(self) -> pa.Schema:
        kind = pa.string() if self.strings else pa.int64()
        return pa.schema([("user", kind), ("item", kind)])

    def _items(self) -> pa.Array:
        return self._names(0, self.items, "item-", 4, self.items)

    def _names(self, first: int, count: int, prefix: str, width: int, total: int) -> pa.Array:
        """Names of `count` users or items from number `first`; of one width, so that they sort by number."""
        numbers = pa.array(np.arange(first, first + count, dtype=np.int64))
        if not self.strings:
            return numbers
        digits = pc.utf8_lpad(numbers.cast(pa.string()), width=max(width, len(str(total - 1))), padding="0")
        return pc.binary_join_element_wise(prefix, digits, "")

    def _write_parquet(self, draft: Path) -> int:
        with pa.parquet.ParquetWriter(str(draft), self._schema()) as writer:
            return self._write_batches(writer)

    def _write_csv(self, draft: Path) -> int:
        # Neither header nor names need quotes; Arrow would put them around every string.
        options = pa.csv.WriteOptions(include_header=False, quoting_style="none")
        with open(draft, "wb") as file:
            file.write(b"user,item\n")
            with pa.csv.CSVWriter(file, self._schema(), write_options=options) as writer:
                return self._write_batches(writer)

    def _write_batches(self, writer: Any) -> int:
        rows = 0
        for batch in self.batches():
            writer.write_batch(batch)
            rows += batch.num_rows
        return rows

    def _write_truth(self, draft: Path) -> None:
        with open(draft, "w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(("item", "probability"))
            lines.writerows(zip(self.item_names(), self.distribution().tolist(), strict=True))

    def _write_domain(self, draft: Path) -> None:
        with open(draft, "w", encoding="utf-8", newline="") as file:
            file.writelines(f"{name}\n" for name in self.item_names())


@dataclass(frozen=True)
class Visits:
    """The sample table of the examples: visits of a shop's pages, from three countries. Nobody in it is real.

    Columns `user`, `country`, `page`, `word` and `n`. A row says that a user looked for a word on a page, n times.
    Users have a country and are abroad for one row in twenty. Pages are visited as the country likes them. Words are
    Zipf-distributed over `words` invented ones; one row in fifty has a word that nobody else has. Most users have some
    ten rows; one in a hundred is a robot with 300, all of the page "search". The same seed gives the same table (with
    one version of numpy).
    """

    users: int = 4000
    words: int = 1000
    seed: int = 1

    COUNTRIES = ("DE", "FR", "IT")
    PAGES = ("home", "search", "basket", "recipes", "wine", "help")
    _CROWD = (0.5, 0.3, 0.2)
    _LIKES = (
        (0.40, 0.20, 0.15, 0.15, 0.05, 0.05),
        (0.38, 0.12, 0.15, 0.15, 0.15, 0.05),
        (0.38, 0.19, 0.15, 0.16, 0.07, 0.05),
    )

    def __post_init__(self) -> None:
        _check_whole("users", self.users, low=100, high=10**6)
        _check_whole("words", self.words, low=1, high=10**6)
        _check_whole("seed", self.seed, low=0)

    def table(self) -> pa.Table:
        """The whole table in memory."""
        rng = np.random.default_rng(self.seed)
        home = rng.choice(3, self.users, p=self._CROWD)
        robot = np.arange(self.users) % 100 == 99
        rows_of = np.where(robot, 300, np.clip(np.rint(10 * np.exp(0.8 * rng.standard_normal(self.users))), 1, 200))
        user = np.repeat(np.arange(self.users), rows_of.astype(np.int64))
        size = len(user)
        country = np.where(rng.random(size) < 0.05, rng.integers(0, 3, size), home[user])
        ends = np.cumsum(self._LIKES, axis=1)
        page = np.minimum((rng.random(size)[:, None] >= ends[country]).sum(axis=1), len(self.PAGES) - 1)
        page = np.where(robot[user], self.PAGES.index("search"), page)
        zipf = np.cumsum(1 / np.arange(1, self.words + 1))
        word = np.searchsorted(zipf / zipf[-1], rng.random(size), side="right")
        own = self.words + user  # a word of one's own: a name, an address
        word = np.where(rng.random(size) < 0.02, own, word)
        order = rng.permutation(size)
        return pa.table(
            {
                "user": user[order],
                "country": pa.array(self.COUNTRIES).take(pa.array(country[order])),
                "page": pa.array(self.PAGES).take(pa.array(page[order])),
                "word": pa.array([_word(number) for number in range(self.words + self.users)]).take(
                    pa.array(word[order])
                ),
                "n": rng.integers(1, 4, size),
            }
        )

    def write(
        self,
        path: str | os.PathLike[str],
        domain: str | os.PathLike[str] | None = None,
        *,
        overwrite: bool = False,
    ) -> int:
        """Write the table, as Parquet or CSV by its suffix, and return its number of rows.

        domain: if given, a text file with one page a line. overwrite: whether files that are there are replaced; it is
        an error otherwise.
        """
        return write_table(self.table(), path, self.PAGES, domain, overwrite=overwrite)


def write_table(
    table: pa.Table,
    path: str | os.PathLike[str],
    items: Sequence[str],
    domain: str | os.PathLike[str] | None,
    *,
    overwrite: bool,
) -> int:
    """Write a table, and the list of its items if there is a path for it, whole or not at all; return its rows."""
    target = Path(path)
    if target.suffix.lower() not in (".parquet", ".csv"):
        raise InvalidArgument(f"path={str(target)!r}: needs a name that ends in .parquet or .csv.", argument="path")
    targets = [target] if domain is None else [target, Path(domain)]
    _check_targets(targets, overwrite=overwrite)
    write = pa.csv.write_csv if target.suffix.lower() == ".csv" else pa.parquet.write_table
    try:
        with ExitStack() as stack:
            drafts = [Path(stack.enter_context(_folder_beside(one)), one.name) for one in targets]
            write(table, str(drafts[0]))
            for draft in drafts[1:]:
                draft.write_text("".join(f"{item}\n" for item in items), encoding="utf-8")
            for draft, one in zip(drafts, targets, strict=True):
                put_in_place(draft, one, overwrite=overwrite)
    except UnwritableTarget:
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnwritableTarget(f"path={str(target)!r}: cannot be written ({reason}). Choose another folder.") from error
    return int(table.num_rows)


def _word(number: int) -> str:
    """An invented word for each number: syllables, one for each digit to base 40."""
    syllables = [consonant + vowel for consonant in "bdfklmrs" for vowel in "aeiou"]
    word = syllables[number % 40]
    while number >= 40:
        number = number // 40 - 1
        word = syllables[number % 40] + word
    return word


def _urn(rng: np.random.Generator, rows_of: Integers, differ: float) -> Integers:
    """For each row, the row whose fresh draw it shows: itself or an earlier row of the same user.

    Polya's urn, for users with Dirichlet(a p), a = (1 - differ) / differ: a user's row j (from 0) is drawn
    afresh from p with probability a / (a + j) and otherwise copies one of the j rows before it, chosen
    uniformly (Blackwell and MacQueen, 1973). This is the Dirichlet-multinomial exactly, at a cost that
    depends on the rows only: no users-by-items matrix, and no gamma draws, which underflow for tiny a p_i.
    """
    start = np.repeat(np.cumsum(rows_of) - rows_of, rows_of)
    row = np.arange(len(start))
    j = row - start
    # a / (a + j), multiplied through by differ: it cannot overflow however small differ is.
    fresh = rng.random(len(row)) * ((1.0 - differ) + differ * j) < (1.0 - differ)
    # floor(uniform * j) is below j: uniform is at most 1 - 2**-53 and j is at most a million.
    copied = start + np.floor(rng.random(len(row)) * j).astype(np.int64)
    shown = np.where(fresh, row, copied)
    # Follow copies of copies to their origin; each pass doubles the reach, so a handful suffices.
    while True:
        further = shown[shown]
        if np.array_equal(further, shown):
            return shown
        shown = further


def _folder_beside(target: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder for a draft of `target`, removed with all that is left in it however the work ends.

    Unlike a bare temporary file, a file in it gets the permissions of any new file.
    """
    return tempfile.TemporaryDirectory(prefix=".crowdgram-", dir=target.parent)


def _check_whole(name: str, value: object, *, low: int, high: int | None = None) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):  # type: ignore[operator]
        needed = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise InvalidArgument(f"{name}={value!r}: needs to be a whole number {needed}.", argument=name)


def _check_real(name: str, value: object, *, below: float = math.inf) -> None:
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not real or not 0 <= value < below:  # type: ignore[operator]
        needed = "a finite number of at least 0" if below == math.inf else f"at least 0 and below {below:g}"
        raise InvalidArgument(f"{name}={value!r}: needs to be {needed}.", argument=name)


def _check_targets(targets: list[Path], *, overwrite: bool) -> None:
    if len({target.resolve() for target in targets}) < len(targets):
        raise InvalidArgument(
            f"path={str(targets[0])!r}: path, truth and domain need to be different files.", argument="path"
        )
    for target in targets:
        if not target.parent.is_dir():
            raise UnwritableTarget(
                f"path={str(target)!r}: needs the folder {str(target.parent)!r}, which does not exist. Make it first."
            )
        if target.is_dir():
            raise UnwritableTarget(f"path={str(target)!r}: is a folder. Give the name of a file.")
        if os.path.lexists(target) and not overwrite:
            raise exists_already(target)
