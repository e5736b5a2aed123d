"""The flow on Spark: from DataFrames of lines to pairs, and why Spark gave up.

    lines ── send_keys ~ shuffle ~ share_keys ── the driver: a filter of bounded size
                                                             │ broadcast
    lines ── send_lines ~ shuffle ~ reduce ─┬─ ~ shuffle  ~ finish ── pairs
                                            └─ ~ one part ~ finish ── clusters, removed records

In one application a second round costs no start, so keys come first by default.

Columns of a DataFrame → lines of JSON → pairs as rows.
"""

from __future__ import annotations

import atexit
import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import AccumulatorParam, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions, types

import neardup
from neardup.engines.spark.spark_lines import lines_of_column
from neardup.engines.spark.spark_tasks import ROW, Tasks, load
from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading.text_rows import DEFAULT_ID, DEFAULT_TEXT
from neardup.runtime.errors import StageError, UsageError
from neardup.stages.bloom_filter import BloomFilter
from neardup.stages.phases import shared_keys

OURS = re.compile(r"^neardup\.runtime\.errors\.\w+: (.*)$", re.M)
NO_PACKAGE = re.compile(r"^ModuleNotFoundError: No module named '(numpy|pyarrow)'", re.M)
OTHER_VERSION = re.compile(r"worker has different version: (\S+) than that in driver: (\S+),")
NO_PROGRAM = re.compile(r'Cannot run program "([^"]*)"')
CAUSE = re.compile(r"^(?:Caused by: )?(?:[a-z_]+\.)+(\w*(?:Error|Exception): .*)$", re.M)
NO_CODEC = re.compile(r"native (\w+) library not available|without (\w+) support", re.I)
NO_FILE = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (.*?)\.? SQLSTATE")
PACKAGE = "neardup.zip"
VALUE = "value binary"
INTEGERS = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)


