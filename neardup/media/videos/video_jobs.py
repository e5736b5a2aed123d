"""Find pairs of videos on a Hadoop cluster, with Hadoop Streaming jobs.

    python3 -m neardup.media.videos.video_jobs /data/films.prints /data/pairs
    python3 -m neardup.media.videos.video_jobs --paths /data/names.txt /data/pairs

The jobs are JOBS; with --paths, frames_mapper.py makes the prints first.
"""

import secrets
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from neardup.runtime.interpreter import require

if __name__ == "__main__":  # otherwise the importing program did so
    require("numpy", name="video_jobs.py")

from neardup.engines.hadoop import hdfs_folders, jobs, shipping, sizes, watching
from neardup.engines.pipe import PROPERTY
from neardup.media.videos import video_steps
from neardup.media.videos.video_tasks import SHARED_OPTIONS
from neardup.options.command_parser import CommandParser
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, end_on_signals, run, whole

NAME = "video_jobs.py"
CODE = "neardup-job"  # the archive, in a task's folder
OPTIONS = (
    *flags("inputs INPUT…\noutput OUTPUT"),
    *SHARED_OPTIONS,
    *flags(
        f"""
        --paths         INPUT lists paths of videos
        --reducers N    number of reducers of each job [8]
        --memory MB     memory of a task's container [{sizes.DEFAULT_MEMORY}]
        --python PATH   the nodes' Python, with numpy [python3]
        """,
        reducers=whole(1, sizes.MOST_REDUCERS),
        memory=whole(512, 1 << 20),
    ),
    PROPERTY,
)
PATHS_OF_A_MAP = 8  # paths for each map task, which starts Python once
TIMEOUT = 2 * 3600 * 1000  # milliseconds in which one video, or one share, must be done
BY_FIRST_FIELD = {
    # Lines are sorted by two fields: a video's print comes before the lines that need it.
    "stream.num.map.output.key.fields": 2,
    "mapreduce.partition.keypartitioner.options": "-k1,1",
}
PARTITIONER = ("-partitioner", "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner")
BY_LINES = ("-inputformat", "org.apache.hadoop.mapred.lib.NLineInputFormat")
DESCRIPTION = """Find the pairs of videos on a Hadoop cluster.

INPUT is a file, a folder or a pattern: fingerprints of videos, as frames_mapper.py writes them, or
with --paths lists of the paths of videos.  OUTPUT is a new folder for the pairs:

    python3 -m neardup.media.videos.video_jobs --paths /data/names.txt /data/pairs

A video is in a folder that all nodes have mounted, or on the cluster, such as hdfs://HOST/PATH.
The nodes need numpy, and for --paths PyAV.
"""


def main() -> None:
    end_on_signals()
    parser = CommandParser(NAME, DESCRIPTION)
    parser.add(*OPTIONS)
    args = parser.parse_args()
    if hdfs_folders.exists(args.output):
        raise StageError(f"{args.output} already exists; name a new folder")
    with hdfs_folders.claimed([args.output]):
        VideoRun(args).run()


class VideoJob(NamedTuple):
    """One job of a search for video pairs: a mapper step, a sort, and a reducer step."""

    name: str
    inputs: tuple[str, ...]  # names of earlier jobs, or PRINTS
    mapper: str
    reducer: str


PRINTS, CLUSTERS = "prints", "clusters"
# The step `clusters` reads the output of the job `copies`; the jobs after it use the clusters.
JOBS = (
    VideoJob("seeds", (PRINTS,), "spread", "seeds"),
    VideoJob("copies", ("seeds", PRINTS), "spread", "copies"),
    VideoJob("common", ("seeds",), "shown", "common"),
    VideoJob("pairs", ("seeds", "common", PRINTS), "spread", "pairs"),
)


