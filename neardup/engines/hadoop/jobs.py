"""The jobs of run_hadoop.sh, each as the command line of Hadoop Streaming.

records → (sums → counts →) (shared keys →) pairs (→ dedup)

edges → decided (→ the lines that stay, and the records that go)
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from neardup.engines.hadoop import shipping
from neardup.engines.hadoop.folders import kept_on_cluster
from neardup.engines.hadoop.shipping import ARCHIVES, NUMPY
from neardup.engines.hadoop.sizes import (
    MAP_MEMORY,
    MAPS,
    REDUCERS,
    SAME_SPLITS,
    WHOLE_LINES,
    heap,
    map_memory,
    map_properties,
    reduce_properties,
)
from neardup.engines.hadoop.watching import hadoop, streaming_jar
from neardup.options import table
from neardup.options.settings import counts_first
from neardup.runtime.errors import StageError, UsageError

# What is sent along is called so in a task's folder.
CODE, VENV, COUNTS = "neardup-job", "venv", "counts"
LIST, DECIDED, SHARED = "input-files", "decided", "shared-keys"
FILES = "mapreduce.job.cache.files"
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


def from_cluster(files: Mapping[str, str], kind: str = FILES) -> list[str]:
    """What gives each task files of the cluster: the name that each has there, and its path."""
    # With -files and -archives, the name of the file system would have to be told.
    cached = [f"{quote(path, safe='/:')}#{name}" for name, path in files.items()]
    return ["-D", f"{kind}={','.join(cached)}"] if cached else []


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
    check_name(shipping.folder())
    # One file: each costs the client half a second.
    files = {CODE: shipping.our_code(), **({} if args.kept else with_numpy(args))}
    sent = [f"{path}#{name}" for name, path in files.items()]
    return [
        *(hadoop(), "jar", streaming_jar()),
        *(word for text in (*defined, *args.define) for word in ("-D", text)),
        *more,
        *from_cluster(args.kept, ARCHIVES),
        *("-archives", ",".join(sent)),
    ]


def with_numpy(args: argparse.Namespace) -> dict[str, Path]:
    """The archive that brings numpy to the nodes, by its name in a task's folder, if it is sent."""
    if args.ship_venv:
        return {VENV: shipping.virtual_environment()}
    return {} if args.ship_numpy is None else {NUMPY: shipping.numpy(args.ship_numpy)}


def keep_on_cluster(args: argparse.Namespace) -> None:
    """Have all jobs take numpy from one copy on the cluster, if it can be kept there."""
    if any(text.startswith(f"{ARCHIVES}=") for text in args.define):
        return  # the property has one value, and this one is the user's
    for name, archive in with_numpy(args).items():
        if copy := kept_on_cluster(archive):
            args.kept = {name: copy}


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


def shared_keys_job(args: argparse.Namespace, output: str, counts: str) -> list[str]:
    """From records to the keys that two of them share."""
    options, files = told(args, counts)
    own = {"mapreduce.job.name": f"{args.name}: keys", REDUCERS: args.key_reducers}
    return [
        *streaming(args, {**reading(args), **own}, [*always(PLAIN), *same_splits(args), *files]),
        *inputs([*args.inputs, *(args.against or [])]),
        *("-output", output),
        *("-mapper", command(python(args), f"{CODE}/step.py", "share", "map", *options)),
        *("-reducer", command(python(args), f"{CODE}/step.py", "share", "reduce", *options)),
        *environment(args),
    ]


def pairs_job(args: argparse.Namespace, output: str, counts: str, shared: str) -> list[str]:
    """From records to pairs; `counts` is the folder where token counts are, if there is a job, and
    `shared` that of the keys that get lines; "": all do."""
    options, files = told(args, counts, shared)
    more = ["--blocks", *[f"--shared-keys={SHARED}"] * bool(shared)]
    return [
        *streaming(args, reading(args), [*same_splits(args), *files]),
        *inputs([*args.inputs, *(args.against or [])]),
        *("-output", output),
        *("-mapper", command(python(args), f"{CODE}/mapper.py", *more, *options)),
        *("-reducer", command(python(args), f"{CODE}/reducer.py", *options)),
        *environment(args),
    ]


