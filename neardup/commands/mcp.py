"""`mcp`: answer an agent over the Model Context Protocol, on stdin and stdout.

question ── a copy of the named files below the roots ── `neardup COMMAND` in a process ── lines

Folders are opened one from another without links, so that no path leaves its root, even if a file
is replaced meanwhile; only the copy is compared.
"""

from __future__ import annotations

import os
import sys
import time
from errno import ENOSPC
from importlib import import_module
from itertools import islice
from pathlib import Path
from shutil import rmtree
from signal import SIGINT, SIGKILL, signal
from stat import S_ISDIR, S_ISREG
from subprocess import DEVNULL, Popen
from tempfile import TemporaryDirectory
from typing import Any, Literal

from neardup.options.command_parser import CommandParser
from neardup.reading.folder_walk import path_id
from neardup.runtime.flags import flags
from neardup.runtime.program import INTERRUPTED, StageError, UsageError, end_on_signals, end_with

LINES, LENGTH, SECONDS, SIZE, DEEPEST = 100, 2000, 120, 1 << 30, 100  # in characters, in bytes
TOO_MUCH = f"more than {SIZE >> 30} GiB or {SECONDS} seconds"
SYSTEM = ("//", "/proc/", "/sys/", "/dev/")
OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
NOT_READ = "not read: hidden, links, devices, on other file systems, or unreadable"
Kind = Literal["documents", "records"]
Options = dict[Literal["threshold", "shingle", "clean", "id", "text", "input"], str]
NO: Options = {}
DESCRIPTION = """Answer an agent's questions on stdin and stdout (Model Context Protocol).

Its tools find, pairs, clusters and why read files below each ROOT, and write none.

    python3 -m neardup mcp docs data
"""


def main() -> None:
    parser = CommandParser("python3 -m neardup mcp", DESCRIPTION)
    parser.add(*flags("roots ROOT…  a folder that may be read, with its subfolders"))
    roots = {}
    for name in parser.parse_args().roots:
        if not os.path.exists(real := os.path.realpath(name)):
            raise StageError(f"{name}: no such file")
        if not os.path.isdir(real) or f"{real}/".startswith(SYSTEM):
            raise UsageError(f"{name}: cannot be a root; name a folder of yours")
        roots[os.path.abspath(name)] = os.open(real, os.O_RDONLY | os.O_DIRECTORY)
    try:
        import_module("mcp.server.mcpserver")  # version 1 lacks it
    except ImportError:
        here = "a package" if sys.version_info >= (3, 10) else "Python 3.10 or later, and there"
        raise UsageError(f"neardup mcp needs {here}: pip install 'mcp>=2'") from None
    serve(roots)


class Question:
    """A copy of files below the roots, {path: descriptor}, and the process that compares it."""

    def __init__(self, roots: dict[str, int], folder: str):
        self.roots, self.folder, self.skipped, self.said = roots, folder, 0, ""
        self.left, self.until = SIZE, time.monotonic() + SECONDS
        self.process: Popen[bytes] | None = None

    def check(self) -> None:
        if self.left < 0 or time.monotonic() > self.until:
            raise ValueError(f"{TOO_MUCH}; name fewer files, or type in a shell: neardup --help")

    def copy(self, name: str) -> str:
        """Copy a file or folder; return its new path.  ValueError if it is not below a root."""
        path = os.path.abspath(name.replace("\0", ""))
        for top, root in self.roots.items():
            if f"{path}/".startswith(f"{top}/"):
                os.makedirs(os.path.dirname(self.folder + path), exist_ok=True)
                parts = path[len(top) :].split("/")[1:]
                if self._take(os.dup(root), os.fstat(root).st_dev, parts, self.folder + path):
                    return self.folder + path
        tops = " or ".join(self.roots)
        raise ValueError(f"{name!r}: not a file or folder that can be read; name one below {tops}")

    def _take(self, source: int, device: int, parts: list[str], target: str) -> bool:
        """Copy what is open, or `parts` below it, and close it; return whether that can be read."""
        try:
            status = os.fstat(source)
            if parts:
                inner = os.open(parts[0], OPEN, dir_fd=source)
                return self._take(inner, device, parts[1:], target)
            if status.st_dev != device or not (S_ISREG(status.st_mode) or S_ISDIR(status.st_mode)):
                return False
            if S_ISREG(status.st_mode):
                with open(target, "wb") as sink:
                    while piece := os.read(source, 1 << 20):
                        self.left -= len(piece)
                        self.check()
                        sink.write(piece)
                return True
            os.makedirs(target, exist_ok=True)
            for name in os.listdir(source):
                self.check()
                no = name.startswith(".") or target.count("/") > DEEPEST
                if no or not self._take(os.dup(source), device, [name], f"{target}/{name}"):
                    self.skipped += 1
            return True
        except OSError as error:
            if error.errno == ENOSPC:
                raise
            return False
        finally:
            os.close(source)

    async def run(self, *words: str) -> None:
        """Run a command; ValueError if it fails, or is not done in time."""
        import anyio

        parent, env = os.getpid(), {**os.environ, "TMPDIR": self.folder}
        how: dict[str, Any] = {"start_new_session": True, "cwd": self.folder, "env": env}
        how["preexec_fn"] = lambda: end_with(parent)
        with open(f"{self.folder}/out", "wb") as out, open(f"{self.folder}/err", "wb") as err:
            command = [sys.executable, "-m", "neardup", *words]
            process = self.process = Popen(command, stdin=DEVNULL, stdout=out, stderr=err, **how)
        try:
            while process.poll() is None:
                self.check()
                await anyio.sleep(0.02)
        finally:
            self.stop()
        self.said = self.shown(Path(self.folder, "err").read_bytes())
        if process.returncode:
            raise ValueError(self.said)

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, SIGKILL)
            self.process.wait()

    def answer(self, offset: int) -> str:
        """Return lines from `offset` on, how many there are more, and the summary of the run."""
        with open(f"{self.folder}/out", "rb") as file:
            lines = [self.shown(line) for line in islice(file, offset, offset + LINES)]
            more = sum(1 for _ in file)
        said = [f"{more:,} more lines; ask again with offset={offset + len(lines)}"] * bool(more)
        said += [f"{self.skipped:,} {NOT_READ}"] * bool(self.skipped)
        return "\n".join([*lines, "", *said, self.said])

    def shown(self, line: bytes) -> str:
        """Return a line with the paths that were named, cut after LENGTH characters."""
        text = line.decode("utf-8", "backslashreplace").rstrip("\n")
        text = text.replace(self.folder, "").replace(path_id(os.fsencode(self.folder)), "")
        return f"{text[:LENGTH]}… (cut)" if len(text) > LENGTH else text


