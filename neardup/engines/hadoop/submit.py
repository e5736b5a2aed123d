"""run_hadoop.sh: the job by Hadoop Streaming, on the cluster that HADOOP_CONF_DIR points at.

It runs the jobs of `jobs`, or shows them, and sums up the counters that Hadoop reports.
"""

from __future__ import annotations

import argparse
import getpass
import os
import posixpath
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from itertools import takewhile
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from neardup.process.interpreter import require

require("numpy", name="run_hadoop.sh")

from neardup import options
from neardup.engines.hadoop import jobs
from neardup.engines.hadoop.task_logs import first_message, first_of_ours
from neardup.lines.count_lines import read_counts
from neardup.options import Settings
from neardup.process.counters import SHUFFLED, Counters
from neardup.process.errors import StageError, UsageError
from neardup.process.run import run
from neardup.process.summary import describe

DESCRIPTION = """Find the similar pairs of records in files on a Hadoop cluster.

INPUT is a file, a folder or a pattern, plain, .gz or .bz2; OUTPUT a folder that does not exist yet,
where the pairs will be: A TAB B TAB SIMILARITY.

    ./run_hadoop.sh --reducers 40 /data/videos /data/pairs
    ./run_hadoop.sh --input text --threshold 0.8 '/data/articles/*.txt.gz' /data/pairs

Needs HADOOP_HOME, or hadoop on the PATH, and on the nodes Python 3.9 with numpy.
"""
EXPLAINED = re.compile(
    r"Output directory \S+ already exists|Input path does not exist: .*"
    r"|Input Pattern .* matches 0 files|Cannot run program .*"
)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    args = _arguments(sys.argv[1:])
    output = args.output_folder.rstrip("/") or "/"
    first = f"{output}.with-repeats" if args.dedup else output
    sums, counts = f"{output}.sums", f"{output}.counts"
    # What is gone in the end; and what an earlier run may have left there, at the start.
    between = [first] * args.dedup + [sums, counts] * options.counts_first(args)
    counting, pairing = [], [jobs.pairs_job(args, first, counts)]
    if options.counts_first(args):
        counting = [jobs.sums_job(args, sums), jobs.counts_job(args, sums, counts)]
    if args.dedup:
        pairing.append(jobs.dedup_job(args, first, output))
    if args.show:
        print("\n".join(map(shlex.join, counting + pairing)))
        return
    counters = Counters("job")
    counters.promise = options.settings_before_counts(args).promise
    stale = between + [output] * args.overwrite
    if stale:
        _call([jobs.hadoop(), "fs", "-rm", "-r", "-f", *stale])
    if between and not args.overwrite and _exists(output):  # else known after the first job
        raise StageError(f"{output} already exists; --overwrite removes it")
    for command in counting:
        _add(counters, _call(command))
    if counting:
        for line in _with_counts(args, f"{counts}/part-00000").scheme.cost():
            print(line, file=sys.stderr)
    for command in pairing:
        _add(counters, _call(command))
    if between:
        _call([jobs.hadoop(), "fs", "-rm", "-r", *between])
    print(describe([counters.as_dict()], whole=True), file=sys.stderr)


# The command line.


def _arguments(given: list[str]) -> argparse.Namespace:
    args = _parser().parse_intermixed_args(given)
    options.settings_before_counts(args)
    options.integer("--reducers", args.reducers, 1, 999999)
    options.integer("--memory", args.memory, 512, 999999)
    if args.ship_venv and (args.python or args.ship_numpy):
        raise UsageError("--ship-venv brings its own Python and numpy")
    for text in args.define:
        if "=" not in text:
            raise UsageError(f"-D: expected NAME=VALUE, got {text!r}")
    jobs.command(jobs.python(args), *options.as_arguments(args))
    if not all([*args.inputs, args.output_folder]):
        raise UsageError("INPUT and OUTPUT must not be empty")
    for pattern in args.inputs:
        if args.overwrite and _may_remove(args.output_folder, pattern):
            raise UsageError(f"--overwrite {args.output_folder} might remove the input {pattern}")
    return args


def _with_counts(args: argparse.Namespace, path: str) -> Settings:
    """With the token counts of a file on the cluster."""
    with tempfile.NamedTemporaryFile() as file:
        command = [jobs.hadoop(), "fs", "-cat", path]
        if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file).returncode:
            raise StageError(f"cannot read {path}; Hadoop said why above")
        return Settings.of(args, read_counts(file.name, own=True))


