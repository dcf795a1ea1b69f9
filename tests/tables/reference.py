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


def concentration(squares, rows, row_cap):
    """The two numbers of one user."""
    longest, within = float(max(rows, row_cap)), float(min(rows, row_cap))
    one = math.floor(float(squares) / (longest * longest) * float(UNIT))
    total = math.floor(within * within / float(row_cap**2) * float(UNIT))
    return one, total - one


def concentration_sum(counts, row_cap):
    sums = [0, 0]
    for user, cell in counts.cells.items():
        parts = concentration(sum(n * n for n in cell.values()), counts.rows[user], row_cap)
        sums = [total + part for total, part in zip(sums, parts, strict=True)]
    return sums


def distance(cell, rows, centre, norm, mass_scale=0):
    """The double that the engines compute, operation by operation; the norm of (g(u), B m_u) from above."""
    C, s, b = centre.coordinates.tolist(), centre.stretches.tolist(), centre.bits
    mass = float(rows) * float(mass_scale)
    if norm == "l1":
        length = sum(s[j] * abs(2**b * cell.get(j, 0) - rows * C[j]) for j in range(len(C)))
        own = float(max(length, 1)) * (1.0 + 2.0**-50)
        return (own + mass) * (1.0 + 2.0**-49) if mass_scale else own
    A = sum(s[j] ** 2 * n * n for j, n in cell.items())
    E = sum(s[j] ** 2 * C[j] * n for j, n in cell.items())
    K = sum(s[j] ** 2 * C[j] ** 2 for j in range(len(C)))
    k_above = float(K) if int(float(K)) >= K else math.nextafter(float(K), math.inf)
    first, second = float(A) * float(4**b), (float(rows) * float(E)) * float(2 ** (b + 1))
    ends = first + (float(rows) * float(rows)) * k_above
    own = math.sqrt((ends - second) + (ends + second) * 2.0**-48) * (1.0 + 2.0**-50)
    return math.sqrt(own * own + mass * mass) * (1.0 + 2.0**-49) if mass_scale else own


def extended(cell, rows, centre, mass_scale):
    """(g(u), B m_u), exactly."""
    C, s, b = centre.coordinates.tolist(), centre.stretches.tolist(), centre.bits
    return [s[j] * (2**b * cell.get(j, 0) - rows * C[j]) for j in range(len(C))] + [mass_scale * rows]


def level_weights(cell, rows, centre, norm, radii, row_cap, unit=UNIT, mass_scale=0):
    """W_uj for each level."""
    base, d = float(unit // max(rows, row_cap)), distance(cell, rows, centre, norm, mass_scale)
    weights, low = [], 0
    for high in radii:
        reached = min(base, float(high) / d) - float(low) / d
        weights.append(math.floor(max(min(reached, float(high - low) / d), 0.0)))
        low = high
    return weights


def levels_of_user(cell, rows, centre, norm, radii, row_cap, unit=UNIT, mass_scale=0):
    """v_j(u) for each level, as exact integer vectors."""
    vector = extended(cell, rows, centre, mass_scale)
    weights = level_weights(cell, rows, centre, norm, radii, row_cap, unit, mass_scale)
    return [[weight * x for x in vector] for weight in weights]


def levels(counts, centre, norm, radii, row_cap, unit=UNIT, mass_scale=0):
    sums = [[0] * (counts.items + 1) for _ in radii]
    for user, cell in counts.cells.items():
        own = levels_of_user(cell, counts.rows[user], centre, norm, radii, row_cap, unit, mass_scale)
        sums = [[a + b for a, b in zip(*pair, strict=True)] for pair in zip(sums, own, strict=True)]
    return sums


def histogram(values, edges):
    bins = [0] * len(edges)
    for value in values:
        bins[next((j for j, edge in enumerate(edges) if value <= edge), len(edges) - 1)] += 1
    return bins


def rows_histogram(counts, edges):
    return histogram(counts.rows.values(), edges)


def distance_histogram(counts, centre, norm, edges, row_cap, unit=UNIT):
    values = [
        float(unit // max(counts.rows[u], row_cap)) * distance(cell, counts.rows[u], centre, norm)
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
