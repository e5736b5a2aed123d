"""Seconds and memory of `neardup run --work`, killed at random moments; are the bytes the same?

    python3 -m bench.killed_runs --records 1000000 --kills 10 --folder /scratch

The input is `neardup example --records N`.  Three runs: in files without --work, with it, and with
it and SIGKILL of the whole process group at random moments.  Memory is the sum of the proportional
set sizes of all processes, looked at every half second.  The share done again is that of the steps.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PAUSE = 0.5
NEARDUP = [sys.executable, "-m", "neardup"]


def memory_of(session: int) -> tuple[int, int, int]:
    """Return the bytes of all processes of a session, without pages of files, and of the largest.

    Of all processes together, shared pages are counted once; the largest is at its own peak.
    """
    total = own = largest = 0
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            if os.getsid(int(entry.name)) == session:
                rollup, status = ((entry / name).read_text() for name in ("smaps_rollup", "status"))
                found = re.findall(r"^(Pss\w*): +(\d+)", rollup, re.M)
                pages = {name: int(kib) for name, kib in found}
                total += 1024 * pages["Pss"]
                own += 1024 * (pages["Pss"] - pages["Pss_File"])
                largest = max(largest, 1024 * int(re.findall(r"^VmHWM:\s+(\d+)", status, re.M)[0]))
    return total, own, largest


def unwaited_seconds(session: int) -> float:
    """Return the CPU seconds of the processes of a session, without its first one.

    Those of the first one are known when it was waited for; of the others, if they are killed with
    it, nobody will ever know more.
    """
    ticks = 0
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if entry.name != str(session) and os.getsid(int(entry.name)) == session:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, fields[11:15]))  # its own, and of children it has waited for
    return ticks / os.sysconf("SC_CLK_TCK")


def kill_all(session: int) -> float:
    """Kill all processes of a session; return the CPU seconds that are known only now."""
    lost = unwaited_seconds(session)
    os.killpg(session, signal.SIGKILL)
    return lost


class Measured:
    """A command, run to its end with some kills on the way: of all its processes, by default.

    cpu: also of what was killed
    """

    def __init__(
        self,
        command: list[str],
        answer: Path,
        kills: int = 0,
        between: float = 0,
        kill: Callable[[int], float] = kill_all,
    ):
        rng, began, before = random.Random(1), time.monotonic(), os.times()
        self.peak = self.own = self.largest = self.kills = 0
        code, lost, until = -signal.SIGKILL, 0.0, began + rng.uniform(0, 2 * between)
        while code == -signal.SIGKILL:
            with answer.open("wb") as sink, open(f"{answer}.err", "wb") as err:
                process = subprocess.Popen(command, stdout=sink, stderr=err, start_new_session=True)
            while process.poll() is None:
                now = memory_of(process.pid)
                self.peak, self.own = max(self.peak, now[0]), max(self.own, now[1])
                self.largest = max(self.largest, now[2])
                if self.kills < kills and time.monotonic() > until:
                    lost += kill(process.pid)
                    self.kills += 1
                    until = time.monotonic() + rng.uniform(0, 2 * between)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(PAUSE)
            code = process.returncode
        assert code == 0, Path(f"{answer}.err").read_text()
        after = os.times()
        self.seconds = time.monotonic() - began
        self.cpu = lost + sum(after[2:4]) - sum(before[2:4])
        self.digest = hashlib.blake2b(answer.read_bytes(), digest_size=8).hexdigest()
        self.summary = Path(f"{answer}.err").read_text().splitlines()

    def row(self, name: str, again: str = "") -> str:
        numbers = f"{self.seconds:,.0f} | {self.cpu:,.0f} | {self.peak / 2**20:,.0f}"
        return f"| {name} | {numbers} | {self.kills} | {again} | `{self.digest}` |"


def done_again(work: Path) -> str:
    """Return how many steps of a run in a folder were begun again, and how many it has."""
    log = (work / "neardup.work" / "run.jsonl").read_text().splitlines()
    assert json.loads(log[0])["neardup"]
    begun, done = (sum(f'"{kind}": [' in line for line in log) for kind in ("begun", "done"))
    return f"{begun - done} of {done} steps"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10**6)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--folder", type=Path, default=Path("."))
    parser.add_argument("--audit", type=int, default=1000)
    args = parser.parse_args()
    data, work = args.folder / "scale.txt", args.folder / "scale.work"
    with data.open("wb") as sink:
        example = [*NEARDUP, "example", "--records", str(args.records)]
        subprocess.run(example, stdout=sink, check=True)
    run = [*NEARDUP, "run", f"--audit={args.audit}", str(data)]
    go_on = [*run, f"--work={work}", "--keep-work"]
    print(f"{args.records:,} records, {data.stat().st_size / 1e6:,.0f} MB", flush=True)
    print("| run | seconds | CPU seconds | MiB, all processes | killed | done again | answer |")
    print("|---|---|---|---|---|---|---|", flush=True)
    plain = Measured([*run, "--memory=0"], args.folder / "plain.tsv")
    print(plain.row("in files"), flush=True)
    once = Measured(go_on[:-1], args.folder / "once.tsv")
    print(once.row("`--work`"), flush=True)
    answer = args.folder / "killed.tsv"
    killed = Measured(go_on, answer, args.kills, once.seconds / (args.kills + 1))
    print(killed.row("`--work`, killed", done_again(work)), flush=True)
    print("\n".join(["", *killed.summary]))
    assert plain.digest == once.digest == killed.digest


if __name__ == "__main__":
    main()
