"""Make random releases for hours while things go wrong, and see that nothing is lost, leaked or overspent.

    python bench/soak.py [--hours 2] [--seed N] [--first N] [--cases N] [--only DISASTER] [--json FILE] [--inside 300]

Every case is a command of its own: a random table, mechanism, weight, ledger, and a random disaster (killed, told to
end, interrupted, a full disk, little memory, two at once). See bench/README.md for what is checked. A case is made
again by the seed and its number: `--seed S --first N --cases 1`. Exits with 1 if anything was amiss. Needs Linux.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import json
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soak_cases import Case, make_case, make_ledger, write_tables

import crowdgram
from crowdgram import CrowdgramError, Ledger, LedgerHead, load, verify_ledger

COMMAND = [sys.executable, "-c", "from crowdgram.cli import script; script()"]
EXPECTED = {
    "none": {0, 2, 3},
    "pair": {0, 2, 3},
    "kill": {0, 2, 3, -signal.SIGKILL},
    "terminate": {0, 2, 3, 128 + signal.SIGTERM, -signal.SIGTERM},
    "interrupt": {0, 2, 3, 130, -signal.SIGINT},  # the last: the command was over, and Python was on its way out
    "full disk": {0, 1, 2, 3},
    "small disk": {0, 1, 2, 3},
    "low memory": {0, 1, 2, 3},
}
"""The exit codes that docs/how-to/command-line.md allows, by what happened; negative: ended by that signal."""
CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL, -signal.SIGTRAP}
GIVEN_UP = ("OpenBLAS error: Memory allocation still failed", "cannot allocate memory for thread-local data: ABORT")
"""What native libraries say that end the process themselves where they have no memory: OpenBLAS, and the C library."""
CASES_A_LEDGER = 25
MOST_SAID = 2000
"""Characters of what a case said last that a fault shows: a traceback may never come again."""
GROWTH = 24.0
"""MB that a process may grow by over hundreds of releases."""
MOST_WORK = 90.0
STILL = 240.0
STIR = 0.05
"""A case that computes for more than MOST_WORK seconds never ends; one that computes for less than STIR seconds within
STILL seconds hangs. Both hold on a machine that others load, where a case may take minutes of the clock."""


@dataclass
class Verdict:
    """What was done, and what was amiss."""

    seed: int
    cases: int = 0
    by_disaster: Counter[str] = field(default_factory=Counter)
    by_exit: Counter[str] = field(default_factory=Counter)
    by_state: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    ledgers: int = 0
    verified: int = 0
    ended_by_system: int = 0
    left: set[str] = field(default_factory=set)
    left_by_kills: int = 0
    seconds: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)  # of releases that nothing stopped
    memory: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@dataclass
class Known:
    """What was seen of a ledger: its last head, and the releases that were shown."""

    head: LedgerHead
    shown: list[Path] = field(default_factory=list)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=2.0, help="how long to go on (2)")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of the cases (random)"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first case (0)")
    parser.add_argument(
        "--only", choices=sorted(EXPECTED), action="append", help="only cases that meet this; again for more"
    )
    parser.add_argument("--cases", type=int, help="how many cases at most (as many as there is time for)")
    parser.add_argument("--inside", type=int, default=300, help="releases in one process, for its memory (300)")
    parser.add_argument("--json", type=Path, help="write the result to this file")
    options = parser.parse_args(arguments)
    # As an installer does: Python cuts short what it compiles if files may not grow, and cannot load that again.
    compileall.compile_dir(crowdgram.__path__[0], quiet=2)
    end = time.monotonic() + 3600 * options.hours
    verdict = Verdict(options.seed)
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder, small_disk(Path(folder)) as disk:
        run(Path(folder), disk, verdict, end, options)
    _print(verdict)
    if options.json:
        options.json.write_text(json.dumps({**vars(verdict), "left": sorted(verdict.left)}, indent=1))
    return 1 if verdict.faults else 0


def run(folder: Path, disk: Path | None, verdict: Verdict, end: float, options: argparse.Namespace) -> None:
    """Cases until the time is over, or as many as are asked for; then the memory of a process that lives long."""
    write_tables(folder)
    for name in ("out", "tmp"):
        (folder / name).mkdir()
    places = [folder] if disk is None else [folder, disk]
    known: dict[Path, Known] = {}
    inside = None
    if options.inside:
        script = Path(__file__).with_name("soak_memory.py")
        inside = subprocess.Popen([sys.executable, script, folder, str(options.inside)], **_apart(folder, "inside"))
    number = options.first
    while time.monotonic() < end and (options.cases is None or number < options.first + options.cases):
        if (number - options.first) % CASES_A_LEDGER == 0:
            for path in [one for one in known if one.parent == disk]:  # hours of them would fill it
                _verify(path, known.pop(path), verdict)
                path.unlink()
            for place in places:
                made = place / f"{number}.ledger"
                make_ledger(made, random.Random(f"{options.seed}:{number}:{place == disk}"))
                known[made] = Known(Ledger.open(made).head())
                verdict.ledgers += 1
        recent = [path for path in known if path.stem == str(number - (number - options.first) % CASES_A_LEDGER)]
        case = make_case(number, options.seed, folder, recent)
        if (case.disaster == "small disk" and disk is None) or (options.only and case.disaster not in options.only):
            number += 1
            continue
        before = len(verdict.faults)
        _try(case, folder, disk, verdict, known)
        for fault in verdict.faults[before:]:
            print(f"fault: {fault}", flush=True)  # hours before the end
        number += 1
        if verdict.cases % 100 == 0:
            print(f"{verdict.cases} cases, {len(verdict.faults)} faults", flush=True)
    for path, one in known.items():
        _verify(path, one, verdict)
    _sweep(folder, disk, verdict)
    if inside is not None:
        _judge_memory(inside, verdict)
        left = [one.name for one in (folder / "inside").iterdir()]
        if left:
            verdict.faults.append(f"the process of many releases left {left[:3]}")


def _try(case: Case, folder: Path, disk: Path | None, verdict: Verdict, known: dict[Path, Known]) -> None:
    """Run a case, let its disaster happen, and look at everything that it may have touched."""
    verdict.cases += 1
    verdict.by_disaster[case.disaster] += 1
    start = time.monotonic()
    filler = _fill(disk, case) if case.disaster == "small disk" and disk is not None else None
    told, errors = folder / "stdout", folder / "stderr"
    with open(told, "wb") as out, open(errors, "wb") as err, open(case.piped or os.devnull, "rb") as given:
        child = subprocess.Popen(
            [*COMMAND, *case.arguments],
            stdin=given,
            stdout=out,
            stderr=err,
            env=_environment(folder, case, disk),
            preexec_fn=lambda: _limit(case),
        )
        other = _companion(case, folder) if case.disaster == "pair" else None
        _strike(case, child, errors, verdict)
        code, why = wait_for(child)
        if why:
            verdict.faults.append(f"case {case.number}: {why}")
        if other is not None and (wait_for(other)[0] not in EXPECTED["pair"]):
            verdict.faults.append(f"case {case.number}: its companion ended with {other.returncode}")
    if filler is not None:
        filler.unlink(missing_ok=True)
    verdict.seconds.append(time.monotonic() - start)
    if case.disaster in ("none", "full disk", "small disk") and code == 0:
        verdict.whole.append(verdict.seconds[-1])
    verdict.by_exit[f"{case.disaster}: {code}"] += 1
    said = errors.read_text(errors="replace")
    if code == 1:
        verdict.failures[f"{case.disaster}: {(said.strip().splitlines() or [''])[-1][:150]}"] += 1
    if "Traceback" in said or "unexpected" in said or "Traceback" in told.read_text(errors="replace"):
        verdict.faults.append(f"case {case.number}: {said.strip()[-MOST_SAID:]}")
    if ended_by_system(case, code, said):
        verdict.ended_by_system += 1
        code = -signal.SIGKILL
    elif code not in EXPECTED[case.disaster]:
        verdict.faults.append(f"case {case.number} ({case.disaster}): exit {code}: {said.strip()[-MOST_SAID:]}")
    _judge_files(case, folder, disk, code, verdict)
    if case.ledger is not None:
        _judge_ledger(case, known[case.ledger], code, verdict, others=case.disaster == "pair")


def ended_by_system(case: Case, code: int, said: str) -> bool:
    """Whether a process whose memory was limited ended inside a native library that had none.

    Nothing of ours runs after it, as after a kill, so that all that must hold after a kill must hold then. Without a
    limit a crash is a fault.
    """
    return case.disaster == "low memory" and (code in CRASHES or any(words in said for words in GIVEN_UP))


def wait_for(child: subprocess.Popen[bytes]) -> tuple[int, str]:
    """The exit code of a process, and why it was killed if it hangs or never ends."""
    stirred, worked_then = time.monotonic(), 0.0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(0.5), ""
        worked, now = processor_seconds(child.pid), time.monotonic()
        if worked > worked_then + STIR:
            stirred, worked_then = now, worked
        if worked > MOST_WORK or now > stirred + STILL:
            child.kill()
            what = f"worked for {worked:.0f} s" if worked > MOST_WORK else f"did nothing for {now - stirred:.0f} s"
            return child.wait(), f"{what} and had not ended"


def processor_seconds(process: int) -> float:
    """What a process has worked so far, in all its threads; a process that has ended works no more."""
    stat = Path(f"/proc/{process}/stat").read_text()
    user, system = stat.rsplit(")", 1)[1].split()[11:13]  # after the name, which may hold anything
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _judge_files(case: Case, folder: Path, disk: Path | None, code: int, verdict: Verdict) -> None:
    """What is written is whole, what failed left nothing, and only what was killed may leave scratch behind."""
    scratch = left_in(folder, disk)
    new = scratch - verdict.left
    verdict.left = scratch
    if code == -signal.SIGKILL:
        verdict.left_by_kills += len(new)
    elif new:
        verdict.faults.append(f"case {case.number}: left {', '.join(sorted(Path(one).name for one in new))}")
    if case.output.exists():
        try:
            load(case.output)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is a fault)
            verdict.faults.append(f"case {case.number}: wrote a file that cannot be read: {error}")
    elif code == 0:
        verdict.faults.append(f"case {case.number}: ended well and wrote nothing")
    if case.output.exists() and code in (2, 3) and "--csv" not in case.arguments:
        verdict.faults.append(f"case {case.number}: failed with {code} and wrote {case.output.name}")


def left_in(folder: Path, disk: Path | None) -> set[str]:
    """What is left of scratch folders and of files that never got their name."""
    left = [one for place in (folder / "tmp", folder / "out", disk) if place for one in place.iterdir()]
    return {str(one) for one in left if one.parent.name == "tmp" or one.name.startswith(("crowdgram-", "."))}


def _judge_ledger(case: Case, known: Known, code: int, verdict: Verdict, *, others: bool) -> None:
    """The ledger after a case: in one piece, not turned back, and with the charge of what was shown."""
    assert case.ledger is not None
    try:
        found = Ledger.open(case.ledger)
        stands = found.check([known.head])
        new = found.history()[known.head.number :]
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a fault)
        verdict.faults.append(f"case {case.number}: the ledger cannot be trusted: {error}")
        return
    verdict.by_state.update("finished" if entry.finished else "unfinished" for entry in new)
    if len(new) > (2 if others else 1):
        verdict.faults.append(f"case {case.number}: charged {len(new)} times")
    own = [entry for entry in new if entry.label == f"case {case.number}"]
    if code == 0 and not (own and own[0].finished):
        verdict.faults.append(f"case {case.number}: ended well and is not stored")
    if code == 3 and own:
        verdict.faults.append(f"case {case.number}: was refused and charged")
    twins = [entry for entry in new if entry.label == "twin"]
    for path, charged in ((case.output, own), (case.output.with_suffix(".twin.json"), twins)):
        with contextlib.suppress(CrowdgramError):  # not there, or `_judge_files` has said so
            head = load(path).ledger_head
            known.shown.append(path)
            if not charged or head is None or head.digest != charged[0].digest:
                verdict.faults.append(f"case {case.number}: {path.name} shows another charge than its own")
    known.head = stands


def _verify(path: Path, known: Known, verdict: Verdict) -> None:
    """All of a ledger against all releases that were shown."""
    try:
        verify_ledger(path, releases=known.shown, heads=[known.head])
        verdict.verified += len(known.shown)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a fault)
        verdict.faults.append(f"{path.name}: {error}")


def _strike(case: Case, child: subprocess.Popen[bytes], errors: Path, verdict: Verdict) -> None:
    """Kill or interrupt a case at a random moment of what cases usually take."""
    kinds = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM, "interrupt": signal.SIGINT}
    if case.disaster not in kinds:
        return
    usual = statistics.median(verdict.whole[-30:] or [2.0])
    moment = time.monotonic() + case.chance.uniform(0.0, 1.1 * usual)
    while child.poll() is None and (
        time.monotonic() < moment or (case.disaster == "interrupt" and not errors.stat().st_size)
    ):
        time.sleep(0.005)  # Python itself answers an interrupt while it starts, with a traceback
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(kinds[case.disaster])


def _companion(case: Case, folder: Path) -> subprocess.Popen[bytes]:
    """The same release once more, at the same time, to another file and by another label."""
    place = case.arguments.index("-o") + 1
    arguments = [*case.arguments[:place], str(case.output.with_suffix(".twin.json")), *case.arguments[place + 1 :]]
    if "--csv" in arguments:
        at = arguments.index("--csv")
        del arguments[at : at + 2]
    if "--label" in arguments:
        arguments[arguments.index("--label") + 1] = "twin"
    with open(case.piped or os.devnull, "rb") as given:
        return subprocess.Popen([*COMMAND, *arguments], stdin=given, **_apart(folder, "tmp"))


def _limit(case: Case) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a soak in the background has it ignored
    if case.disaster == "full disk":
        size = case.chance.choice([2048, 4096, 2**14, 2**16, 2**17])  # what is printed has to fit
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    if case.disaster == "low memory":
        size = case.chance.randrange(700, 3000) * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))


def _fill(disk: Path, case: Case) -> Path:
    """Leave a random rest of the small disk."""
    filler = disk / "filler"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    filler.write_bytes(b"x" * max(0, free - case.chance.randrange(0, 3 * 2**20)))
    return filler


def _environment(folder: Path, case: Case, disk: Path | None) -> dict[str, str]:
    return _scratch_at(disk if case.disaster == "small disk" and disk is not None else folder / "tmp")


def _scratch_at(place: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(place), "OPENBLAS_NUM_THREADS": "1"}


def _apart(folder: Path, name: str) -> dict[str, Any]:
    """How a process runs that nobody watches: with a scratch folder of this name, and a pipe for its output."""
    (folder / name).mkdir(exist_ok=True)
    return {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": _scratch_at(folder / name)}


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A file system of 8 MB, if this user may mount one; None otherwise."""
    place = folder / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "soak", str(place)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    try:
        yield place if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(place)], check=False)


