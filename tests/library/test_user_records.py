"""Records of many kinds are accepted; elements have equal hashes exactly if they are equal."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.library.user_records import Elements, UserRecords
from neardup.reading.input_format import InputFormat
from tests.library.test_keywords import exactly
from tests.support.oracle import similarities

TEXTS = ["to be or not to be", "the tram is late", "To BE or  not to be", "", "a b"]
SETS = [[1, 2, 3, 4], [9], [4, 3, 2, 1, 1], [], [7, 8]]


class Arrow:
    """A column like Arrow's: to_pylist returns texts, and iteration returns other objects."""

    def to_pylist(self):
        return TEXTS

    def __iter__(self):
        return iter([object()] * len(TEXTS))


@pytest.mark.parametrize(
    "records",
    [
        TEXTS,
        tuple(TEXTS),
        iter(TEXTS),
        (text for text in TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        dict(enumerate(TEXTS)).values(),
        Arrow(),
        SETS,
        map(set, SETS),
        [frozenset(map(str, row)) for row in SETS],
        [np.array(row, np.int64) for row in SETS],
        [dict.fromkeys(row).keys() for row in SETS],
        [[(n, str(n)) for n in row] for row in SETS],
        [[None is None, *row] if row else [] for row in [[2, 3], [9], [3.0, 2], [], [7, 8]]],
    ],
    ids=lambda records: type(records).__name__,
)
def test_positions_stand_for_records(records):
    assert neardup.pairs(records) == [(0, 2, 1)]


@pytest.mark.parametrize("shape", ["Series", "DataFrame column", "string", "lists"])
def test_a_column_of_pandas(shape):
    pandas = pytest.importorskip("pandas")
    column = {
        "Series": lambda: pandas.Series(TEXTS, index=[5, 5, 6, 7, 8]),
        "DataFrame column": lambda: pandas.DataFrame({"text": TEXTS})["text"],
        "string": lambda: pandas.Series(TEXTS, dtype="string"),
        "lists": lambda: pandas.Series([np.array(row) for row in SETS]),
    }[shape]()
    assert neardup.pairs(column) == [(0, 2, 1)]
    assert neardup.pairs(zip("vwxyz", column)) == [("v", "x", 1)]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [TEXTS, SETS], ids=["texts", "lists"])
def test_a_column_of_polars(rows):
    polars = pytest.importorskip("polars")
    assert neardup.pairs(polars.Series(rows)) == [(0, 2, 1)]
    assert neardup.pairs(polars.DataFrame({"text": rows})["text"]) == [(0, 2, 1)]


@pytest.mark.parametrize("rows", [TEXTS, SETS], ids=["texts", "lists"])
def test_a_column_of_arrow(rows):
    arrow = pytest.importorskip("pyarrow")
    assert neardup.pairs(arrow.array(rows)) == [(0, 2, 1)]
    assert neardup.pairs(arrow.chunked_array([rows[:2], rows[2:]])) == [(0, 2, 1)]
    if rows is TEXTS:
        assert neardup.pairs(arrow.array(rows).dictionary_encode()) == [(0, 2, 1)]


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_a_whole_table_is_refused(package):
    made = pytest.importorskip(package)
    table = (made.DataFrame if package != "pyarrow" else made.table)({"text": TEXTS})
    with pytest.raises(ValueError, match=r"give one column, such as table\['text'\]"):
        neardup.pairs(table)


