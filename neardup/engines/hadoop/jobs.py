"""Command lines of run_hadoop.sh's jobs, for Hadoop Streaming; runs of jobs of other searches.

records → (sums → counts →) (shared keys →) pairs (→ dedup)

edges → decided (→ the lines that are kept, and the records that are removed)

`StepRun` runs jobs whose mappers and reducers are steps of step.py.
"""

import re
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from neardup.engines.hadoop import hdfs_folders, shipping, sizes, watching
from neardup.engines.hadoop.job_sequence import JobSequence, work
from neardup.engines.pipe import PROPERTY
from neardup.options.settings import counts_first
from neardup.options.table import Options
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, UsageError, whole
from neardup.verification import OUTPUTS

# Names of shipped files, in a task's folder.
CODE, VENV, COUNTS = "neardup-job", "venv", "counts"
LIST, DECIDED, SHARED, NOT_PAIRS = "input-files", "decided", "shared-keys", "not-pairs"
NAME, FILES = "mapreduce.job.name", "mapreduce.job.cache.files"
PLAIN = {"mapreduce.output.fileoutputformat.compress": "false"}  # because a task reads the output
KEY_VALUE = ("-inputformat", "org.apache.hadoop.mapred.KeyValueTextInputFormat")
IDENTITY = "org.apache.hadoop.mapred.lib.Identity"
# A mapper's lines become the output unchanged: no part is a key, and no tab is added.
WHOLE_LINES = {"stream.map.output": "keyonlytext"}
MAX_HEAP = 1024  # MB, for a JVM that only fetches and merges; the decision needs the rest


@dataclass
class Submission:
    """The options of run_hadoop.sh; fields from `maps` on are computed before the jobs start."""

    options: Options
    inputs: list[str]
    answers: list[str]  # OUTPUT, and the folder of --removed
    name: str
    memory: int  # megabytes of a task's container
    reducers: str
    rounds: str
    python: "str | None"
    ship_numpy: "str | None"
    ship_venv: bool
    define: list[str]
    dedup: bool
    overwrite: bool
    detach: bool
    show: bool
    decides: bool
    tagged: bool  # True if tasks must know the places of their records
    maps: int = 0
    key_reducers: int = 0
    places: str = ""  # the file that lists the input files; "" if no task needs it
    listed: list[sizes.File] = field(default_factory=list)  # the input, if places are known
    work: str = ""  # see job_sequence.work
    kept: dict[str, str] = field(default_factory=dict)  # archives on the cluster, by name in a task


# `counts`: output folder of the job that counts tokens, unused if no job does.  `shared`: output
# folder of the job that finds shared keys; if it is "", lines are written for all keys.


def sums_job(asked: Submission, output: str) -> list[str]:
    """Return the command line of the job that counts tokens and set sizes."""
    mapper = task(asked, "step.py", "count", "map", *task_flags(asked))
    reducer = task(asked, "step.py", "count", "sum")
    words = [*_records(asked), "-output", output, "-mapper", mapper, "-reducer", reducer]
    return streaming(asked, "tokens", _reading(asked), _along(asked), words)


def counts_job(asked: Submission, sums: str, output: str) -> list[str]:
    """Return the command line of the job that merges token counts into one file."""
    reducer = task(asked, "step.py", "count", "order")
    words = [*_sorted(sums), "-output", output, "-reducer", reducer]
    return streaming(asked, "counts", {}, _always({sizes.REDUCERS: 1, **PLAIN}), words)


def shared_keys_job(asked: Submission, output: str, counts: str) -> list[str]:
    """Return the command line of the job that finds keys shared by two or more records."""
    options, files = _task_options(_listing(asked), counts)
    mapper = task(asked, "step.py", "share", "map", *options)
    reducer = task(asked, "step.py", "share", "reduce", *options)
    words = [*_records(asked), "-output", output, "-mapper", mapper, "-reducer", reducer]
    own = {**_reading(asked), sizes.REDUCERS: asked.key_reducers}
    return streaming(asked, "keys", own, [*_always({**PLAIN, **_splits(asked)}), *files], words)


def pairs_job(asked: Submission, output: str, counts: str, shared: str) -> list[str]:
    """Return the command line of the job that finds pairs, or edges if a decision needs them."""
    options, files = _task_options(_listing(asked), counts, shared)
    of_keys = [f"--shared-keys={SHARED}"] if shared else []
    mapper = task(asked, "mapper.py", "--blocks", *of_keys, *options)
    reducer = task(asked, "reducer.py", *options)
    words = [*_records(asked), "-output", output, "-mapper", mapper, "-reducer", reducer]
    return streaming(asked, "", _reading(asked), [*_always(_splits(asked)), *files], words)