class VideoRun:
    """A run over videos: its jobs in order, and the temporary folder for data between them."""

    def __init__(self, args: Namespace):
        self.args = args
        parent, slash, name = args.output.rstrip("/").rpartition("/")
        self.between = f"{parent}{slash}_neardup-{secrets.token_hex(8)}.{name}"
        self.clusters = ""

    def run(self) -> None:
        """Run all jobs; after a failure, remove what they have written."""
        started: list[watching.Job] = []
        try:
            for job in [None, *JOBS] if self.args.paths else JOBS:
                started.append(watching.Job(self.command(job) if job else self.frames_job()))
                started[-1].run()
                if job and job.name == "copies":
                    self.clusters = str(shipping.kept_bytes(b"".join(self._clusters())))
        except BaseException:
            all_started = len(started) == len(JOBS) + self.args.paths
            answers = {self.args.output: started[-1]} if all_started else {}
            hdfs_folders.clean_up(started, self.between, answers)
            raise
        hdfs_folders.remove([self.between])
        watching.succeeds(hdfs_folders.marking([self.args.output]))

    def _clusters(self) -> Sequence[bytes]:
        """Compute the clusters of copied videos on this machine, since few videos have copies."""
        found = watching.fs("-cat", f"{self.folder('copies')}/part-*")
        if found.returncode:
            folder = self.folder("copies")
            raise StageError(f"cannot read {folder}, the output of the job copies; run again")
        return list(video_steps.clusters(found.stdout.splitlines(keepends=True)))

    def folder(self, name: str) -> str:
        """Return the folder of a job's output."""
        return self.args.output if name == JOBS[-1].name else f"{self.between}/{name}"

    def inputs(self, names: Sequence[str]) -> list[str]:
        found: list[str] = []
        for name in names:
            given = name == PRINTS and not self.args.paths
            found += self.args.inputs if given else [self.folder(name)]
        return [word for name in found for word in ("-input", name)]

    def command(self, job: VideoJob) -> list[str]:
        """Return the command line of a job."""
        values = vars(self.args)
        given = {flag.name: values[flag.name[2:].replace("-", "_")] for flag in SHARED_OPTIONS}
        words = [f"{name}={value}" for name, value in given.items() if value is not None]
        of_clusters = job.reducer == "common"
        files = ["-files", f"{self.clusters}#{CLUSTERS}"] * of_clusters
        own = {**BY_FIRST_FIELD, sizes.REDUCERS: self.args.reducers}
        own.update(sizes.reduce_properties(self.args.memory))
        tasks = ["-mapper", self.task("step.py", "videos", job.mapper, *words)]
        words += [f"--clusters={CLUSTERS}"] * of_clusters
        tasks += ["-reducer", self.task("step.py", "videos", job.reducer, *words)]
        rest = [*PARTITIONER, *self.inputs(job.inputs), "-output", self.folder(job.name), *tasks]
        return self.streaming(job.name, own, files, rest)

    def frames_job(self) -> list[str]:
        """Return the command line of the job that computes fingerprints of the videos' frames."""
        own: dict[str, object] = {
            sizes.REDUCERS: 0,
            "mapreduce.input.lineinputformat.linespermap": PATHS_OF_A_MAP,
            "stream.map.input.ignoreKey": "true",  # otherwise each path has its offset before it
            "stream.map.output": "keyonlytext",
        }
        inputs = [word for name in self.args.inputs for word in ("-input", name)]
        rest = [*BY_LINES, *inputs, "-output", self.folder(PRINTS)]
        return self.streaming(PRINTS, own, [], [*rest, "-mapper", self.task("frames_mapper.py")])

    def task(self, *words: str) -> str:
        return jobs.command_of(self.args.python, f"{CODE}/{words[0]}", *words[1:])

    def streaming(
        self, name: str, own: dict[str, object], files: Sequence[str], words: Sequence[str]
    ) -> list[str]:
        """Return a Hadoop Streaming command line with properties, shipped files and options."""
        common = {
            "mapreduce.job.name": f"videos: {name}",
            "mapreduce.task.timeout": TIMEOUT,
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


if __name__ == "__main__":
    sys.exit(run(NAME, main))
