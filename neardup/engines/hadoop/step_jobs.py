"""A run of several Hadoop Streaming jobs, whose mappers and reducers are steps of step.py."""

import secrets
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence

from neardup.engines.hadoop import hdfs_folders, jobs, shipping, sizes, watching
from neardup.engines.pipe import PROPERTY
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, whole

ANOTHER = "name a new folder"
CODE = "neardup-job"  # the archive, in a task's folder
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
PARTITIONER = ("-partitioner", "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner")


class StepRun:
    """A run of jobs in order; `between` is the temporary folder for data between them.

    args: of STEP_JOB_OPTIONS; kind: the first word of the jobs' names
    """

    def __init__(self, args: Namespace, output: str, kind: str):
        self.args, self.output, self.kind = args, output, kind
        parent, slash, name = output.rstrip("/").rpartition("/")
        self.between = f"{parent}{slash}_neardup-{secrets.token_hex(8)}.{name}"

    def run(self, commands: Sequence[Callable[[], list[str]]]) -> list[watching.Job]:
        """Run and return all jobs; the last writes OUTPUT.  Remove both folders after a failure.

        commands: each returns a command line, once the jobs before it have succeeded
        """
        if hdfs_folders.exists(self.output):
            raise StageError(f"{self.output} already exists; {ANOTHER}")
        with hdfs_folders.claimed([self.output]):
            started: list[watching.Job] = []
            try:
                for command in commands:
                    started.append(watching.Job(command(), if_exists=ANOTHER))
                    started[-1].run()
            except BaseException:
                all_started = len(started) == len(commands)
                answers = {self.output: started[-1]} if all_started else {}
                hdfs_folders.clean_up(started, self.between, answers)
                raise
            hdfs_folders.remove([self.between])
            watching.succeeds(hdfs_folders.marking([self.output]))
            return started

    def task(self, *words: str) -> str:
        return jobs.command_of(self.args.python, f"{CODE}/{words[0]}", *words[1:])

    def streaming(
        self,
        name: str,
        own: Mapping[str, object],
        words: Sequence[str],
        files: Sequence[str] = (),
    ) -> list[str]:
        """Return a Hadoop Streaming command line with properties, shipped files and options."""
        common = {
            "mapreduce.job.name": f"{self.kind}: {name}",
            **sizes.map_properties(self.args.memory),
        }
        defined = [f"{key}={value}" for key, value in {**common, **own}.items()]
        return [
            *(watching.hadoop(), "jar", watching.streaming_jar()),
            *(word for text in (*defined, *self.args.define) for word in ("-D", text)),
            *files,
            *("-archives", f"{shipping.our_code()}#{CODE}"),
            *words,
            *("-cmdenv", "OPENBLAS_NUM_THREADS=1"),
        ]
