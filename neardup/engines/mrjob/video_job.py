"""Find pairs of videos with mrjob jobs, in one process or in several.

    python3 -m neardup.engines.mrjob.video_job -r local films.prints > pairs.tsv

The jobs are those of `video_tasks.JOBS`.  On Hadoop they are run by `engines.hadoop.video_jobs`.
mrjob also runs this file as a task, with the options of its job.
"""

import argparse
import glob
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from neardup.runtime.interpreter import require

if __name__ == "__main__":  # otherwise the importing program did so
    require("numpy", "mrjob", name="video_job.py")

from neardup.engines.mrjob import provide_dropped_modules

provide_dropped_modules()

from mrjob.job import MRJob
from mrjob.step import MRStep, StepFailedException

from neardup.engines.local.workers import working_folder
from neardup.engines.mrjob.mrjob_launcher import message_of_a_task
from neardup.engines.video_tasks import (
    CLUSTERS,
    JOBS,
    PRINTS,
    STEP_OPTIONS,
    VideoJob,
    check_options,
    lines_of,
    step_of,
)
from neardup.reading import blocks
from neardup.runtime.program import StageError, UsageError, run, write_all
from neardup.videos import video_steps

NAME = "video_job.py"
RUNNERS = (None, "inline", "local")


class VideoPairs(MRJob):
    """The mrjob class for video pairs; it runs one job or, if a user starts it, all jobs."""

    SORT_VALUES = True  # a video's print comes before the lines that need it

    @classmethod
    def mr_job_script(cls) -> str:
        return os.path.realpath(__file__)

    def configure_args(self) -> None:
        super().configure_args()
        for flag in STEP_OPTIONS:
            sent = flag.name == "--clusters"
            (self.add_file_arg if sent else self.add_passthru_arg)(flag.name, **flag.spec)
        for name in ("--map-step", "--reduce-step"):
            self.add_passthru_arg(name, default="", help=argparse.SUPPRESS)

    def load_args(self, args: list[str]) -> None:
        super().load_args(args)
        if self.options.runner not in RUNNERS:
            raise UsageError(
                f"-r {self.options.runner}: cannot run this job; use -r inline or -r local, or on "
                "a cluster python3 -m neardup.engines.hadoop.video_jobs"
            )
        self.options.read_logs = False  # the message of a failed task is read in `_run_one`
        self.options.bootstrap_mrjob = False

    def steps(self) -> list[MRStep]:
        return [MRStep(mapper=self.run_mapper, reducer=self.run_reducer)]

    def run_mapper(self, step_num: int = 0) -> None:
        self._run(self.options.map_step)

    def run_reducer(self, step_num: int = 0) -> None:
        self._run(self.options.reduce_step)

    def _run(self, step: str) -> None:
        lines = blocks.lines_of_stage(self.stdin)
        self.stdout.writelines(step_of(step, self.options)(lines))

    def run_job(self) -> None:
        """Run all jobs and write the pairs; mrjob calls this if this process is not a task."""
        self.set_up_logging(quiet=True, stream=sys.stderr)
        os.environ["PYTHONPATH"] = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
        check_options(self.options)
        prints = blocks.files_named(self.options.args or [])
        if not prints:
            raise UsageError("name files of video fingerprints, as ./frames_mapper.py writes them")
        with working_folder(self.options.local_tmp_dir) as folder:
            for job in JOBS:
                self._run_one(job, [*map(os.path.abspath, prints)], folder)
                if job.name == "copies":
                    clusters = video_steps.clusters(lines_of([str(folder / "copies")]))
                    (folder / CLUSTERS).write_bytes(b"".join(clusters))
            write_all(lines_of([str(folder / JOBS[-1].name)]))

    def _run_one(self, job: VideoJob, prints: list[str], folder: Path) -> None:
        """Run one job, and write its output to a file in `folder` with the name of the job."""
        flags = [f"--map-step={job.mapper}", f"--reduce-step={job.reducer}"]
        flags += ["--copies"] * job.copies
        flags += [f"--clusters={folder / CLUSTERS}"] if job.reducer == "common" else []
        of = {PRINTS: prints}
        names = [name for one in job.inputs for name in of.get(one, [str(folder / one)])]
        one = VideoPairs([*self._cl_args, *flags])
        one.options.local_tmp_dir = str(folder)
        one.options.args = list(map(glob.escape, names))  # mrjob treats each as a pattern
        with one.make_runner() as runner:
            try:
                runner.run()
            except StepFailedException as error:
                raise StageError(message_of_a_task(str(folder), NAME) or str(error)) from None
            with (folder / job.name).open("wb") as file:
                file.writelines(runner.cat_output())


def main() -> int:
    return run(NAME, VideoPairs.run)


if __name__ == "__main__":
    sys.exit(main())
