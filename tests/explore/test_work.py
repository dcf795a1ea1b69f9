"""What the page answers: nothing private before a release, the library's own errors, the same job for copying."""

# ruff: noqa: E402 (without the extra, these modules cannot be imported, and the tests are skipped)
from __future__ import annotations

import ast
import json
import shlex
import sqlite3
import threading

import pyarrow as pa
import pytest
from pyarrow import parquet

pytest.importorskip("starlette", reason="the extra explore is not installed: pip install 'crowdgram[explore]'")
testclient = pytest.importorskip("starlette.testclient", reason="httpx is not installed: pip install httpx")

import typer

import crowdgram
from crowdgram.cli.app import app as commands
from crowdgram.explore.access import KEY, Access
from crowdgram.explore.app import make_app
from crowdgram.explore.jobs import read_job
from crowdgram.explore.work import Work

from ..test_escaping import HOSTILE

ODD = ("zebra-7731", "<script>quokka()</script>", "\u202eolaffub", "48151623")
ROWS = 613
CROWD = {"users": 500, "rows_per_user": 2, "items": 4, "weight": "users"}


@pytest.fixture
def work():
    return Work()


@pytest.fixture
def post(work):
    access = Access(8123)
    client = testclient.TestClient(make_app(access, work), base_url=access.origin)
    client.get("/", params={"token": access.token})

    def send(path, form):
        return client.post(path, json=form, headers={"Origin": access.origin, KEY: access.key})

    send.get = client.get
    return send


def table(folder, kind="parquet", items=("a", "b", "c", "d")):
    users = [f"user-{ODD[0]}-{n % 211}" for n in range(ROWS)]
    values = [(*items, *ODD)[n % (len(items) + len(ODD))] for n in range(ROWS)]
    made = pa.table({"who": users, "what": values, "where": [ODD[n % 2] for n in range(ROWS)]})
    path = folder / f"visits.{kind}"
    if kind == "parquet":
        parquet.write_table(made, path)
    elif kind == "sqlite":
        with sqlite3.connect(path) as base:
            base.execute('create table visits (who text, what text, "where" text)')
            base.executemany("insert into visits values (?, ?, ?)", list(zip(*made.to_pydict().values(), strict=True)))
    elif kind == "csv":
        path.write_text("\n".join(",".join(row) for row in zip(*made.to_pydict().values(), strict=True)))
    else:
        path.write_text("\n".join(json.dumps(row) for row in made.to_pylist()))
    return path


def form(path, **more):
    asked = {"table": str(path), "user": "who", "item": "what", "epsilon": "1", "delta": "1e-6", **CROWD}
    return {**asked, "domain_kind": "list", "domain_list": "a\nb\r\nc\n\nd", **more}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_nothing_of_any_row_is_shown_before_a_release(post, tmp_path, kind):
    path = table(tmp_path, kind)
    good = form(path)
    wrong = [{"item": "wat"}, {"user": "where "}, {"by": "where"}, {"by": "where", "groups_kind": "discover"}]
    wrong += [{"domain_list": "a"}, {"domain_kind": "discover"}, {"domain_kind": "file", "domain_file": str(path)}]
    wrong += [{"ledger": str(path)}, {"epsilon": "0"}, {"max_rows_per_user": "0"}, {"users": ""}]
    texts = [post.get("/").text, post("/made", {}).text]
    texts += [post(route, good).text for route in ("/columns", "/copies")]
    texts += [post("/check", {**good, **change}).text for change in ({}, *wrong)]
    whole = "\n".join(texts).replace(str(tmp_path), "")  # the folder's own name may hold any number
    for secret in (*ODD, ODD[2].encode("unicode_escape").decode(), "user-", str(ROWS), "211"):
        assert secret not in whole
    assert not post.get("/releases/1").is_success


def test_columns_are_names_and_types_and_those_of_text_files_are_not_read(post, tmp_path):
    assert post("/columns", form(table(tmp_path))).json() == {
        "columns": [["who", "string"], ["what", "string"], ["where", "string"]]
    }
    found = post("/columns", form(table(tmp_path, "sqlite"), database_table="visits")).json()
    assert [name for name, _ in found["columns"]] == ["who", "what", "where"]
    assert post("/columns", form(table(tmp_path, "csv"))).json() == {"columns": None}


