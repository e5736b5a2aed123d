"""What every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run; `--hypothesis-profile=default` draws new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's folder."""
    return Path(__file__).resolve().parent.parent
