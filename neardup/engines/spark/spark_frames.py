"""Columns of a DataFrame → lines of JSON → pairs as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, functions
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from neardup.engines.spark.shipped_package import ship
from neardup.engines.spark.spark_failures import without_python
from neardup.engines.spark.spark_flow import SparkJob
from neardup.engines.spark.spark_lines import lines_of_column
from neardup.engines.spark.spark_tasks import Tasks, load
from neardup.options.settings import Settings
from neardup.process.errors import StageError, UsageError
from neardup.reading.fields import DEFAULT_ID, DEFAULT_TEXT

INTEGERS = (ByteType, ShortType, IntegerType, LongType)


@dataclass(frozen=True)
class PairFrames:
    """df: two columns, called as JSON lines have them by default; id: the type of the first."""

    df: DataFrame
    id: DataType

    @classmethod
    def of(cls, df: DataFrame, id_: str, text: str) -> PairFrames:
        """UsageError where there are no such columns, or where they hold something else."""
        for name in (id_, text):
            if name not in df.columns:
                raise UsageError(f"{name}: no such column; there are {', '.join(df.columns)}")
        kinds = {field.name: field.dataType for field in df.schema.fields}
        if not isinstance(kinds[id_], (StringType, *INTEGERS)):
            raise UsageError(f"{id_}: an id is a string or an integer; cast it to a string")
        found = kinds[text]
        of_integers = isinstance(found, ArrayType) and isinstance(found.elementType, INTEGERS)
        if not (isinstance(found, StringType) or of_integers):
            raise UsageError(f"{text}: expected a column of strings, or of arrays of integers")
        columns = [df[f"`{id_}`"].alias(DEFAULT_ID), df[f"`{text}`"].alias(DEFAULT_TEXT)]
        return cls(df.select(*columns), kinds[id_])

    def pairs(
        self, options: list[str], settings: Settings, partitions: int | None, rounds: int
    ) -> DataFrame:
        spark = self.df.sparkSession
        tasks = Tasks(options, None, partitions or 2 * spark.sparkContext.defaultParallelism)
        value = functions.to_json(functions.struct(DEFAULT_ID, DEFAULT_TEXT))
        lines = lines_of_column(self.df.select(value.alias("value")))
        found = SparkJob(spark, tasks, settings).answer(lines, rounds)
        columns = found.mapInArrow(columns_of, "a string, b string, similarity double")
        a, b = (columns[name].cast(self.id).alias(name) for name in "ab")
        return columns.select(a, b, "similarity")


def check_python(context: SparkContext) -> None:
    """StageError where the executors' Python cannot run our tasks: one of them, before all others.

    A session that nobody told of another takes the first python3 on the PATH of the executors,
    which may be another one than that of the notebook.
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
