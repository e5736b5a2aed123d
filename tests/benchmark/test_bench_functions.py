"""The comparison of functions: copies parse, and each level changes what it says."""

from __future__ import annotations

import random
from pathlib import Path

from bench.compare_functions import EDITS, Function, drawn, leaves
from neardup.tools.documents.code_units import FUNCTION, LITERALS, NAMES, language_of, units

ROOT = Path(__file__).resolve().parents[2]


def text_of(data: bytes, *normalise: str) -> str:
    language = language_of(b"a.py", FUNCTION)
    assert language
    (unit,), _ = units(data.decode(), language, frozenset(normalise), 1000)
    return unit.text


def test_each_level_changes_what_it_says() -> None:
    found = list(drawn([str(ROOT / "neardup" / "tools" / "judge")], random.Random(1)))
    assert len(found) > 3
    language = language_of(b"a.py", FUNCTION)
    assert language
    for number, function in enumerate(found):
        assert isinstance(function, Function)
        rng, data = random.Random(number), function.text.encode()
        versions = [data]
        for edit in EDITS:
            versions.append(edit(versions[-1], language, rng, ["print(1, 2, 3)"]))
            assert leaves(versions[-1], language)[2]
        original, laid_out, renamed, valued, restated = versions
        assert len(set(versions)) == 5 - (renamed == valued)
        assert text_of(original) == text_of(laid_out) != text_of(renamed)
        assert text_of(renamed, NAMES) == text_of(original, NAMES)
        assert text_of(valued, NAMES, LITERALS) == text_of(original, NAMES, LITERALS)
        assert text_of(restated) != text_of(valued)
