"""The pandas example of docs/library.md works; tests/docs runs the other examples."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "library.md"


def test_the_block_for_pandas() -> None:
    pytest.importorskip("pandas")
    (block,) = re.findall(r"^```python pandas\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.M | re.S)
    block = ">>> import neardup\n" + block
    session = doctest.DocTestParser().get_doctest(block, {}, DOCUMENT.name, None, 0)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner(verbose=False).run(session, out=said.append)
    assert not failed, "".join(said)
    assert tried == block.count(">>> ") > 4
