"""One job, by one of mrjob's runners: to its output, or to the reason why there is none."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrjob.step import StepFailedException

from neardup.engines.hadoop.listing import File
from neardup.engines.hadoop.task_logs import first_message, for_nodes
from neardup.engines.mrjob.mrjob_here import said_by_a_task
from neardup.engines.mrjob.mrjob_inputs import Given
from neardup.engines.mrjob.mrjob_jobs import NearDuplicates, ShareKeys
from neardup.engines.mrjob.mrjob_there import ending_its_job, fit
from neardup.process.errors import StageError
from neardup.process.program import STDOUT_TOLD, write_to
from neardup.reading.input_files import format_input_files


@dataclass
class JobRun:
    job: NearDuplicates
    given: Given
    files: list[File]  # the same with their sizes, on a cluster
    rounds: str
    runner: Any = field(init=False)

    def run(self, name: str = STDOUT_TOLD) -> None:
        """`name`, of where the output goes, is for messages; StageError with what a task said."""
        job = self.job
        with job.make_runner() as self.runner:
            if job.on_cluster():
                shared = job.options.shared_keys
                mapped = Path(shared).stat().st_size if shared else 0
                keys_alone = isinstance(job, ShareKeys)
                fit(self.runner, job.settings, self.files, self.rounds, mapped, keys_alone)
            if job.options.input_files:
                self._list_input_files(Path(job.options.input_files))
            try:
                with ending_its_job(self.runner) if job.on_cluster() else nullcontext():
                    self.runner.run()
            except StepFailedException as error:
                raise StageError(self._why_it_failed() or str(error)) from None
            if job._should_cat_output():
                write_to(job.stdout, self.runner.cat_output(), name)

    def run_into(self, path: Path) -> Path:
        """The same, with the output into this file of this machine."""
        self.job.options.output_dir = self.job.options.step_output_dir = None
        self.job.options.cat_output = True
        with path.open("wb") as file:
            self.job.sandbox(stdout=file, stderr=self.job.stderr)
            self.run(str(path))
        return path

    def _list_input_files(self, path: Path) -> None:
        old, new = (
            [seen for n in names for seen in self._seen_by_tasks(n)] for names in self.given
        )
        path.write_bytes(format_input_files(old, new))

    def _seen_by_tasks(self, name: str) -> list[str]:
        """The names of a file, or of those that a pattern stands for, as tasks know them."""
        if self.job.elsewhere(name):
            return sorted(self.runner.fs.ls(name))
        return [self.runner._upload_mgr.add(name) if self.job.on_cluster() else name]

    def _why_it_failed(self) -> str:
        if not self.job.on_cluster():
            return said_by_a_task(self.job.options.local_tmp_dir)
        steps = [log.get("step", {}) for log in self.runner._log_interpretations]
        application = steps[-1].get("application_id", "") if steps else ""
        reason = first_message(application, self.runner.get_hadoop_bin()[0])
        reason = for_nodes(reason, "type --ship-numpy, or --python-bin PATH of one that has it")
        return reason.removeprefix("job.py: ") or "the job failed; Hadoop said why above"