def _parser() -> argparse.ArgumentParser:
    parser = options.parser("run_hadoop.sh", DESCRIPTION)
    parser.add_argument("inputs", nargs="+", metavar="INPUT")
    parser.add_argument("output_folder", metavar="OUTPUT")
    parser.add_argument("--reducers", metavar="N", default="8", help="reduce tasks (default: 8)")
    parser.add_argument(
        "--memory",
        metavar="MB",
        default="2048",
        help="of a task's container, shared by Hadoop's JVM and Python (default: 2048)",
    )
    parser.add_argument(
        "--python", metavar="PATH", help="the nodes' Python, with numpy (default: python3)"
    )
    parser.add_argument(
        "--ship-numpy",
        action="store_true",
        help="send numpy along, to nodes with this machine's system and Python version",
    )
    parser.add_argument(
        "--ship-venv",
        action="store_true",
        help="send a virtual environment with numpy along, to nodes with Python where it is here",
    )
    parser.add_argument(
        "--dedup",
        action="store_true",
        help="a second job with dedup_reducer.py: each pair once, even where an id stands for "
        "several records",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="remove OUTPUT first, if it exists"
    )
    parser.add_argument(
        "--show", action="store_true", help="print the command on stdout, and do not run it"
    )
    parser.add_argument("--name", default="near-duplicates", help="of the job")
    parser.add_argument(
        "-D",
        dest="define",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a property for Hadoop; may come several times, and wins over what is set here",
    )
    return parser


def _may_remove(output: str, pattern: str) -> bool:
    """Whether what a pattern stands for may lie in `output`, as far as names tell.

    >>> _may_remove("/data/pairs", "/data/videos"), _may_remove("/data/pairs", "/data/vid*")
    (False, False)
    >>> _may_remove("/data", "/data/videos"), _may_remove("/data/pairs", "/data/*")
    (True, True)
    """
    folder = _path(output)
    for name in pattern.split(","):
        literal = re.split(r"[*?\[{]", name)[0]
        start = _path(literal) + "/" * (literal.endswith("/") or literal == name)
        if f"{start}/".startswith(f"{folder}/") or (literal != name and folder.startswith(start)):
            return True
    return folder == "/"


def _path(uri: str) -> str:
    """Where a URI or a relative path leads in the file system."""
    path = urlsplit(uri).path
    user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    return posixpath.normpath(posixpath.join("/user", user, path))


# The run.


def _call(command: list[str]) -> list[str]:
    """Run a command of Hadoop; returns what it said, which is also shown."""
    print(f"\n{shlex.join(command)}\n", file=sys.stderr, flush=True)
    said: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,  # stdout is for pairs, and these go to OUTPUT
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="backslashreplace",
    ) as process:
        assert process.stderr
        try:
            for line in process.stderr:
                said.append(line.rstrip("\n"))
                sys.stderr.write(line)
                sys.stderr.flush()
        except BaseException:  # Ctrl-C, most of all
            process.terminate()
            if application := _application(said):
                hint = f"The job goes on; to end it: yarn application -kill {application}"
                print(hint, file=sys.stderr)
            raise
    if process.returncode:
        raise StageError(_reason(said) or "Hadoop gave up, and said why above")
    return said


def _add(counters: Counters, said: list[str]) -> None:
    """What a job has counted; the jobs after the first one shuffle as well."""
    found = _counters(said)
    shuffled = counters.counts.get(SHUFFLED, 0) + found.get(SHUFFLED, 0)
    counters.counts.update(found, **{SHUFFLED: shuffled})


def _exists(path: str) -> bool:
    command = [jobs.hadoop(), "fs", "-test", "-e", path]
    return not subprocess.run(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ).returncode


def _counters(said: list[str]) -> dict[str, int]:
    r"""Ours among those that Hadoop prints at the end of a job; without YARN, of each task too.

    >>> task, job = ["\tneardup", "\t\tkeys=10"], ["\tneardup", "\t\tkeys=30", "\t\trecords=2"]
    >>> _counters([*task, *job, "\tFile Input Format Counters "])
    {'keys': 30, 'records': 2}
    """
    if "\tneardup" not in said:
        return {}
    last = len(said) - said[::-1].index("\tneardup")
    ours = takewhile(lambda line: line.startswith("\t\t"), said[last:])
    fields = (line.strip().rpartition("=") for line in ours)
    return {name: int(value) for name, _, value in fields}


def _reason(said: list[str]) -> str:
    """Why a job failed: what Hadoop found wrong before it started, or the first of our messages."""
    explained = [found[0] for line in said if (found := EXPLAINED.search(line))]
    if explained:
        return explained[0].replace("already exists", "already exists; --overwrite removes it")
    return first_of_ours(said) or first_message(_application(said), jobs.hadoop())


def _application(said: list[str]) -> str:
    """YARN's name for the job; "" if it ran without YARN, or not at all."""
    found = re.search(r"Submitted application (application_\d+_\d+)", "\n".join(said))
    return found[1] if found else ""


if __name__ == "__main__":
    sys.exit(run("run_hadoop.sh", main))