def _listing(asked: Submission) -> Submission:
    """Return a submission whose mappers send ids, too, if the removed records are listed.

    Keys, and what is sent with them, are the same for --output kept and removed.
    """
    if len(asked.answers) == 1:
        return asked
    return replace(asked, options=replace(asked.options, output="removed"))


def with_room(pairs_job: list[str], memory: int, mapped: int) -> list[str]:
    """Return the command line of the pairs job with memory for mappers to mmap `mapped` bytes."""
    # A -D of the user comes later, and takes precedence.
    place = pairs_job.index(f"{sizes.MAP_MEMORY}={memory}")
    lacking = max(0, -(-mapped >> 20) - int(memory * sizes.SPARE))
    return [*pairs_job[:place], f"{sizes.MAP_MEMORY}={memory + lacking}", *pairs_job[place + 1 :]]


def dedup_job(asked: Submission, pairs: str, output: str) -> list[str]:
    words = [*_sorted(pairs), "-output", output, "-reducer", task(asked, "dedup_reducer.py")]
    return streaming(asked, "dedup", {}, [], words)


def decide_job(asked: Submission, edges: str, output: str, counts: str) -> list[str]:
    """Return the command line of the decision job, whose one reducer reads all edges."""
    options, files = _task_options(asked, counts)
    reducer = task(asked, "step.py", "decide", *options)
    heap = min(MAX_HEAP, sizes.heap(asked.memory))
    # step.py keep does a binary search in a plain file; other answers may be compressed.
    one = {sizes.REDUCERS: 1, **(PLAIN if OUTPUTS[asked.options.output].rows else {})}
    own = {"mapreduce.reduce.java.opts": f"-Xmx{heap}m"}
    words = [*_sorted(edges), "-output", output, "-reducer", reducer]
    return streaming(asked, "decision", own, [*_always(one), *files], words)


def keep_job(asked: Submission, decided: str, output: str) -> list[str]:
    """Return the command line of the job that writes kept or marked lines, one part a split."""
    files = _always({sizes.REDUCERS: 0, **WHOLE_LINES, **_splits(asked)})
    files += from_cluster({DECIDED: f"{decided}/part-00000"})
    files += _along(asked)
    parsing = replace(asked.options, counts=None, own_counts=False, not_pairs=None)
    options = task_flags(replace(asked, options=parsing))
    mapper = task(asked, "step.py", "keep", f"--decided={DECIDED}", *options)
    words = [*_records(asked, old=False), "-output", output, "-mapper", mapper]
    return streaming(asked, "kept lines", _reading(asked), files, words)


def removed_job(asked: Submission, decided: str, output: str) -> list[str]:
    """Return the command line of the job that writes the removed records, in order of ids."""
    words = ["-input", decided, "-output", output]
    words += ["-mapper", "cut -f 2-", "-reducer", f"{IDENTITY}Reducer"]
    return streaming(
        asked, "records removed", {}, _always({sizes.REDUCERS: 1, **WHOLE_LINES}), words
    )


def _reading(asked: Submission) -> sizes.Properties:
    """Return the Hadoop properties of a job that reads records."""
    return {
        **sizes.map_properties(asked.memory),
        sizes.MAPS: asked.maps,
        "mapreduce.input.fileinputformat.input.dir.recursive": "true",
    }


def _records(asked: Submission, old: bool = True) -> list[str]:
    """Return the -input options of a job that reads records; if `old`, also those of --against."""
    names = [*asked.inputs, *(asked.options.against if old else ())]
    return [word for name in names for word in ("-input", name)]


def _sorted(lines: str) -> list[str]:
    """Return the input and mapper options of a job that sorts the lines of an earlier job."""
    return [*KEY_VALUE, "-input", lines, "-mapper", f"{IDENTITY}Mapper"]