WANTED = "expected a text, or a set or list of hashables, got"
NO_ELEMENT = "cannot be an element of a set; None, NaN and values that are not hashable cannot"


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ("a text", "records: expected an iterable of records, got one str"),
        (b"bytes", "records: expected an iterable of records, got one bytes"),
        (7, "records: expected an iterable of records, got int"),
        (None, "records: expected an iterable of records, got NoneType"),
        ({"a": "to be"}, "records: got a dict; give its items(), if its keys are the ids"),
        (["a", None], f"record 1: {WANTED} None"),
        (["a", float("nan")], f"record 1: {WANTED} nan"),
        ([1, 2], f"record 0: {WANTED} 1"),
        (["a", b"b"], f"record 1: {WANTED} b'b'"),
        ([{1: 2}], f"record 0: {WANTED} {{1: 2}}"),
        (["a", {"b"}], "record 1 is not a text, but record 0 is; give texts only, or sets only"),
        ([{"b"}, "a"], "record 1 is a text, and record 0 is not; give texts only, or sets only"),
        ([[1], [2, [3]]], f"record 1: [3] {NO_ELEMENT}"),
        ([[1], [2, None]], f"record 1: None {NO_ELEMENT}"),
        ([[1.5], [float("nan")]], f"record 1: nan {NO_ELEMENT}"),
        ([(np.arange(2), "x")], "record 0: an id must be hashable, and this one is not"),
        (
            ["a", ("b", "c")],
            "record 1 is a tuple (id, record), but record 0 is not; give every record an id, or "
            "none",
        ),
        (
            [("b", "c"), "a"],
            "record 1 is not a tuple (id, record), but record 0 is; give every record an id, or "
            "none",
        ),
        (
            [(1, 2, 3)],
            "record 0: a tuple is (id, record), and this one has 3 parts; use a list for the "
            "elements of a set",
        ),
        ([("a", "x"), (None, "y")], "record 1: None cannot be an id; use text or a number"),
        ([("a", "x"), ([], "y")], "record 1: an id must be hashable, and this one is not"),
        ([("a", "x"), ("b", None)], f"record 1: {WANTED} None"),
        (  # all rows would be {0, 1}
            np.eye(3, dtype=int),
            "records: got an array of shape (3, 3), but a set has no order of columns; if its rows "
            "are sets, give records.tolist(); for bit vectors, there is measure='hamming'",
        ),
    ],
)
@pytest.mark.parametrize("call", [neardup.pairs, neardup.clusters, neardup.deduplicate])
def test_what_are_no_records(call, records, message):
    with pytest.raises(ValueError, match=exactly(message)):
        call(records)


@pytest.mark.parametrize("records", [[], iter(()), [""], ["", " \t", ""], [[], []], [("a", "")]])
def test_nothing_is_no_pair_and_stays(records):
    records = list(records)
    assert neardup.pairs(records) == neardup.clusters(records) == []
    ids = ["a"] if records == [("a", "")] else [*range(len(records))]
    assert neardup.deduplicate(records) == (ids, [])


@pytest.mark.parametrize("options", [{"shingle": "char:5"}, {"shingle": "bag"}, {"clean": "html"}])
def test_no_records_at_all_take_any_option(options):
    assert neardup.pairs([], **options) == []


def test_integers_are_the_shingles_and_others_are_not():
    most = 2**64 - 1
    assert Elements().of([0, 7, most]).tolist() == [0, 7, most]
    assert Elements().of([np.uint64(most), True, 7.0, Decimal(7), Fraction(7)]).tolist() == [
        most,
        1,
        7,
        7,
        7,
    ]
    others = Elements().of([-1, 2**64, 0.5, "7", b"7", ("7",), (7,), float("inf"), 1j]).tolist()
    assert len(set(others) | {7, 1}) == len(others) + 2


elements = st.recursive(
    st.one_of(
        st.integers(-2, 3),
        st.sampled_from([0.5, 1.0, 2.0, True, Fraction(1, 2), Decimal("0.5")]),
        st.text("ab", max_size=2),
        st.binary(max_size=1),
    ),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(elements, max_size=12), st.booleans())
def test_elements_are_one_shingle_where_python_says_they_are_equal(some, at_once):
    known = Elements()
    found = known.of(some).tolist() if at_once else [int(known.of([x])[0]) for x in some]
    assert [[a == b for b in some] for a in some] == [[a == b for b in found] for a in found]


def test_strings_and_tuples_are_the_same_in_every_call():
    some = ["to", ("to", "be"), ((1, "be"),)]
    assert Elements().of(some).tolist() == Elements().of(["other", *some]).tolist()[1:]