def test_errors_are_the_library_s_own_sentences_with_their_field(post, tmp_path):
    path = table(tmp_path)
    for change, field in (
        ({"epsilon": "-1"}, "epsilon"),
        ({"epsilon": "<b>"}, "epsilon"),
        ({"domain_list": "a\na"}, "domain"),
        ({"domain_kind": "file", "domain_file": str(path)}, "domain"),
        ({"max_rows_per_user": "1.5"}, "max_rows_per_user"),
        ({"user": ""}, "user"),
        ({"table": "-"}, "table"),
        ({"user": ["x"]}, "user"),
        ({"item": "wat"}, "item"),
        ({"table": "a\0b"}, "table"),
    ):
        for route in ("/check", "/release"):
            answer = post(route, form(path, **change))
            assert answer.status_code == 422, (change, answer.text)
            assert answer.json()["field"] == field
    with pytest.raises(crowdgram.CrowdgramError) as refused:
        crowdgram.release(str(path), user="who", item="wat", epsilon=1.0, domain=["a", "b"])
    assert post("/release", form(path, item="wat", domain_list="a\nb")).json()["error"] == str(refused.value)
    missing = post("/check", form(tmp_path / "none.parquet"))
    assert missing.status_code == 422
    assert "none.parquet" in missing.json()["error"]


def test_hostile_names_come_back_as_json_that_cannot_steer(post, tmp_path):
    path = table(tmp_path)
    for name in list(HOSTILE)[::8]:
        if not name.strip() or "\0" in name:
            continue
        answer = post("/check", form(path, item=name))
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["error"].isprintable()


