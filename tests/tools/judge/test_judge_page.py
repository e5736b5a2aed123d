"""The page of `judge` answers only at its own address, and needs no mouse."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from neardup.reading.input_format import InputFormat
from neardup.tools.judge.judge import Session, Shown
from neardup.tools.judge.judge_page import Server, serve
from neardup.verification.not_pairs import SAME, Verdict
from tests.support.browser import browser, found_browser
from tests.support.engines import NEARDUP, ROOT
from tests.support.programs import environment

TEXT = "<script>alert(1)</script> <img src=http://127.0.0.1:9/x onerror=alert(1)> \u202e end"


@contextmanager
def judging(tmp: Path, pairs: int = 3) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Start the program; yield it and the address that it prints; it must have ended at the end."""
    texts = [f"r{n}\tthe same words {n} {TEXT}\n" for n in range(pairs + 1)]
    (tmp / "texts.tsv").write_text("".join(texts), encoding="utf-8")
    lines = [f"r0\tr{n}\t0.9{n}0000\n" for n in range(1, pairs + 1)]
    (tmp / "pairs.tsv").write_text("".join(lines))
    words = [*NEARDUP, "judge", tmp / "pairs.tsv", "--records", tmp / "texts.tsv", "--input=text"]
    with subprocess.Popen(
        words, stdout=-1, stderr=-1, stdin=subprocess.DEVNULL, cwd=ROOT, env=environment(tmp)
    ) as process:
        try:
            assert process.stderr
            first = process.stderr.readline().decode()
            assert first.startswith("open in a browser: http://127.0.0.1:"), first
            yield process, first.split()[-1]
            process.wait(20)
        finally:
            process.kill()


def ask(url: str, method: str, path: str, **headers: str) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def verdicts(tmp: Path) -> list[bytes]:
    lines = (tmp / "pairs.tsv.verdicts").read_bytes().splitlines()
    return [line.split(b"\t")[0] for line in lines[1:]]


def test_only_the_address_is_answered_and_an_answer_twice_is_one(tmp_path: Path) -> None:
    with judging(tmp_path) as (_, url):
        path = urlsplit(url).path
        for refused in (
            ask(url, "GET", "/"),
            ask(url, "GET", path[:-2] + "/"),
            ask(url, "GET", path + "../etc/passwd"),
            ask(url, "POST", "/answer?at=0&key=s"),
            ask(url, "GET", path, Host="evil.example"),
            ask(url, "POST", path + "answer?at=0&key=s", Origin="http://evil.example"),
        ):
            assert refused == (403, b"refused")
        assert verdicts(tmp_path) == []
        status, page = ask(url, "GET", path)
        assert status == 200
        assert b"http" not in page
        assert b"NONCE" not in page
        for _ in range(2):
            status, body = ask(url, "POST", path + "answer?at=0&key=s")
            assert status == 200
            assert json.loads(body)["at"] == 1
        assert ask(url, "POST", path + "answer?at=1&key=x")[1] == body
        assert verdicts(tmp_path) == [SAME]
        assert json.loads(ask(url, "POST", path + "answer?at=1&key=q")[1]) == {"end": True}


def session(file: int) -> Session:
    """Return a session of two pairs."""
    none = b"0" * 32
    verdict = Verdict(b"", (none, none), (none, none), b"0.900000", (b"a", b"b"))
    pair = Shown(verdict, ("a", "b"), InputFormat.of("text", None, None))
    return Session([pair, pair], file, "verdicts")


def test_it_ends_if_nobody_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    serve(session(1), idle=0.2)
    assert time.monotonic() - started < 10
    assert "no answer" in capsys.readouterr().err


def test_a_verdict_that_cannot_be_written_ends_it(tmp_path: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    with Server(session(full)) as server:
        assert "verdicts" in server.answered("0", "s")["error"]
        assert server.ended
        assert isinstance(server.error, OSError)
        assert server.answered("0", "s") == {"end": True}
    os.close(full)


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_keys_alone_are_enough(tmp_path: Path, width: int) -> None:
    program = found_browser()
    if program is None:
        assert "CI" not in os.environ
        pytest.skip("no chromium or google-chrome on the PATH")
    with judging(tmp_path) as (process, url), browser(program, tmp_path / "profile") as tab:
        tab.visit(url, width, "light")

        def until(expression: str) -> None:
            end = time.monotonic() + 20
            while not tab.value(expression):
                assert time.monotonic() < end, expression
                time.sleep(0.02)

        def press(key: str, then: str) -> None:
            for kind in ("keyDown", "keyUp"):
                tab.ask("Input.dispatchKeyEvent", type=kind, key=key, text=key)
            until(then)

        place = "document.getElementById('place').textContent == '{} of 3'"
        until(place.format(1))
        assert tab.value("document.scripts.length") == 1
        assert tab.value("document.images.length") == 0
        assert tab.value("document.querySelector('main').innerText.includes('<script>alert(1)')")
        assert tab.value("document.querySelectorAll('del, ins').length") == 2
        assert tab.value("document.documentElement.scrollWidth <= innerWidth")
        if folder := os.environ.get("SCREENSHOTS"):
            Path(folder, f"judge-{width}.png").write_bytes(tab.screenshot())
        press("d", place.format(2))
        press("u", place.format(1))
        press(" ", place.format(2))
        press("s", place.format(3))
        press("d", "document.body.innerText.includes('Done')")
        assert not tab.told("Log.entryAdded")
        sent = [each["request"]["url"] for each in tab.told("Network.requestWillBeSent")]
        assert all(each.startswith(url) for each in sent)
        assert process.wait(20) == 0
        assert process.stdout
        assert b"judged" in process.stdout.read()
    assert verdicts(tmp_path) == [b"different", b"undone", b"same", b"different"]
