"""Fingerprints in a local run: use only the keys that records within --distance share.

    mapper 1 ── prints ─┬─ blocks 1, 3 … ── marks ─┬─ mapper 1 sends marked keys
    mapper 2 ── prints ─┴─ blocks 2, 4 … ── marks ─┴─ mapper 2

See `stages.near_keys`.
"""

import pickle
from collections.abc import Iterator
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np

from neardup.engines.local.plan import Plan, everywhere, parsed_records
from neardup.engines.local.workers import Workers, total_size
from neardup.runtime.counters import Counters
from neardup.sets.ragged import Ragged
from neardup.stages.near_keys import NearRecords, marked_keys, prints_of
from neardup.verification import OUTPUTS


def find_marks(workers: Workers, plan: Plan) -> None:
    """Parse the records, find pairs within --distance, and write which shared keys to use."""
    plan.progress.stage("parse", total_size(plan.files), together=True)
    everywhere(workers, plan, "mapper", _write_prints)
    plan.progress.stage("near", 0)
    every = plan.settings.output is OUTPUTS["links"]
    prints = [list(_pickled(path)) for path in plan.paths("prints")]
    near = NearRecords.of(plan.settings.scheme, prints, every)  # the workers share this object
    everywhere(workers, plan, "near", partial(_write_marks, near))


def _write_prints(plan: Plan, k: int) -> None:
    """Parse mapper k's share of the input, and write the fingerprints of its records to a file."""
    counters = Counters("parse", reports=str(plan.folder))
    with open(plan.path("prints", k), "wb") as file:
        for batch in parsed_records(plan, k, counters):
            pickle.dump(prints_of(plan.settings.scheme, batch.sets), file, protocol=5)
    counters.report()


def _write_marks(near: NearRecords, plan: Plan, k: int) -> None:
    """Write worker k's share of the keys to use, as (record, band), to a file for each mapper."""
    for mapper, marks in enumerate(near.marks(k, plan.jobs)):
        np.save(plan.path("marks", k, mapper), marks)


def _pickled(path: Path) -> Iterator[Any]:
    with open(path, "rb") as file:
        while file.peek(1):
            yield pickle.load(file)


def marked(plan: Plan, k: int, counters: Counters) -> Iterator[Ragged]:
    """Yield the keys of mapper k's records that `find_marks` has chosen, batch by batch."""
    counters.promise = plan.settings.scheme.promise
    counters.add("keys", 0)
    marks = reduce(np.union1d, [np.load(f"{path}.npy") for path in plan.paths("marks", k)])
    for keys in marked_keys(plan.settings.scheme, _pickled(plan.path("prints", k)), marks):
        counters.add("keys", len(keys.values))
        yield keys
