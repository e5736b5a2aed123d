"""Find near-duplicates on Spark, from DataFrames of lines; explain Spark's failures in one line.

    lines ── send_keys ~ shuffle ~ share_keys ── the driver: a filter of bounded size
                                                             │ broadcast
    lines ── send_lines ~ shuffle ~ reduce ─┬─ ~ shuffle  ~ finish ── pairs
                                            └─ ~ one part ~ finish ── clusters, removed records

A second round in one application starts at once, so keys are sent first by default.  A DataFrame
of records is turned into lines of JSON, and pairs are turned into rows.

`StepJob` runs the steps of another search, which are those of step.py: the lines of a first field
meet in one task, in byte order, as in a pipe with LC_ALL=C sort.
"""

from __future__ import annotations

import atexit
import json
import logging
import re
import shutil
import signal
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import chain, starmap
from operator import itemgetter
from pathlib import Path
from typing import Any, Callable
from zlib import crc32

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import AccumulatorParam, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions, types

from neardup.engines.spark import spark_tasks
from neardup.engines.spark.finished_stages import HOME, FinishedStages, package_files
from neardup.engines.spark.spark_tasks import ROW, Batches, Rows, Tasks, row
from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading.blocks import Block
from neardup.reading.text_rows import DEFAULT_ID, DEFAULT_TEXT
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, UsageError
from neardup.stages.candidate_keys import BloomFilter
from neardup.stages.pairs import sorted_lines
from neardup.stages.phases import gathered, parse_blocks, shared_keys

OURS = re.compile(r"^neardup\.runtime\.program\.\w+: (.*)$", re.M)
NO_PACKAGE = re.compile(r"^ModuleNotFoundError: No module named '(numpy|pyarrow)'", re.M)
OTHER_VERSION = re.compile(r"worker has different version: (\S+) than that in driver: (\S+),")
NO_PROGRAM = re.compile(r'Cannot run program "([^"]*)"')
CAUSE = re.compile(r"^(?:Caused by: )?(?:[a-z_]+\.)+(\w*(?:Error|Exception): .*)$", re.M)
NO_CODEC = re.compile(r"native (\w+) library not available|without (\w+) support", re.I)
NO_FILE = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (.*?)\.? SQLSTATE")
PACKAGE = "neardup.zip"
VALUE = "value binary"
Step = Callable[[Iterator[bytes]], Iterator[bytes]]  # on sorted lines
INTEGERS = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)


