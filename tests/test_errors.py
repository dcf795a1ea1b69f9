"""Errors: one grammar, fields for programs, and a page that lists them as they are."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
from pathlib import Path

import pyarrow as pa
import pytest

import crowdgram
from crowdgram import errors
from crowdgram.errors import BudgetExceeded, CrowdgramError, EngineFailure, InvalidTable, LedgerFailure

PAGE = (Path(__file__).parents[1] / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
KINDS = [getattr(errors, name) for name in errors.__all__]
TABLE = pa.table({"user": ["a", "b"], "item": ["x", "y"], "share": [0.5, 0.5]})


def listed():
    """The rows of the page's tables: the first cell's name, and the names in the others."""
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE, re.MULTILINE)
    return {name: [re.findall(r"`(\w+)`", cell) for cell in cells.split(" | ")] for name, cells in rows}


def fields(kind):
    """What a caller can read of an error of this kind, besides what all errors have."""
    own = [name for name in inspect.signature(kind.__init__).parameters if name not in ("self", "message")]
    given = [] if kind.__init__ in (Exception.__init__, ValueError.__init__, OSError.__init__) else own
    properties = [name for name, value in inspect.getmembers(kind) if isinstance(value, property)]
    return {*properties, *given, *(["name"] if issubclass(kind, ImportError) else [])} - {"args", "kwargs"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_page_lists_every_error_with_its_builtins_and_fields(kind):
    bases, *rest = listed()[kind.__name__]
    assert bases == [base.__name__ for base in kind.__bases__ if base is not CrowdgramError]
    if issubclass(kind, CrowdgramError):
        assert set(rest[-1]) == fields(kind)


def test_the_page_lists_nothing_else_and_explains_every_field():
    names = set(listed())
    kinds = {kind.__name__ for kind in KINDS}
    told = set().union(*(fields(kind) for kind in KINDS if issubclass(kind, CrowdgramError)))
    explained = {
        name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert kinds <= names
    assert explained == kinds | told


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidArgument("epsilon=0: needs to be above 0.", argument="epsilon"),
        errors.UnknownItem("item='a': needs to be another.", argument="item", item="a"),
        errors.InvalidDomain("domain: is empty.", argument="domain"),
        InvalidTable("no such column", column="user"),
        LedgerFailure("damaged", path=Path("budget.db")),
        BudgetExceeded("too much", epsilon=1.0, delta=0.0, remaining=0.5),
        errors.MissingDependency("none", name="matplotlib"),
        EngineFailure("failed", stage="opening the table"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_whole_out_of_another_process(error):
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert {name: getattr(back, name) for name in fields(type(error))} == {
        name: getattr(error, name) for name in fields(type(error))
    }


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("epsilon", {"epsilon": 0}),
        ("epsilon", {"epsilon": "much"}),
        ("delta", {"delta": 1.5}),
        ("delta", {"delta": 0.0, "domain": None}),
        ("adjacency", {"adjacency": "swap"}),
        ("weight", {"weight": "items"}),
        ("mechanism", {"mechanism": "none"}),
        ("mechanism", {"mechanism": "gaussian"}),
        ("mechanism", {"mechanism": "paper", "delta": 1e-6, "domain": None}),
        ("max_rows_per_user", {"max_rows_per_user": 0}),
        ("other", {"other": 3}),
        ("groups", {"groups": ["a"]}),
        ("by", {"by": 3, "groups": ["x"]}),
        ("by", {"by": "item", "groups": ["x"]}),
        ("user", {"user": ""}),
        ("user", {"user": "item"}),
        ("item", {"item": []}),
        ("item", {"item": ["item", "item"]}),
        ("count", {"count": 3}),
        ("count", {"count": "item"}),
        ("where", {"where": "item"}),
        ("where", {"where": "1 +"}),
        ("where", {"where": "item = '\udc80'"}),
        ("item", {"item": {"made": "1 +"}}),
        ("item", {"item": {"made": "max(item)"}}),
        ("by", {"by": {"made": "max(item)"}, "groups": ["x"]}),
        ("table", {"table": 3}),
        ("table", {"table": "ftp://host/x"}),
        ("table", {"table": "some.duckdb"}),
        ("ledger", {"ledger": 3}),
        ("progress", {"progress": 3}),
    ],
)
def test_the_argument_at_fault_is_a_field(argument, given):
    asked = {"table": TABLE, "user": "user", "item": "item", "domain": ["x", "y"], "epsilon": 1.0, **given}
    with pytest.raises(errors.InvalidArgument) as caught:
        crowdgram.release(**asked)
    assert caught.value.argument == argument
    assert str(caught.value).startswith(argument)


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("domain", {"domain": []}),
        ("domain", {"domain": ["x", "x"]}),
        ("domain", {"domain": [1.5]}),
        ("domain", {"domain": 3}),
        ("domain", {"item": ["item", "share_text"], "domain": {"item": [], "share_text": ["a"]}}),
        ("groups", {"by": "share_text", "groups": []}),
    ],
)
def test_the_list_at_fault_is_a_field(argument, given):
    table = TABLE.append_column("share_text", pa.array(["a", "b"]))
    asked = {"user": "user", "item": "item", "domain": ["x", "y"], "epsilon": 1.0, **given}
    with pytest.raises(errors.InvalidDomain) as caught:
        crowdgram.release(table, **asked)
    assert caught.value.argument == argument
    assert str(caught.value).startswith(argument)


def raised(names):
    """Every call in the package that makes an error of one of these names, with the file and line it is in."""
    for path in sorted(Path(crowdgram.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                yield f"{path.name}:{node.lineno}", node


def begins_with_its_argument(call):
    """Whether a message that starts with plain text starts with the argument that the raiser gives, as it is written:
    `name=value:`, `name:`, `name, other:`, or `--option`.
    """
    argument = ast.literal_eval(next(one.value for one in call.keywords if one.arg == "argument"))
    message = call.args[0].values[0] if isinstance(call.args[0], ast.JoinedStr) else call.args[0]
    start = re.escape(argument) + (r"\b" if argument.startswith("--") else r"(?:[=:,]|$)")
    return re.match(start, message.value) is not None


def test_messages_begin_with_their_argument():
    found = {
        place: begins_with_its_argument(call)
        for place, call in raised({"InvalidArgument", "InvalidDomain", "UnknownItem"})
        if any(
            one.arg == "argument" and isinstance(one.value, ast.Constant) and one.value.value for one in call.keywords
        )
        and isinstance(getattr(call.args[0], "values", [call.args[0]])[0], ast.Constant)
    }
    assert len(found) > 100
    assert [place for place, right in found.items() if not right] == []
    wrong = ast.parse('InvalidArgument("epsilon needs to be above 0.", argument="epsilon")').body[0].value
    assert not begins_with_its_argument(wrong)


@pytest.mark.parametrize(("column", "given"), [("who", {"user": "who"}), ("share", {"item": "share"})])
def test_the_column_at_fault_is_a_field(column, given):
    with pytest.raises(InvalidTable) as caught:
        crowdgram.release(TABLE, **{"user": "user", "item": "item", "domain": ["x"], "epsilon": 1.0, **given})
    assert caught.value.column == column


def test_what_a_ledger_has_left_is_a_field(tmp_path):
    ledger = crowdgram.Ledger.create(tmp_path / "budget.db", epsilon=1.0)
    asked = {"user": "user", "item": "item", "domain": ["x", "y"], "mechanism": "laplace", "ledger": ledger}
    with pytest.raises(BudgetExceeded) as caught:
        crowdgram.release(TABLE, epsilon=3.0, **asked)
    assert (caught.value.epsilon, caught.value.delta) == (3.0, 0.0)
    assert caught.value.remaining == pytest.approx(1.0, rel=1e-2)
    crowdgram.release(TABLE, epsilon=caught.value.remaining, **asked)
    with pytest.raises(BudgetExceeded) as caught:
        crowdgram.release(TABLE, epsilon=1.0, **asked)
    assert caught.value.remaining == 0
    with pytest.raises(LedgerFailure) as failed:
        crowdgram.Ledger.open(tmp_path / "none.db")
    assert failed.value.path == tmp_path / "none.db"
