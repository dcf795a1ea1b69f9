"""What the tables of the benchmarks are called where people read of them: in pictures, in README.md and in docs."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["NAMES", "label", "name_of"]

NAMES = {
    # Invented, with users who are alike (`SYNTHETIC` of accuracy.py).
    "W1": "invented: 1,000 rows a user, 100 items",
    "W2": "invented: 300 rows a user, 1,000 items",
    "W3": "invented: 100 rows a user, 20,000 items",
    "W4": "invented: 200 rows a user, 200 equal items",
    "W5": "invented: 10,000 rows a user, 100 items",
    "few": "invented: 300 users, 20 items",
    # Invented, as traps for an estimator (invented.py).
    "sample": "pages of a shop, with robots",
    "dominant": "invented: one dominant item",
    "classes": "invented: classes of users",
    "night": "invented: night and day",
    "robots": "invented: robots with two items",
    "languages": "invented: two languages",
    # Real and public.
    "atus_activity": "activities of a day",
    "deezer_genres": "music genres of listeners",
    "gerdracor_words_50k": "words of German plays",
    "git_definitelytyped": "packages that programmers change",
    "lahman_batting": "results at bat in baseball",
    "lahman_team_games": "teams of baseball players",
    "msnbc": "sections of a news site",
    "nycflights13_dest": "destinations of aeroplanes",
    "online_retail": "products of a shop",
    "rust_hourweek": "hours at which programmers work",
    # Of a public benchmark (peers/tables.py).
    "tpch_orders": "TPC-H orders by month and nation",
}


def name_of(table: str) -> str:
    """The name that people read; of a table that has none here, its own."""
    return NAMES.get(table, table)


def label(table: str, weight: str, all_tables: Sequence[str]) -> str:
    """The name of a line; with the weight, if the table has a line for each."""
    return f"{name_of(table)}, by {weight}" if all_tables.count(table) > 1 else name_of(table)
