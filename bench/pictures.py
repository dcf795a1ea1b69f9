"""The pictures and the table of README.md, and the tables of peers, from recorded results: nothing is measured.

    python bench/pictures.py --from-record

It draws accuracy.png, demo.png and peers.png in docs/images, and writes the table of errors into README.md and those of
other tools into bench/README.md. The records are in bench/results. `accuracy.json` is written by
`python bench/accuracy.py --json`, `peers.json` by `python bench/peers`, and `demo.json` is the release of `make demo`.
Each picture holds a digest of what it was drawn from, which the tests compare.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from names import label
from peers import presenting

ROOT = Path(__file__).parents[1]
RESULTS, IMAGES = ROOT / "bench" / "results", ROOT / "docs" / "images"
README, BENCH_README = ROOT / "README.md", ROOT / "bench" / "README.md"
SHOWN = (
    "W1",
    "W2",
    "gerdracor_words_50k",
    "lahman_batting",
    "deezer_genres",
    "online_retail",
    "msnbc",
    "atus_activity",
    "rust_hourweek",
    "lahman_team_games",
    "nycflights13_dest",
)
"""The tables of README.md, by rows: those that `auto` gains most on first. A record may hold others too."""
DIGEST = "Record"
"""The field of a PNG file that holds the digest of what it was drawn from."""

OURS, THEIRS, GREY = "#08519c", "#d94801", "#555555"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--from-record", action="store_true", required=True, help="draw what is in bench/results")
    parser.parse_args(arguments)
    record = shown_part(read_record())
    draw_accuracy(record, IMAGES / "accuracy.png")
    draw_demo(IMAGES / "demo.png")
    README.write_text(with_table(README.read_text(encoding="utf-8"), record), encoding="utf-8")
    peers = read_record(RESULTS / "peers.json")
    presenting.draw(peers, IMAGES / "peers.png", DIGEST)
    text = BENCH_README.read_text(encoding="utf-8")
    BENCH_README.write_text(with_part(text, "peers", presenting.markdown(peers)), encoding="utf-8")
    print(f"{len(record['lines'])} lines: README.md, accuracy.png, demo.png; {len(peers['tables'])} tables: peers.png")


def read_record(file: Path = RESULTS / "accuracy.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def shown_part(record: dict[str, Any]) -> dict[str, Any]:
    """The lines of README.md, in its order. All of them need to be there."""
    by_rows = {line["name"]: line for line in record["lines"] if line["weight"] == "rows"}
    missing = [name for name in SHOWN if name not in by_rows]
    if missing:
        raise SystemExit(
            f"The record has no line by rows for {', '.join(missing)}. Run bench/accuracy.py on all tables."
        )
    return {**record, "lines": [by_rows[name] for name in SHOWN]}


def names(record: dict[str, Any]) -> list[str]:
    """The name of each line, as people read it."""
    tables = [line["name"] for line in record["lines"]]
    return [label(line["name"], line["weight"], tables) for line in record["lines"]]


def best(line: dict[str, Any]) -> float:
    """The error of the best tuned baseline."""
    return min(float(one["mean"]) for one in line["tuned"].values())


def markdown(record: dict[str, Any]) -> str:
    """The table of README.md, and how it was measured. The lower of two errors is bold; if they are written alike, both
    are.
    """
    rows = ["| table | users / items | exact answer | best tuned baseline | `auto` |", "|---|---|---|---|---|"]
    for name, line in zip(names(record), record["lines"], strict=True):
        errors = [best(line), line["auto"]]
        shown = [figure(one) for one in errors]
        least = figure(min(errors))
        theirs, ours = (f"**{one}**" if one == least else one for one in shown)
        exact = figure(line["floor"]) if line["floor"] else "0"
        rows.append(f"| {name} | {line['users']:,} / {line['items']:,} | {exact} | {theirs} | {ours} |")
    return "\n".join([*rows, "", f"({record['how'][:1].upper()}{record['how'][1:]}.)", ""])


def figure(value: float) -> str:
    return f"{value:#.2g}".rstrip(".")


def with_table(text: str, record: dict[str, Any]) -> str:
    """README.md with the table of this record between its two marks."""
    return with_part(text, "accuracy", markdown(record))


def with_part(text: str, name: str, part: str) -> str:
    """A page with `part` between its two marks of this name."""
    begin, end = f"<!-- {name}: made by bench/pictures.py -->\n", f"<!-- /{name} -->\n"
    between = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if len(between.findall(text)) != 1:
        raise SystemExit(f"README.md needs the lines {begin.strip()} and {end.strip()} once.")
    return between.sub(lambda _: f"{begin}\n{part}\n{end}", text)


def digest(record: dict[str, Any]) -> str:
    """Of all that the picture of a record shows: names and figures."""
    figures = [[line["floor"], best(line), line["auto"], line["auto_se"]] for line in record["lines"]]
    shown = [names(record), figures, record["epsilon"], record["delta"]]
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


def draw_accuracy(record: dict[str, Any], file: Path) -> None:
    """For each line the exact answer, the best tuned baseline and auto, on a log scale."""
    from matplotlib.figure import Figure

    lines = record["lines"]
    drawing = Figure(figsize=(8.5, 1.9 + 0.34 * len(lines)), layout="constrained")
    ax = drawing.subplots()
    places = np.arange(len(lines))
    tuned, auto = np.array([best(line) for line in lines]), np.array([line["auto"] for line in lines])
    spread = np.array([line["auto_se"] or 0.0 for line in lines])
    ax.hlines(places, np.minimum(tuned, auto), np.maximum(tuned, auto), color="#cccccc", lw=2, zorder=1)
    known = [place for place in places if lines[place]["floor"]]
    if known:
        floors = [lines[place]["floor"] for place in known]
        ax.plot(floors, known, "|", color=GREY, ms=13, mew=2, zorder=2, label="without privacy")
    square = {"mfc": "white", "mec": THEIRS, "mew": 1.6, "ms": 7}
    ax.plot(tuned, places, "s", **square, zorder=3, label="best simple noise, tuned with the true answer")
    reach = np.minimum(2 * spread, 0.9 * auto)
    ax.errorbar(auto, places, xerr=reach, fmt="o", color=OURS, ms=6, capsize=2, zorder=4, label="Crowdgram, not tuned")
    ax.set_yticks(places, names(record))
    for place in places:
        ratio = tuned[place] / auto[place]
        written = f"{ratio:.2f}x" if ratio < 0.995 else f"{ratio:.1f}x" if ratio < 9.95 else f"{ratio:.0f}x"
        colour = OURS if ratio >= 0.995 else THEIRS
        at = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": 9}
        ax.annotate(written, (1.01, place), **at, color=colour)
    ax.annotate("better\nby", (1.01, 1.0), xycoords="axes fraction", va="bottom", fontsize=9, color=GREY)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_ylim(len(lines) - 0.4, -0.6)
    ax.set_xlabel(f"l1 error, lower is better (epsilon={record['epsilon']:g}, delta={record['delta']:g})")
    ax.grid(axis="x", which="major", color="#eeeeee", zorder=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    drawing.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    drawing.savefig(file, dpi=150, metadata={DIGEST: digest(record)})


def draw_demo(file: Path, record: Path = RESULTS / "demo.json") -> None:
    """The release of `make demo`, with the exact answer of its public table, as the command draws it."""
    import crowdgram
    from crowdgram.samples import Diaries

    made = crowdgram.load(record)
    made.plot(truth=Diaries().average_day()).savefig(file, dpi=120, metadata={DIGEST: digest_of_file(record)})


def digest_of_file(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
