"""Tables of pandas, polars, Arrow and datasets come back as they were, without removed rows."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Callable

import pytest

import neardup
from tests.library.test_same_as_command import made_texts

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
arrow = pytest.importorskip("pyarrow")

IDS, TEXTS = map(list, zip(*made_texts()))
SETS = [text.split() for text in TEXTS]
COUNT = len(TEXTS)
COLUMNS = {"url": IDS, "body": TEXTS, "sets": SETS, "n": list(range(COUNT))}
INDEX = [number // 2 for number in range(COUNT)]


def datasets() -> Any:
    return pytest.importorskip("datasets").Dataset


def of_arrow(columns: dict[str, Any]) -> Any:
    table = arrow.table(columns)
    table = table.set_column(1, "body", table["body"].cast("large_string"))
    return arrow.concat_tables([table.slice(0, 7), table.slice(7)])


Makers = dict[str, tuple[Callable[[Any], Any], Callable[[Any, list[int]], Any]]]
KINDS: Makers = {
    "pandas": (
        lambda columns: pandas.DataFrame(columns, index=INDEX[: len(columns["n"])]).astype(
            {"n": "int8", "url": "category"}
        ),
        lambda frame, rows: frame[[row in rows for row in range(len(frame))]],
    ),
    "polars": (
        lambda columns: polars.DataFrame(columns, schema_overrides={"n": polars.UInt16}),
        lambda frame, rows: frame.filter(polars.Series([r in rows for r in range(len(frame))])),
    ),
    "arrow": (of_arrow, lambda table, rows: table.take(rows)),
    "batch": (arrow.record_batch, lambda batch, rows: batch.take(arrow.array(rows, "int64"))),
    "datasets": (
        lambda columns: datasets().from_dict(columns),
        lambda table, rows: table.select(rows),
    ),
}


def as_arrow(table: Any) -> Any:
    """Return all that a table has, its index and types too, as a table of Arrow."""
    if hasattr(table, "to_arrow"):
        return table.to_arrow()
    if type(table).__name__ == "Dataset":
        return table.with_format("arrow")[:]
    return arrow.Table.from_pandas(table) if isinstance(table, pandas.DataFrame) else table


some_kinds = pytest.mark.parametrize(
    "kind", ["pandas", "polars", "arrow", "batch", pytest.param("datasets", marks=pytest.mark.slow)]
)


@some_kinds
@pytest.mark.parametrize("column", ["body", "sets"])
def test_kept_rows(kind: str, column: str) -> None:
    make, rows = KINDS[kind]
    table = make(COLUMNS)
    for options in ({}, {"keep": "smallest"}, {"rule": "cluster"}):
        records = list(zip(IDS, COLUMNS[column]))
        kept = set(neardup.deduplicate(records, 0.7, **options).kept)  # type: ignore[call-overload]
        assert 0 < len(kept) < COUNT
        found = neardup.deduplicate(table, 0.7, text=column, id="url", **options)
        assert type(found) is type(table)
        expected = rows(table, [row for row, id_ in enumerate(IDS) if id_ in kept])
        assert as_arrow(found).equals(as_arrow(expected))
    assert neardup.pairs(table, 0.7, text=column, id="url") == neardup.pairs(records, 0.7)
    assert neardup.clusters(table, 0.7, text=column) == neardup.clusters(COLUMNS[column], 0.7)


@some_kinds
def test_nothing_to_remove_and_nothing_at_all(kind: str) -> None:
    make, _ = KINDS[kind]
    for count in (0, 1):
        table = make({name: values[:count] for name, values in COLUMNS.items()})
        found = neardup.deduplicate(table, text="body")
        assert type(found) is type(table)
        assert as_arrow(found).equals(as_arrow(table))


def test_positions_that_are_not_the_labels_of_a_series() -> None:
    """`frame.drop` takes labels, and would drop other rows."""
    series = pandas.Series(["a b c", "d e f", "a b c"], index=[2, 0, 1])
    with pytest.warns(UserWarning, match="ids are positions, not labels of the index") as found:
        answer = neardup.deduplicate(series)
    assert [each.filename for each in found] == [__file__]
    assert series.iloc[answer.kept].index.tolist() == [2, 0]
    assert neardup.deduplicate(series.items()).kept == [2, 0]
    pairs = pandas.Series([*series.items()], index=[5, 6, 7])  # of ids and texts
    assert neardup.deduplicate(pairs).kept == [2, 0]
    assert neardup.deduplicate(series.reset_index(drop=True)).kept == [0, 1]
    frame = pandas.DataFrame({"text": series})
    assert neardup.deduplicate(frame, text="text").index.tolist() == [2, 0]


class OfMine(pandas.DataFrame):  # type: ignore[misc, name-defined]
    @property
    def _constructor(self) -> Any:
        return OfMine


def test_a_class_that_is_derived() -> None:
    assert type(neardup.deduplicate(OfMine(COLUMNS), text="body")) is OfMine


def test_rows_of_one_id_are_decided_each() -> None:
    frame = polars.DataFrame({"id": ["a", "a", "b"], "text": ["x y", "x y", "z"]})
    assert neardup.deduplicate(frame, text="text", id="id").rows() == [("a", "x y"), ("b", "z")]


@pytest.mark.parametrize(
    ("made", "columns", "told"),
    [
        (lambda: polars.DataFrame(COLUMNS), {"text": "bdy"}, r"text='bdy': no such column; it has"),
        (lambda: arrow.table(COLUMNS), {"text": "body", "id": "x"}, "id='x': no such column"),
        (lambda: polars.DataFrame(COLUMNS), {"id": "url"}, "id: name the column of the texts"),
        (
            lambda: pandas.DataFrame([["a", "b"]], columns=["t", "t"]),
            {"text": "t"},
            "text='t': several columns have this name",
        ),
        (lambda: arrow.table([["a"], ["b"]], ["t", "t"]), {"text": "t"}, "several columns"),
        (lambda: polars.DataFrame(COLUMNS), {"text": "n"}, "record 0: expected a text, or a set"),
        (lambda: polars.DataFrame({"t": ["a", None]}), {"text": "t"}, "text='t': row 1 is null"),
        (lambda: pandas.DataFrame({"t": ["a", None]}), {"text": "t"}, "text='t': row 1 is null"),
        (lambda: pandas.DataFrame({"t": ["a", pandas.NA]}), {"text": "t"}, "row 1 is null; fill"),
        (
            lambda: pandas.DataFrame({"t": ["a"], "i": [float("nan")]}),
            {"text": "t", "id": "i"},
            "id='i': row 0 is null",
        ),
        (lambda: polars.DataFrame(COLUMNS).lazy(), {"text": "body"}, r"give records\.collect\(\)"),
        (lambda: polars.DataFrame(COLUMNS), {}, r"table\['text'\], or its name to .* text='text'"),
        (lambda: ["a"], {"text": "t"}, "text: give the texts themselves"),
        (lambda: [("a", "b")], {"id": "t"}, r"id: give \(id, record\) tuples"),
    ],
)
def test_what_is_refused(made: Callable[[], Any], columns: dict[str, str], told: str) -> None:
    for call in (neardup.pairs, neardup.clusters, neardup.deduplicate):
        with pytest.raises(ValueError, match=told):
            call(made(), **columns)  # type: ignore[operator]


@pytest.mark.slow
def test_several_tables_of_datasets() -> None:
    table = datasets().from_dict(COLUMNS)
    both = pytest.importorskip("datasets").DatasetDict({"train": table, "test": table})
    with pytest.raises(ValueError, match=r"DatasetDict has several tables; give one, such as rec"):
        neardup.pairs(both, text="body")
    with pytest.raises(ValueError, match=r"IterableDataset cannot be selected from; give a data"):
        neardup.pairs(table.to_iterable_dataset(), text="body")


def test_no_package_is_imported() -> None:
    code = (
        "import sys, neardup; neardup.pairs(['a']); "
        "print({'pandas', 'polars', 'pyarrow', 'datasets'} & {*sys.modules})"
    )
    assert subprocess.check_output([sys.executable, "-c", code]) == b"set()\n"