def serve(roots: dict[str, int]) -> None:
    """Answer questions, one at a time, until stdin ends."""
    import anyio
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    server, one, now = MCPServer("neardup"), anyio.Semaphore(1), list[Question]()

    def end(code: int) -> None:
        for asked in now:
            asked.stop()
            rmtree(asked.folder, ignore_errors=True)
        os._exit(code)  # the thread that reads stdin may wait for ever

    async def ask(command: str, paths: list[str], options: Options, offset: int, *ids: str) -> str:
        async with one:
            with TemporaryDirectory(prefix="neardup-mcp-") as folder:
                asked, words = Question(roots, folder), command.split()
                now[:] = [asked]
                try:
                    if not paths or not 0 <= offset < 1 << 60:
                        raise ValueError("name at least one path, and an offset of 0 or more")
                    named = [await anyio.to_thread.run_sync(asked.copy, path) for path in paths]
                    if command == "why documents":
                        lines = f"{folder}/lines.jsonl"
                        await asked.run("documents", "--output=lines", f"-o{lines}", "--", *named)
                        named, words = [lines], ["why"]
                        ids = tuple(path_id(os.fsencode(folder)) + id_ for id_ in ids)
                    words += [f"--{name}={value}" for name, value in options.items()]
                    await asked.run(*words, "--", *named, *ids)
                    return asked.answer(offset)
                except (ValueError, OSError) as error:
                    raise ToolError(str(error)) from None

    async def find(paths: list[str], options: Options = NO, offset: int = 0) -> str:
        """Find similar documents: each file below the paths is one.  Lines: a, b, similarity."""
        return await ask("documents", paths, options, offset)

    async def pairs(paths: list[str], options: Options = NO, offset: int = 0) -> str:
        """Find similar records (JSON lines, rows of tables).  Lines: a, b, similarity."""
        return await ask("run", paths, options, offset)

    async def clusters(paths: list[str], of: Kind, options: Options = NO, offset: int = 0) -> str:
        """List groups of similar documents or records.  Lines: the first of the group, an id."""
        kind = "documents" if of == "documents" else "run"
        return await ask(f"{kind} --output=clusters", paths, options, offset)

    async def why(
        paths: list[str], of: Kind, a: str, b: str, options: Options = NO, offset: int = 0
    ) -> str:
        """Explain why a and b are a pair or not: similarity, common and different shingles."""
        command = "why documents" if of == "documents" else "why"
        return await ask(command, paths, options, offset, a, b)

    for tool in (find, pairs, clusters, why):
        server.add_tool(tool)
    end_on_signals(end)
    signal(SIGINT, lambda *_: end(INTERRUPTED))
    server.run("stdio")
    end(0)
