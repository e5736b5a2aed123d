"""The command line: `neardup COMMAND …` or `python3 -m neardup COMMAND …`."""

import sys

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the current folder: nothing but the package is imported from there

from neardup.runtime.interpreter import require

require("numpy", name="neardup", module="neardup")

import os
import shlex
from importlib import import_module

from neardup.runtime import VERSION
from neardup.runtime.program import AS_COMMAND, AS_MODULE, UsageError, as_called, nearest, run

# The groups of `neardup --help`, by what a person wants.
GROUPS = {
    "find": "Find near-duplicates",
    "clean": "Clean (also: run, images, videos and documents with --output kept or removed)",
    "compare": "Compare with something else (also: run --against INDEX)",
    "keep": "Keep for later",
    "check": "Choose settings, and check results",
}
# A command is one file with a `main`, and one line here: its folder, its group, and what it does.
COMMANDS = {
    "images": ("media.commands", "find", "similar pictures in folders, by their content"),
    "videos": ("media.commands", "find", "videos with the same content, in whole or in part"),
    "documents": ("tools.documents", "find", "similar text files in folders and archives"),
    "leaks": ("tools.documents", "clean", "records of test sets that are in training data"),
    "passages": ("tools.documents", "clean", "runs of words that occur in several texts"),
    "convert": ("commands", "clean", "tables and texts as JSON lines, which clusters can read"),
    "folders": ("tools.documents", "compare", "folders with mostly the same files, or in others"),
    "find": (
        "engines.local",
        "compare",
        "the records of an index that are similar to those of a file",
    ),
    "index": ("engines.local", "keep", "an index of old records, which are then not read again"),
    "sketch": ("tools.sketches", "keep", "a small sample of each record, in a file"),
    "similar": ("tools.sketches", "keep", "pairs of similar sketches, with a confidence interval"),
    "example": ("commands", "check", "synthetic records, as many as you want, to try it on"),
    "curve": ("tools.judge", "check", "the probability that two records share a key"),
    "tune": ("tools.judge", "check", "the best setting for a file, from a sample"),
    "evaluate": ("commands", "check", "precision and recall, compared with the exact answer"),
    "truth": ("commands", "check", "the exact answer: all pairs, with all records in memory"),
    "audit": ("commands", "check", "precision and recall of a run, from a sample of any size"),
    "report": ("tools.report", "check", "an HTML page of what was found, with texts side by side"),
    "judge": (
        "tools.judge",
        "check",
        "pairs to judge by eye: the precision, and pairs to keep out",
    ),
    "mcp": ("commands", "check", "answers for agents, over the Model Context Protocol"),
    "why": ("tools.judge", "check", "why two records are a pair or not, and their keys"),
}
# The commands that run the job: the program of each (its `command`), its group, what it does.
JOBS = {
    "run": ("local.run", "find", "the job: all pairs of similar records; same as ./run_local.sh"),
    "hadoop": ("hadoop.submit", "find", "the job on a Hadoop cluster; same as ./run_hadoop.sh"),
    "spark": ("spark.spark_submit", "find", "the job on Spark; same as ./run_spark.sh"),
    "dask": ("dask.dask_run", "find", "the job on Dask, such as on Slurm or Kubernetes"),
}
HELP = """usage: python3 -m neardup COMMAND [-h] ...
       python3 -m neardup --version

Find near-duplicates on this machine or a cluster; check and explain what was found.

{commands}

In order of use:

0.  Try: make records to play with.

        python3 -m neardup example --records 1000 > synthetic.txt

1.  Choose: `curve` shows what threshold and recall mean; `tune` reads a sample of a file and
    recommends a setting.

        python3 -m neardup curve --threshold 0.8 --recall 0.999
        python3 -m neardup tune --threshold 0.8 --recall 0.999 videos.txt

2.  Run the job, with the same options.

        python3 -m neardup run --threshold 0.8 --recall 0.999 videos.txt > pairs.tsv

3.  Check: compare with the exact answer if all records fit into memory, else with a sample.

        python3 -m neardup truth --threshold 0.8 videos.txt > truth.tsv
        python3 -m neardup evaluate pairs.tsv truth.tsv
        python3 -m neardup audit --threshold 0.8 videos.txt pairs.tsv

4.  Look at the pairs in a browser, with texts side by side.

        python3 -m neardup report --threshold 0.8 pairs.tsv --records videos.txt -o report.html

5.  Ask about any two records, such as a pair that was missed, with the options of the job.

        python3 -m neardup why --threshold 0.8 --recall 0.999 videos.txt VIDEO_1 VIDEO_3

6.  Continue: if new records arrive again and again, keep an index of the old ones.

        python3 -m neardup index videos.txt --to videos.index
        python3 -m neardup run --against videos.index new.txt > pairs.tsv
        python3 -m neardup index new.txt --to videos.index --add

7.  Estimate: if sets are large, or cannot be kept, store a sketch of each.

        python3 -m neardup sketch videos.txt --to videos.sketches
        python3 -m neardup similar videos.sketches > estimates.tsv

Each command has its own --help.  Exit codes: 0 success, 1 the input cannot be processed, 2 wrong
options, 130 interrupted.
"""


def main() -> int:
    installed = os.path.basename(sys.argv[0]) == AS_COMMAND
    command, *rest = sys.argv[1:] or ["--help"]
    sys.argv = [f"{AS_COMMAND if installed else AS_MODULE} {command}", *rest]
    if command not in {**JOBS, **COMMANDS}:
        return run(AS_COMMAND, lambda: _about(command, rest))
    if command in ("run", "images", "videos", "documents"):  # before numpy is imported
        os.environ.update(LC_ALL="C", OPENBLAS_NUM_THREADS="1")
    if command in COMMANDS:
        main_of_command = import_module(f"neardup.{COMMANDS[command][0]}.{command}").main
        return run(f"{AS_COMMAND} {command}", main_of_command)
    engine, *_ = JOBS[command]
    return import_module(f"neardup.engines.{engine}").command()


def _about(word: str, rest: list[str]) -> None:
    if word == "--version":
        kernels = import_module("neardup.runtime.kernels")
        print(f"neardup {VERSION} ({'compiled' if kernels.COMPILED else 'numpy'} kernels)")
        return
    if word in ("-h", "--help"):
        commands = "\n\n".join(_listed(group) for group in GROUPS)
        print(as_called(HELP.format(commands=commands)), end="")
        return
    others = import_module("neardup.tools.documents.line_to_type")
    if word in others.REMOVING:
        line = others.line_to_type(rest, remove=True)
        raise UsageError(f"{word!r} is not a command; type: {line}")
    if word == "shingle-videos":
        line = f"{AS_MODULE} {shlex.join(['videos', *(rest or ['FOLDER'])])}"
        raise UsageError(f"{word!r} is not a command; to find pairs of videos, type: {line}")
    if os.path.exists(word):
        kind = "folder" if os.path.isdir(word) else "file"
        line = others.line_to_type([word, *rest], remove=False)
        raise UsageError(f"{word!r} is a {kind}; type: {line}")
    meant = nearest(word, [*JOBS, *COMMANDS])
    raise UsageError(
        f"{word!r} is not a command{meant}; python3 -m neardup --help lists the commands"
    )


def _listed(group: str) -> str:
    every = {**JOBS, **COMMANDS}.items()
    lines = (f"    {name:11}{does}" for name, (_, of, does) in every if of == group)
    return "\n".join([f"{GROUPS[group]}:", *lines])


if __name__ == "__main__":
    sys.exit(main())
