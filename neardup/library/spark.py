"""Near-duplicates in Spark notebooks: convert a DataFrame of records to a DataFrame of pairs.

    pairs = spark.pairs(articles, id="url", text="body", threshold=0.8, shingle="word:3")

The stages and the promise are those of run_spark.sh, which works on files.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from neardup.engines.spark import INSTALL
from neardup.library import keywords
from neardup.library.keywords import Keywords, Value, with_keywords
from neardup.options.settings import counts_first, settings_before_counts
from neardup.reading.text_rows import DEFAULT_TEXT
from neardup.runtime.program import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from typing_extensions import Unpack


@with_keywords(Keywords)
def pairs(
    df: DataFrame,
    threshold: Value = None,
    *,
    id: str = "id",
    text: str = "text",
    partitions: int | None = None,
    rounds: int = 2,
    **options: Unpack[Keywords],
) -> DataFrame:
    """Return DataFrame(a, b, similarity): the pairs at or above the threshold, each once.

    The threshold is 0.9 by default.

    `id` names a column of strings or integers, and a and b have its type; `text` one of strings, or
    of arrays of integers, which are shingles, or with measure="hamming" one of fingerprints, in
    hexadecimal or base64.  a comes before b, as strings.  ValueError for wrong options, and if the
    executors' Python lacks numpy or pyarrow; a row without an id or a text ends the job.

    With two rounds, this call carries out the first one, so `df` is read twice: cache() it if it is
    random or expensive.
    """
    try:
        from neardup.engines.spark.spark_flow import check_python, id_and_text, pairs_of
    except ImportError as error:
        raise ImportError(f"{error}; {INSTALL}") from None
    with keywords.as_value_errors():
        asked = keywords.options_of("pairs", "jsonl", {"threshold": threshold, **options})
        fingerprint = DEFAULT_TEXT if keywords.of_vectors(options) else None
        asked = replace(asked, fingerprint=fingerprint, strict=True)
        settings = settings_before_counts(asked)
        if counts_first(asked):
            raise UsageError(
                f"--scheme {asked.scheme or 'exact'} counts the tokens of all records first, "
                "which Spark cannot do; use the default, scheme='minhash'"
            )
        if rounds not in (1, 2):
            raise UsageError(f"rounds: {rounds!r} is not 1 or 2")
        records = id_and_text(df, id, text)
        check_python(df.sparkSession.sparkContext)
    return pairs_of(records, asked, settings, partitions, rounds)
