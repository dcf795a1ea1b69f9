"""Run one function of a tool's script on a table, and write what it returns.

    python TOOL.py FUNCTION TABLE ITEMS BOUND OUT

ITEMS: a file with one item a line. BOUND: the keyword arguments of the bound, as JSON. OUT gets the values by item, and
the seconds of the function alone: without the start of the interpreter and the imports of the script.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

EPSILON, DELTA = 1.0, 1e-6


def serve(functions: Mapping[str, Callable[..., dict[str, Mapping[Any, Any]]]]) -> None:
    name, table, items, bound, out = sys.argv[1:]
    domain = [int(line) for line in Path(items).read_text().split()]
    start = time.perf_counter()
    found = functions[name](table, domain, **json.loads(bound))
    seconds = time.perf_counter() - start
    values = {measure: {str(int(item)): float(one) for item, one in of.items()} for measure, of in found.items()}
    Path(out).write_text(json.dumps({"seconds": seconds, "values": values}))