def streaming(
    asked: Submission,
    what: str,
    own: Mapping[str, object],
    files: Sequence[str],
    words: Sequence[str],
) -> list[str]:
    """Return a job's command line, given its properties, file options and Streaming options."""
    common: dict[str, object] = {
        NAME: f"{asked.name}: {what}" if what else asked.name,
        sizes.REDUCERS: asked.reducers,
        **sizes.reduce_properties(asked.memory),
        # All parts appear in OUTPUT together, when the job has succeeded.
        "mapreduce.fileoutputcommitter.algorithm.version": 1,
        "stream.jobconf.truncate.limit": 20000,  # characters of a property in a task's environment
    }
    if not asked.show:
        _check_name(shipping.folder())
    # Send few files: each takes the client half a second.
    sent = {} if asked.kept else _with_numpy(asked)
    shipped = [] if asked.ship_numpy is None else ["-cmdenv", f"PYTHONPATH={shipping.NUMPY}"]
    files = [*files, *from_cluster(asked.kept, shipping.ARCHIVES)]
    return [*_streaming({**common, **own}, asked.define, files, words, sent), *shipped]


def _streaming(
    properties: Mapping[str, object],
    define: Sequence[str],
    files: Sequence[str],
    words: Sequence[str],
    archives: Mapping[str, Path] = {},
) -> list[str]:
    """Return the command line of a job; archives: beside our code, by their names in a task."""
    defined = [f"{name}={value}" for name, value in properties.items()]
    sent = {CODE: shipping.our_code(), **archives}
    return [
        *(watching.hadoop(), "jar", watching.streaming_jar()),
        *(word for text in (*defined, *define) for word in ("-D", text)),
        *files,
        *("-archives", ",".join(f"{path}#{name}" for name, path in sent.items())),
        *words,
        *("-cmdenv", "OPENBLAS_NUM_THREADS=1"),
    ]


def _always(properties: Mapping[str, object]) -> list[str]:
    """Return the -D options for properties that take precedence over the user's."""
    return [word for name, value in properties.items() for word in ("-D", f"{name}={value}")]


def _splits(asked: Submission) -> sizes.Properties:
    """Return properties that make two jobs split a file in the same way; {} if that is not needed.

    A line's place follows from its split (`reading.blocks`).  With one map asked for, splits depend
    on the blocks of each file alone.
    """
    rows = OUTPUTS[asked.options.output].rows
    return {sizes.MAPS: 1} if asked.options.against and rows else {}


def task(asked: Submission, script: str, *words: str) -> str:
    """Return the command of a task; see `command_of`."""
    python = f"{VENV}/bin/python" if asked.ship_venv else asked.python or "python3"
    return command_of(python, f"{CODE}/{script}", *words)


def command_of(*command: str) -> str:
    """Return a command of words with blanks between them; UsageError if Hadoop would split one."""
    for word in command:
        if re.search(r"[\s'\"\\]", word):
            raise UsageError(
                f"Hadoop cannot pass {word!r} to a task; use a value without blanks, quotes and "
                "backslashes"
            )
    return " ".join(command)


def task_flags(
    asked: Submission,
    counts: "str | None" = None,
    own_counts: bool = False,
    not_pairs: bool = False,
) -> list[str]:
    """Return the options of a task; files are named as in the task's folder."""
    options = replace(
        asked.options,
        # The list of input files marks the old ones; a name on the command line must have no blank.
        against=(LIST,) if asked.options.against else (),
        input_files=LIST if asked.places else asked.options.input_files,
        counts=counts or asked.options.counts,
        own_counts=own_counts or asked.options.own_counts,
        not_pairs=NOT_PAIRS if not_pairs else None,
    )
    return options.arguments()


def _task_options(asked: Submission, counts: str, shared: str = "") -> tuple[list[str], list[str]]:
    """Return the options of a task, and the Streaming options that ship the files they name."""
    sent = {}
    cached = {SHARED: shared} if shared else {}
    if counts_first(asked.options):
        cached[COUNTS] = f"{counts}/part-00000"
    elif asked.options.counts is not None:
        sent[COUNTS] = str(Path(asked.options.counts).resolve())
    if asked.options.not_pairs is not None:
        sent[NOT_PAIRS] = str(Path(asked.options.not_pairs).resolve())
    made = COUNTS in cached
    named = COUNTS if made or COUNTS in sent else None
    options = task_flags(asked, named, own_counts=made, not_pairs=NOT_PAIRS in sent)
    return options, [*from_cluster(cached), *_along(asked, sent)]


def _along(asked: Submission, files: "Mapping[str, str] | None" = None) -> list[str]:
    """Return the -files option that ships local files {name in a task: path} and the input list."""
    every = {**({LIST: asked.places} if asked.places else {}), **(files or {})}
    for path in every.values():
        _check_name(Path(path))
    sent = [f"{path}#{name}" for name, path in every.items()]
    return ["-files", ",".join(sent)] if sent else []


