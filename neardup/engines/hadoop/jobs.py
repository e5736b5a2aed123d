"""The command line of each job of run_hadoop.sh.

records → (sums → counts →) pairs (→ dedup)
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from neardup import options
from neardup.engines.hadoop import archives
from neardup.engines.hadoop.grouping import PARTITIONER, SECONDARY_SORT
from neardup.engines.hadoop.installation import hadoop, streaming_jar
from neardup.process.errors import StageError, UsageError

JVM_SHARE = 0.45  # of a container; the rest is for Python
SORT_SHARE = 0.55  # of the JVM: a mapper writes five times what it reads
# What is sent along is called so in a task's folder.
CODE, NUMPY, VENV, COUNTS = "neardup-job", "numpy-lib", "venv", "counts"


def pairs_job(args: argparse.Namespace, output: str, counts: str) -> list[str]:
    """From records to pairs; `counts` is the folder where token counts are, if there is a job."""
    sent = _file_of_counts(args, counts)
    there: dict[str, object] = {"counts": COUNTS} if sent else {}
    if options.counts_first(args):
        there["own_counts"] = True
    flags = options.as_arguments(argparse.Namespace(**{**vars(args), **there}))
    return [
        *_streaming(args, {**_reading(args), **SECONDARY_SORT}, sent),
        *("-partitioner", PARTITIONER),
        *_inputs(args),
        *("-output", output),
        *("-mapper", command(python(args), f"{CODE}/mapper.py", *flags)),
        *("-reducer", command(python(args), f"{CODE}/reducer.py", *flags)),
        *_environment(args),
    ]


def _file_of_counts(args: argparse.Namespace, folder: str) -> list[str]:
    """What sends the token counts along, from a file here or from the job that has made them."""
    if options.counts_first(args):
        # With -files, the name of the file system would have to be told.
        return ["-D", f"mapreduce.job.cache.files={quote(folder, safe='/:')}/part-00000#{COUNTS}"]
    if args.counts is None:
        return []
    path = Path(args.counts).resolve()
    _check_name(path)
    return ["-files", f"{path}#{COUNTS}"]


def sums_job(args: argparse.Namespace, output: str) -> list[str]:
    """From records to the counts of tokens and sizes."""
    flags = options.as_arguments(args)
    return [
        *_streaming(args, {**_reading(args), "mapreduce.job.name": f"{args.name}: tokens"}),
        *_inputs(args),
        *("-output", output),
        *("-mapper", command(python(args), f"{CODE}/count_tokens.py", "map", *flags)),
        *("-reducer", command(python(args), f"{CODE}/count_tokens.py", "sum")),
        *_environment(args),
    ]


def counts_job(args: argparse.Namespace, sums: str, output: str) -> list[str]:
    """From all counts to those that the pairs job takes."""
    # Whatever else is defined: it must be one plain file.
    one = ["mapreduce.job.reduces=1", "mapreduce.output.fileoutputformat.compress=false"]
    return [
        *_streaming(
            args,
            {"mapreduce.job.name": f"{args.name}: counts"},
            [word for text in one for word in ("-D", text)],
        ),
        *("-inputformat", "org.apache.hadoop.mapred.KeyValueTextInputFormat"),
        *("-input", sums, "-output", output),
        *("-mapper", "org.apache.hadoop.mapred.lib.IdentityMapper"),
        *("-reducer", command(python(args), f"{CODE}/count_tokens.py", "order")),
        *_environment(args),
    ]


def dedup_job(args: argparse.Namespace, pairs: str, output: str) -> list[str]:
    return [
        *_streaming(args, {"mapreduce.job.name": f"{args.name}: dedup"}),
        *("-inputformat", "org.apache.hadoop.mapred.KeyValueTextInputFormat"),
        *("-input", pairs, "-output", output),
        *("-mapper", "org.apache.hadoop.mapred.lib.IdentityMapper"),
        *("-reducer", command(python(args), f"{CODE}/dedup_reducer.py")),
        *_environment(args),
    ]


def _reading(args: argparse.Namespace) -> dict[str, object]:
    """The properties of a job that reads the records."""
    heap = _heap(args)
    return {
        "mapreduce.job.name": args.name,
        "mapreduce.map.memory.mb": args.memory,
        "mapreduce.map.java.opts": f"-Xmx{heap}m",
        "mapreduce.task.io.sort.mb": min(2047, int(heap * SORT_SHARE)),
        "mapreduce.map.sort.spill.percent": 0.95,  # the fewer spills, the less there is to merge
        "mapreduce.input.fileinputformat.input.dir.recursive": "true",
    }


def _inputs(args: argparse.Namespace) -> list[str]:
    return [word for folder in args.inputs for word in ("-input", folder)]


def _streaming(
    args: argparse.Namespace, properties: dict[str, object], more: Sequence[str] = ()
) -> list[str]:
    """The head of the command: what Hadoop wants to have before streaming's own options."""
    common = {
        "mapreduce.job.reduces": args.reducers,
        "mapreduce.reduce.memory.mb": args.memory,
        "mapreduce.reduce.java.opts": f"-Xmx{_heap(args)}m",
        # The reducers' JVMs have no other use for their memory than to hold what they fetched.
        "mapreduce.reduce.shuffle.merge.percent": 0.9,
        "mapreduce.reduce.input.buffer.percent": 0.7,
        "mapreduce.map.output.compress": "true",
        "mapreduce.map.output.compress.codec": "org.apache.hadoop.io.compress.SnappyCodec",
        "stream.jobconf.truncate.limit": 20000,  # a task finds its configuration in its environment
    }
    defined = [f"{name}={value}" for name, value in {**properties, **common}.items()]
    _check_name(archives.folder())
    sent = [f"{archives.our_code()}#{CODE}"]  # one file: each costs the client half a second
    if args.ship_numpy:
        sent.append(f"{archives.numpy()}#{NUMPY}")
    if args.ship_venv:
        sent.append(f"{archives.virtual_environment()}#{VENV}")
    return [
        *(hadoop(), "jar", streaming_jar()),
        *(word for text in (*defined, *args.define) for word in ("-D", text)),
        *more,
        *("-archives", ",".join(sent)),
    ]


def _check_name(path: Path) -> None:
    if not re.fullmatch("[A-Za-z0-9/._+@-]+", str(path)):
        raise StageError(f"Hadoop takes no file from a folder of this name: {path}")


def _heap(args: argparse.Namespace) -> int:
    return int(int(args.memory) * JVM_SHARE)


def python(args: argparse.Namespace) -> str:
    return f"{VENV}/bin/python" if args.ship_venv else args.python or "python3"


def _environment(args: argparse.Namespace) -> list[str]:
    words = ["-cmdenv", "OPENBLAS_NUM_THREADS=1"]
    return [*words, "-cmdenv", f"PYTHONPATH={NUMPY}"] if args.ship_numpy else words


def command(*words: str) -> str:
    """As one argument; Streaming takes it apart at blanks and knows no escapes."""
    for word in words:
        if re.search(r"[\s'\"\\]", word):
            raise UsageError(f"Hadoop cannot pass {word!r} on: it has a blank or a quote in it")
    return " ".join(words)
