"""What the command lines of all jobs have in common: `hadoop jar …`, up to what a job is about."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from neardup.engines.hadoop import archives
from neardup.engines.hadoop.containers import map_properties, reduce_properties
from neardup.engines.hadoop.installation import hadoop, streaming_jar
from neardup.engines.hadoop.ship_numpy import NUMPY
from neardup.engines.hadoop.splits import MAPS, REDUCERS, SAME_SPLITS
from neardup.options import table
from neardup.options.settings import counts_first
from neardup.process.errors import StageError, UsageError

# What is sent along is called so in a task's folder.
CODE, VENV, COUNTS = "neardup-job", "venv", "counts"
LIST, DECIDED, SHARED = "input-files", "decided", "shared-keys"
KEY_VALUE = ("-inputformat", "org.apache.hadoop.mapred.KeyValueTextInputFormat")
IDENTITY = ("-mapper", "org.apache.hadoop.mapred.lib.IdentityMapper")
PLAIN = {"mapreduce.output.fileoutputformat.compress": "false"}  # for a task to read
ONE_PLAIN_FILE = {REDUCERS: 1, **PLAIN}


def reading(args: argparse.Namespace) -> dict[str, object]:
    """The properties of a job that reads the records."""
    return {
        "mapreduce.job.name": args.name,
        **map_properties(args.memory),
        MAPS: args.maps,
        "mapreduce.input.fileinputformat.input.dir.recursive": "true",
    }


def inputs(names: Sequence[str]) -> list[str]:
    return [word for name in names for word in ("-input", name)]


def along(files: Mapping[str, str]) -> list[str]:
    """What sends files of this machine along: the name that each has in a task, and its path."""
    for path in files.values():
        check_name(Path(path))
    sent = [f"{path}#{name}" for name, path in files.items()]
    return ["-files", ",".join(sent)] if sent else []


def from_cluster(files: Mapping[str, str]) -> list[str]:
    """What gives each task files of the cluster: the name that each has there, and its path."""
    # With -files, the name of the file system would have to be told.
    cached = [f"{quote(path, safe='/:')}#{name}" for name, path in files.items()]
    return ["-D", f"mapreduce.job.cache.files={','.join(cached)}"] if cached else []


def always(properties: Mapping[str, object]) -> list[str]:
    """Properties that win over what the user defines."""
    return [word for name, value in properties.items() for word in ("-D", f"{name}={value}")]


def same_splits(args: argparse.Namespace) -> list[str]:
    """What makes two jobs cut a file alike, where one of them reads other files too."""
    both = args.against and args.output == "kept"
    return always(SAME_SPLITS) if both else []


def told(args: argparse.Namespace, counts: str, shared: str = "") -> tuple[list[str], list[str]]:
    """The options of a task, and what sends along the files that they name.

    `counts` is the folder where token counts are, if there is a job that makes them; `shared` that
    of shared keys, of a task that takes them.
    """
    there: dict[str, object] = {}
    sent = listed(args)
    cached = {SHARED: shared} if shared else {}
    if counts_first(args):
        there = {"counts": COUNTS, "own_counts": True}
        cached[COUNTS] = f"{counts}/part-00000"
    elif args.counts is not None:
        there = {"counts": COUNTS}
        sent[COUNTS] = str(Path(args.counts).resolve())
    return flags(args, **there), [*from_cluster(cached), *along(sent)]


def flags(args: argparse.Namespace, **there: object) -> list[str]:
    """The options of a task, with what it finds under other names."""
    if args.against:
        there["against"] = [LIST]  # which says what is old; a name might have a blank
    if args.places:
        there["input_files"] = LIST
    return table.as_arguments(argparse.Namespace(**{**vars(args), **there}))


def listed(args: argparse.Namespace) -> dict[str, str]:
    """The list of the input files, where tasks must know their places."""
    return {LIST: args.places} if args.places else {}


def streaming(
    args: argparse.Namespace, properties: dict[str, object], more: Sequence[str] = ()
) -> list[str]:
    """The head of the command: what Hadoop wants to have before streaming's own options."""
    common: dict[str, object] = {
        REDUCERS: args.reducers,
        **reduce_properties(args.memory),
        # Parts come into OUTPUT when the job has ended well, and not one by one.
        "mapreduce.fileoutputcommitter.algorithm.version": 1,
        "stream.jobconf.truncate.limit": 20000,  # a task finds its configuration in its environment
    }
    merged = {**properties, **common, **properties}
    defined = [f"{name}={value}" for name, value in merged.items()]
    check_name(archives.folder())
    sent = [f"{archives.our_code()}#{CODE}"]  # one file: each costs the client half a second
    if args.ship_numpy is not None:
        sent.append(f"{archives.numpy(args.ship_numpy)}#{NUMPY}")
    if args.ship_venv:
        sent.append(f"{archives.virtual_environment()}#{VENV}")
    return [
        *(hadoop(), "jar", streaming_jar()),
        *(word for text in (*defined, *args.define) for word in ("-D", text)),
        *more,
        *("-archives", ",".join(sent)),
    ]


def check_name(path: Path) -> None:
    if not re.fullmatch("[A-Za-z0-9/._+@-]+", str(path)):
        raise StageError(f"Hadoop takes no file from a folder of this name: {path}")


def python(args: argparse.Namespace) -> str:
    return f"{VENV}/bin/python" if args.ship_venv else args.python or "python3"


def environment(args: argparse.Namespace) -> list[str]:
    words = ["-cmdenv", "OPENBLAS_NUM_THREADS=1"]
    shipped = ["-cmdenv", f"PYTHONPATH={NUMPY}"]
    return words if args.ship_numpy is None else [*words, *shipped]


def command(*words: str) -> str:
    """As one argument; Streaming takes it apart at blanks and knows no escapes."""
    for word in words:
        if re.search(r"[\s'\"\\]", word):
            raise UsageError(f"Hadoop cannot pass {word!r} on: it has a blank or a quote in it")
    return " ".join(words)
