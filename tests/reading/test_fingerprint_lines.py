"""Fingerprints in lines and rows become batches; anything else is a bad line with a reason."""

import base64
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.reading import fingerprint_lines as lines
from neardup.reading.fingerprint_lines import fingerprint_parser
from neardup.reading.input_check import BadLine
from neardup.sets.bit_vectors import Prints
from neardup.sets.ragged import Batch
from tests.support.engines import MAPPER, RUN_LOCAL, in_order, refuse, run, succeed
from tests.support.fingerprints import Print, drawn_prints, hexadecimal, lines_of, pair_lines
from tests.support.oracle import hamming

BITS = [32, 36, 40, 64, 256, 1020, 1024]
every_length = pytest.mark.parametrize("bits", BITS)
A, B = (hexadecimal(0xDEADBEEF00112233 ^ x, 64) for x in (0, 5))


def parsed(block: bytes, bits: int = 64) -> tuple[Batch, list[BadLine]]:
    return fingerprint_parser(lines.fingerprint_lines, bits)(block)


def prints_in(batch: Batch, bits: int) -> list[tuple[bytes, tuple[str, ...]]]:
    """Return each record's id and its fingerprints, as text in hexadecimal digits."""
    blocks = -(-bits // 16)
    found = []
    for i, id_ in enumerate(batch.ids):
        row = batch.sets.row(i).tolist()
        assert [token >> 16 for token in row] == [
            variant << 8 | place for variant in range(len(row) // blocks) for place in range(blocks)
        ]
        words = [f"{token & 0xFFFF:04x}" for token in row]
        short = 4 - (bits // 4) % 4 if bits % 16 else 0
        for last in range(blocks - 1, len(words), blocks):
            assert words[last][:short] == "0" * short
            words[last] = words[last][short:]
        some = ["".join(words[at : at + blocks]) for at in range(0, len(words), blocks)]
        found.append((id_, tuple(some)))
    return found


def written(records: list[Print], bits: int) -> list[tuple[bytes, tuple[str, ...]]]:
    return [(id_, tuple(hexadecimal(x, bits).decode() for x in values)) for id_, values in records]


@every_length
@pytest.mark.parametrize("variants", [1, 4, 256])
def test_lines_and_back(bits: int, variants: int) -> None:
    records = drawn_prints(30, bits, 3, variants=variants)
    batch, bad = parsed(lines_of(records, bits), bits)
    assert not bad
    assert prints_in(batch, bits) == written(records, bits)
    assert batch.places.tolist() == list(range(30))
    prints = Prints.of(batch.sets, bits)
    assert prints.counts.tolist() == [len(record.values) for record in records]
    values = [value for record in records for value in record.values]
    assert prints.vectors.shape == (len(values), -(-bits // 64))
    for row, value in zip(prints.vectors.tolist(), values):  # the order of bits is their own
        assert sum(hamming(word, 0) for word in row) == hamming(value, 0)


WORDS = st.one_of(
    st.sampled_from([A, B, A.upper(), A[:-1], A + b"0", A[:-1] + b"g", b"x", A + B, b"\xff" * 16]),
    st.binary(min_size=1, max_size=17),
)
SEPARATORS = st.sampled_from([b" ", b"\t", b"  ", b"\v", b" \t", b"\x01", b"\r", b"\0", b"\x1c"])
IDS = st.sampled_from([b"a", b"\xc3\xbc", b"\xff", b"a\x01", b"a\x85", b"-", b"a,b"])
LINES = st.tuples(
    st.sampled_from([b"", b"", b" "]),
    IDS,
    st.lists(st.tuples(SEPARATORS, WORDS).map(b"".join), min_size=1, max_size=3).map(b"".join),
    st.sampled_from([b"\n", b"\n", b"\r\n", b" \n", b"\n\n"]),
).map(b"".join)
PLAIN = st.tuples(IDS, SEPARATORS, st.sampled_from([A, B, A.upper()])).map(b"".join)


@given(st.lists(st.one_of(LINES, PLAIN.map(lambda line: line + b"\n")), min_size=1, max_size=5))
def test_any_line_is_a_record_or_bad_by_the_definition(some: list[bytes]) -> None:
    """A line is blank, a record, or bad for the reason that a loop over its words finds."""
    block = b"".join(some)
    records, reasons = [], {}
    for number, line in enumerate(block.splitlines()):
        words = line.split()
        if not words:
            continue
        reason = ""
        try:
            if b"\0" in line:
                reason = "NUL byte"
            line.decode()
        except UnicodeDecodeError:
            reason = reason or "not UTF-8"
        if not reason and not words[1:]:
            reason = "no fingerprint"
        if not reason and any(len(word) != 16 for word in words[1:]):
            reason = "fingerprint of another length than --bits"
        if not reason and not all(c in b"0123456789abcdefABCDEF" for w in words[1:] for c in w):
            reason = "not a fingerprint"
        if reason:
            reasons[number] = reason
        else:
            records.append((words[0], tuple(word.decode().lower() for word in words[1:])))
    batch, bad = parsed(block)
    assert prints_in(batch, 64) == records
    assert {line.number: line.reason for line in bad} == reasons
    assert not set(batch.places.tolist()) & set(reasons)


@given(st.lists(PLAIN, min_size=1, max_size=5))
def test_plain_lines_are_read_as_any_others(some: list[bytes]) -> None:
    """A block of plain lines, parsed at once, gives what line-by-line parsing gives."""
    block = b"".join(line + b"\n" for line in some)
    fast, slow = parsed(block), parsed(block + b"\n")
    assert fast[1] == slow[1]
    assert fast[0].ids == slow[0].ids
    assert fast[0].sets.values.tolist() == slow[0].sets.values.tolist()
    assert fast[0].places.tolist() == slow[0].places.tolist()


@pytest.mark.parametrize("count", [1, 256, 257])
def test_a_record_has_at_most_256_fingerprints(count: int) -> None:
    batch, bad = parsed(b" ".join([b"a", *[A] * count]) + b"\n" + b"b " + B + b"\n")
    assert [line.reason for line in bad] == ["more than 256 fingerprints"] * (count > 256)
    assert batch.ids == [b"a", b"b"][count > 256 :]
    assert batch.sets.sizes[0] == (4 if count > 256 else count * 4)


# Through the programs.

DATA = drawn_prints(60, 64, 3, seed=4, variants=2)
FLAGS = ["--bits=64", "--distance=3", "--exact"]
EXPECTED = pair_lines(DATA, 64, 3)


@pytest.mark.slow
def test_odd_lines_are_the_same_records(tmp_path: Path) -> None:
    """CRLF, blank lines, tabs, upper case or a missing line end do not change the records."""
    rows = lines_of(DATA, 64).splitlines()
    odd = b"\r\n\n".join(b" " + row.replace(b" ", b"\t ") + b" " for row in rows[:30])
    upper = [b"%b %b" % (id_, rest.upper()) for id_, _, rest in (r.partition(b" ") for r in rows)]
    data = odd + b"\n" + b"\n".join(upper[30:])
    (tmp_path / "prints").write_bytes(data)
    for name, stdin in (("-", data), (tmp_path / "prints", b"")):
        command = [*RUN_LOCAL, "--input=fingerprints", *FLAGS, name]
        assert succeed(command, tmp_path, stdin).out == EXPECTED


def base64_of(value: int) -> str:
    return base64.b64encode(value.to_bytes(8, "big")).decode()


def text_of(value: int) -> str:
    return hexadecimal(value, 64).decode()


def rows_of(kind: str) -> list[dict[str, Any]]:
    """Return the records as rows with this kind of field."""
    rows = []
    for id_, (own, *more) in DATA:
        several = [own, *more]
        fields = {
            "hexadecimal": {"h": text_of(own), "g": text_of(more[0]) if more else None},
            "base64": {"h": base64_of(own), "g": base64_of(more[0]) if more else None},
            "list": {"h": [text_of(value) for value in several] + [None], "g": None},
            "mixed": {"h": base64_of(own), "g": [text_of(value).upper() for value in more]},
            "nested": {"h": text_of(own), "g": None, "m": {"h": [base64_of(v) for v in more]}},
        }[kind]
        rows.append({"id": id_.decode(), **fields})
    return rows


@pytest.mark.parametrize("kind", ["hexadecimal", "base64", "list", "mixed", "nested"])
def test_json_lines(kind: str, tmp_path: Path) -> None:
    data = "".join(json.dumps(row) + "\n" for row in rows_of(kind)).encode()
    names = "h,m.h" if kind == "nested" else "h,g"
    command = [*RUN_LOCAL, "--input=jsonl", f"--fingerprint={names}", *FLAGS, "-"]
    assert succeed(command, tmp_path, data).out == EXPECTED


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_separated_rows(kind: str, tmp_path: Path) -> None:
    """CSV and TSV rows have one fingerprint, and a row with an empty field is bad."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter={"csv": ",", "tsv": "\t"}[kind])
    writer.writerow(["name", "h"])
    writer.writerows((id_.decode(), text_of(values[0])) for id_, values in DATA)
    writer.writerow(["none", ""])
    singles = [Print(id_, values[:1]) for id_, values in DATA]
    command = [*RUN_LOCAL, f"--input={kind}", "--fingerprint=h", "--id=name", *FLAGS, "-"]
    result = succeed(command, tmp_path, text.getvalue().encode())
    assert result.out == pair_lines(singles, 64, 3)
    assert result.count("bad lines") == 1


def parquet_columns() -> dict[str, Any]:
    arrow = pytest.importorskip("pyarrow")
    own = [values[0].to_bytes(8, "big") for _, values in DATA]
    more = [values[1].to_bytes(8, "big") if values[1:] else None for _, values in DATA]
    several = [[x, y] for x, y in zip(own, more)]
    texts = [[x and x.hex() for x in both] for both in several]
    null, code = arrow.nulls(len(DATA)), arrow.array(own).dictionary_encode()
    return {
        "hexadecimal": {"h": [x for x, _ in texts], "g": [y for _, y in texts]},
        "binary": {"h": own, "g": arrow.array(more, arrow.large_binary())},
        "fixed size": {
            "h": arrow.array(own, arrow.binary(8)),
            "g": arrow.array(more, arrow.binary(8)),
        },
        "dictionary": {"h": code, "g": more},
        "list of texts": {"h": texts, "g": null},
        "list of binary": {"h": several, "g": null},
        "list of fixed size": {"h": arrow.array(several, arrow.list_(arrow.binary(8))), "g": null},
        "nested": {"h": own, "g": [{"g": value} for value in more]},
    }


@pytest.mark.first_case
@pytest.mark.parametrize(
    "kind",
    ["hexadecimal", "binary", "fixed size", "dictionary", "nested"]
    + ["list of texts", "list of binary", "list of fixed size"],
)
def test_parquet(kind: str, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    ids = [id_.decode() for id_, _ in DATA]
    file, names = tmp_path / "a.parquet", "h,g.g" if kind == "nested" else "h,g"
    parquet.write_table(arrow.table({"id": ids, **parquet_columns()[kind]}), file)
    command = [*RUN_LOCAL, f"--fingerprint={names}", *FLAGS, file]
    assert succeed(command, tmp_path).out == EXPECTED


@pytest.mark.parametrize("bits", [bits for bits in BITS if bits % 8 == 0])
def test_base64_of_each_length_of_whole_bytes(bits: int, tmp_path: Path) -> None:
    records = [Print(id_, values[:1]) for id_, values in drawn_prints(20, bits, 2, seed=1)]
    rows = [
        {"id": id_.decode(), "h": base64.b64encode(values[0].to_bytes(bits // 8, "big")).decode()}
        for id_, values in records
    ]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    flags = [f"--bits={bits}", "--distance=2", "--exact"]
    keyed = succeed([*MAPPER, "--input=jsonl", "--fingerprint=h", *flags], tmp_path, data).out
    same = [*MAPPER, "--input=fingerprints", *flags]
    assert in_order(keyed) == in_order(succeed(same, tmp_path, lines_of(records, bits)).out) != b""


BAD = b"\xff %b\nb %b0\nc %b\nd\ne %b %b\n" % (A, A, A[:-1] + b"g", A, A[:8])


@pytest.mark.slow
def test_bad_lines_are_counted_and_shown(tmp_path: Path) -> None:
    data = lines_of(DATA, 64) + BAD
    command = [*RUN_LOCAL, "--input=fingerprints", *FLAGS]
    result = succeed([*command, "-v", "-"], tmp_path, data)
    assert result.out == EXPECTED
    assert result.count("records") == 60
    assert result.count("bad lines") == 5
    assert [message.split(": ")[:2] for message in result.messages()] == [
        ["line 61", "not UTF-8"],
        ["line 62", "fingerprint of another length than --bits"],
        ["line 63", "not a fingerprint"],
        ["line 64", "no fingerprint"],
        ["line 65", "fingerprint of another length than --bits"],
    ]
    refuse([*command, "--strict", "-"], tmp_path, "line 61: not UTF-8", code=1, stdin=data)
    assert run([*command, "--max-bad=1/14", "-"], tmp_path, data).code == 1
    assert succeed([*command, "--max-bad=1/13", "-"], tmp_path, data).out == EXPECTED


@pytest.mark.parametrize(
    ("flags", "data", "said"),
    [
        ([], b"a %b\nb %b\n" % (A, B), "add: --input fingerprints --bits 64"),
        (["--input=fingerprints"], b"a %b\nb %b\n" % (A, B), "--input fingerprints --bits 64"),
        (["--input=fingerprints"], b"a 12g4\nb 5g4\nc\n", "looks like text; add: --input text"),
        (
            ["--input=jsonl", "--fingerprint=h"],
            b'{"id": 1, "hash": "%b"}\n' % A,
            "add: --fingerprint hash",
        ),
        (["--input=csv", "--fingerprint=h"], b"id,hash\na,%b\n" % A, "add: --fingerprint hash"),
        (["--input=jsonl", "--fingerprint=h"], b'{"id": 1, "h": "%b"}\n' % A, "of its --bits"),
        (["--input=jsonl", "--fingerprint=h"], b'{"id": 1, "h": 7}\n', "7 is not a fingerprint"),
    ],
)
def test_what_cannot_be_read_says_what_to_type(
    flags: list[str], data: bytes, said: str, tmp_path: Path
) -> None:
    refuse([*RUN_LOCAL, *flags, "-"], tmp_path, said, code=1, stdin=data)