def test_an_unexpected_error_shows_its_kind_only(post, work, tmp_path, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError(ODD[0])

    monkeypatch.setattr("crowdgram.explore.work.check", fails)  # stands for a bug of ours
    answer = post("/check", form(table(tmp_path)))
    assert answer.status_code == 500
    assert ODD[0] not in answer.text
    assert "RuntimeError" in answer.text


def test_a_check_says_the_planned_error_and_reads_nothing(post, tmp_path):
    said = post("/check", form(table(tmp_path))).json()
    assert "4 items. No row was read, and nothing was charged." in said["sentences"][0]
    assert any("will be known to within" in one for one in said["sentences"])
    assert "Estimated for 500 users, 2 rows each, 4 items" in said["settings"]
    weak = post("/check", form(table(tmp_path), epsilon="50")).json()
    assert weak["sentences"][0].startswith("epsilon=50")
    found = post("/check", form(table(tmp_path), domain_kind="discover")).json()
    assert any("with 30% of the budget spent on finding them" in one for one in found["sentences"])
    assert "epsilon=1," in found["settings"]
    item = "An item of"  # it is known less well if part of the budget went elsewhere
    within = [next(one for one in each["sentences"] if one.startswith(item)) for each in (said, found)]
    assert within[0] != within[1]


def test_an_estimate_is_that_of_a_plan(post):
    asked = {"users": 2000, "rows_per_user": 5, "items": 20, "epsilon": 1, "delta": "0", "weight": "users"}
    said = post("/estimate", asked).json()
    planned = crowdgram.plan(users=2000, rows_per_user=5, items=20, epsilon=1.0, weight="users")
    assert said["l1_error"] == pytest.approx(planned.l1_error, rel=0.5)
    assert said["sampling_error"] == planned["no privacy"].sampling_error
    assert post("/estimate", {**asked, "users": 0}).json()["error"].startswith("users=0: needs to be a number from 1")
    assert post("/estimate", {**asked, "tails": "odd"}).json()["field"] == "tails"


def test_a_release_is_kept_with_its_report_and_its_file(post, tmp_path):
    answer = post("/release", form(table(tmp_path), weight="users"))
    assert answer.status_code == 200, answer.text
    assert answer.json()["place"] == 1
    assert "epsilon=1 and delta=1e-06 together" in answer.json()["spent"]
    at = answer.json()["at"]
    shown = post.get(at)
    assert shown.headers["content-security-policy"].startswith("sandbox allow-scripts allow-downloads;")
    document = post.get(f"{at}/release.json")
    assert 'filename="release-1.json"' in document.headers["content-disposition"]
    saved = tmp_path / "release.json"
    saved.write_text(document.text, encoding="utf-8")
    release = crowdgram.load(saved)
    assert release.items == ("a", "b", "c", "d")
    assert release.weight == "users"
    page = tmp_path / "page.html"
    release.to_html(page)
    assert post.get(f"{at}/report.html").text == page.read_text(encoding="utf-8") == shown.text
    assert sorted(one.name for one in tmp_path.iterdir()) == ["page.html", "release.json", "visits.parquet"]


def test_a_ledger_is_charged_and_refuses_what_it_has_not(post, tmp_path):
    path, ledger = table(tmp_path), tmp_path / "shop.ledger"
    crowdgram.Ledger.create(ledger, epsilon=0.5, delta=1e-5)
    asked = form(path, ledger=str(ledger), label="first", weight="users", delta="0")
    for route in ("/check", "/release"):
        refused = post(route, asked)
        assert refused.status_code == 422
        assert "Nothing was charged" in refused.json()["error"]
    made = post("/release", {**asked, "epsilon": "0.5"})
    assert made.status_code == 200
    assert made.json()["spent"] == ""
    assert [one.label for one in crowdgram.Ledger.open(ledger).history()] == ["first"]


def test_releases_are_made_one_at_a_time(work, post, tmp_path, monkeypatch):
    started, go = threading.Event(), threading.Event()

    def slow(*_, **__):
        started.set()
        assert go.wait(10)
        raise crowdgram.errors.EngineFailure("stopped.", stage=None)

    # a release that lasts until the test lets it end
    monkeypatch.setattr("crowdgram.explore.work.releases.release", slow)
    asked, answers = form(table(tmp_path)), []
    first = threading.Thread(target=lambda: answers.append(post("/release", asked)))
    first.start()
    assert started.wait(10)
    assert post("/release", asked).status_code == 409
    go.set()
    first.join(10)
    assert answers[0].json()["error"] == "stopped."
    assert work.made == []


@pytest.mark.slow
def test_the_same_release_is_made_again_only_if_that_is_said(post, work, tmp_path):
    path, ledger = table(tmp_path), tmp_path / "shop.ledger"
    crowdgram.Ledger.create(ledger, epsilon=3.0, delta=1e-5)
    asked = form(path, ledger=str(ledger), delta="0", epsilon="0.5")
    assert post("/release", asked).json()["place"] == 1
    for again in ({}, {"again": None}, {"again": 0}, {"again": 2}, {"again": "1"}, {"label": " "}, {"again": True}):
        refused = post("/release", {**asked, **again})
        assert refused.status_code == 409, again
        assert refused.json()["again"] == 1
        assert "Release 1 of this page asked for the same" in refused.json()["error"]
    meant = {**asked, "again": 1}
    assert post("/release", meant).json()["place"] == 2
    assert post("/release", meant).status_code == 409  # sent twice, it is made once
    assert post("/release", {**asked, "label": "other"}).json()["place"] == 3
    assert len(crowdgram.Ledger.open(ledger).history()) == 3


def test_a_page_that_is_loaded_again_finds_what_was_made(post, work, tmp_path):
    assert post("/made", {}).json() == {"made": [], "spent": "", "running": False, "stage": ""}
    first = post("/release", form(table(tmp_path))).json()
    found = post("/made", {}).json()
    assert found["made"] == [{name: first[name] for name in ("place", "at", "report", "warnings")}]
    assert found["spent"] == first["spent"] != ""
    assert post.get(first["at"]).is_success


def test_what_is_paid_for_is_kept_if_its_report_fails(post, work, tmp_path, monkeypatch):
    def fails(*_, **__):
        raise MemoryError(ODD[0])

    monkeypatch.setattr("crowdgram.explore.work.page", fails)  # stands for a bug of ours
    made = post("/release", form(table(tmp_path))).json()
    assert made["report"] is False
    assert "The report could not be drawn" in made["warnings"][-1]
    assert ODD[0] not in str(made)
    assert "epsilon=1 and" in made["spent"]
    assert json.loads(post.get(f"{made['at']}/release.json").text)["items"] == list("abcd")


JOBS = {
    "plain": {},
    "found": {"domain_kind": "discover"},
    "odd names": {"user": "a's $HOME", "item": 'a "b" `c`', "by": "--by", "groups_kind": "list", "groups_list": "x\ny"},
    "file": {"domain_kind": "file", "domain_file": "my items.txt", "weight": "users", "max_rows_per_user": "20"},
    "discover": {"domain_kind": "file", "domain_file": "discover"},
    "ledger": {"ledger": "-shop.ledger", "label": "for 'May'", "epsilon": "0.1", "delta": "0"},
    "database": {"table": "sqlite:shop.db", "database_table": "visits"},
    "option": {"table": "-visits.csv"},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_the_copied_command_and_code_are_the_job(name, tmp_path):
    asked = form("visits.parquet", **JOBS[name])
    job, copies = read_job(asked), Work().copies(asked)
    release, report = copies["command"].splitlines()
    program, command, *words = shlex.split(release)
    assert (program, command) == ("crowdgram", "release")
    parser = typer.main.get_command(commands).commands["release"]
    found = parser.make_context("release", list(words)).params
    pasted = {"items.txt": job.domain.pasted, **({} if job.groups is None else {"groups.txt": job.groups.pasted})}
    assert found["source"] == ("./-visits.csv" if name == "option" else job.source)
    assert [found["user"], *found["item"], found["by"]] == [job.user, job.item, job.by]
    assert (found["epsilon"], found["delta"]) == (job.epsilon, job.delta)
    assert (found["weight"], found["max_rows_per_user"]) == (job.weight, job.max_rows_per_user)
    assert list(found["domain"] or ()) == ([] if job.domain.path is None else [job.domain.path])
    assert found["groups"] == (None if job.groups is None else job.groups.path)
    assert (found["table"], found["label"]) == (job.table, job.label)
    assert found["ledger"] == (None if job.ledger is None else type(found["output"])(job.ledger))
    assert str(found["output"]) == "release.json"
    assert report == "crowdgram report release.json --output report.html"
    assert copies["lists"] == {one: "\n".join(lines) + "\n" for one, lines in pasted.items() if lines is not None}

    calls = [one for one in ast.walk(ast.parse(copies["python"])) if isinstance(one, ast.Call)]
    call = next(one for one in calls if ast.unparse(one.func) == "crowdgram.release")
    code = {one.arg: one.value for one in call.keywords}
    given = {**job.arguments(), "epsilon": job.epsilon, "delta": job.delta}
    for argument, value in given.items():
        default = {"weight": "rows", "delta": 0.0}.get(argument)
        assert (ast.literal_eval(code[argument]) if argument in code else default) == value
    assert ("ledger" in code) == (job.ledger is not None)


def test_a_name_that_a_command_would_take_for_an_expression_is_left_to_python():
    for change in ({"user": "lower(x)"}, {"item": "a=b"}):
        copies = Work().copies(form("visits.parquet", **change))
        assert copies["command"].startswith("# ")
        assert repr(next(iter(change.values()))) in copies["python"]


def test_a_copied_job_runs_and_asks_the_same(post, tmp_path, monkeypatch):
    path = table(tmp_path)
    monkeypatch.chdir(tmp_path)
    asked = form("visits.parquet", weight="users", max_rows_per_user="5")
    copies = post("/copies", asked).json()
    made = post("/release", asked)
    assert made.status_code == 200
    exec(copies["python"], {})
    mine = json.loads(post.get(f"{made.json()['at']}/release.json").text)
    theirs = json.loads((tmp_path / "release.json").read_text())
    same = ("schema", "guarantee", "weight", "mechanism", "item_columns", "items")
    assert {key: mine.get(key) for key in same} == {key: theirs.get(key) for key in same}
    assert path.exists()
