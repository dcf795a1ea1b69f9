"""The tables of the comparison: invented, real (of a folder), and orders of TPC-H. Columns user and item, integers."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow.parquet
from scipy import sparse
from tuned import Contributions

from crowdgram.synth import Crowd

from .bounds import bounds_of

__all__ = ["INVENTED", "ORDERS", "REAL", "Table", "invented", "orders", "real"]

Floats = npt.NDArray[np.float64]
INVENTED = {
    "W1": Crowd(items=100, rows=1_000, users=2_000, zipf=1, seed=1_000),
}
"""Of the tables of accuracy.py those that take no tool more than some minutes."""
REAL = ("nycflights13_dest", "deezer_genres")
"""Below a million rows, for the same reason."""
ORDERS = "tpch_orders"


@dataclass(frozen=True, eq=False)
class Table:
    """A file, its public items, its own answers, and the best bounds for other tools."""

    name: str
    file: Path
    items: list[int]
    users: int
    rows: int
    truths: dict[str, Floats]
    bounds: dict[str, Any]

    @classmethod
    def of(cls, name: str, file: Path, items: list[int] | None, epsilon: float, delta: float) -> Table:
        """items: the domain; the distinct items of the table if it is None."""
        made = Contributions.of(file)
        made = made if items is None else made.within(items)
        counts = sparse.csr_matrix(made.counts)
        truths = {
            "rows": np.asarray(counts.sum(axis=0)).ravel(),
            "users": np.asarray((counts > 0).sum(axis=0)).ravel().astype(np.float64),
        }
        bounds = bounds_of(counts, epsilon, delta)
        whole = [int(item) for item in made.items]
        return cls(name, file, whole, counts.shape[0], int(counts.sum()), truths, bounds)


def invented(name: str, folder: Path, epsilon: float, delta: float) -> Table:
    file = folder / f"{name}.parquet"
    if not file.exists():
        INVENTED[name].write(file)
    return Table.of(name, file, [int(item) for item in INVENTED[name].item_names()], epsilon, delta)


def real(name: str, tables: Path, folder: Path, epsilon: float, delta: float) -> Table:
    """A copy with plain integers, which all tools read."""
    file = folder / f"{name}.parquet"
    if not file.exists():
        pyarrow.parquet.write_table(
            pyarrow.parquet.read_table(tables / f"{name}.parquet", columns=["user", "item"]), file
        )
    return Table.of(name, file, None, epsilon, delta)


def orders(program: Path, folder: Path, epsilon: float, delta: float) -> Table:
    """Orders of TPC-H at scale 1: the user is the customer, the item the order's month and the customer's nation."""
    file = folder / f"{ORDERS}.parquet"
    if not file.exists():
        made = folder / "tpch"
        command = [str(program), "parquet", "-s", "1", "--tables=customer,orders", f"--output-dir={made}"]
        subprocess.run(command, check=True, capture_output=True)
        with duckdb.connect() as connection:
            connection.execute(
                f"copy (select o_custkey::bigint as user, ((year(o_orderdate) * 12 + month(o_orderdate)) * 25"
                f" + c_nationkey)::bigint as item from '{made}/orders.parquet' join '{made}/customer.parquet'"
                f" on o_custkey = c_custkey) to '{file}' (format parquet)"
            )
    with duckdb.connect() as connection:
        first, last = connection.execute(f"select min(item) // 25, max(item) // 25 from '{file}'").fetchall()[0]
    domain = list(range(first * 25, (last + 1) * 25))  # public: all months of the benchmark, all nations
    return Table.of(ORDERS, file, domain, epsilon, delta)
