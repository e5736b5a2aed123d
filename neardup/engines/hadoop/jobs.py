"""The jobs of run_hadoop.sh, each as the command line of Hadoop Streaming.

records → (sums → counts →) (shared keys →) pairs (→ dedup)

edges → decided (→ the lines that stay, and the records that go)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    File,
    heap,
    map_memory,
    map_properties,
    reduce_properties,
)
from neardup.engines.hadoop.watching import hadoop, streaming_jar
from neardup.options.settings import counts_first
from neardup.options.table import Options
from neardup.runtime.errors import StageError, UsageError

# What is sent along is called so in a task's folder.
CODE, VENV, COUNTS = "neardup-job", "venv", "counts"
LIST, DECIDED, SHARED = "input-files", "decided", "shared-keys"
FILES = "mapreduce.job.cache.files"
KEY_VALUE = ("-inputformat", "org.apache.hadoop.mapred.KeyValueTextInputFormat")
IDENTITY = ("-mapper", "org.apache.hadoop.mapred.lib.IdentityMapper")
PLAIN = {"mapreduce.output.fileoutputformat.compress": "false"}  # for a task to read
ONE_PLAIN_FILE = {REDUCERS: 1, **PLAIN}


@dataclass
class Submission:
    """What run_hadoop.sh was asked for; and, from `maps` on, what it finds out before the jobs."""

    options: Options
    inputs: list[str]
    answers: list[str]  # OUTPUT, and the folder of --removed
    name: str
    memory: int  # megabytes of a task's container
    reducers: str
    rounds: str
    python: str | None
    ship_numpy: str | None
    ship_venv: bool
    define: list[str]
    dedup: bool
    overwrite: bool
    detach: bool
    show: bool
    decides: bool
    tagged: bool  # whether tasks must know the places of their records
    maps: int = 0
    key_reducers: int = 0
    places: str = ""  # the file that lists the input files; "" where no task needs it
    listed: list[File] = field(default_factory=list)  # the input, where places are known
    kept: dict[str, str] = field(default_factory=dict)  # archives that the cluster keeps


def reading(asked: Submission) -> dict[str, object]:
    """The properties of a job that reads the records."""
    return {
        "mapreduce.job.name": asked.name,
        **map_properties(asked.memory),
        MAPS: asked.maps,
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


def same_splits(asked: Submission) -> list[str]:
    """What makes two jobs cut a file alike, where one of them reads other files too."""
    both = asked.options.against and asked.options.output == "kept"
    return always(SAME_SPLITS) if both else []


def task_options(asked: Submission, counts: str, shared: str = "") -> tuple[list[str], list[str]]:
    """The options of a task, and what sends along the files that they name.

    `counts` is the folder where token counts are, if there is a job that makes them; `shared` that
    of shared keys, of a task that takes them.
    """
    sent = listed(asked)
    cached = {SHARED: shared} if shared else {}
    if counts_first(asked.options):
        cached[COUNTS] = f"{counts}/part-00000"
    elif asked.options.counts is not None:
        sent[COUNTS] = str(Path(asked.options.counts).resolve())
    made = COUNTS in cached
    named = COUNTS if made or COUNTS in sent else None
    return flags(asked, named, own_counts=made), [*from_cluster(cached), *along(sent)]


def flags(asked: Submission, counts: str | None = None, own_counts: bool = False) -> list[str]:
    """The options of a task, with what it finds under other names."""
    options = replace(
        asked.options,
        # The list of input files says which are old; a name might have a blank.
        against=(LIST,) if asked.options.against else (),
        input_files=LIST if asked.places else asked.options.input_files,
        counts=counts or asked.options.counts,
        own_counts=own_counts or asked.options.own_counts,
    )
    return options.arguments()


def listed(asked: Submission) -> dict[str, str]:
    """The list of the input files, where tasks must know their places."""
    return {LIST: asked.places} if asked.places else {}


def streaming(
    asked: Submission, properties: dict[str, object], more: Sequence[str] = ()
) -> list[str]:
    """The head of the command: what Hadoop wants to have before streaming's own options."""
    common: dict[str, object] = {
        REDUCERS: asked.reducers,
        **reduce_properties(asked.memory),
        # Parts come into OUTPUT when the job has ended well, and not one by one.
        "mapreduce.fileoutputcommitter.algorithm.version": 1,
        "stream.jobconf.truncate.limit": 20000,  # a task finds its configuration in its environment
    }
    merged = {**properties, **common, **properties}
    defined = [f"{name}={value}" for name, value in merged.items()]
    check_name(shipping.folder())
    # One file: each costs the client half a second.
    files = {CODE: shipping.our_code(), **({} if asked.kept else with_numpy(asked))}
    sent = [f"{path}#{name}" for name, path in files.items()]
    return [
        *(hadoop(), "jar", streaming_jar()),
        *(word for text in (*defined, *asked.define) for word in ("-D", text)),
        *more,
        *from_cluster(asked.kept, ARCHIVES),
        *("-archives", ",".join(sent)),
    ]


