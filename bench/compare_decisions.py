"""Check the removals of neardup's two rules, text-dedup and datatrove against the exact answer.

    python3 -m bench.compare_decisions
    python3 -m bench.compare_decisions --peers-python /opt/peers/bin/python --workloads W2

prints a Markdown table for each file.  All take the same sets at threshold 0.9: shingles of
a video, words of a package, each a word for the peers; ours with --keep first.  The judge is the
exact answer (`bench.data.exact_answer`), not what a program says of itself:

    removed              records that go
    without a pair       of these, those that are no pair with any record that stays
    pairs that stay      pairs of which both records stay: duplicates still there
    reasons              of ours: removed lines whose pair is in the exact answer, with this very
                         similarity, and names a record that stays
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable
from typing import NamedTuple

from bench.contestants import cores
from bench.workloads import QUICK_WORKLOADS, ROOT, WORKLOADS, Workload, prepare

HEAD = (
    "| decided by | banding | records that stay | removed | without a pair | pairs that stay | "
    "reasons |\n|---|---|---:|---:|---:|---:|---:|"
)
RULES = ("direct", "cluster")
PEERS = {"textdedup_removed": "9×27", "datatrove_removed": "14×8"}  # and their own banding at 0.9
NAMES = {"textdedup_removed": "text-dedup", "datatrove_removed": "datatrove"}

Pairs = dict[tuple[bytes, bytes], bytes]  # both ways, and the similarity


class Verdict(NamedTuple):
    stay: int
    removed: int
    without: int
    left: int


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.compare_decisions", description=(__doc__ or "").split("\n")[0]
    )
    files = {each.name: each for each in (*WORKLOADS, *QUICK_WORKLOADS)}
    parser.add_argument("--workloads", nargs="+", choices=files, default=["data/videos.txt", "W2"])
    parser.add_argument("--peers-python", default=sys.executable, metavar="PATH")
    args = parser.parse_args()
    for name in args.workloads:
        workload = files[name]
        prepare(workload)
        print(f"{name}, {workload.records():,} records:\n\n{HEAD}")
        ids, pairs = ids_of(workload), pairs_of(workload)
        for rule in RULES:
            print(row_of_ours(workload, rule, ids, pairs), flush=True)
        for peer in PEERS:
            for banding in ("15×7", ""):
                print(row_of_peer(workload, peer, banding, ids, pairs, args.peers_python))
                sys.stdout.flush()
        print()


def ids_of(workload: Workload) -> set[bytes]:
    with open(workload.path, "rb") as file:
        return {line.split(None, 1)[0] for line in file}


def pairs_of(workload: Workload) -> Pairs:
    pairs: Pairs = {}
    with open(workload.truth, "rb") as file:
        for a, b, similarity in (line.rstrip(b"\n").split(b"\t") for line in file):
            pairs[a, b] = pairs[b, a] = similarity
    return pairs


def row_of_ours(workload: Workload, rule: str, ids: set[bytes], pairs: Pairs) -> str:
    command = ["./run_local.sh", "-v", "--output", "removed", "--rule", rule, workload.file]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, check=True, stdin=subprocess.DEVNULL
    )
    lines = [tuple(line.split(b"\t")) for line in done.stdout.splitlines()]
    gone = {id_ for id_, _, _ in lines}
    right = sum(
        kept not in gone and pairs.get((id_, kept)) == similarity for id_, kept, similarity in lines
    )
    name = f"run_local.sh --rule {rule}"
    return markdown(f"`{name}`", "15×7", judged(ids, gone, pairs), f"{right:,} of {len(lines):,}")


def row_of_peer(
    workload: Workload, peer: str, banding: str, ids: set[bytes], pairs: Pairs, python: str
) -> str:
    command = [python, "-m", f"bench.peers.{peer}", workload.file, "--threads", str(cores())]
    if banding:
        bands, rows = banding.split("×")
        command += ["--bands", bands, "--rows", rows]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        why = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"| {NAMES[peer]} | {banding or PEERS[peer]} | does not run: {why} | | | | |"
    verdict = judged(ids, set(done.stdout.splitlines()), pairs)
    return markdown(NAMES[peer], banding or f"{PEERS[peer]} (its default)", verdict, "–")


def judged(ids: set[bytes], gone: set[bytes], pairs: Iterable[tuple[bytes, bytes]]) -> Verdict:
    """Return the verdict on removing `gone` from `ids`; `pairs` has every pair in both orders.

    >>> chain = [(b"a", b"b"), (b"b", b"c")]
    >>> both = chain + [(b, a) for a, b in chain]
    >>> judged({b"a", b"b", b"c"}, {b"b", b"c"}, both)
    Verdict(stay=1, removed=2, without=1, left=0)
    """
    if not gone <= ids:
        raise SystemExit("bench.compare_decisions: a record was removed that is not in the file")
    reasoned, left = set(), 0
    for a, b in pairs:
        if a in gone and b not in gone:
            reasoned.add(a)
        left += a not in gone and b not in gone
    return Verdict(len(ids) - len(gone), len(gone), len(gone) - len(reasoned), left // 2)


def markdown(name: str, banding: str, verdict: Verdict, reasons: str) -> str:
    return f"| {name} | {banding} | {' | '.join(f'{n:,}' for n in verdict)} | {reasons} |"


if __name__ == "__main__":
    main()
