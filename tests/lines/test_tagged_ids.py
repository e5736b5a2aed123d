"""Tagged ids, each an id with its record's place, sort by bytes in order of priority.

The id can be recovered.
"""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.lines.tagged_ids import COLLECTION, Tag, is_old, tag_of
from neardup.reading.blocks import NEW, first_place
from neardup.runtime.program import WireError
from neardup.sets.ragged import Batch, Ragged

KEEPS = ["first", "longest", "smallest", "max:x", "min:x,longest", "prefer:v,min:x,smallest"]
each_keep = pytest.mark.parametrize("keep", KEEPS)
# What may end an id, or come before what does; and some that are read as more than one byte.
letters = st.sampled_from(["\1", "\2", "\x7f", "0", "9", "a", "f", "v", "é", "\x80", "😀"])
ids = st.lists(letters, min_size=1, max_size=4).map(lambda some: "".join(some).encode())


class Record(NamedTuple):
    id: bytes
    place: int
    size: int
    x: int = 0  # a value as an integer, 0 for none
    rest: int = 1 << 63  # what is left of the value, as an integer


records = st.lists(
    st.builds(
        Record,
        ids,
        st.sampled_from([0, 1, NEW - 1, NEW, NEW + 1, first_place(3, 9), 2 * NEW - 1]),
        st.sampled_from([1, 2, 9, 10, 99, 100]),
        st.sampled_from([0, 1, 2, 1 << 63, 2**64 - 2]),
        st.sampled_from([1 << 63, 1, 2**64 - 2]),
    ),
    min_size=1,
    unique_by=lambda record: record.place,
)
AWKWARD = [b"v", b"v\1", b"v\1\1", b"v\1\x7f", b"v\1\x7f\x7f", b"v\1a", b"v\2", b"v\x7f", b"v0"]


def tagged(tag: Tag, some: list[Record]) -> list[bytes]:
    sets = Ragged.from_rows([list(range(record.size)) for record in some])
    places = np.array([record.place for record in some], np.uint64)
    ranks = np.array([[record.x, record.rest] for record in some], np.uint64)
    return tag.tagged(Batch([record.id for record in some], sets, (), places, ranks)).ids


def priority(keep: str, record: Record) -> tuple:
    """Return the sort key of a record: old ones first, then as --help describes --keep."""
    by_rule = {
        "first": 0,
        "longest": -record.size,
        "smallest": record.id,
        "max:x": (-record.x, -record.rest * bool(record.x)),
        "min:x": (record.x, record.rest) if record.x else (2**64,),
        "prefer:v": b"v" not in record.id,
    }
    return record.place >= NEW, *(by_rule[rule] for rule in keep.split(",")), record.place


@each_keep
@given(records)
@example([Record(id_, NEW + i, 1) for i, id_ in enumerate(reversed(AWKWARD))])
def test_byte_order_is_order_of_priority(keep, some):
    """Tagged ids, and lines that begin with them, sort by bytes in order of priority."""
    tags = tagged(tag_of(keep), some)
    expected = sorted(range(len(some)), key=lambda i: priority(keep, some[i]))
    assert sorted(range(len(some)), key=tags.__getitem__) == expected
    assert sorted(range(len(some)), key=lambda i: tags[i] + b"\t") == expected
    assert len(set(tags)) == len(some)


@each_keep
@given(records)
@example([Record(id_, NEW + i, 1) for i, id_ in enumerate(AWKWARD)])
def test_they_come_back(keep, some):
    tag = tag_of(keep)
    tags = tagged(tag, some)
    assert [tag.id_of(id_) for id_ in tags] == [record.id for record in some]
    assert tag.places(tags).tolist() == [record.place for record in some]
    assert [is_old(id_) for id_ in tags] == [record.place < NEW for record in some]


@given(records)
def test_of_two_collections_they_say_which(some):
    tags = tagged(COLLECTION, some)
    assert [(is_old(id_), COLLECTION.id_of(id_)) for id_ in tags] == [
        (record.place < NEW, record.id) for record in some
    ]


@each_keep
@given(records)
def test_they_are_ids_themselves(keep, some):
    for id_ in tagged(tag_of(keep), some):
        assert not set(id_) & set(b"\0\t\r\n")
        assert id_.decode()


@each_keep
@pytest.mark.parametrize("byte", [b" ", b"A", b"g", b"\xc3", b"\t", b""])
@pytest.mark.parametrize("position", [0, 7, 15])
def test_what_has_no_place_is_refused(keep, byte, position):
    """A tagged id is refused if its place is not 16 lower-case hexadecimal digits."""
    tag = tag_of(keep)
    good = tagged(tag, [Record(b"v", NEW + i, 3) for i in range(9)])
    start = good[3].index(b"%016x" % (NEW + 3)) + position
    wrong = good[3][:start] + byte + good[3][start + 1 :]
    if not keep.endswith("smallest") and not byte:
        wrong = wrong[:-1]  # the id would move up, and might be a digit
    assert len(tag.places(good)) == 9
    with pytest.raises(WireError, match="expected a record with its place, as reducer"):
        tag.places([*good[:3], wrong, *good[4:]])


def test_blanks_do_not_pass_for_digits_however_many_there_are():
    wrong = b"1" + b"0 " * 8 + b"v"
    with pytest.raises(WireError, match="got '10 0 0"):
        tag_of("first").places([wrong, wrong])


@pytest.mark.parametrize("wrong", [b"", b"1", b"v", b"1\1", b"1v\1800000000000000"])
def test_what_is_no_tagged_id_is_refused(wrong):
    for tag in map(tag_of, KEEPS):
        with pytest.raises(WireError):
            tag.places([wrong])
    assert all(tag.places([]).tolist() == [] for tag in map(tag_of, KEEPS))


@each_keep
def test_a_place_of_the_other_collection_is_refused(keep):
    tag = tag_of(keep)
    (old, new) = tagged(tag, [Record(b"a", 7, 1), Record(b"b", NEW + 7, 1)])
    for wrong in (b"1" + old[1:], b"0" + new[1:], b"2" + new[1:]):
        with pytest.raises(WireError, match="expected a record with its place"):
            tag.places([old, new, wrong])


def test_rules_of_keep() -> None:
    """In --keep, a comma inside a pattern belongs to the pattern, unless a rule follows it."""
    assert tag_of("prefer:^a{1,2},max:b.c,min:first").fields == ("b.c", "first")
    assert len(tag_of("prefer:x,longer,longest").ranks) == 2


@pytest.mark.parametrize(
    ("keep", "told"),
    [
        ("", "'' is not one of first, longest"),
        ("max:", "'max:' is not one of first"),
        ("max", "not one of first, longest, smallest, max:FIELD"),
        ("first,longest", "first leaves no ties; it must be the last rule"),
        ("max:x,longer", "'longer' is not one of first"),
        ("prefer:(", "'\\(' is not a regular expression: missing"),
    ],
)
def test_rules_that_are_none(keep: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        tag_of(keep)


def test_records_without_fields_come_last() -> None:
    """Records without fields, such as those of an index, are last in priority."""
    sets = Ragged.from_rows([[1], [2]])
    plain = Batch([b"a", b"b"], sets, places=np.array([NEW, NEW + 1], np.uint64))
    for keep in ("max:x", "min:x"):
        (with_value,) = tagged(tag_of(keep), [Record(b"c", NEW + 2, 1, 2**64 - 2)])
        assert all(with_value < other for other in tag_of(keep).tagged(plain).ids)
