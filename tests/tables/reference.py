"""Rows counted in plain Python: what `count_rows` and `tally_rows` must give on every engine."""

from __future__ import annotations

from collections import Counter, defaultdict

from crowdgram.tables.counts import limited_user
from crowdgram.tables.statistics import OneUser

COUNT_LIMIT = 2**40
SUM_LIMIT = 2**51


def users_of(rows, counted=False):
    """Users with their rows by item. Rows are (user, item), or (user, item, n) if `counted`; an item may be a tuple of
    values.
    """
    cells = defaultdict(Counter)
    for user, item, *given in rows:
        n = given[0] if counted else 1
        if user is not None and item is not None and n is not None and n > 0:
            cells[user][item] += min(n, COUNT_LIMIT)
    return [OneUser(user, cell) for user, cell in cells.items()]


def placed(users, domain, counted=False):
    """The same users with N(u): items are places in the domain, all else is dropped."""
    place, most = {item: j for j, item in enumerate(domain)}, SUM_LIMIT // max(len(domain), 1)
    found = []
    for user in users:
        cell = {place[item]: min(n, most) if counted else n for item, n in user.counts.items() if item in place}
        if limited := limited_user(cell):
            found.append(OneUser(user.name, limited))
    return found


def present(users, domain):
    """The same users with the items of the domain that they have, as `find_presence` finds them."""
    place = {item: j for j, item in enumerate(domain)}
    found = [OneUser(user.name, {place[item]: 1 for item in user.counts if item in place}) for user in users]
    return [user for user in found if user.counts]


def total(statistic, users):
    """The sum over users of what each adds, without zeros."""
    sums = Counter()
    for user in users:
        for coordinate, value in statistic.of_user(user).items():
            sums[coordinate] += value
    return {coordinate: value for coordinate, value in sums.items() if value}