@contextmanager
def in_a_line() -> Iterator[None]:
    """StageError for whatever ends a job."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise StageError(reason(str(error))) from None


def reason(said: str) -> str:
    r"""
    >>> reason("Traceback …\nneardup.runtime.errors.StageError: a.txt: line 3: no shingles: 'd'\n")
    "a.txt: line 3: no shingles: 'd'"
    >>> reason("ModuleNotFoundError: No module named 'numpy'")
    "the executors' Python has no numpy; name one that has numpy and pyarrow: --python PATH"
    >>> reason('java.io.IOException: Cannot run program "python3.9": error=2, No such file or …')
    'the executors have no python3.9; name a Python of theirs: --python PATH'
    """
    if found := OURS.search(said):
        return found[1]
    if why := without_python(said, "--python PATH"):
        return why
    if found := NO_FILE.search(said):
        return f"{found[1]}: no such file"
    if found := NO_CODEC.search(said):
        return f"this Spark cannot unpack {found[1] or found[2]}; pack the input as .gz or .bz2"
    causes = CAUSE.findall(said)
    first = next(filter(None, said.splitlines()), "")
    return f"Spark gave up: {causes[-1] if causes else first}"


def without_python(said: str, how: str) -> str:
    """Why the executors' Python runs none of our tasks, and how to name another one; or "".

    >>> said = "Python in worker has different version: 3.9 than that in driver: 3.11, PySpark …"
    >>> without_python(said, "-p X")
    "the executors' Python is 3.9, and the one here 3.11; name one of the same version: -p X"
    """
    if found := NO_PACKAGE.search(said):
        return (
            f"the executors' Python has no {found[1]}; name one that has numpy and pyarrow: {how}"
        )
    if found := OTHER_VERSION.search(said):
        there, here = found.groups()
        return (
            f"the executors' Python is {there}, and the one here {here}; name one of the same "
            f"version: {how}"
        )
    if found := NO_PROGRAM.search(said):
        return f"the executors have no {found[1]}; name a Python of theirs: {how}"
    return ""


def ship(context: SparkContext) -> None:
    """Have every executor import this very package, once for a SparkContext."""
    if any(name.endswith(f"/{PACKAGE}") for name in context.listFiles):
        return
    folder = tempfile.mkdtemp(prefix="neardup.")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    home = Path(neardup.__file__).parent
    with zipfile.ZipFile(Path(folder, PACKAGE), "w", zipfile.ZIP_DEFLATED) as archive:
        for module in sorted(home.rglob("*.py")):  # without what Python has compiled
            name = zipfile.ZipInfo(str(module.relative_to(home.parent)))  # the same every time
            archive.writestr(name, module.read_bytes())
    context.addPyFile(str(Path(folder, PACKAGE)))


class Reports(AccumulatorParam[list]):
    """The reports of the tasks of the last stage, of which Spark hears each once."""

    def zero(self, value: list) -> list:
        return []

    def addInPlace(self, value1: list, value2: list) -> list:  # noqa: N802
        value1 += value2
        return value1


class SparkJob:
    """A job on the lines of a DataFrame, as `spark_lines` makes them."""

    def __init__(self, spark: SparkSession, tasks: Tasks, settings: Settings):
        self.spark, self.tasks, self.settings = spark, tasks, settings
        self._first: list[bytes] = []
        self._later = spark.sparkContext.accumulator([], Reports())

    def answer(self, lines: DataFrame, rounds: int) -> DataFrame:
        """Blocks of lines (`value`, binary), each without its last line end: what --output says.

        With two rounds the first one is carried out here.
        """
        tasks = self.tasks
        shared = self._shared_keys(lines) if rounds == 2 else lambda: None  # all keys have lines
        keyed = lines.mapInArrow(tasks.send_lines(shared), ROW)
        keyed = keyed.repartitionById(tasks.partitions, "part")
        found = keyed.mapInArrow(tasks.reduce, ROW).repartitionById(tasks.ends, "part")
        return found.mapInArrow(tasks.finish(self._later.add), VALUE)

    def kept(self, lines: DataFrame, new: DataFrame, rounds: int) -> DataFrame:
        """The new lines that are kept; which ones are removed is found here."""
        places = [row.value for row in self.answer(lines, rounds).collect()]
        gone = np.frombuffer(b"".join(places), "<u8").astype(np.uint64)
        everywhere = self.spark.sparkContext.broadcast(gone)
        keep = self.tasks.keep(lambda: everywhere.value, self._later.add)
        return new.mapInArrow(keep, VALUE)

    def reports(self) -> list[dict]:
        """What the tasks have counted, once all pairs have been asked for, each of them once."""
        return [json.loads(report) for report in [*self._first, *self._later.value]]

    def _shared_keys(self, lines: DataFrame) -> Callable[[], BloomFilter | None]:
        tasks = self.tasks
        sent = lines.mapInArrow(tasks.send_keys, ROW).repartitionById(tasks.key_parts, "part")
        parts: list[bytes] = []
        for row in sent.mapInArrow(tasks.share_keys, ROW).collect():
            parts += [row.block] if row.report is None else []
            self._first += [] if row.report is None else [row.report]
        keys = shared_keys(b"".join(parts), self.settings)
        everywhere = self.spark.sparkContext.broadcast(keys)
        return lambda: everywhere.value


def id_and_text(df: DataFrame, id_: str, text: str) -> DataFrame:
    """These two columns, called as JSON lines have them by default.

    UsageError where there are no such columns, or where they hold something else.
    """
    for name in (id_, text):
        if name not in df.columns:
            raise UsageError(f"{name}: no such column; there are {', '.join(df.columns)}")
    kinds = {field.name: field.dataType for field in df.schema.fields}
    if not isinstance(kinds[id_], (types.StringType, *INTEGERS)):
        raise UsageError(f"{id_}: an id is a string or an integer; cast it to a string")
    found = kinds[text]
    of_integers = isinstance(found, types.ArrayType) and isinstance(found.elementType, INTEGERS)
    if not (isinstance(found, types.StringType) or of_integers):
        raise UsageError(f"{text}: expected a column of strings, or of arrays of integers")
    return df.select(df[f"`{id_}`"].alias(DEFAULT_ID), df[f"`{text}`"].alias(DEFAULT_TEXT))


def pairs_of(
    df: DataFrame, options: Options, settings: Settings, partitions: int | None, rounds: int
) -> DataFrame:
    """a, b, similarity: the pairs of what `id_and_text` gives; a and b have the type of its id."""
    spark = df.sparkSession
    tasks = Tasks(options, None, partitions or 2 * spark.sparkContext.defaultParallelism)
    value = functions.to_json(functions.struct(DEFAULT_ID, DEFAULT_TEXT))
    lines = lines_of_column(df.select(value.alias("value")))
    found = SparkJob(spark, tasks, settings).answer(lines, rounds)
    columns = found.mapInArrow(columns_of, "a string, b string, similarity double")
    kind = df.schema[DEFAULT_ID].dataType
    a, b = (columns[name].cast(kind).alias(name) for name in "ab")
    return columns.select(a, b, "similarity")


def check_python(context: SparkContext) -> None:
    """StageError where the executors' Python cannot run our tasks: one of them, before all others.

    By default a session takes the first python3 on the PATH of the executors, which may be another
    one than that of the notebook.
    """
    ship(context)
    try:
        context.parallelize([0], 1).foreach(load)
    except (PySparkException, Py4JError) as error:
        python = "sys.executable" if str(context.master).startswith("local") else "'PATH'"
        type_this = f"import os, sys; spark.stop(); os.environ['PYSPARK_PYTHON'] = {python}"
        if why := without_python(str(error), f"{type_this}; then make the session again"):
            raise StageError(why) from None
        raise


def columns_of(batches: Iterable[Any]) -> Iterator[Any]:
    """Blocks of pair lines → a, b, similarity."""
    for batch in batches:
        for block in batch.column(0):
            fields = [line.split(b"\t") for line in block.as_py().split(b"\n")]
            a, b, similarity = zip(*fields)
            texts = (pa.array(ids, pa.binary()).cast(pa.string()) for ids in (a, b))
            yield pa.RecordBatch.from_arrays(
                [*texts, pa.array(map(float, similarity), pa.float64())], ["a", "b", "similarity"]
            )
