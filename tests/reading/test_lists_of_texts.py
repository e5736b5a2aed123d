"""Texts in lists, such as the messages of a chat, are joined; JSON lines and Parquet are alike."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from neardup.reading.input_check import NO_TEXT, NOT_A_TEXT, NOT_AN_INTEGER
from neardup.reading.text_rows import Fields, FlawError, content
from tests.reading.test_missing_fields import Rows, written
from tests.support.engines import ENGINES, RUN_LOCAL, Input, run, succeed

SAID = ["to be or not to be", "that is the question"]
PAIR = b"a\tb\t1.000000\n"


def chat(role: str, *contents: Any) -> list[dict[str, Any]]:
    return [{"role": role, "content": each} for each in contents]


ROWS: Rows = [
    {"id": "a", "messages": chat("user", *SAID), "turns": SAID, "doc": {"parts": chat("u", *SAID)}},
    {"id": "b", "messages": chat("x", *SAID), "turns": SAID[:], "doc": {"parts": chat("v", *SAID)}},
    {"id": "c", "messages": chat("user", None, "else"), "turns": ["else"], "doc": {"parts": []}},
    {"id": "d", "messages": [], "turns": None, "doc": None},
]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".arrow"])
@pytest.mark.parametrize("text", ["messages.content", "turns", "doc.parts.content"])
def test_texts_in_lists_are_joined(suffix: str, text: str, tmp_path: Path) -> None:
    path = written(tmp_path / f"my chats{suffix}", ROWS)
    assert succeed([*RUN_LOCAL, "--text", text, path], tmp_path).out == PAIR


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".arrow"])
@pytest.mark.parametrize("text", ["text", "doc.parts", "nothing"])
def test_the_message_names_the_field_in_the_list(suffix: str, text: str, tmp_path: Path) -> None:
    rows = [{"id": row["id"], "text": row["messages"], "doc": row["doc"]} for row in ROWS]
    rows = [{**row, "doc": None} for row in rows] if text == "text" else rows
    path = written(tmp_path / f"chats{suffix}", rows)
    told = run([*RUN_LOCAL, "--text", text, path], tmp_path)
    assert (told.code, told.out, told.err.count("\n")) == (1, b"", 1)
    if text != "nothing":
        assert f"a list of objects is not a text, in field '{text}'" in told.err
    assert "text.content" in told.err
    options = shlex.split(re.search("add: (.*)$", told.err)[1])  # type: ignore[index]
    assert options in (["--text", "text.content"], ["--text", "doc.parts.content"])
    assert succeed([*RUN_LOCAL, path, *options], tmp_path).out == PAIR


@pytest.mark.parametrize("engine", ["pipe", "mrjob inline", "run_local 1", "run_local 2"])
def test_chats_on_every_engine(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", ROWS)
    given = Input(path.read_bytes(), [str(path)])
    flags = ["--input=jsonl", "--text=messages.content"]
    assert {*ENGINES[engine](given, flags, tmp_path).splitlines(keepends=True)} == {PAIR}


def test_kept_chats_are_the_same_bytes(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", ROWS)
    lines = path.read_bytes().splitlines(keepends=True)
    kept = succeed([*RUN_LOCAL, "--text=messages.content", "--output=kept", path], tmp_path)
    assert kept.out == lines[0] + lines[2] + lines[3]


PARTS = [{"type": "text", "text": "to be"}, {"type": "image_url", "image_url": {"url": "x"}}]


@pytest.mark.parametrize(
    ("row", "text", "expected"),
    [
        ({"m": chat("u", PARTS, "or not")}, "m.content", "to be\nor not"),
        ({"m": chat("u", PARTS)}, "m.content.text", "to be"),
        ({"content": PARTS}, "content", "to be"),
        ({"m": [chat("u", "to"), chat("u", "be")]}, "m.content", "to\nbe"),
        ({"m.content": "real", "m": chat("u", "x")}, "m.content", "real"),
        ({"m": chat("u", "to", None), "title": "T"}, "title,m.content", "T\nto"),
        ({"m": ["a", None, "b"]}, "m", "a\nb"),
        ({"m": [None, None]}, "m", NO_TEXT),
        ({"m": chat("u", PARTS[1:])}, "m.content", NO_TEXT),
        ({"m": chat("u", None)}, "m.content", NO_TEXT),
        ({"m": []}, "m.content", NO_TEXT),
        ({"m": chat("u", 7)}, "m.content", "7"),
        ({"m": chat("u", "a", 7)}, "m.content", NOT_A_TEXT),
        ({"m": chat("u", "a")}, "m", NOT_A_TEXT),
        ({"m": [0.5]}, "m", NOT_AN_INTEGER),
        ({"m": chat("u", "a")}, "m.nothing", NO_TEXT),
    ],
)
def test_what_a_text_is(row: dict[str, Any], text: str, expected: str) -> None:
    try:
        found = content(row, Fields.of(None, text))
    except FlawError as flaw:
        found = str(flaw)
    assert (found if isinstance(found, str) else str(found[0])) == expected


def test_deep_lists_are_read_without_recursion() -> None:
    deep: Any = "to be"
    for _ in range(100_000):
        deep = [deep]
    assert content({"m": deep}, Fields.of(None, "m")) == "to be"
