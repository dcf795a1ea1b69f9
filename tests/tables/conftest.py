"""One PostgreSQL server for all tests of a worker."""

from __future__ import annotations

import pytest

from . import postgres


@pytest.fixture(scope="session")
def postgres_server():
    """Its address, which is that of an empty database. To start one takes longer than most tests that need it."""
    if why := postgres.missing():
        pytest.skip(why)
    with postgres.server() as address:
        yield address
