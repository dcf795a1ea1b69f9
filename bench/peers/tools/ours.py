"""Crowdgram, as it is by default; for counts of rows with the mechanism that docs/how-to/counts.md advises."""

from serve import DELTA, EPSILON, serve

import crowdgram

BOUNDS = {"shares": None, "rows": None, "users": None, "found_rows": None, "found_users": None}


def shares(table, items):
    release = crowdgram.release(table, user="user", item="item", domain=items, epsilon=EPSILON, delta=DELTA)
    return {"shares": dict(zip(release.items, release.probabilities, strict=True))}


def rows(table, items):
    release = crowdgram.release(
        table, user="user", item="item", domain=items, epsilon=EPSILON, delta=DELTA, mechanism="laplace"
    )
    return {"rows": dict(zip(release.items, release.counts().counts, strict=True))}


def users(table, items):
    reach = crowdgram.reach(table, user="user", item="item", domain=items, epsilon=EPSILON, delta=DELTA)
    return {"users": dict(zip(reach.items, reach.counts, strict=True))}


def found_rows(table, _):
    release = crowdgram.release(table, user="user", item="item", epsilon=EPSILON, delta=DELTA)
    counts = release.counts()
    return {
        "rows": {item: one for item, one in zip(release.items, counts.counts, strict=True) if item != release.other}
    }


def found_users(table, _):
    reach = crowdgram.reach(table, user="user", item="item", epsilon=EPSILON, delta=DELTA)
    return {"users": {item: one for item, one in zip(reach.items, reach.counts, strict=True) if item != reach.other}}


if __name__ == "__main__":
    serve(globals())
