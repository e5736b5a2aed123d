"""Run a command once; report its seconds, CPU seconds and memory, and how it ended.

    python3 -m bench.measure --output pairs.tsv --limit 300 ./run_local.sh data/videos.txt

prints them as JSON.  The command gets a process group and a TMPDIR of its own; when it ends, for
whatever reason, the group is killed and the folder removed.

The benchmark calls this module as a program (`measured_apart`), since memory would be wrong
otherwise: Linux counts the memory of the process that starts another one as its first peak, and
the benchmark itself holds answers of many megabytes.

    seconds    from the start of the command to its end
    cpu        of the command and all its descendants that were waited for
    mebibytes  peak memory of the largest single process among them, not of all together
    shuffled   bytes between mapper and reducer, where the command says so on stderr
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DONE, TIME_LIMIT, NOT_STARTED = "done", "time limit", "did not start"
ENDING = (signal.SIGINT, signal.SIGTERM)
GRACE = 3.0  # seconds from SIGTERM, at which a program tidies up, to SIGKILL
LONGEST_SAID = 300
SHUFFLED = re.compile(r"^\s*bytes shuffled[\s=]+([\d,]+)$", re.MULTILINE)


class Run(NamedTuple):
    seconds: float
    cpu: float
    mebibytes: float
    status: str  # "done", "time limit", "did not start", "failed with 1", "killed by SIGKILL"
    said: str  # the last line on stderr
    shuffled: int | None


def measured_apart(command: list[str], output: str, limit: float) -> Run:
    """Call `measured` in a small separate process, so that our own memory is not counted."""
    program = [sys.executable, "-m", "bench.measure", "--output", output, "--limit", str(limit)]
    with subprocess.Popen([*program, "--", *command], cwd=ROOT, stdout=subprocess.PIPE) as helper:
        try:
            answer, _ = helper.communicate()
        except BaseException:
            helper.terminate()  # it ends the command, and we wait for it
            raise
    if helper.returncode in (128 + number for number in ENDING):
        raise KeyboardInterrupt
    if helper.returncode:
        return Run(0.0, 0.0, 0.0, NOT_STARTED, "", None)
    return Run(**json.loads(answer))


def measured(command: list[str], output: str, limit: float) -> Run:
    """Run and measure a command for at most `limit` seconds; its stdout is written to `output`."""
    folder = tempfile.mkdtemp(prefix="bench.")
    # No signal comes between the start of the command and `wait`, which would end it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        with open(output, "wb") as out, tempfile.TemporaryFile() as err:
            started = time.perf_counter()
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, "TMPDIR": folder, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
            )
            in_time = wait(process.pid, limit, before)
            seconds = time.perf_counter() - started
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status  # so that Popen does not wait for it again
            said = text_of(err)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        shutil.rmtree(folder, ignore_errors=True)
    return Run(
        seconds,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / 1024,
        meaning(status) if in_time else TIME_LIMIT,
        said.strip().rpartition("\n")[2][:LONGEST_SAID],
        shuffled(said),
    )


def wait(pid: int, limit: float, signals: Iterable[int]) -> bool:
    """Wait for a process group's leader, then kill the group; return False if time ran out.

    signals: the mask to wait with.  Subtle: the leader is not reaped here (WNOWAIT), so that its
    number stays its own, and nobody else's group is killed.
    """
    late = threading.Event()

    def stop() -> None:
        late.set()
        kill(pid, signal.SIGTERM)

    timers = [
        threading.Timer(limit, stop),
        threading.Timer(limit + GRACE, kill, (pid, signal.SIGKILL)),
    ]
    try:
        for timer in timers:
            timer.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except BaseException:  # interrupted
        kill(pid, signal.SIGTERM)
        last = time.monotonic() + GRACE
        while time.monotonic() < last and not ended(pid):
            time.sleep(0.02)
        raise
    finally:
        for timer in timers:
            timer.cancel()
            timer.join()
        kill(pid, signal.SIGKILL)
    return not late.is_set()


def ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def kill(group: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def meaning(status: int) -> str:
    """Return a description of an exit status that wait4 returned.

    >>> meaning(0), meaning(1 << 8), meaning(9)
    ('done', 'failed with 1', 'killed by SIGKILL')
    """
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    code = os.WEXITSTATUS(status)
    return f"failed with {code}" if code else DONE


def text_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def shuffled(said: str) -> int | None:
    """Return the number of shuffled bytes in the first summary of the messages; None without one.

    >>> shuffled("records       2,000\\nbytes shuffled      887,455\\nseconds")
    887455
    """
    found = SHUFFLED.search(said)
    return int(found[1].replace(",", "")) if found else None


def leave(number: int, _: object) -> None:
    """Handle the first signal: exit, and ignore later signals, so that clean-up is completed."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.measure", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--output", required=True, help="file for the command's stdout")
    parser.add_argument("--limit", type=float, default=300, help="maximum seconds")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    for number in ENDING:
        signal.signal(number, leave)
    print(json.dumps(measured(command, args.output, args.limit)._asdict()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
