"""A page on this machine that shows pairs and takes a person's answers, by keys alone.

Only this machine can reach it, at a port that is free and a path that nobody can guess.  Requests
for another path, or by another name of this machine (DNS rebinding), are refused.  The page loads
nothing but itself.  The server ends with the last pair, with `end`, on Ctrl-C, or if nobody asks
for anything for half an hour.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from neardup.runtime.program import StageError
from neardup.tools.judge.judge import KEYS, Session
from neardup.tools.judge.pair_elements import ONLY_A, ONLY_B

IDLE = 1800.0  # seconds
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'nonce-{0}'; script-src 'nonce-{0}'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}


def serve(session: Session, idle: float = IDLE) -> None:
    """Serve the pairs until the end; StageError or OSError if a verdict cannot be written."""
    with Server(session) as server:
        print(f"open in a browser: {server.url}", file=sys.stderr, flush=True)
        while not server.ended and time.monotonic() - server.last < idle:
            server.handle_request()
        if not server.ended:
            print(f"ended: no answer for {idle / 60:g} minutes", file=sys.stderr)
        if server.error:
            raise server.error


class Server(ThreadingHTTPServer):
    daemon_threads = False  # the last answer is sent before the program ends
    timeout = 0.5  # seconds between looks at the clock

    def __init__(self, session: Session):
        super().__init__(("127.0.0.1", 0), Handler)
        self.session, self.token = session, secrets.token_urlsafe(24)
        self.host = f"127.0.0.1:{self.server_port}"
        self.url = f"http://{self.host}/{self.token}/"
        self.last, self.ended, self.lock = time.monotonic(), False, Lock()
        self.error: Exception | None = None

    def handle_error(self, *_: Any) -> None:
        """Pass over a closed connection or a damaged request; any other error ends the program."""
        error = sys.exc_info()[1]
        if isinstance(error, Exception) and not isinstance(error, (OSError, ValueError)):
            self.error, self.ended = error, True

    def answered(self, at: str, key: str) -> dict[str, Any]:
        """Take an answer to pair number `at`, unless it was answered already; return what is next.

        Each text is a list of parts: [whether the other text lacks it, words].
        """
        session = self.session
        with self.lock:
            if at == str(session.at) and key in KEYS and not self.ended:
                self.ended = key == "q"
                try:
                    if not self.ended:
                        session.answer(KEYS[key])
                except (OSError, StageError) as error:
                    self.error, self.ended = error, True
                    return {"error": f"the verdict could not be written: {error}"}
            self.ended |= session.at == len(session.pairs)
            if self.ended:
                return {"end": True}
            pair, of = session.pairs[session.at], len(session.pairs)
            ids = [id_.decode("utf-8", "backslashreplace") for id_ in pair.verdict.ids]
            both = (filter(lambda part: part[0] != ONLY_B, pair.parts(i)) for i in (0, 1))
            texts = [[[kind == ONLY_A, words] for kind, words in parts] for parts in both]
            head = {"at": session.at, "of": of, "similarity": pair.verdict.similarity.decode()}
            return {**head, "ids": ids, "texts": texts}


class Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 5  # seconds for a request; browsers open connections that they may not use

    def do_GET(self) -> None:
        if self._path() != "/":
            return self._send(403, b"refused")
        nonce = secrets.token_urlsafe(12)
        page = Path(__file__).with_name("judge_page.html").read_text(encoding="utf-8")
        return self._send(200, page.replace("NONCE", nonce).encode(), nonce)

    def do_POST(self) -> None:
        if self._path() != "/answer":
            return self._send(403, b"refused")
        given = parse_qs(urlsplit(self.path).query)
        answer = self.server.answered(*((given.get(name) or [""])[0] for name in ("at", "key")))
        return self._send(200, json.dumps(answer).encode())

    def _path(self) -> str:
        """Return the path behind the token; "" after refusing a request without it."""
        path, token = urlsplit(self.path).path, f"/{self.server.token}"
        host, origin = self.headers.get("Host"), self.headers.get("Origin", "")
        known = secrets.compare_digest(path[: len(token)].encode(), token.encode())
        if not known or host != self.server.host or origin not in ("", f"http://{host}"):
            return ""
        self.server.last = time.monotonic()
        return path[len(token) :]

    def _send(self, status: int, body: bytes, nonce: str = "") -> None:
        self.send_response(status)
        kind = "text/html; charset=utf-8" if nonce else "application/json"
        for name, value in {"Content-Type": kind, **HEADERS}.items():
            self.send_header(name, value.format(nonce))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing: stderr is for the user."""