def with_numpy(asked: Submission) -> dict[str, Path]:
    """The archive that brings numpy to the nodes, by its name in a task's folder, if it is sent."""
    if asked.ship_venv:
        return {VENV: shipping.virtual_environment()}
    return {} if asked.ship_numpy is None else {NUMPY: shipping.numpy(asked.ship_numpy)}


def keep_on_cluster(asked: Submission) -> None:
    """Have all jobs take numpy from one copy on the cluster, if it can be kept there."""
    if any(text.startswith(f"{ARCHIVES}=") for text in asked.define):
        return  # the property has one value, and this one is the user's
    for name, archive in with_numpy(asked).items():
        if copy := kept_on_cluster(archive):
            asked.kept = {name: copy}


def check_name(path: Path) -> None:
    if not re.fullmatch("[A-Za-z0-9/._+@-]+", str(path)):
        raise StageError(f"Hadoop takes no file from a folder of this name: {path}")


def python(asked: Submission) -> str:
    return f"{VENV}/bin/python" if asked.ship_venv else asked.python or "python3"


def environment(asked: Submission) -> list[str]:
    words = ["-cmdenv", "OPENBLAS_NUM_THREADS=1"]
    shipped = ["-cmdenv", f"PYTHONPATH={NUMPY}"]
    return words if asked.ship_numpy is None else [*words, *shipped]


def command(*words: str) -> str:
    """As one argument; Streaming takes it apart at blanks and knows no escapes."""
    for word in words:
        if re.search(r"[\s'\"\\]", word):
            raise UsageError(f"Hadoop cannot pass {word!r} on: it has a blank or a quote in it")
    return " ".join(words)


def shared_keys_job(asked: Submission, output: str, counts: str) -> list[str]:
    """From records to the keys that two of them share."""
    options, files = task_options(asked, counts)
    own = {"mapreduce.job.name": f"{asked.name}: keys", REDUCERS: asked.key_reducers}
    return [
        *streaming(asked, {**reading(asked), **own}, [*always(PLAIN), *same_splits(asked), *files]),
        *inputs([*asked.inputs, *(asked.options.against)]),
        *("-output", output),
        *("-mapper", command(python(asked), f"{CODE}/step.py", "share", "map", *options)),
        *("-reducer", command(python(asked), f"{CODE}/step.py", "share", "reduce", *options)),
        *environment(asked),
    ]


def pairs_job(asked: Submission, output: str, counts: str, shared: str) -> list[str]:
    """From records to pairs; `counts` is the folder where token counts are, if there is a job, and
    `shared` that of the keys that get lines; "": all do."""
    options, files = task_options(asked, counts, shared)
    more = ["--blocks", *[f"--shared-keys={SHARED}"] * bool(shared)]
    return [
        *streaming(asked, reading(asked), [*same_splits(asked), *files]),
        *inputs([*asked.inputs, *(asked.options.against)]),
        *("-output", output),
        *("-mapper", command(python(asked), f"{CODE}/mapper.py", *more, *options)),
        *("-reducer", command(python(asked), f"{CODE}/reducer.py", *options)),
        *environment(asked),
    ]