def test_a_set_of_words_is_the_text_of_these_words():
    text = "to be or not to be"
    shingler = InputFormat.of("text", "word:1", None).shingle
    assert set(Elements().of(text.split()).tolist()) == set(shingler(text).tolist())


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), min_size=2, max_size=8))
def test_exact_answers_are_those_of_a_nested_loop(rows):
    found = neardup.pairs(rows, "2/3", exact=True)
    every = similarities((b"%d" % i, row) for i, row in enumerate(rows))
    assert {(a, b): s for a, b, s in found} == {
        (int(a), int(b)): s for (a, b), s in every.items() if s >= Fraction(2, 3)
    }


def test_ids_of_any_kind_come_back_as_they_were():
    records = ["a b c", "d", "a b c"]
    for ids, pair in [
        (["z", "y", "é"], ("z", "é")),
        (["z", "y", "b"], ("b", "z")),
        ([30, 20, 4], (4, 30)),
        ([("z", 1), 7, None is None], (("z", 1), True)),
        ([2.5, "x", 1.5], (2.5, 1.5)),
    ]:
        ((a, b, similarity),) = neardup.pairs(zip(ids, records))
        assert (a, b, similarity) == (*pair, 1)
        assert type(a) is type(pair[0])
        assert type(b) is type(pair[1])


def test_records_are_gone_through_once():
    given_ = UserRecords.of(iter([("a", "x"), ("b", "y")]))
    assert (given_.ids, given_.records) == (["a", "b"], ["x", "y"])


@pytest.mark.parametrize("kind", [list, set, lambda row: np.array(row, np.int64)])
@pytest.mark.parametrize("ids", [False, True])
def test_a_generator_may_fill_one_buffer_again_and_again(kind, ids):
    def records():
        buffer = kind([1, 2, 3, 4])
        for i, row in enumerate([[1, 2, 3, 4], [9, 8, 7, 6], [4, 3, 2, 1]]):
            if isinstance(buffer, np.ndarray):
                buffer[:] = row
            else:
                buffer.clear()
                (buffer.extend if isinstance(buffer, list) else buffer.update)(row)
            yield (i, buffer) if ids else buffer

    assert neardup.pairs(records()) == [(0, 2, 1)]


def test_integers_around_the_largest_shingle() -> None:
    """2^64-1 is a shingle as it is, and 2^64, which is none, is hashed."""
    sets = [{2**64 - 1, 5}, {2**64, 5}, {2**64, 5}, {-1, 5}]
    assert [pair[:2] for pair in neardup.pairs(sets, 1)] == [(1, 2)]


@pytest.mark.parametrize(
    "kinds", [("int64", "int64"), ("uint64", "uint64"), ("int64", "uint64"), ("uint8", "int32")]
)
@pytest.mark.parametrize("least", [0, -3])
def test_arrays_of_integers_are_the_sets_of_their_lists(kinds, least) -> None:
    if least < 0 and "uint8" in kinds:
        kinds = "int8", "int32"
    rows = [[least, 1, 2, 5, 5, 9], [9, 1, least, 5, 2], [7, 8], []]
    rows = [[max(n, 0) for n in row] if "uint64" in kinds else row for row in rows]
    arrays = [np.array(row, kinds[k % 2]) for k, row in enumerate(rows)]
    found = neardup.pairs(arrays)
    assert found == neardup.pairs(rows) == [(0, 1, Fraction(1))]
    assert neardup.pairs([*arrays, rows[1]]) == neardup.pairs([*rows, rows[1]])


@pytest.mark.parametrize("scheme", ["exact", "prefix", "minhash"])
def test_a_large_cluster_is_left_to_the_buckets_of_any_scheme(scheme) -> None:
    sets = [{*range(40), 100 + i} for i in range(300)]
    assert len(neardup.deduplicate([*sets, {1}], scheme=scheme).removed) == 299
    assert neardup.clusters([*sets, {1}], scheme=scheme) == [list(range(300))]