@contextmanager
def in_a_line() -> Iterator[None]:
    """Context manager: raise StageError with a one-line reason if Spark fails in the block."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise StageError(reason(str(error))) from None


@contextmanager
def session(master: str) -> Iterator[SparkSession]:
    """Context manager: a Spark session of spark-submit; StageError if Spark fails in the block."""
    logging.getLogger().addHandler(logging.NullHandler())  # or py4j would log Ctrl-C at length
    with in_a_line():
        spark = SparkSession.builder.getOrCreate()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark's would call the JVM first
        try:
            if not master.startswith("local"):
                context = spark.sparkContext
                print(context.applicationId, context.uiWebUrl or "", file=sys.stderr)
            yield spark
        finally:
            spark.stop()


@contextmanager
def new_output(spark: SparkSession, folder: str) -> Iterator[None]:
    """Context manager: send this package; remove a new folder if the block that writes it fails."""
    system, output = spark_tasks.file_system(spark, folder)
    if system.exists(output):
        raise StageError(f"{folder} already exists; name another OUTPUT, or remove it")
    ship(spark.sparkContext)
    try:
        yield
    except BaseException as error:
        if "PATH_ALREADY_EXISTS" not in str(error):  # another run has made OUTPUT meanwhile
            system.delete(output, True)
        raise


def partitions_of(lines: DataFrame, reducers: str | None) -> int:
    """Return the number of --reducers, or else of splits or of cores, whichever is larger."""
    splits = lines.rdd.getNumPartitions()
    return int(reducers or max(lines.sparkSession.sparkContext.defaultParallelism, splits))


def reason(said: str) -> str:
    r"""Return why Spark failed, in one line.

    >>> reason("Traceback …\nneardup.runtime.program.StageError: a.txt: line 3: no shingles: 'd'\n")
    "a.txt: line 3: no shingles: 'd'"
    >>> reason("ModuleNotFoundError: No module named 'numpy'")
    "the executors' Python has no numpy; name one that has numpy and pyarrow: --python PATH"
    """
    if found := OURS.search(said):
        return found[1]
    if why := without_python(said, "--python PATH"):
        return why
    if found := NO_FILE.search(said):
        return f"{found[1]}: no such file"
    if found := NO_CODEC.search(said):
        return f"this Spark cannot decompress {found[1] or found[2]}; use .gz or .bz2"
    causes = CAUSE.findall(said)
    first = next(filter(None, said.splitlines()), "")
    return f"Spark gave up: {causes[-1] if causes else first}"


def without_python(said: str, how: str) -> str:
    """Return why executors cannot run our tasks, with advice; "" if Python is not the reason."""
    if found := NO_PACKAGE.search(said):
        why = f"the executors' Python has no {found[1]}; name one that has numpy and pyarrow"
    elif found := OTHER_VERSION.search(said):
        there, here = found.groups()
        why = f"the executors' Python is {there}, and the one here {here}; name a Python {here}"
    elif found := NO_PROGRAM.search(said):
        why = f"the executors have no {found[1]}; name a Python that they have"
    else:
        return ""
    return f"{why}: {how}"


def ship(context: SparkContext) -> None:
    """Send this package to all executors, once for each SparkContext."""
    if any(name.endswith(f"/{PACKAGE}") for name in context.listFiles):
        return
    folder = tempfile.mkdtemp(prefix="neardup.")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder, PACKAGE)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for file in package_files():
            archive.write(file, file.relative_to(HOME.parent))
    context.addPyFile(str(path))


class Reports(AccumulatorParam[list[bytes]]):
    """The rule by which a Spark accumulator collects the reports of tasks: it appends them."""

    def zero(self, value: list[bytes]) -> list[bytes]:
        return []

    def addInPlace(self, value1: list[bytes], value2: list[bytes]) -> list[bytes]:  # noqa: N802
        value1 += value2
        return value1


class SparkJob:
    """A near-duplicate search on DataFrames of lines, which `spark_tasks` reads."""

    def __init__(
        self,
        spark: SparkSession,
        tasks: Tasks,
        settings: Settings,
        stages: FinishedStages | None = None,
    ):
        self.spark, self.tasks, self.settings, self.stages = spark, tasks, settings, stages
        self._first: list[bytes] = []  # reports of stages that the driver has waited for
        self._later = spark.sparkContext.accumulator([], Reports())

    def answer(self, lines: DataFrame, rounds: int) -> DataFrame:
        """Return a DataFrame of blocks of answer lines (`value`, binary), without the final LF.

        With --output kept or marked, they are the lines of the decision.  With two rounds, this
        call runs the first one at once.
        """
        tasks = self.tasks
        shared = self._shared_keys(lines) if rounds == 2 else lambda: None  # lines for all keys
        keyed = lines.mapInArrow(tasks.send_lines(shared), ROW)
        keyed = keyed.repartitionById(tasks.partitions, "part")
        found = keyed.mapInArrow(tasks.reduce, ROW).repartitionById(tasks.ends, "part")
        return found.mapInArrow(tasks.finish(self._later.add), VALUE)

    def kept(self, lines: DataFrame, new: DataFrame, rounds: int) -> DataFrame:
        """Return the kept or marked lines of `new`; the decision is made at once, as a stage."""

        def decide(folder: str) -> bytes:
            found = self.answer(lines, rounds).selectExpr("cast(value as string) as value")
            found.write.option("compression", "none").text(folder)
            return b"\n".join([*self._first, *self._later.value])

        assert self.stages
        folder, reports = self.stages.stage("decided", decide)
        ((name, _),) = spark_tasks.parts_of(self.spark, folder)  # of one task
        self.spark.sparkContext.addFile(name)
        self._first = reports.splitlines()
        # What has been reported so far is in `reports`.
        self._later = self.spark.sparkContext.accumulator([], Reports())
        keep = self.tasks.keep(name.rpartition("/")[2], self._later.add)
        return new.mapInArrow(keep, VALUE)

    def reports(self) -> list[dict[str, Any]]:
        """Return the reports of all tasks; call this after all results have been computed."""
        return [json.loads(report) for report in [*self._first, *self._later.value]]

    def _shared_keys(self, lines: DataFrame) -> Callable[[], BloomFilter | None]:
        tasks = self.tasks

        def find(_: str) -> bytes:
            sent = lines.mapInArrow(tasks.send_keys, ROW).repartitionById(tasks.key_parts, "part")
            found = sent.mapInArrow(tasks.share_keys, ROW).collect()
            reports = [each.report.decode() for each in found if each.report is not None]
            keys = b"".join(each.block for each in found if each.report is None)
            return b"%b\n%b" % (json.dumps(reports).encode(), keys)

        result = self.stages.stage("keys", find)[1] if self.stages else find("")
        reports, _, keys = result.partition(b"\n")
        self._first += map(str.encode, json.loads(reports))
        everywhere = self.spark.sparkContext.broadcast(shared_keys(keys, self.settings))
        return lambda: everywhere.value


def id_and_text(df: DataFrame, id_: str, text: str) -> DataFrame:
    """Return the columns of ids and texts under default names; UsageError if one cannot be used."""
    for name in (id_, text):
        if name not in df.columns:
            raise UsageError(f"{name}: no such column; the columns are {', '.join(df.columns)}")
    kind, found = df.schema[id_].dataType, df.schema[text].dataType
    if not isinstance(kind, (types.StringType, *INTEGERS)):
        raise UsageError(f"{id_}: an id is a string or an integer; cast it to a string")
    of_integers = isinstance(found, types.ArrayType) and isinstance(found.elementType, INTEGERS)
    if not (isinstance(found, types.StringType) or of_integers):
        raise UsageError(f"{text}: expected a column of strings, or of arrays of integers")
    return df.select(df[f"`{id_}`"].alias(DEFAULT_ID), df[f"`{text}`"].alias(DEFAULT_TEXT))


def pairs_of(
    df: DataFrame, options: Options, settings: Settings, partitions: int | None, rounds: int
) -> DataFrame:
    """Return a DataFrame of similar pairs: a and b, of the ids' type, and similarity."""
    spark = df.sparkSession
    tasks = Tasks(options, None, partitions or 2 * spark.sparkContext.defaultParallelism)
    value = functions.to_json(functions.struct(DEFAULT_ID, DEFAULT_TEXT))
    lines = spark_tasks.lines_of_column(df.select(value.alias("value")))
    found = SparkJob(spark, tasks, settings).answer(lines, rounds)
    columns = found.mapInArrow(columns_of, "a string, b string, similarity double")
    kind = df.schema[DEFAULT_ID].dataType
    a, b = (columns[name].cast(kind).alias(name) for name in "ab")
    return columns.select(a, b, "similarity")


