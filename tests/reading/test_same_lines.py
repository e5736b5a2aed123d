"""On one machine, all engines split bytes into the same lines, and agree on their lengths."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.engines import INLINE, LOCAL, MAPPER, RUN_LOCAL, succeed

MEBIBYTE = 1 << 20
COMMANDS = {"pipe": MAPPER, "run_local": [*RUN_LOCAL, "--jobs=2"], "inline": INLINE, "local": LOCAL}
each = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


@pytest.mark.first_case
@each
def test_lines_in_front_of_a_long_one_are_read(command: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mixed.txt"
    path.write_bytes(b"x 1\n" + b"a 1 2\rb 1 2\r" * 50 + b"L 7" + b" 8" * 524_300 + b"\rz 9")
    result = succeed([*command, "--max-line=1", path], tmp_path)
    assert result.count("records") == 102
    assert re.findall(r"line (\d+): line too long: 'L 7 8", result.err) == ["102"]


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("command", "end"),
    [(COMMANDS[name], b"\r\n") for name in COMMANDS if name != "local"]
    + [(INLINE, b"\n"), (LOCAL, b"\r"), (INLINE, b"\r")],
)
def test_the_longest_line_is_counted_without_its_end(
    command: list[str], end: bytes, tmp_path: Path
) -> None:
    longest = b"x 1" + b" 2" * (MEBIBYTE // 2 - 2) + b"3"
    assert len(longest) == MEBIBYTE
    path = tmp_path / "long.txt"
    path.write_bytes(end.join([b"a 1", longest, longest + b"4", b"b 2", longest, b""]))
    result = succeed([*command, "--max-line=1", path], tmp_path)
    assert result.count("records") == 4
    assert re.findall(r"line (\d+): line too long", result.err) == ["3"]


@pytest.mark.slow
@pytest.mark.parametrize("command", [INLINE, LOCAL], ids=["inline", "local"])
def test_a_file_without_line_feeds(command: list[str], tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_bytes(b"".join(b"v%d %d 2 3\r" % (i, i) for i in range(100)) + b"bad x\rw 1 2 3")
    result = succeed([*command, path], tmp_path)
    assert result.count("records") == 101
    assert f"{path}: line 101: not an integer: 'bad x'" in result.err