def from_cluster(files: Mapping[str, str], kind: str = FILES) -> list[str]:
    """Return the -D option that copies files {name in a task: path on the cluster} to tasks."""
    # -files and -archives would need URIs that name the file system.
    cached = [f"{quote(path, safe='/:')}#{name}" for name, path in files.items()]
    return ["-D", f"{kind}={','.join(cached)}"] if cached else []


def _check_name(path: Path) -> None:
    if not shipping.CAN_BE_SHIPPED.fullmatch(str(path)):
        raise StageError(
            f"Hadoop cannot ship {path}: a path may have only ASCII letters, digits and / . _ + @ -"
        )


def _with_numpy(asked: Submission) -> dict[str, Path]:
    """Return {name in a task: archive} of numpy or a virtual environment; {} if none is shipped."""
    if asked.ship_venv:
        return {VENV: shipping.virtual_environment()}
    return {} if asked.ship_numpy is None else {shipping.NUMPY: shipping.numpy(asked.ship_numpy)}


def keep_on_cluster(asked: Submission) -> None:
    """Upload numpy (or the venv) to the cluster once; if that fails, each job ships a copy."""
    if any(text.startswith(f"{shipping.ARCHIVES}=") for text in asked.define):
        return  # the user has set this property, which has one value
    for name, archive in _with_numpy(asked).items():
        if copy := hdfs_folders.kept_on_cluster(archive):
            asked.kept = {name: copy}


ANOTHER = "name a new folder"
STEP_JOB_OPTIONS = (
    *flags(
        f"""
        --reducers N    number of reducers of each job [8]
        --memory MB     memory of a task's container [{sizes.DEFAULT_MEMORY}]
        --python PATH   the nodes' Python, with numpy [python3]
        """,
        reducers=whole(1, sizes.MAX_REDUCERS),
        memory=whole(512, 1 << 20),
    ),
    PROPERTY,
)
BY_FIRST_FIELD = {
    # Lines are sorted by two fields, but those of a first field are at one reducer.
    "stream.num.map.output.key.fields": 2,
    "mapreduce.partition.keypartitioner.options": "-k1,1",
}
_ONLY_HOW = ("memory", "python", "reducers", "output")  # options that leave the data as it is
PARTITIONER = ("-partitioner", "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner")


class StepRun:
    """A run of `jobs` in order.

    args: of STEP_JOB_OPTIONS; kind: the first word of the jobs' names; listed: the input
    more: further answers, and the jobs that write them
    """

    def __init__(
        self,
        args: Namespace,
        output: str,
        kind: str,
        listed: Sequence[sizes.File],
        more: Mapping[str, str] = {},
    ):
        self.args, self.output, self.kind, self.listed, self.more = args, output, kind, listed, more
        values = {name: vars(args)[name] for name in {*vars(args)} - {*_ONLY_HOW}}
        self.work = work(listed, sorted(values.items()))

    def run(self, commands: Mapping[str, Callable[[], list[str]]]) -> list[watching.Job]:
        """Run and return all jobs; the last writes OUTPUT.  Remove all folders after a failure.

        commands: each returns a job's command line, once the jobs before it have succeeded; it may
        run further jobs first
        """
        answers = {self.output: [*commands][-1], **self.more}
        with hdfs_folders.claimed([*answers]):
            self.jobs = JobSequence(answers, self.work, if_exists=ANOTHER)
            self.jobs.find_finished()
            self.jobs.check_new()
            try:
                for name, command in commands.items():
                    self.jobs.job(name, command())
            except BaseException as error:
                self.jobs.clean_up(error)
                raise
            self.jobs.remove()
            watching.succeeds(hdfs_folders.marking([*answers]))
            return [*self.jobs.started.values()]

    def task(self, *words: str) -> str:
        return command_of(self.args.python, f"{CODE}/{words[0]}", *words[1:])

    def streaming(
        self, name: str, own: Mapping[str, object], words: Sequence[str], files: Sequence[str] = ()
    ) -> list[str]:
        """Return a Hadoop Streaming command line with properties, shipped files and options."""
        common = {NAME: f"{self.kind}: {name}", **sizes.map_properties(self.args.memory)}
        return _streaming({**common, **own}, self.args.define, files, words)
