"""A first release: a sample table, its private distribution, and how far it is from the truth.

python examples/first_release.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import crowdgram
from crowdgram.synth import Crowd


def main() -> None:
    crowd = Crowd(users=2000, rows=30, items=50, differ=0.02, seed=1, strings=True)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "visits.parquet")
        crowd.write(table)
        release = crowdgram.release(
            table,
            user="user",
            item="item",
            domain=crowd.item_names(),  # public: it comes from outside the table
            epsilon=1.0,
            weight="users",
        )
    for estimate in release.top(5):
        print(f"{estimate.item}  {estimate.probability:.4f}  ({estimate.lower:.4f} to {estimate.upper:.4f})")
    print(release.guarantee.sentence())
    truth = zip(crowd.item_names(), crowd.distribution(), strict=True)
    distance = sum(abs(release.probability(item) - p) for item, p in truth)
    print(f"l1 distance to the distribution that the users were drawn from: {distance:.3f}")


if __name__ == "__main__":
    main()
