"""What is the same on every engine where a run may count tokens before its job.

    settings → (token counts → settings that know them →) the job

Each engine counts in its own way; what the run will cost, or another choice would save, is said
before the job begins, as soon as it is known.
"""

from __future__ import annotations

import argparse
import os
import sys

from neardup.options.settings import Settings, settings_before_counts
from neardup.token_counts.counts import TokenCounts


def first_settings(args: argparse.Namespace) -> Settings:
    """Those that a run begins with; UsageError for anything wrong."""
    return cost_told(settings_before_counts(args))


def settings_with_counts(args: argparse.Namespace, counts: TokenCounts) -> Settings:
    """Those of the job, after a run has counted the tokens of all records."""
    settings = Settings.of(args, counts)
    _tell(settings.scheme.cost())
    return settings


def cost_told(settings: Settings) -> Settings:
    """The same, after what they will cost, or another choice would save, was said on stderr."""
    _tell([*settings.unsuited(), *settings.scheme.cost()])
    return settings


def _tell(lines: list[str]) -> None:
    if "mapreduce_task_attempt_id" not in os.environ:  # nobody reads what a task says
        for line in lines:
            print(line, file=sys.stderr)
