"""Tables and bit vectors that a caller passes; errors about vectors name a position.

Of a table, one column has the texts or sets, and another one may have the ids.  Tables of pandas,
polars, Arrow and `datasets` are recognised by the names of their classes, so none of these packages
is imported here.

Bit vectors, with or without ids:

    rows of uint8       an array of shape (n, F/8), as numpy.packbits makes, or single rows of it
    bytes               F/8 each
    hexadecimal texts   F/4 digits each
    integers            0 … 2^F-1, with bits=F

Letters: n vectors of F bits.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Callable, NamedTuple, Protocol, TypeVar, Union

import numpy as np

from neardup.library.user_records import apart, as_list, listed
from neardup.reading import blocks
from neardup.reading.fingerprint_lines import DIGITS, NO_DIGIT
from neardup.sets.bit_vectors import DEFAULT_BITS, DIGIT_BITS, MAX_BITS, MIN_BITS, BlockPlaces
from neardup.sets.ragged import Batch


class HasColumns(Protocol):
    """A DataFrame of pandas or polars."""

    @property
    def columns(self) -> Any: ...


class HasColumnNames(Protocol):
    """A table of Arrow or `datasets`."""

    @property
    def column_names(self) -> Any: ...


Table = TypeVar("Table", bound=Union[HasColumns, HasColumnNames])


class _Kind(NamedTuple):
    names: Callable[[Any], Iterable[Any]]
    column: Callable[[Any, str], Any]
    rows: Callable[[Any, list[int]], Any]  # at ascending positions


_ARROW = _Kind(
    lambda table: table.column_names,
    lambda table, name: table.column(name),
    lambda table, rows: table.filter(_mask(rows, table.num_rows)),  # `take` fails from 2 GiB on
)
_KINDS = {
    "pandas.DataFrame": _Kind(
        lambda table: table.columns, lambda table, name: table[name], lambda t, rows: t.iloc[rows]
    ),
    "polars.DataFrame": _Kind(
        lambda table: table.columns,
        lambda table, name: table[name],
        lambda table, rows: table[rows] if rows else table.clear(),
    ),
    "pyarrow.Table": _ARROW,
    "pyarrow.RecordBatch": _ARROW,
    "datasets.Dataset": _Kind(
        lambda table: table.column_names,
        lambda table, name: table.select_columns([name]).with_format(None)[:][name],
        lambda table, rows: table.select(rows),
    ),
}
_REFUSED = {
    "polars.LazyFrame": "has no rows yet; give records.collect()",
    "datasets.DatasetDict": "has several tables; give one, such as records['train']",
    "datasets.IterableDataset": "cannot be selected from; give a datasets.Dataset",
    "datasets.IterableDatasetDict": "cannot be selected from; give a datasets.Dataset",
}


def _name_in(records: Any, known: Iterable[str]) -> str | None:
    """Return the first class of a value, or of its bases, that is known: pandas.DataFrame."""
    names = (
        f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(records).__mro__
    )
    return next((name for name in names if name in known), None)


class Limit(NamedTuple):
    """The limit of `within` or `across`, by each record's value, or None if it has none."""

    flag: str
    values: list[Any]


def records_of(
    records: Any, text: str | None, id: str | None, options: Mapping[str, Any]
) -> tuple[Any, dict[str, Any], Limit | None]:
    """Return the records in a table whose columns are named, the other options, and the limit.

    Anything but a table is returned as it is, with `text` and `id` as options, which are refused.
    ValueError if there is not one such column, if it has nulls, or for a table without rows yet.
    """
    limited = [name for name in ("within", "across") if options.get(name) is not None]
    if len(limited) > 1:
        raise ValueError("within and across limit the same pairs; leave one of them out")
    others = {key: value for key, value in options.items() if key not in ("within", "across")}
    found = _records_of(records, text, id, others)
    return (*found, _limit(records, limited[0], options[limited[0]]) if limited else None)


def _limit(records: Any, name: str, given: Any) -> Limit:
    column = given
    if isinstance(given, str):
        if (kind := _name_in(records, _KINDS)) is None:
            raise ValueError(f"{name}={given!r}: records is not a table; give each record's value")
        column = _column(records, _KINDS[kind], name, given)
    if isinstance(column, (Set, Mapping)) or (values := as_list(column)) is None:
        raise ValueError(f"{name}: expected a list of each record's value, got {given!r:.60}")
    known: dict[Hashable, Any] = {None: None}  # one of equal values: 1 and 1.0 differ as text
    return Limit(f"--{name}", [known.setdefault(_frozen(value), value) for value in values])


def _frozen(value: Any) -> Hashable:
    """Return a hashable that is equal for equal values.

    >>> _frozen([{1, 2.0}, np.array([True])]) == _frozen(({2, 1}, [1]))
    True
    """
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        return dict, frozenset((_frozen(key), _frozen(each)) for key, each in value.items())
    if isinstance(value, Set):
        return frozenset(map(_frozen, value))
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    try:
        hash(value)
    except TypeError:
        return str(value)
    return None if _is_null(value) else value


