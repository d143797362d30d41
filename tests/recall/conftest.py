"""All of the search suite runs on each engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import World


@pytest.fixture(params=["fts5", "fts4"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> World:
    """An empty vault with the default mappings, on either engine."""
    return World(tmp_path, request.param)