def check_python(context: SparkContext) -> None:
    """Run a task on one executor; StageError with advice if its Python cannot run it.

    By default a session uses the first python3 on the executors' PATH, not that of the notebook.
    """
    ship(context)
    try:
        context.parallelize([0], 1).foreach(row)  # loading `row` imports all packages
    except (PySparkException, Py4JError) as error:
        python = "sys.executable" if str(context.master).startswith("local") else "'PATH'"
        type_this = f"import os, sys; spark.stop(); os.environ['PYSPARK_PYTHON'] = {python}"
        if why := without_python(str(error), f"{type_this}; then make the session again"):
            raise StageError(why) from None
        raise


def columns_of(batches: Iterable[Any]) -> Iterator[Any]:
    """Turn blocks of pair lines into columns a, b and similarity."""
    for batch in batches:
        for block in batch.column(0):
            fields = [line.split(b"\t") for line in block.as_py().split(b"\n")]
            a, b, similarity = zip(*fields)
            texts = (pa.array(ids, pa.binary()).cast(pa.string()) for ids in (a, b))
            yield pa.RecordBatch.from_arrays(
                [*texts, pa.array(map(float, similarity), pa.float64())], ["a", "b", "similarity"]
            )


def of_first_field(line: bytes) -> int:
    return crc32(line.partition(b"\t")[0])


def of_block(line: bytes) -> int:
    """Return the partition that a line of `format_blocks` names."""
    return next(parse_blocks([line]))[0]