def _records_of(
    records: Any, text: str | None, id: str | None, options: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    if text is None and id is None:
        return records, options
    if refused := _name_in(records, _REFUSED):
        raise ValueError(f"records: a {refused} {_REFUSED[refused]}")
    name = _name_in(records, _KINDS)
    if name is None:
        named = {"text": text, "id": id}
        return records, {**options, **{k: v for k, v in named.items() if v is not None}}
    if text is None:
        raise ValueError("id: name the column of the texts or sets, too, such as text='text'")
    values = _values(records, _KINDS[name], "text", text)
    if id is None:
        return values, options
    return list(zip(_values(records, _KINDS[name], "id", id), values)), options


def _column(records: Any, kind: _Kind, what: str, name: str) -> Any:
    names = list(kind.names(records))
    if (count := names.count(name)) != 1:
        has = "several columns have this name" if count else f"no such column; it has {names}"
        raise ValueError(f"{what}={name!r}: {has}")
    return kind.column(records, name)


def _values(records: Any, kind: _Kind, what: str, name: str) -> Sequence[Any]:
    values = as_list(_column(records, kind, what, name)) or []
    for row, value in enumerate(values):
        if _is_null(value):
            raise ValueError(f"{what}={name!r}: row {row} is null; fill or drop such rows first")
    return values


def _mask(rows: list[int], count: int) -> Any:
    mask = np.zeros(count, bool)
    mask[rows] = True
    return mask


def _is_null(value: Any) -> bool:
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def taken(records: Table, rows: list[int]) -> Table:
    """Return a table's rows at ascending positions, as a table of the same type."""
    found: Table = _KINDS[_name_in(records, _KINDS) or ""].rows(records, rows)
    return found


AT_ONCE = 1 << 14  # vectors
BYTES = (bytes, bytearray, memoryview)


@dataclass(frozen=True)
class UserVectors:
    """The n vectors of a caller: ids (None: positions), and hexadecimal digits, uint8 (n, F/4)."""

    ids: list[Hashable] | None
    digits: np.ndarray

    @classmethod
    def of(cls, records: Any, bits: int | None) -> UserVectors:
        """Check and convert the vectors of a caller; ValueError names the vector at fault.

        >>> UserVectors.of([("a", b"\\x01\\x23\\x45\\x67"), ("b", b"\\xff" * 4)], None).digits[0]
        array([0, 1, 2, 3, 4, 5, 6, 7], dtype=uint8)
        """
        if len(getattr(records, "shape", ())) == 2 and hasattr(records, "dtype"):
            ids, digits = None, _of_rows(np.asarray(records))
        else:
            ids, found = apart(listed(records))
            texts = [_text(i, vector, bits) for i, vector in enumerate(found)]
            digits = _of_texts(texts, found, (bits or DEFAULT_BITS) // DIGIT_BITS)
        here = digits.shape[1] * DIGIT_BITS
        if bits is not None and here != bits:
            raise ValueError(f"record 0 has {here} bits, but bits={bits}; leave bits out")
        if not MIN_BITS <= here <= MAX_BITS:
            raise ValueError(f"record 0 has {here} bits; expected {MIN_BITS} to {MAX_BITS}")
        return cls(ids, digits)

    def __len__(self) -> int:
        return len(self.digits)

    @property
    def bits(self) -> int:
        return int(self.digits.shape[1]) * DIGIT_BITS

    def batches(self, *_: object) -> Iterator[Batch]:
        """Yield the vectors in batches; they are numbered like the lines of one file."""
        form = BlockPlaces(self.bits)
        for low in range(0, len(self), AT_ONCE):
            some = self.digits[low : low + AT_ONCE]
            places = np.arange(low, low + len(some), dtype=np.uint64) + np.uint64(blocks.NEW)
            yield form.batch([b""] * len(some), places, some, np.ones(len(some), np.int64))


def _of_rows(rows: np.ndarray) -> np.ndarray:
    if rows.dtype != np.uint8:
        advice = "; pack it first: numpy.packbits(…, axis=1)" if rows.dtype == bool else ""
        raise ValueError(f"records: expected an array of uint8, got one of {rows.dtype}{advice}")
    return np.stack((rows >> DIGIT_BITS, rows & (NO_DIGIT - 1)), axis=2).reshape(
        len(rows), 2 * rows.shape[1]
    )


def _text(position: int, vector: Any, bits: int | None) -> str:
    """Convert a vector to hexadecimal text; ValueError for a wrong type or an invalid number."""
    if isinstance(vector, str):
        return vector
    if isinstance(vector, np.ndarray) and vector.dtype == np.uint8 and vector.ndim == 1:
        vector = vector.tobytes()
    if isinstance(vector, BYTES):
        return bytes(vector).hex()
    if not isinstance(vector, Integral) or isinstance(vector, bool):
        raise ValueError(
            f"record {position}: expected bytes, a row of uint8, a hexadecimal text or an integer, "
            f"got {vector!r:.60}"
        )
    if bits is None:
        raise ValueError(
            f"record {position} is an integer; give the number of bits, such as bits=64"
        )
    number = int(vector)
    if not 0 <= number < 1 << bits:
        raise ValueError(f"record {position}: {number} is outside 0 … 2^{bits}-1")
    return f"{number:0{bits // DIGIT_BITS}x}"


def _of_texts(texts: list[str], found: list[Any], digits: int) -> np.ndarray:
    """Return the digits of hexadecimal texts, uint8 (n, digits); ValueError if one is wrong."""
    first = len(texts[0]) if texts else digits
    for i, text in enumerate(texts):
        if len(text) != first:
            unit = "hexadecimal digits" if isinstance(found[i], str) else "bytes"
            n, m = (x if isinstance(found[i], str) else x // 2 for x in (len(text), first))
            raise ValueError(f"record {i} has {n} {unit}, and record 0 has {m}; use one length")
    encoded = "".join(texts).encode("ascii", "replace")
    values = DIGITS[np.frombuffer(encoded, np.uint8)].reshape(len(texts), first)
    wrong = np.flatnonzero((values == NO_DIGIT).any(axis=1))
    if len(wrong):
        raise ValueError(f"record {wrong[0]}: {found[wrong[0]]!r:.80} is not hexadecimal")
    return values
