"""The command line, `neardup COMMAND …` or `python3 -m neardup COMMAND …`: the job and tools."""

import os
import shlex
import sys
from importlib import import_module

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the current folder: nothing but the package is imported from there

from neardup.runtime.interpreter import require

require("numpy", name="neardup", module="neardup")

from neardup.runtime import VERSION
from neardup.runtime.program import AS_COMMAND, AS_MODULE, UsageError, as_called, nearest, run

# A command is one file in neardup/commands with a `main`, and one line here.
COMMANDS = {
    "example": "synthetic records, as many as wanted, to try everything on",
    "curve": "what a setting finds: the probability to share a key, for each similarity",
    "tune": "the setting that suits a file: what each would find and cost, from a sample",
    "evaluate": "precision and recall of a run, against the exact answer",
    "truth": "the exact answer: all pairs, with all records in memory",
    "audit": "precision and recall of a run, from a sample of a file of any size",
    "index": "old records, kept so that runs against them need not read them again",
    "find": "the records of an index that are similar to those of a file, the best first",
    "convert": "tables and texts as JSON lines, which clusters read line by line",
    "sketch": "a small sample of each record, in a file",
    "similar": "pairs whose sketches are similar, with an interval",
    "videos": "videos in folders that show the same, whole or in part, with the times",
    "leaks": "records of test sets that are in training data, with the words they share",
    "images": "fingerprints of the pictures in folders, by which similar ones are found",
    "documents": "similar documents, one per file, in folders and archives",
    "folders": "folders with the same files, or contained in others",
    "report": "a page to look at: what was found, with texts side by side",
    "why": "why two records are a pair or not: what they share, and at which keys",
}
# Another name of a command, with options.
ALIASES = {"shingle-videos": ("videos", "--output=shingles")}
# The job: its program, and what it does.
JOBS = {
    "run": ("local.run", "the job: the pairs of records that are similar; as ./run_local.sh"),
    "hadoop": ("hadoop.submit", "the job on a Hadoop cluster; as ./run_hadoop.sh"),
    "spark": ("spark.spark_submit", "the job on Spark; as ./run_spark.sh"),
}
HELP = """usage: python3 -m neardup COMMAND [-h] ...
       python3 -m neardup --version

The job, on this machine or a cluster, and tools around it.

{commands}

In order of use:

0.  Try: records to play with.

        python3 -m neardup example --records 1000 > synthetic.txt

1.  Choose: `curve` shows what threshold and recall promise; `tune` reads a sample of a file, and
    recommends a setting for it.

        python3 -m neardup curve --threshold 0.8 --recall 0.999
        python3 -m neardup tune --threshold 0.8 --recall 0.999 videos.txt

2.  Run the job, with the same options.

        python3 -m neardup run --threshold 0.8 --recall 0.999 videos.txt > pairs.tsv

3.  Check, against the exact answer if all records fit into memory, or else by a sample.

        python3 -m neardup truth --threshold 0.8 videos.txt > truth.tsv
        python3 -m neardup evaluate pairs.tsv truth.tsv
        python3 -m neardup audit --threshold 0.8 videos.txt pairs.tsv

4.  Look at all of it, with texts side by side, in a browser.

        python3 -m neardup report --threshold 0.8 pairs.tsv --records videos.txt -o report.html

5.  Ask about any two records, such as a pair that was missed, with the options of the job.

        python3 -m neardup why --threshold 0.8 --recall 0.999 videos.txt VIDEO_1 VIDEO_3

6.  Go on: if new records come again and again, keep what a run needs of the old ones.

        python3 -m neardup index videos.txt --to videos.index
        python3 -m neardup run --against videos.index new.txt > pairs.tsv
        python3 -m neardup index new.txt --to videos.index --add

7.  Estimate: if sets are large, or will not be kept, keep a sketch of each.

        python3 -m neardup sketch videos.txt --to videos.sketches
        python3 -m neardup similar videos.sketches > estimates.tsv

Each command has a --help of its own.  Exit codes: 0 done, 1 cannot go on with this input, 2 wrong
options, 130 interrupted.
"""


def main() -> int:
    installed = os.path.basename(sys.argv[0]) == AS_COMMAND
    command, *rest = sys.argv[1:] or ["--help"]
    command, *more = ALIASES.get(command, (command,))
    rest = [*more, *rest]
    sys.argv = [f"{AS_COMMAND if installed else AS_MODULE} {command}", *rest]
    if command not in {**JOBS, **COMMANDS}:
        return run(AS_COMMAND, lambda: _about(command))
    if command in ("run", "images", "videos", "documents"):  # as run_local.sh, before numpy
        os.environ.update(LC_ALL="C", OPENBLAS_NUM_THREADS="1")
    if command in COMMANDS:
        main_of_command = import_module(f"neardup.commands.{command}").main
        return run(f"{AS_COMMAND} {command}", main_of_command)
    engine, _ = JOBS[command]
    return import_module(f"neardup.engines.{engine}").command()


def _about(word: str) -> None:
    if word == "--version":
        kernels = import_module("neardup.runtime.kernels")
        print(f"neardup {VERSION} ({'compiled' if kernels.COMPILED else 'numpy'} kernels)")
    elif word in ("-h", "--help"):
        purposes = {**{name: purpose for name, (_, purpose) in JOBS.items()}, **COMMANDS}
        listed = (f"    {name:10}{purpose}" for name, purpose in purposes.items())
        print(as_called(HELP.format(commands="\n".join(listed))), end="")
    elif os.path.exists(word):
        raise UsageError(f"{word!r} is a file; type: python3 -m neardup run {shlex.quote(word)}")
    else:
        meant = nearest(word, [*JOBS, *COMMANDS])
        raise UsageError(
            f"{word!r} is not a command{meant}; python3 -m neardup --help lists the commands"
        )


if __name__ == "__main__":
    sys.exit(main())
