"""A real browser, driven over two pipes (Chrome DevTools Protocol), to test pages.

browser  ◀── descriptor 3 ──  {"id": 1, "method": "Page.navigate", …} NUL
         ─── descriptor 4 ──▶ {"id": 1, "result": …} NUL, and events in between
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 120  # that an answer may take
Message = dict[str, Any]


def found_browser() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A connection to a browser, which opens pages in a tab and answers questions about them.

    `events` has the messages that the browser sent unasked since the last visit, in order.
    """

    def __init__(self, reading: int, writing: int):
        self.events: list[Message] = []
        self._reading, self._writing = reading, writing
        self._held = b""
        self._asked = 0
        self._session: dict[str, str] = {}

    def open_tab(self) -> None:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = {"sessionId": session}
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> Message:
        """Send a command; return its result."""
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": params, **self._session}
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._asked:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def visit(self, page: Path | str, width: int, scheme: str) -> None:
        """Open a file or address at a width, in a colour scheme; wait until it has loaded."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", media="", features=[feature])
        size = dict(width=width, height=600, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        self.events.clear()
        self.ask("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        while not self.told("Page.loadEventFired"):
            self.events.append(self._next())

    def told(self, method: str) -> list[Message]:
        return [event["params"] for event in self.events if event.get("method") == method]

    def value(self, expression: str) -> Any:
        return self.ask("Runtime.evaluate", expression=expression)["result"].get("value")

    def screenshot(self, whole: bool = False) -> bytes:
        """Return a PNG of the visible part or of the whole page."""
        made = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(made["data"])

    def _next(self) -> Message:
        end = time.monotonic() + SECONDS
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._reading], [], [], max(0, end - time.monotonic()))
            assert ready, f"the browser said nothing for {SECONDS} seconds"
            chunk = os.read(self._reading, 1 << 20)
            assert chunk, "the browser has ended"
            self._held += chunk
        message, _, self._held = self._held.partition(b"\0")
        return json.loads(message)


@contextmanager
def browser(program: str, folder: Path) -> Iterator[Browser]:
    """Yield a headless browser with its own profile in `folder` and no background traffic."""
    hears, asks = os.pipe()
    answers, says = os.pipe()
    command = f'exec "$0" "$@" 3<&{hears} 4>&{says}'
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
    quiet = ["--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"]
    process = subprocess.Popen(
        ["bash", "-c", command, program, *flags, *quiet, f"--user-data-dir={folder}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(hears, says),
        start_new_session=True,
    )
    os.close(hears)
    os.close(says)
    try:
        it = Browser(answers, asks)
        it.open_tab()
        yield it
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(asks)
        os.close(answers)


def pixels(png: bytes) -> np.ndarray:
    """Decode a PNG of 8 bits a channel; return its pixels, uint8 (height, width, channels)."""
    width, height, bits, kind = struct.unpack(">IIBB", png[16:26])
    assert (bits, kind) in ((8, 2), (8, 6))
    channels = 3 if kind == 2 else 4
    packed, place = b"", 8
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        if png[place + 4 : place + 8] == b"IDAT":
            packed += png[place + 8 : place + 8 + length]
        place += length + 12
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, -1)
    rows = np.zeros((height + 1, width + 1, channels), np.uint8)
    for y, line in enumerate(lines):
        _undo(int(line[0]), line[1:].reshape(width, channels), rows[y], rows[y + 1])
    return rows[1:, 1:]


def _undo(filter_: int, line: np.ndarray, above: np.ndarray, row: np.ndarray) -> None:
    """Fill a row by undoing a PNG filter; row[0] is the edge, and `above` the previous row."""
    if filter_ == 0:
        row[1:] = line
    elif filter_ == 1:
        row[1:] = np.cumsum(line, axis=0, dtype=np.uint8)
    elif filter_ == 2:
        row[1:] = line + above[1:]
    else:
        for x in range(1, len(row)):
            left, up, corner = (each.astype(int) for each in (row[x - 1], above[x], above[x - 1]))
            guess = (left + up) // 2 if filter_ == 3 else _paeth(left, up, corner)
            row[x] = line[x - 1] + guess.astype(np.uint8)


def _paeth(left: np.ndarray, up: np.ndarray, corner: np.ndarray) -> np.ndarray:
    guess = left + up - corner
    a, b, c = abs(guess - left), abs(guess - up), abs(guess - corner)
    return np.where((a <= b) & (a <= c), left, np.where(b <= c, up, corner))
