"""Reports of a run's stages, a file each; `python3 -m neardup.process.reports FOLDER` adds up."""

from __future__ import annotations

import json
import os
import sys
from tempfile import NamedTemporaryFile
from typing import Any

from neardup.process.summary import describe, first_bad_lines, total


def write_report(folder: str, told: dict[str, Any]) -> None:
    """What a stage tells, as `Counters.as_dict`."""
    with NamedTemporaryFile("w", dir=folder, suffix=".json", delete=False) as file:
        json.dump(told, file)


def summarize(folder: str, whole: bool = True) -> str:
    """The reports in `folder`: the first bad lines, and the summary; see `describe`."""
    reports = reports_in(folder)
    return "\n".join([*first_bad_lines(reports), describe(reports, whole)])


def reports_in(folder: str) -> list[dict]:
    """What the stages of a run have reported there, as `Counters.as_dict`."""
    reports = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                reports.append(json.load(file))
    return reports


def counts_in(folder: str) -> dict[str, int]:
    """All that the stages of a run have counted, whose reports are there."""
    return total(report["counts"] for report in reports_in(folder))


if __name__ == "__main__":
    print(summarize(sys.argv[1]), file=sys.stderr)
