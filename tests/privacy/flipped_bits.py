"""Ledgers in which one bit is flipped."""

from __future__ import annotations

import random

from crowdgram.errors import LedgerFailure


def noticed_flips(path, folder, state, turns, *, anywhere, seed):
    """How many of `turns` copies with one flipped bit are refused; the others say what the ledger itself says.

    The pages of a file are mostly empty: bits are flipped where it has something. anywhere: half of them are not.
    """
    content, truth, chance, noticed = path.read_bytes(), state(path), random.Random(seed), 0
    filled = [place for place, byte in enumerate(content) if byte]
    for turn in range(turns):
        place = chance.randrange(len(content)) if anywhere and turn % 2 == 0 else chance.choice(filled)
        broken = bytearray(content)
        broken[place] ^= 1 << chance.randrange(8)
        copy = folder / f"{turn}.ledger"
        copy.write_bytes(broken)
        try:
            found = state(copy)
        except LedgerFailure:
            noticed += 1
            continue
        assert found == truth
    return noticed