def with_room(pairs_job: list[str], memory: int, mapped: int) -> list[str]:
    """The same job, where the files of shared keys are known to have so many bytes."""
    place = pairs_job.index(f"{MAP_MEMORY}={memory}")  # what -D says stands behind it, and wins
    more = f"{MAP_MEMORY}={map_memory(memory, mapped)}"
    return [*pairs_job[:place], more, *pairs_job[place + 1 :]]


def sums_job(args: argparse.Namespace, output: str) -> list[str]:
    """From records to the counts of tokens and sizes."""
    name = {"mapreduce.job.name": f"{args.name}: tokens"}
    return [
        *streaming(args, {**reading(args), **name}, along(listed(args))),
        *inputs([*args.inputs, *(args.against or [])]),
        *("-output", output),
        *("-mapper", command(python(args), f"{CODE}/step.py", "count", "map", *flags(args))),
        *("-reducer", command(python(args), f"{CODE}/step.py", "count", "sum")),
        *environment(args),
    ]


def counts_job(args: argparse.Namespace, sums: str, output: str) -> list[str]:
    """From all counts to those that the pairs job takes."""
    return [
        *streaming(args, {"mapreduce.job.name": f"{args.name}: counts"}, always(ONE_PLAIN_FILE)),
        *(*KEY_VALUE, "-input", sums, "-output", output, *IDENTITY),
        *("-reducer", command(python(args), f"{CODE}/step.py", "count", "order")),
        *environment(args),
    ]


def dedup_job(args: argparse.Namespace, pairs: str, output: str) -> list[str]:
    return [
        *streaming(args, {"mapreduce.job.name": f"{args.name}: dedup"}),
        *(*KEY_VALUE, "-input", pairs, "-output", output, *IDENTITY),
        *("-reducer", command(python(args), f"{CODE}/dedup_reducer.py")),
        *environment(args),
    ]


MOST_HEAP = 1024  # megabytes, of a JVM that only fetches and merges: the rest is for the decision


def decide_job(args: argparse.Namespace, edges: str, output: str, counts: str) -> list[str]:
    """All edges go to one reducer."""
    options, files = told(args, counts)
    own: dict[str, object] = {
        "mapreduce.job.name": f"{args.name}: decision",
        "mapreduce.reduce.java.opts": f"-Xmx{min(MOST_HEAP, heap(args.memory))}m",
    }
    # By halves is found in a plain file; others may be packed.
    one = ONE_PLAIN_FILE if args.output == "kept" else {REDUCERS: 1}
    return [
        *streaming(args, own, [*always(one), *files]),
        *(*KEY_VALUE, "-input", edges, "-output", output, *IDENTITY),
        *("-reducer", command(python(args), f"{CODE}/step.py", "decide", *options)),
        *environment(args),
    ]


def keep_job(args: argparse.Namespace, decided: str, output: str) -> list[str]:
    """The new lines without those of the records that go; each part is of one split."""
    name = {"mapreduce.job.name": f"{args.name}: lines that stay"}
    more = [*always({REDUCERS: 0, **WHOLE_LINES}), *same_splits(args)]
    more += from_cluster({DECIDED: f"{decided}/part-00000"})
    files = [f"--decided={DECIDED}", f"--input-files={LIST}"]
    return [
        *streaming(args, {**reading(args), **name}, [*more, *along(listed(args))]),
        *(*inputs(args.inputs), "-output", output),
        *("-mapper", command(python(args), f"{CODE}/step.py", "keep", *files)),
        *environment(args),
    ]


def removed_job(args: argparse.Namespace, decided: str, output: str) -> list[str]:
    """What --output removed prints: without places, in order of ids."""
    return [
        *streaming(
            args,
            {"mapreduce.job.name": f"{args.name}: records removed"},
            always({REDUCERS: 1, **WHOLE_LINES}),
        ),
        *("-input", decided, "-output", output),
        *("-mapper", "cut -f 2-"),
        *("-reducer", "org.apache.hadoop.mapred.lib.IdentityReducer"),
    ]