def with_room(pairs_job: list[str], memory: int, mapped: int) -> list[str]:
    """The same job, where the files of shared keys are known to have so many bytes."""
    place = pairs_job.index(f"{MAP_MEMORY}={memory}")  # what -D says stands behind it, and wins
    more = f"{MAP_MEMORY}={map_memory(memory, mapped)}"
    return [*pairs_job[:place], more, *pairs_job[place + 1 :]]


def sums_job(asked: Submission, output: str) -> list[str]:
    """From records to the counts of tokens and sizes."""
    name = {"mapreduce.job.name": f"{asked.name}: tokens"}
    return [
        *streaming(asked, {**reading(asked), **name}, along(listed(asked))),
        *inputs([*asked.inputs, *(asked.options.against)]),
        *("-output", output),
        *("-mapper", command(python(asked), f"{CODE}/step.py", "count", "map", *flags(asked))),
        *("-reducer", command(python(asked), f"{CODE}/step.py", "count", "sum")),
        *environment(asked),
    ]


def counts_job(asked: Submission, sums: str, output: str) -> list[str]:
    """From all counts to those that the pairs job takes."""
    return [
        *streaming(asked, {"mapreduce.job.name": f"{asked.name}: counts"}, always(ONE_PLAIN_FILE)),
        *(*KEY_VALUE, "-input", sums, "-output", output, *IDENTITY),
        *("-reducer", command(python(asked), f"{CODE}/step.py", "count", "order")),
        *environment(asked),
    ]


def dedup_job(asked: Submission, pairs: str, output: str) -> list[str]:
    return [
        *streaming(asked, {"mapreduce.job.name": f"{asked.name}: dedup"}),
        *(*KEY_VALUE, "-input", pairs, "-output", output, *IDENTITY),
        *("-reducer", command(python(asked), f"{CODE}/dedup_reducer.py")),
        *environment(asked),
    ]


MOST_HEAP = 1024  # megabytes, of a JVM that only fetches and merges: the rest is for the decision


def decide_job(asked: Submission, edges: str, output: str, counts: str) -> list[str]:
    """All edges go to one reducer."""
    options, files = task_options(asked, counts)
    own: dict[str, object] = {
        "mapreduce.job.name": f"{asked.name}: decision",
        "mapreduce.reduce.java.opts": f"-Xmx{min(MOST_HEAP, heap(asked.memory))}m",
    }
    # By halves is found in a plain file; others may be packed.
    one = ONE_PLAIN_FILE if asked.options.output == "kept" else {REDUCERS: 1}
    return [
        *streaming(asked, own, [*always(one), *files]),
        *(*KEY_VALUE, "-input", edges, "-output", output, *IDENTITY),
        *("-reducer", command(python(asked), f"{CODE}/step.py", "decide", *options)),
        *environment(asked),
    ]


def keep_job(asked: Submission, decided: str, output: str) -> list[str]:
    """The new lines without those of the records that go; each part is of one split."""
    name = {"mapreduce.job.name": f"{asked.name}: lines that stay"}
    more = [*always({REDUCERS: 0, **WHOLE_LINES}), *same_splits(asked)]
    more += from_cluster({DECIDED: f"{decided}/part-00000"})
    files = [f"--decided={DECIDED}", f"--input-files={LIST}"]
    return [
        *streaming(asked, {**reading(asked), **name}, [*more, *along(listed(asked))]),
        *(*inputs(asked.inputs), "-output", output),
        *("-mapper", command(python(asked), f"{CODE}/step.py", "keep", *files)),
        *environment(asked),
    ]


def removed_job(asked: Submission, decided: str, output: str) -> list[str]:
    """What --output removed prints: without places, in order of ids."""
    return [
        *streaming(
            asked,
            {"mapreduce.job.name": f"{asked.name}: records removed"},
            always({REDUCERS: 1, **WHOLE_LINES}),
        ),
        *("-input", decided, "-output", output),
        *("-mapper", "cut -f 2-"),
        *("-reducer", "org.apache.hadoop.mapred.lib.IdentityReducer"),
    ]
