"""The bounded sums in plain Python: what every engine must give, to the last integer."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict

ROW_LIMIT = 2**20
UNIT = 2**30
COUNT_LIMIT = 2**40
SUM_LIMIT = 2**51


class ReferenceCounts:
    def __init__(self, rows, domain, counted=False):
        """`counted`: rows are (user, item, n); an item may be a tuple of values."""
        place = {item: j for j, item in enumerate(domain)}
        self.items = len(domain)
        self.cells = defaultdict(Counter)
        for user, item, *given in rows:
            n = given[0] if counted else 1
            if user is not None and item is not None and item in place and n is not None and n > 0:
                self.cells[user][place[item]] += min(n, COUNT_LIMIT)
        if counted:
            for cell in self.cells.values():
                for j in cell:
                    cell[j] = min(cell[j], SUM_LIMIT // self.items)
        for user, cell in list(self.cells.items()):
            divisor = -(-sum(cell.values()) // ROW_LIMIT)
            self.cells[user] = {j: n // divisor for j, n in cell.items() if n // divisor}
        self.rows = {user: sum(cell.values()) for user, cell in self.cells.items()}


def l1_sum(counts, row_cap):
    totals = [0] * counts.items
    for user, cell in counts.cells.items():
        weight = UNIT // max(counts.rows[user], row_cap)
        for j, n in cell.items():
            totals[j] += weight * n
    return totals


def sampled_sum(counts, salt, row_cap):
    totals = [0] * counts.items
    for user, cell in counts.cells.items():
        rows = counts.rows[user]
        number = int(hashlib.md5(f"{salt}:{user}".encode()).hexdigest()[:13], 16) % rows
        for j in sorted(cell):
            if number < cell[j]:
                totals[j] += UNIT * min(rows, row_cap) // row_cap
                break
            number -= cell[j]
    return totals


def distance(cell, rows, centre, norm):
    """The double that the engines compute, operation by operation."""
    C, s, b = centre.coordinates.tolist(), centre.stretches.tolist(), centre.bits
    if norm == "l1":
        length = sum(s[j] * abs(2**b * cell.get(j, 0) - rows * C[j]) for j in range(len(C)))
        return float(max(length, 1)) * (1.0 + 2.0**-48 if centre.is_origin else 1.0) * (1.0 + 2.0**-50)
    A = sum(s[j] ** 2 * n * n for j, n in cell.items())
    if centre.is_origin:
        upper = float(A) * (1.0 + 2.0**-48)
    else:
        B = sum(s[j] ** 2 * C[j] * n for j, n in cell.items())
        K = sum(s[j] ** 2 * C[j] ** 2 for j in range(len(C)))
        k_above = float(K) if int(float(K)) >= K else math.nextafter(float(K), math.inf)
        first, second = float(A) * float(4**b), (float(rows) * float(B)) * float(2 ** (b + 1))
        ends = first + (float(rows) * float(rows)) * k_above
        upper = (ends - second) + (ends + second) * 2.0**-48
    return math.sqrt(upper) * (1.0 + 2.0**-50)


def contribution(cell, rows, centre, norm, radius, row_cap, unit=UNIT):
    """v(u), as an exact integer vector."""
    weight = math.floor(min(float(unit // max(rows, row_cap)), float(radius) / distance(cell, rows, centre, norm)))
    C, s, b = centre.coordinates.tolist(), centre.stretches.tolist(), centre.bits
    return [weight * s[j] * (2**b * cell.get(j, 0) - rows * C[j]) for j in range(len(C))]


def centred_sum(counts, centre, norm, radius, row_cap, unit=UNIT):
    totals = [0] * counts.items
    for user, cell in counts.cells.items():
        for j, x in enumerate(contribution(cell, counts.rows[user], centre, norm, radius, row_cap, unit)):
            totals[j] += x
    return totals


def histogram(values, edges):
    bins = [0] * len(edges)
    for value in values:
        bins[next((j for j, edge in enumerate(edges) if value <= edge), len(edges) - 1)] += 1
    return bins


def rows_histogram(counts, edges):
    return histogram(counts.rows.values(), edges)


def distance_histogram(counts, centre, norm, edges, row_cap):
    values = [
        float(UNIT // max(counts.rows[u], row_cap)) * distance(cell, counts.rows[u], centre, norm)
        for u, cell in counts.cells.items()
    ]
    return histogram(values, edges)


def tally(counts, rows, salt):
    """{(item, times): users} over `rows` rows of each user with at least so many."""
    tallied = Counter()
    for user, cell in counts.cells.items():
        if counts.rows[user] >= rows:
            copies = [(j, copy) for j, n in cell.items() for copy in range(n)]
            copies.sort(key=lambda one: (hashlib.md5(f"{salt}:{user}:{one[0]}:{one[1]}".encode()).hexdigest(), *one))
            tallied.update(Counter(j for j, _ in copies[:rows]).items())
    return dict(tallied)


def item_sets(rows, salt, most):
    """Each user's items, at most `most`: those of the smallest digests."""
    sets = defaultdict(set)
    for user, item in rows:
        if user is not None and item is not None:
            sets[user].add(item)

    def digest(user, item):
        return hashlib.md5(f"{salt}:{user}:{item}".encode()).hexdigest()

    return {user: sorted(items, key=lambda i: (digest(user, i), i))[:most] for user, items in sets.items()}


def held_items(rows, salt, most):
    """{user: {item: rows}} with at most `most` items of each user: whoever has more hands out tickets."""
    cells = defaultdict(Counter)
    for user, item in rows:
        if user is not None and item is not None:
            cells[user][item] += 1
    held = {}
    for user, cell in cells.items():
        total = sum(cell.values())
        start = int(hashlib.md5(f"{salt}:{user}".encode()).hexdigest()[:13], 16) % total
        tickets, up_to = {}, 0
        for item in sorted(cell):
            before, up_to = up_to, up_to + cell[item]
            tickets[item] = (most * up_to + start) // total - (most * before + start) // total
        drawn = {item: number * (total // most) for item, number in tickets.items() if number}
        held[user] = dict(cell) if len(cell) <= most else drawn
    return held


def held_sum(held, row_cap):
    totals = Counter()
    for cell in held.values():
        weight = UNIT // max(sum(cell.values()), row_cap)
        totals.update({item: weight * n for item, n in cell.items()})
    return dict(totals)


def set_part(items, gains):
    """What one user adds to each of their items, for gains by item."""
    squares = sum(gains[item] ** 2 for item in items)
    if not squares:
        return {}
    up = 1.0 + 2.0**-50
    weight = math.floor(float(UNIT) / (math.sqrt(float(squares)) * up))
    top = math.floor(min(float(UNIT), float(4 * UNIT) / (math.sqrt(float(len(items))) * up)))
    return {item: min(weight * gains[item], top) for item in items if gains[item]}


def set_sum(sets, gains):
    totals = dict.fromkeys({item for items in sets.values() for item in items}, 0)
    for items in sets.values():
        for item, part in set_part(items, gains).items():
            totals[item] += part
    return totals
