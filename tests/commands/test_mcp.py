"""`neardup mcp`, asked by the client of the package mcp: tools, roots, limits, and its end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.engines import NEARDUP, refuse

mcp = pytest.importorskip("mcp")
TEXT = "".join(f"Line {i} of a text\n" for i in range(100))
Call = tuple[str, dict[str, Any]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "a root"
    (root / "docs").mkdir(parents=True)
    for name in ("a.txt", "b.txt"):
        (root / "docs" / name).write_text(TEXT)
    rows = "".join(f'{{"id": {i}, "text": "to be or not to be {i % 2}"}}\n' for i in range(40))
    (root / "rows.jsonl").write_text(rows)
    (tmp_path / "secret.txt").write_text(TEXT)
    (root / "docs" / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "up").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    return root


def ask(root: Path, calls: Sequence[Call]) -> list[tuple[bool, str]]:
    """Return (is_error, text) of each call, of one server."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def main() -> list[tuple[bool, str]]:
        command, *args = [*NEARDUP, "mcp", str(root)]
        started = StdioServerParameters(
            command=command, args=args, cwd=root.parent, env={**os.environ}
        )
        with open(os.devnull, "w") as quiet:
            async with (
                stdio_client(started, errlog=quiet) as streams,
                ClientSession(*streams) as session,
            ):
                await session.initialize()
                tools = {tool.name for tool in (await session.list_tools()).tools}
                assert tools == {"find", "pairs", "clusters", "why"}
                answers = [await session.call_tool(name, given) for name, given in calls]
        return [(answer.is_error, answer.content[0].text) for answer in answers]

    return asyncio.run(main())


@pytest.mark.slow
def test_each_tool_answers(root: Path) -> None:
    docs, rows = {"paths": ["a root/docs"]}, {"paths": [str(root / "rows.jsonl")]}
    a, b = (f"{root}/docs/{name}.txt".replace(" ", "%20") for name in "ab")
    answers = ask(
        root,
        [
            ("find", docs),
            ("pairs", {**rows, "options": {"threshold": "1"}}),
            ("pairs", {**rows, "offset": 300}),
            ("clusters", {**docs, "of": "documents"}),
            ("clusters", {**rows, "of": "records"}),
            ("why", {**docs, "of": "documents", "a": a, "b": b}),
            ("why", {**rows, "of": "records", "a": "0", "b": "1"}),
        ],
    )
    assert [error for error, _ in answers] == [False] * 7, answers
    found, pairs, rest, groups, of_rows, why, why_not = (text for _, text in answers)
    assert found.startswith(f"{a}\t{b}\t1.000000\n\n1 not read")
    assert pairs.count("\t1.000000\n") == 100
    assert "280 more lines; ask again with offset=100" in pairs  # 2 times 20 of 20 records
    assert rest.count("\t1.000000\n") == 80
    assert "more lines" not in rest
    assert groups.count(a) == 3
    assert of_rows.count("\n0\t") + of_rows.startswith("0\t") == 20
    assert "verdict     a pair" in why
    assert "verdict     no pair" in why_not


REFUSED = {
    "outside": ["/etc/passwd"],
    "up": ["a root/../secret.txt"],
    "link": ["a root/docs/link.txt"],
    "through": ["a root/up/secret.txt"],
    "pipe": ["a root/pipe"],
    "nul": ["a root/\0x"],
    "missing": ["a root/x"],
    "proc": ["/proc/self/environ"],
    "beside": ["a root2"],
}


@pytest.mark.slow
def test_refusals_are_answers(root: Path) -> None:
    outside = [("find", {"paths": paths}) for paths in REFUSED.values()]
    docs = {"paths": ["a root/docs"]}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"paths": []}, "at least one path"),
        ({**docs, "offset": -1}, "an offset of 0"),
        ({**docs, "options": {"threshold": "7"}}, "--threshold: 7 is outside"),
        ({**docs, "options": {"output": "kept"}}, "threshold"),
        ({**docs, "options": {"id": "x"}}, "--id"),
        ({}, "paths"),
    ]
    given = [*outside, *(("find", each) for each, _ in wrong), ("find", docs)]
    *answers, last = ask(root, given)
    assert not last[0]  # the server still answers
    for name, (error, text) in zip(REFUSED, answers):
        assert error, name
        assert f"name one below {root}" in text
    for (_, said), (error, text) in zip(wrong, answers[len(outside) :]):
        assert error
        assert said in text


@pytest.mark.slow
@pytest.mark.parametrize("how", ["eof", "SIGTERM", "SIGINT"])
def test_the_server_ends_with_its_client(root: Path, tmp_path: Path, how: str) -> None:
    """It ends amid an answer, with its processes and temporary files, and prints only messages."""
    for i in range(3000):
        (root / "docs" / f"{i}.txt").write_text(
            "".join(f"line {j} of {i % 7}\n" for j in range(300))
        )
    (folder := tmp_path / "temporary").mkdir()
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    hello["clientInfo"] = {"name": "test", "version": "1"}
    call = {"name": "find", "arguments": {"paths": [str(root / "docs")]}}
    asked = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    env = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen([*NEARDUP, "mcp", root], **pipes, env=env) as server:
        for message in asked:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 1
        until = time.monotonic() + 60
        while not list(folder.glob("*/err")) and time.monotonic() < until:
            time.sleep(0.05)
        assert list(folder.glob("*/err"))
        if how == "eof":
            server.stdin.close()
        else:
            server.send_signal(signal.Signals[how])
        assert server.wait(20) == {"eof": 0, "SIGTERM": 143, "SIGINT": 130}[how]
        assert [line for line in server.stdout if "jsonrpc" not in json.loads(line)] == []
    assert not list(folder.iterdir())


def test_roots_are_folders_of_yours(tmp_path: Path) -> None:
    for name in ("/proc", "/", sys.executable):
        refuse([*NEARDUP, "mcp", name], tmp_path, "name a folder")


def test_a_replaced_folder_does_not_leave_the_root(root: Path, tmp_path: Path) -> None:
    """The copy is made of what is open: a folder that becomes a link is refused, not followed."""
    from neardup.commands.mcp import Question

    target, held = tmp_path / "copy", os.open(root, os.O_RDONLY)
    (root / "docs").rename(root / "before")
    (root / "docs").symlink_to(tmp_path)
    question = Question({str(root): held}, str(target))
    with pytest.raises(ValueError, match="name one below"):
        question.copy(str(root / "docs" / "secret.txt"))
    assert not question.copy(str(root)).endswith("docs")
    copied = {path.name for path in target.rglob("*") if path.is_file()}
    assert copied == {"a.txt", "b.txt", "rows.jsonl"}
    assert question.skipped == 4  # two links, the pipe, and that in the folder
    os.close(held)


@pytest.mark.parametrize("limit", ["left", "until"])
def test_limits(root: Path, tmp_path: Path, limit: str) -> None:
    from neardup.commands.mcp import Question

    held = os.open(root, os.O_RDONLY)
    question = Question({str(root): held}, str(tmp_path / "copy"))
    setattr(question, limit, 1)
    with pytest.raises(ValueError, match="name fewer files"):
        question.copy(str(root))
    os.close(held)
