"""What to say where no record has an id that was asked for, of all that were read."""

from __future__ import annotations

from collections.abc import Mapping

from neardup.evaluation.run_options import RUN, AskedRun
from neardup.process.errors import shown
from neardup.process.summary import BAD


def missing(id_: bytes, counts: Mapping[str, int], run: AskedRun | None) -> str:
    """`counts` are those of the records and bad lines.

    >>> print(missing(b"a", {"records": 1, "bad lines: no shingles": 5}, None).partition(";")[0])
    none of 1 record is 'a', and 5 lines are bad
    """
    bad = sum(count for name, count in counts.items() if name.startswith(BAD))
    records = counts["records"]
    read = f"none of {records:,} record{'s' * (records != 1)} is {shown(id_)}, and "
    read += f"{bad:,} line{' is' if bad == 1 else 's are'} bad"
    if run and run.indexes:
        return f"{read}; an index has no records to show: name what {run.indexes[0]} was made of"
    if run:
        return f"{read}; have the files changed since the run of {run.name}?"
    return (
        f"{read}; why needs the options of the run, --input, --shingle and others: name them, or "
        f"{RUN} PAIRS if the run had -o PAIRS"
    )
