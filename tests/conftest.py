"""Fixtures and hooks shared by all tests."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, of each of the dozens of cases that a property is tried with: few
# in `make test`, more in `make test-all`; `--hypothesis-profile=default` draws new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=12)
settings.register_profile("thorough", derandomize=True, deadline=None, max_examples=20)
settings.load_profile("repeatable")


# In the background of a script, Ctrl-C is ignored, and so it would be by all programs under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the repository's folder."""
    return Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run one case of each test: enough for what depends on Python and not on the values"
    parser.addoption("--first-cases", action="store_true", help=text)


@pytest.hookimpl(tryfirst=True)  # before the slow ones are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark all but the first fast case of each `first_case` test as slow.

    With --first-cases, keep one case of each test among the fast ones, and one among the slow ones.
    """
    one = config.getoption("--first-cases")
    seen: set[tuple[str, bool]] = set()
    left_out: set[pytest.Item] = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        slow = item.get_closest_marker("slow") is not None
        if not slow and item.get_closest_marker("first_case") and (test, False) in seen:
            item.add_marker(pytest.mark.slow)
            slow = True
        if one and (test, slow) in seen:
            left_out.add(item)
        seen.add((test, slow))
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=list(left_out))
