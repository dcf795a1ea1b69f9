"""Ledgers to charge."""

from __future__ import annotations

import pytest

from crowdgram.privacy import Ledger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "visits.ledger"


@pytest.fixture
def ledger(path):
    return Ledger.create(path, 1.0, 1e-6)