def _sweep(folder: Path, disk: Path | None, verdict: Verdict) -> None:
    """What killed processes left behind is removed by the next release. Then nothing may be there."""
    for place in (folder / "tmp", disk):
        if place is None:
            continue
        made = folder / "out" / f"last-{place.name}.json"
        asked = ["release", str(folder / "visits.csv"), "--user", "user", "--item", "item", "--epsilon", "1", "-q"]
        asked += ["--domain", str(folder / "items.txt"), "-o", str(made)]
        code = subprocess.run([*COMMAND, *asked], env=_scratch_at(place), check=False).returncode
        if code:
            verdict.faults.append(f"the last release, with scratch files in {place.name}, ended with {code}")
    left = sorted(left_in(folder, disk))
    if left:
        verdict.faults.append(f"{len(left)} left after the last release: {', '.join(left[:3])}")


def _judge_memory(inside: subprocess.Popen[bytes], verdict: Verdict) -> None:
    """A process that makes many releases must not grow: its memory after warming up against that at the end."""
    told, _ = inside.communicate(timeout=3600)
    if inside.returncode:
        verdict.faults.append(f"the process of many releases ended with {inside.returncode}")
        return
    found = json.loads(told)
    memory = verdict.memory = found["memory"]
    early, late = early_and_late(memory)
    if late - early > GROWTH:
        verdict.faults.append(f"{len(memory)} releases in one process: {early:.0f} MB grew to {late:.0f} MB")
    for name in ("files", "threads"):
        if found[name][-1] > found[name][len(found[name]) // 2] + 4:
            verdict.faults.append(f"{len(memory)} releases in one process: {name} grew to {found[name][-1]}")


def early_and_late(memory: Sequence[float]) -> tuple[float, float]:
    """The memory after warming up, and at the end; of one release alone they are the same."""
    part = max(1, len(memory) // 5)
    return statistics.median(memory[part : 2 * part] or memory), statistics.median(memory[-part:])


def _print(verdict: Verdict) -> None:
    times = sorted(verdict.seconds) or [0.0]
    print(f"seed {verdict.seed}: {verdict.cases} cases, {verdict.ledgers} ledgers, {_listed(verdict.by_state)}")
    print(f"{'disaster':<12}{'cases':>7}  exit codes")
    for name, count in sorted(verdict.by_disaster.items()):
        codes = {key.split(": ")[1]: many for key, many in verdict.by_exit.items() if key.startswith(f"{name}: ")}
        print(f"{name:<12}{count:>7}  {', '.join(f'{many} x {code}' for code, many in sorted(codes.items()))}")
    for said, count in verdict.failures.most_common(10):
        print(f"  exit 1, {count} x {said}")
    print(f"ended by the system in little memory: {verdict.ended_by_system}")
    print(f"scratch left by kills, for the next release to remove: {verdict.left_by_kills}")
    print(f"releases compared with their ledger at the end: {verdict.verified}")
    print(f"seconds a case: median {statistics.median(times):.1f}, longest {times[-1]:.1f}")
    if verdict.memory:
        early, late = early_and_late(verdict.memory)
        print(
            f"{len(verdict.memory)} releases in one process: {early:.0f} MB after warming up, {late:.0f} MB at the end"
        )
    print(f"faults: {len(verdict.faults)}")
    for fault in verdict.faults[:40]:
        print(f"  {fault}")


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
