"""Dashes and quotes as word processors set them: said, in every program; but a file is a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.__main__ import COMMANDS
from neardup.runtime.arguments import DASHES, QUOTES, check_dashes
from neardup.runtime.errors import UsageError
from tests.support.engines import (
    DEDUP,
    INLINE,
    MAPPER,
    NEARDUP,
    REDUCER,
    RUN_HADOOP,
    RUN_LOCAL,
    run,
)
from tests.support.programs import COUNT_TOKENS, DECIDE, KEEP

RECORDS = b"a 1 2 3\nb 3 2 1\n"
FLAGS = {"--exact": False, "--seed": True, "--max-bands": True, "--svg": True, "-o": True}
PROGRAMS = {
    "mapper.py": MAPPER,
    "reducer.py": REDUCER,
    "dedup_reducer.py": DEDUP,
    "step.py decide": DECIDE,
    "step.py keep": KEEP,
    "step.py count": COUNT_TOKENS,
    "step.py count map": [*COUNT_TOKENS, "map"],
    "job.py": INLINE,
    "run_local.sh": RUN_LOCAL,
    "run_hadoop.sh": RUN_HADOOP,
    "neardup": NEARDUP,
    "neardup run": [*NEARDUP, "run"],
    **{f"neardup {name}": [*NEARDUP, name] for name in COMMANDS},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_says_so(name: str, tmp_path: Path) -> None:
    """Of what it would take for the name of a file, or call unknown; nothing is read."""
    result = run([*PROGRAMS[name], "–help"], tmp_path, RECORDS)
    said = "'–help': – is EN DASH (U+2013), no hyphen; type --help"
    program = name.replace(".py map", ".py")
    assert (result.code, result.out, result.err) == (2, b"", f"{program}: {said}\n")


@pytest.mark.parametrize(
    ("word", "typed"),
    [
        ("–exact", "--exact"),
        ("—exact", "--exact"),
        ("-−exact", "--exact"),
        ("--‑exact", "--exact"),
        ("––seed=7", "--seed=7"),
        ("--max‑bands=7", "--max-bands=7"),
        ("–max–bands=“7”", "--max-bands=“7”"),
        ("–o", "-o"),
        ("–", "-"),
        ("–treshold", "--treshold"),
    ],
)
def test_what_to_type(word: str, typed: str) -> None:
    with pytest.raises(UsageError) as refusal:
        check_dashes(["a.txt", word], FLAGS)
    assert str(refusal.value).endswith(f"no hyphen; type {typed}")


@given(st.sampled_from(DASHES), st.sampled_from(DASHES + "-"), st.booleans())
def test_every_such_dash(first: str, second: str, both: bool) -> None:
    with pytest.raises(UsageError, match=f"{ord(first):04X}"):
        check_dashes([f"{first}{second * both}exact"], FLAGS)


@given(st.lists(st.text("-–ab=“x.1", max_size=5)))
def test_what_begins_otherwise_is_left_alone(words: list[str]) -> None:
    check_dashes(["x" + word for word in words], FLAGS)
    check_dashes(["--", *words], FLAGS)


def test_values_are_not_options() -> None:
    check_dashes(["--seed", "–x", "--svg", "—y.svg", "--svg=–z", "−1", "--exact", "“id”"], FLAGS)


@pytest.mark.parametrize("words", [["--seed", "“7”"], ["--seed=“7”"], ["--seed", "„7“"]])
def test_quotes_that_are_none(words: list[str]) -> None:
    with pytest.raises(UsageError, match=r'no quote of a shell; type "7"$'):
        check_dashes(words, FLAGS)
    assert set("“„") < set(QUOTES)


@pytest.mark.parametrize("program", [RUN_LOCAL, MAPPER, INLINE])
def test_a_file_of_that_name_is_read(program: list[str], tmp_path: Path) -> None:
    (tmp_path / "–exact").write_bytes(RECORDS)
    result = run([*program, "–exact"], tmp_path, cwd=tmp_path)
    assert result.code == 0, result.err
    assert result.out


def test_nor_is_a_file_a_value_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "“old”.txt").write_bytes(RECORDS)
    command = [*RUN_LOCAL, "--against", "“old”.txt", "-"]
    result = run(command, tmp_path, b"c 1 2 3\n", cwd=tmp_path)
    assert result.code == 0, result.err
    assert result.out.count(b"\n") == 2
