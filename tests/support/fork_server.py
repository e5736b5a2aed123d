"""A server that imports the programs' modules once, and starts a program by a fork in 10 ms.

`run_forked` in a test asks for a program; a child of the server then is that program, from its
first line to its last: a session, descriptors 0 to 2, arguments, environment and folder of its own.
What the interpreter itself does at its start, such as to
look where modules are, is not shown by this: such tests start a real process.

A request is its length (8 bytes), three descriptors, and JSON.  The answer is the process id at
once, and the status in the end (8 bytes each).  The server ends when its tests do.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
NUMBER = 8  # bytes of one
COVERED = re.compile("COVERAGE_PROCESS_")  # by which coverage tells where to go on
LATER = ("__main__", "spark", "mrjob")  # what they take may not be there, or is loaded below


# In the tests.


def run_forked(
    arguments: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    streams: tuple[int, int, int],
    seconds: float,
) -> int:
    """Run a Python program, SCRIPT or -m MODULE; return its exit code, or minus a signal.

    subprocess.TimeoutExpired after so many seconds; nothing of its session is left then.
    """
    return _server().run(arguments, cwd, env, streams, seconds)


@cache
def _server() -> Client:
    return Client()


class Client:
    """The client in the tests: it starts the server, and ends it with the tests."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        quiet = {name: value for name, value in os.environ.items() if "COV" not in name.upper()}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**quiet, "OPENBLAS_NUM_THREADS": "1"},  # threads do not survive a fork
                start_new_session=True,
            )
        atexit.register(self._end)

    def run(
        self,
        arguments: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        streams: tuple[int, int, int],
        seconds: float,
    ) -> int:
        request = json.dumps([list(arguments), str(cwd), dict(env)]).encode()
        socket.send_fds(self._socket, [_bytes(len(request))], streams)
        self._socket.sendall(request)
        pid = _number(self._socket)
        self._socket.settimeout(seconds)
        try:
            return os.waitstatus_to_exitcode(_number(self._socket))
        except socket.timeout:
            os.killpg(pid, signal.SIGKILL)
            self._socket.settimeout(None)
            _number(self._socket)
            raise subprocess.TimeoutExpired(list(arguments), seconds) from None
        finally:
            self._socket.settimeout(None)

    def _end(self) -> None:
        self._socket.close()
        self._process.wait()


# In the server.


def serve(tests: socket.socket) -> None:
    """Fork for each request, until the tests close their end of the socket."""
    _preload()
    while True:
        length, streams, *_ = socket.recv_fds(tests, NUMBER, 3)
        if not length:
            return
        arguments, cwd, env = json.loads(_received(tests, int.from_bytes(length, "big")))
        if any(map(COVERED.match, env)):
            importlib.import_module("coverage")
        pid = os.fork()
        if not pid:
            tests.close()
            os._exit(_ended(partial(_become, arguments, cwd, env, streams)))
        for stream in streams:
            os.close(stream)
        tests.sendall(_bytes(pid))
        tests.sendall(_bytes(os.waitpid(pid, 0)[1]))


def _preload() -> None:
    """Import the programs' modules from the repository, whose folder is first on the path."""
    sys.path[0] = str(ROOT)
    for path in sorted((ROOT / "neardup").rglob("[!_]*.py")):  # and what is imported on use
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if not any(word in name for word in LATER):
            importlib.import_module(name)
    for name in ("neardup.engines.mrjob", "mrjob.inline", "neardup.engines.mrjob.mrjob_launcher"):
        importlib.import_module(name)
    sys.meta_path.insert(0, NoPandas())
    gc.collect()
    gc.freeze()  # so that the children need no copies of what lies here


class NoPandas:
    """Hides pandas, which pyarrow imports with its first array: 0.3 seconds in each program."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)


def _become(arguments: list[str], cwd: str, env: dict[str, str], streams: list[int]) -> None:
    """Turn this process into a run of the program, from its first line to its exit."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.stdin, sys.stdout, sys.stderr = map(_opened, (sys.stdin, sys.stdout, sys.stderr), range(3))
    if any(map(COVERED.match, env)):
        sys.modules["coverage"].process_startup()
    if arguments[0] == "-m":
        sys.path[0] = cwd
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        script = os.path.join(cwd, arguments[0])
        sys.path[:1] = [os.path.dirname(script), *env.get("PYTHONPATH", "").split(os.pathsep)]
        sys.argv = arguments
        runpy.run_path(script, run_name="__main__")


def _ended(program: Callable[[], None]) -> int:
    """Run a program and its exit functions; return the exit code that an interpreter would give."""
    code = 0
    try:
        program()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if not isinstance(end.code, (int, type(None))):
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        return 120
    return code


def _opened(old: IO[str], number: int) -> IO[str]:
    """Open a standard stream again, since the old one remembers its kind of file."""
    return open(
        number,
        "w" if number else "r",
        buffering=1 if number == 2 else -1,
        encoding=old.encoding,
        errors=old.errors,
        closefd=False,
    )


# Both.


def _bytes(number: int) -> bytes:
    return number.to_bytes(NUMBER, "big")


def _number(stream: socket.socket) -> int:
    return int.from_bytes(_received(stream, NUMBER), "big")


def _received(stream: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = stream.recv(size - len(parts))
        if not part:
            raise EOFError("the other side has ended")
        parts += part
    return bytes(parts)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as the_tests:
        serve(the_tests)
