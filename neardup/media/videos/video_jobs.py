"""Find pairs of videos on a Hadoop cluster, with Hadoop Streaming jobs.

    python3 -m neardup.media.videos.video_jobs /data/films.prints /data/pairs
    python3 -m neardup.media.videos.video_jobs --paths /data/names.txt /data/pairs

The jobs are JOBS; with --paths, frames_mapper.py makes the prints first.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from neardup.runtime.interpreter import require

if __name__ == "__main__":  # otherwise the importing program did so
    require("numpy", name="video_jobs.py")

from neardup.engines.hadoop import shipping, sizes, watching
from neardup.engines.hadoop.jobs import BY_FIRST_FIELD, PARTITIONER, STEP_JOB_OPTIONS, StepRun
from neardup.media.videos import video_steps
from neardup.media.videos.video_tasks import SHARED_OPTIONS
from neardup.options.command_parser import CommandParser
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, end_on_signals, run

NAME = "video_jobs.py"
OPTIONS = (
    *flags("inputs INPUT…\noutput OUTPUT"),
    *SHARED_OPTIONS,
    *flags("--paths  INPUT lists paths of videos"),
    *STEP_JOB_OPTIONS,
)
PATHS_OF_A_MAP = 8  # paths for each map task, which starts Python once
# Milliseconds in which one video, or one share, must be done.
LONG = {"mapreduce.task.timeout": 2 * 3600 * 1000}
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
    videos = VideoRun(args, args.output, "videos", sizes.listed(args.inputs))
    of_paths = {}
    if args.paths:
        videos.work = ""  # nothing tells whether a video has changed since an earlier run
        of_paths = {PRINTS: videos.frames_job}
    videos.run({**of_paths, **{job.name: partial(videos.command, job) for job in JOBS}})


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


class VideoRun(StepRun):
    """A run over videos."""

    def _clusters(self) -> Sequence[bytes]:
        """Compute the clusters of copied videos on this machine, since few videos have copies."""
        found = watching.fs("-cat", f"{self.folder('copies')}/part-*")
        if found.returncode:
            folder = self.folder("copies")
            raise StageError(f"cannot read {folder}, the output of the job copies; run again")
        return list(video_steps.clusters(found.stdout.splitlines(keepends=True)))

    def folder(self, name: str) -> str:
        """Return the folder of a job's output."""
        return self.output if name == JOBS[-1].name else self.jobs.of(name)

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
        files: list[str] = []
        own: dict[str, object] = {**BY_FIRST_FIELD, sizes.REDUCERS: self.args.reducers}
        own.update({**sizes.reduce_properties(self.args.memory), **LONG})
        tasks = ["-mapper", self.task("step.py", "videos", job.mapper, *words)]
        if job.reducer == "common":
            files = ["-files", f"{shipping.kept_bytes(b''.join(self._clusters()))}#{CLUSTERS}"]
            words.append(f"--clusters={CLUSTERS}")
        tasks += ["-reducer", self.task("step.py", "videos", job.reducer, *words)]
        rest = [*PARTITIONER, *self.inputs(job.inputs), "-output", self.folder(job.name), *tasks]
        return self.streaming(job.name, own, rest, files)

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
        own.update(LONG)
        return self.streaming(PRINTS, own, [*rest, "-mapper", self.task("frames_mapper.py")])


if __name__ == "__main__":
    sys.exit(run(NAME, main))