class StepJob:
    """Steps on the lines of files; `partitions`: of each shuffle."""

    def __init__(self, spark: SparkSession, inputs: list[str], max_line: int, reducers: str | None):
        self._lines = spark_tasks.lines_of_files(spark, inputs)
        self.places = spark_tasks.places_of_files(spark, [], inputs)
        self._how = max_line, self.places
        self.partitions = partitions_of(self._lines, reducers)
        self._spark, self._reports = spark, spark.sparkContext.accumulator([], Reports())

    def map(
        self,
        step: Callable[[Iterator[Block], Counters], Iterator[bytes]],
        number: Callable[[bytes], int] = of_first_field,
    ) -> DataFrame:
        """Return the lines of a step; number: what determines the partition of a line."""
        how, partitions = self._how, self.partitions

        def task(batches: Batches) -> Rows:
            spark_tasks.prepare()
            counters = Counters("mapper")
            blocks = spark_tasks.blocks_of_batches(batches, *how)
            yield from _rows(step(blocks, counters), number, partitions)
            yield spark_tasks.report_row(counters, partitions)

        return self._lines.mapInArrow(task, ROW).repartitionById(partitions, "part")

    def reduce(self, lines: DataFrame, step: Step) -> DataFrame:
        partitions = self.partitions

        def task(batches: Batches) -> Rows:
            reports: list[bytes] = []
            yield from _rows(step(_in_order(batches, reports)), of_first_field, partitions)
            part = spark_tasks.own_part(partitions)
            yield from (row(part, report=report) for report in reports)

        return lines.mapInArrow(task, ROW).repartitionById(partitions, "part")

    def collect(self, lines: DataFrame, step: Step) -> bytes:
        """Return what a step yields in all tasks; the reports of the map tasks are dropped."""
        blocks = lines.mapInArrow(_last(step, lambda reports: None), VALUE).collect()
        return b"".join(each.value for each in blocks)

    def write(
        self, lines: DataFrame, step: Step, folder: str, **options: str
    ) -> list[dict[str, Any]]:
        """Write the lines of a step to a new folder; return the reports of the map tasks.

        options: of Spark's writer
        """
        _write(lines.mapInArrow(_last(step, self._reports.add), VALUE), folder, **options)
        return [json.loads(report) for report in self._reports.value]

    def write_splits(
        self, step: Callable[[Batches, Counters], Iterator[bytes]], folder: str
    ) -> list[dict[str, Any]]:
        """Write what a step yields for the batches of `rows_of_batches`, a part for each task.

        Return the reports of the tasks.
        """
        reports = self._spark.sparkContext.accumulator([], Reports())

        def task(batches: Batches) -> Rows:
            spark_tasks.prepare()
            counters = Counters("rows")
            yield from map(spark_tasks.value, filter(None, step(batches, counters)))
            reports.add([json.dumps(counters.as_dict()).encode()])

        _write(self._lines.mapInArrow(task, VALUE), folder)
        return [json.loads(report) for report in reports.value]


def _write(blocks: DataFrame, folder: str, **options: str) -> None:
    text = "cast(substring(value, 1, length(value) - 1) as string) as value"
    blocks.selectExpr(text).write.options(**options).text(folder)


def _last(step: Step, report: Callable[[list[bytes]], None]) -> Callable[[Batches], Rows]:
    def task(batches: Batches) -> Rows:
        reports: list[bytes] = []
        lines = step(_in_order(batches, reports))
        yield from (spark_tasks.value(block) for _, block in gathered((0, line) for line in lines))
        report(reports)

    return task


def _in_order(batches: Batches, reports: list[bytes]) -> Iterator[bytes]:
    """Yield the lines of a task in byte order; reports are added to `reports`."""
    spark_tasks.prepare()
    blocks = map(itemgetter(1), spark_tasks.received(batches, reports))
    return chain.from_iterable(map(BytesIO, sorted_lines(blocks, Counters("reducer"))))


def _rows(lines: Iterable[bytes], number: Callable[[bytes], int], partitions: int) -> Rows:
    pieces = ((number(line) % partitions, line) for line in lines)
    return starmap(row, gathered(pieces))
