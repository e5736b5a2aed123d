"""With --cache, `neardup documents` reads PDF and office files once, also if it is killed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from neardup.reading import cache
from neardup.runtime import program
from neardup.tools.documents import documents, office_files
from tests.support.engines import NEARDUP, refuse, succeed
from tests.tools.documents.test_office_files import FILES, pdf, zip_of

pytestmark = pytest.mark.slow
WORDS = [f"w{i}" for i in range(12)]


def read(tmp_path: Path, *words: str, most: int = 999) -> tuple[int, int, bytes]:
    """Run `documents` in a child process; return how it ended, the PDFs it read, its answer.

    It is killed with its process group before it reads more than `most`.
    """
    log, out = tmp_path / "log", tmp_path / "out"
    log.write_bytes(b"")
    out.unlink(missing_ok=True)
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            outcomes = office_files.outcomes

            def counted(*given: Any, **more: Any) -> Any:
                if log.stat().st_size == most:
                    os.killpg(0, signal.SIGKILL)
                with log.open("ab") as file:
                    file.write(b"x")
                return outcomes(*given, **more)

            office_files.outcomes = counted
            cache.SECONDS = -1.0  # each text is written at once
            sys.argv = ["documents", *words, "-o", str(out)]
            os._exit(program.run("neardup documents", documents.main))
        finally:
            os._exit(99)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code, log.stat().st_size, out.read_bytes() if out.exists() else b""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with nine PDFs, one of them a scan, and an office file of each kind."""
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(8):
        text = " ".join([*WORDS, *(f"x{i // 2}{k}" for k in range(8))])
        (folder / f"{i}.pdf").write_bytes(pdf(text, filled=f"{i}"))
    (folder / "scan.pdf").write_bytes(pdf("", picture=b"1"))
    for name, parts in FILES.items():
        zip_of(folder / name, {**parts})
    return folder


def test_a_killed_run_reads_the_others(folder: Path, tmp_path: Path) -> None:
    words = [str(folder), "--threshold=0.4"]
    code, count, whole = read(tmp_path, *words)
    assert (code, count) == (0, 9)
    assert len(whole.splitlines()) > 3
    words += [f"--cache={tmp_path / 'c'}"]
    assert read(tmp_path, *words, most=5) == (-signal.SIGKILL, 5, b"")
    assert read(tmp_path, *words) == (0, 4, whole)
    assert read(tmp_path, *words) == (0, 0, whole)


def test_a_text_is_found_by_the_bytes_of_its_file(folder: Path, tmp_path: Path) -> None:
    """Names and times do not count, also in archives; options that change the text do."""
    kept = f"--cache={tmp_path / 'c'}"
    command = [*NEARDUP, "documents", kept, "--output=lines", folder]
    first = succeed(command, tmp_path)
    assert "from the cache" not in first.err
    again = succeed(command, tmp_path)
    assert again.out == first.out
    assert "by text alone" in first.err
    assert again.err.splitlines()[:-1] == first.err.splitlines()[:-1]  # what is not text is known
    assert "11 documents from the cache" in again.err  # and the scan
    assert "1 document without text, maybe scanned" in again.err
    parts: dict[str, str | bytes] = {"a.pdf": (folder / "0.pdf").read_bytes()}
    zip_of(folder / "a.zip", parts)
    os.rename(folder / "1.pdf", folder / "another.pdf")
    os.utime(folder / "2.pdf")
    assert read(tmp_path, kept, str(folder))[:2] == (0, 0)
    data = (folder / "3.pdf").read_bytes()
    (folder / "3.pdf").write_bytes(data.replace(b"w11", b"w99"))
    assert read(tmp_path, kept, str(folder))[:2] == (0, 1)
    assert read(tmp_path, kept, str(folder), "--max-line=1")[:2] == (0, 9)


def test_a_file_that_is_no_cache_is_left(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "c").write_text("mine")
    said = f"--cache {tmp_path / 'c'}: is not a cache of documents; name another file"
    refuse([*NEARDUP, "documents", "--cache", tmp_path / "c", folder], tmp_path, said)
    assert (tmp_path / "c").read_text() == "mine"
