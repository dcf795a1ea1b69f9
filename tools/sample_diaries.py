"""Make the files of `samples` in the package: diaries of the American Time Use Survey, with activities in words.

    python tools/sample_diaries.py FOLDER [--people 10000]

FOLDER has `atus_activity.parquet` (columns `user` and `item`, one row for each quarter of an hour) and
`atus_activity.vocab.parquet` (`item` to `label`, the survey's code of the activity, six digits without leading zeros).
Users are numbered by chance there, so the first ones are a random sample. It is run once, by hand.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TARGET = Path(__file__).parents[1] / "src" / "crowdgram" / "samples"

# The survey's codes by their first digits; of two that fit, the longer one counts. Every code has a line.
ACTIVITIES = {
    "01": "other personal care",
    "0101": "sleeping",
    "010102": "lying awake",
    "0102": "washing",
    "0103": "own health care",
    "0104": "private activities",
    "0105": "personal emergencies",
    "02": "housework",
    "020102": "laundry",
    "0202": "cooking",
    "0203": "repairs at home",
    "0204": "repairs at home",
    "0205": "gardening",
    "0206": "pets",
    "0207": "care of the car",
    "0208": "repairs at home",
    "0209": "household admin",
    "03": "care of adults",
    "0301": "care of children",
    "0302": "children's school",
    "0303": "children's health",
    "04": "helping others",
    "0401": "others' children",
    "0402": "others' children",
    "0403": "others' children",
    "05": "other work",
    "0501": "working",
    "050102": "second job",
    "0504": "looking for a job",
    "06": "other education",
    "0601": "classes",
    "0603": "homework",
    "07": "other shopping",
    "070101": "grocery shopping",
    "08": "other services",
    "0801": "childcare services",
    "0802": "banking",
    "0803": "legal services",
    "0804": "medical care",
    "0805": "hairdresser",
    "0807": "vet",
    "09": "repair services",
    "10": "civic duties",
    "100101": "police and fire",
    "100102": "social services",
    "11": "eating",
    "12": "other leisure",
    "1201": "talking",
    "1202": "parties",
    "120301": "relaxing",
    "120302": "tobacco and drugs",
    "120303": "television",
    "120304": "television",
    "120305": "radio and music",
    "120306": "radio and music",
    "120307": "games",
    "120308": "computer",
    "120309": "hobbies",
    "120310": "hobbies",
    "120311": "hobbies",
    "120312": "reading",
    "120313": "writing",
    "1204": "arts and cinema",
    "120404": "gambling",
    "13": "other sports",
    "130112": "fishing and hunting",
    "130118": "fishing and hunting",
    "130124": "running",
    "130128": "working out",
    "130131": "walking",
    "130133": "working out",
    "130134": "working out",
    "1302": "watching sports",
    "14": "religion",
    "15": "volunteering",
    "16": "telephone calls",
    "18": "other travel",
    "1805": "travel to work",
    "1807": "travel to shops",
}


def activity(code: str) -> str:
    """The words for a code of the survey.

    >>> activity("10101"), activity("10102"), activity("181101")
    ('sleeping', 'lying awake', 'other travel')
    """
    digits = code.zfill(6)
    return ACTIVITIES[max((prefix for prefix in ACTIVITIES if digits.startswith(prefix)), key=len)]


def excerpt(folder: Path, people: int) -> pa.Table:
    """Quarters of an hour by person and activity, of the first so many people, from 1."""
    vocabulary = pq.read_table(folder / "atus_activity.vocab.parquet").to_pydict()
    names = {item: activity(label) for item, label in zip(vocabulary["item"], vocabulary["label"], strict=True)}
    rows = pq.read_table(folder / "atus_activity.parquet", filters=[("user", "<", people)]).to_pydict()
    counts = Counter((user, names[item]) for user, item in zip(rows["user"], rows["item"], strict=True))
    cells = sorted(counts.items())
    return pa.table(
        {
            "person": pa.array([person + 1 for (person, _), _ in cells], pa.int32()),
            "activity": pa.array([name for (_, name), _ in cells]),
            "quarter_hours": pa.array([count for _, count in cells], pa.int16()),
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--people", type=int, default=10_000)
    options = parser.parse_args()
    table = excerpt(options.folder, options.people)
    target = TARGET / "diaries.parquet"
    pq.write_table(
        table,
        target,
        compression="zstd",
        compression_level=19,
        use_dictionary=["activity", "quarter_hours"],
        column_encoding={"person": "DELTA_BINARY_PACKED"},
    )
    names = "".join(f"{name}\n" for name in sorted(set(ACTIVITIES.values())))
    (TARGET / "activities.txt").write_text(names, encoding="utf-8")
    print(f"{target}: {table.num_rows} rows, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
