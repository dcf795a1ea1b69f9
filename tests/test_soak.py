"""The soak makes cases again by their seed, and notices what it is there to notice."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from crowdgram import Ledger
from crowdgram.privacy import Guarantee, LaplaceEvent, Plan, cost_of

BENCH = Path(__file__).parents[1] / "bench"
TENTH = Guarantee(0.1)
PLAN = Plan((cost_of([LaplaceEvent("counts", 1, 10.0, 3)], TENTH),))


@pytest.fixture
def soak(monkeypatch):
    """The script, which imports its neighbour by name, as it does when it is run."""
    monkeypatch.syspath_prepend(str(BENCH))
    yield importlib.import_module("soak")
    for name in ("soak", "soak_cases"):
        sys.modules.pop(name, None)


@pytest.fixture
def folder(tmp_path):
    for name in ("out", "tmp"):
        (tmp_path / name).mkdir()
    return tmp_path


def charge(path, label=""):
    return Ledger.open(path, label=label).charge(PLAN, TENTH, mechanism="laplace", weight="rows")


def test_a_case_is_made_again_by_its_number(soak, folder):
    cases = [soak.make_case(number, 5, folder, []) for number in range(300)]
    again = [soak.make_case(number, 5, folder, []) for number in range(300)]
    assert [(one.arguments, one.disaster) for one in cases] == [(one.arguments, one.disaster) for one in again]
    assert {one.disaster for one in cases} == set(soak.EXPECTED)
    assert {one.arguments[0] for one in cases} == {"release", "reach"}
    assert {Path(one.arguments[1]).name for one in cases} == set(sys.modules["soak_cases"].SOURCES)
    assert cases[0].arguments != soak.make_case(0, 6, folder, []).arguments


def judged(soak, folder, code=0, disaster="none", label=None, turn_back=False, leave=None):
    """The faults that are found after a case that ended with this code."""
    path = folder / "a.ledger"
    Ledger.create(path, 3.0)
    charge(path)
    shutil.copy(path, folder / "backup")
    known = soak.Known(charge(path))
    if turn_back:
        shutil.copy(folder / "backup", path)
    if label is not None:
        charge(path, label)
    if leave is not None:
        (folder / leave).touch()
    verdict = soak.Verdict(0)
    case = soak.Case(7, [], disaster, None, folder / "out" / "7.json", path, None)
    soak._judge_files(case, folder, None, code, verdict)
    soak._judge_ledger(case, known, code, verdict, others=False)
    return verdict.faults


@pytest.mark.parametrize(
    ("happened", "found"),
    [
        ({"code": 2}, []),
        ({"code": -9, "disaster": "kill", "label": "case 7", "leave": "tmp/crowdgram-x"}, []),
        ({"code": -6, "leave": "tmp/crowdgram-x"}, ["left crowdgram-x"]),
        ({"code": 143, "disaster": "terminate", "leave": "tmp/crowdgram-x"}, ["left crowdgram-x"]),
        ({"code": -15, "disaster": "terminate", "leave": "tmp/crowdgram-x"}, ["left crowdgram-x"]),
        ({"code": 2, "disaster": "pair", "leave": "tmp/anything"}, ["left anything"]),
        ({"code": 2, "leave": "tmp/crowdgram-x"}, ["left crowdgram-x"]),
        ({"code": 2, "leave": "out/.crowdgram-x"}, ["left .crowdgram-x"]),
        ({"code": 3, "label": "case 7"}, ["was refused and charged"]),
        ({"code": 2, "turn_back": True}, ["cannot be trusted"]),
        ({"code": 0, "label": "case 7"}, ["wrote nothing", "is not stored"]),
        ({"code": 1, "leave": "out/7.json"}, ["wrote a file that cannot be read"]),
    ],
)
def test_what_a_case_leaves_is_judged(soak, folder, happened, found):
    faults = judged(soak, folder, **happened)
    assert len(faults) == len(found)
    for fault, words in zip(faults, found, strict=True):
        assert words in fault


def test_what_a_kill_left_hides_nothing_that_another_leaves(soak, folder):
    verdict = soak.Verdict(0)
    for number, (code, name) in enumerate([(-9, "crowdgram-a"), (2, None), (2, "crowdgram-b"), (2, None)]):
        if name:
            (folder / "tmp" / name).touch()
        case = soak.Case(number, [], "none", None, folder / "out" / "7.json", None, None)
        soak._judge_files(case, folder, None, code, verdict)
    assert verdict.faults == ["case 2: left crowdgram-b"]
    assert verdict.left_by_kills == 1


@pytest.mark.parametrize(
    ("disaster", "code", "said", "found"),
    [
        ("low memory", -11, "", True),
        ("low memory", -6, "terminate called after throwing an instance of 'std::bad_alloc'", True),
        ("low memory", 1, "OpenBLAS error: Memory allocation still failed after 10 retries, giving up.", True),
        ("low memory", 127, "cannot allocate memory for thread-local data: ABORT", True),
        ("low memory", 1, "error: unexpected ImportError", False),
        ("low memory", 127, "", False),
        ("low memory", -9, "", False),
        ("none", -11, "", False),
        ("full disk", -6, "", False),
        ("kill", 1, "OpenBLAS error: Memory allocation still failed after 10 retries, giving up.", False),
    ],
)
def test_a_crash_is_put_down_to_memory_only_if_that_was_limited(soak, folder, disaster, code, said, found):
    case = soak.Case(0, [], disaster, None, folder / "out" / "0.json", None, None)
    assert soak.ended_by_system(case, code, said) == found
    assert code not in soak.EXPECTED[disaster] or code == 1


@pytest.mark.parametrize(("many", "found"), [(1, (5.0, 5.0)), (2, (6.0, 6.0)), (10, (7.5, 13.5))])
def test_the_memory_of_few_releases(soak, many, found):
    assert soak.early_and_late([5.0 + turn for turn in range(many)]) == found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_the_last_release_sweeps_and_then_nothing_may_be_left(soak, folder):
    soak.write_tables(folder)
    swept = folder / "tmp" / "crowdgram-scratch-x"
    swept.mkdir(mode=0o700)
    verdict = soak.Verdict(0)
    soak._sweep(folder, None, verdict)
    assert verdict.faults == []
    assert not swept.exists()
    (folder / "out" / "last-tmp.json").unlink()
    (folder / "out" / ".crowdgram-x").touch()
    soak._sweep(folder, None, verdict)
    assert len(verdict.faults) == 1
    assert ".crowdgram-x" in verdict.faults[0]


@pytest.mark.parametrize(("grows", "faults"), [(0.0, 0), (0.05, 0), (0.5, 1)])
def test_a_process_that_grows_is_noticed(soak, grows, faults):
    memory = [200 + grows * turn for turn in range(300)]
    told = json.dumps({"memory": memory, "files": [8] * 300, "threads": [8] * 300}).encode()
    verdict = soak.Verdict(0)
    soak._judge_memory(SimpleNamespace(communicate=lambda timeout: (told, b""), returncode=0), verdict)
    assert len(verdict.faults) == faults


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
@pytest.mark.parametrize(
    ("limits", "does", "code", "why"),
    [
        ({}, "import time; time.sleep(0.7)", 0, ""),
        ({"STILL": 0.4}, "import time; time.sleep(60)", -9, "did nothing"),
        ({"MOST_WORK": 0.3}, "while True: pass", -9, "worked for"),
    ],
)
def test_a_case_is_given_up_by_what_it_does_and_not_by_the_clock(soak, monkeypatch, limits, does, code, why):
    for name, value in limits.items():
        monkeypatch.setattr(soak, name, value)  # real ones last minutes
    found, said = soak.wait_for(subprocess.Popen([sys.executable, "-c", does]))
    assert found == code
    assert said.startswith(why)
    assert bool(said) == bool(why)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_soak_of_one_case(tmp_path):
    command = [sys.executable, BENCH / "soak.py", "--seed", "3", "--cases", "1", "--first", "8", "--inside", "0"]
    done = subprocess.run([*command, "--json", tmp_path / "s.json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads((tmp_path / "s.json").read_text())
    assert (verdict["cases"], verdict["by_exit"], verdict["faults"]) == (1, {"none: 0": 1}, [])
    assert "faults: 0" in done.stdout
