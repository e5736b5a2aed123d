"""Every engine finds the pairs of fingerprints that the pipe finds; with --exact, all of them.

run_local.sh finds keys by an exact join; the other engines shuffle all keys."""

import random
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.runtime.program import StageError
from neardup.schemes.fingerprints import Fingerprints
from neardup.sets.ragged import shared
from neardup.similarity.sketches import bitmaps_and_sums
from neardup.stages.near_keys import near_keys
from tests.support import decision_oracle
from tests.support.cases import in_turn, some
from tests.support.decision_oracle import Line
from tests.support.drawn import mapped, reduced, settings_of
from tests.support.engines import (
    DECIDING,
    ENGINES,
    NEARDUP,
    RUN_LOCAL,
    Input,
    in_order,
    run,
    run_local,
    succeed,
)
from tests.support.fingerprints import (
    Print,
    drawn_prints,
    lines_of,
    pair_lines,
    record_distances,
    sets_of,
    shown,
    similarities,
)

BITS, DISTANCE = 64, 8
FLAGS = ["--input=fingerprints", f"--bits={BITS}", f"--distance={DISTANCE}"]
# Of masks that miss many pairs, so that it shows who finds them.
MISSING = [*FLAGS, "--bands=5", "--rows=16"]


def flipped(rng: np.random.Generator, value: int, most: int) -> int:
    places = rng.choice(BITS, int(rng.integers(most + 1)), replace=False)
    return value ^ sum(1 << int(place) for place in places)


def mirrored(count: int, seed: int) -> list[Print]:
    """Return groups of near records with near variants; some are copies, and some ids repeat."""
    rng = np.random.default_rng(seed)
    records: list[Print] = []
    while len(records) < count:
        bases = [int.from_bytes(rng.bytes(8), "big") for _ in range(3)]
        for _ in range(int(rng.integers(1, 6))):
            values = [flipped(rng, base, 5) for base in bases[: int(rng.integers(1, 4))]]
            if rng.random() < 0.3:
                values[0] = bases[0]
            if rng.random() < 0.1 and values[1:]:
                values[:2] = values[1::-1]
            records.append(Print(b"v%d" % (len(records) - (rng.random() < 0.1)), tuple(values)))
    return [records[i] for i in rng.permutation(len(records))]


def scheme_of(*flags: str) -> Fingerprints:
    scheme = settings_of(*flags).scheme
    assert isinstance(scheme, Fingerprints)
    return scheme


# Keys.


@pytest.mark.parametrize(
    "flags", [MISSING, [*FLAGS, "--exact"], [*FLAGS, "--bands=90", "--rows=20"]], ids=" ".join
)
@pytest.mark.parametrize("variants", [1, 3])
@settings(max_examples=8)
@given(seed=st.integers(0, 999), every=st.booleans(), count=st.integers(1, 40))
def test_near_records_have_the_smallest_of_their_common_keys(
    flags: list[str], variants: int, seed: int, every: bool, count: int
) -> None:
    """Near records share the smallest of their common keys or, with `every`, all of these keys."""
    scheme = scheme_of(*flags)
    records = [Print(id_, values[:variants]) for id_, values in mirrored(count, seed)]
    sets = sets_of(records, BITS)
    last = np.array([len(sets) - 1])
    parts = [sets.take(np.arange(len(sets) - 1)), sets.take(last)]
    keys, ours = scheme.keys(sets), near_keys(scheme, parts, every)
    for i in range(len(sets)):
        assert set(ours.row(i).tolist()) <= set(keys.row(i).tolist())
    left, right = np.nonzero(np.triu(record_distances(records, BITS) <= DISTANCE, 1))
    common, posted = shared(keys, left, right), shared(ours, left, right)
    for p in range(len(left)):
        wanted = common.row(p).tolist() if every else common.row(p)[:1].tolist()
        assert posted.row(p).tolist()[: len(wanted)] == wanted
    alone = np.setdiff1d(np.arange(len(sets)), np.concatenate((left, right)))
    assert ours.sizes[alone].tolist() == [0] * len(alone)


def test_that_pairs_are_missed_and_found_by_other_variants() -> None:
    """With the masks of MISSING, some pairs share no key, and some share one only by variants."""
    scheme, records = scheme_of(*MISSING), mirrored(300, 1)
    left, right = np.nonzero(np.triu(record_distances(records, BITS) <= DISTANCE, 1))
    found = []
    for count in (1, 3):
        keys = scheme.keys(sets_of([Print(a, x[:count]) for a, x in records], BITS))
        found.append(int((shared(keys, left, right).sizes > 0).sum()))
    assert 0 < found[0] < found[1] < len(left)


@pytest.mark.parametrize("bits", [256, 1024])
def test_records_that_differ_in_high_bits_of_two_words_are_not_the_same(bits: int) -> None:
    """Fingerprints that each differ from the first in two bits have different sums."""
    rng = np.random.default_rng(bits)
    base = int.from_bytes(rng.bytes(128), "big") >> 1024 - bits
    pairs = list(combinations(range(0, bits, 1 if bits == 256 else 5), 2))
    values = [base, *(base ^ 1 << a ^ 1 << b for a, b in pairs)]
    sets = sets_of([Print(b"x", (value,)) for value in values], bits)
    assert len(np.unique(bitmaps_and_sums(sets)[1])) == len(values)


# Every engine.


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Input:
    """Write two files of fingerprints; return the input."""
    folder = tmp_path_factory.mktemp("prints")
    records = mirrored(240, 5)
    parts = [lines_of(records[:100], BITS), lines_of(records[100:], BITS)]
    for name, part in zip("ab", parts):
        (folder / name).write_bytes(part)
    return Input(b"".join(parts), [str(folder / "a"), str(folder / "b")])


KINDS = {"missing": MISSING, "exact": [*FLAGS, "--exact"], "links": [*MISSING, "--output=links"]}
SOME_ENGINES = {
    **{name: ENGINES[name] for name in ("run_local 1", "run_local 2", "two rounds")},
    "run_local 7": run_local(7),
    **{name: ENGINES[name] for name in ("split pipe", "mrjob inline", "mrjob local")},
}


@pytest.mark.first_case
@in_turn(2, kind=KINDS, engine={**SOME_ENGINES})
def test_every_engine_prints_the_lines_of_the_pipe(
    kind: list[str], engine: object, files: Input, tmp_path: Path
) -> None:
    job = settings_of(*kind)
    lines = b"".join(sorted({*reduced(mapped(files.data, job), job)}))
    lines = best_of(lines)
    assert best_of(engine(files, kind, tmp_path)) == lines  # type: ignore[operator]
    near = similarities(mirrored(240, 5), BITS, DISTANCE)
    assert 0 < len(lines.splitlines()) <= len(near)
    if kind == KINDS["exact"]:
        assert lines == pair_lines(mirrored(240, 5), BITS, DISTANCE)


def best_of(lines: bytes) -> bytes:
    """Return each pair of ids once, with its highest similarity, as dedup_reducer.py does."""
    best = {line.rsplit(b"\t", 1)[0]: line for line in sorted(lines.splitlines(keepends=True))}
    return b"".join(sorted(best.values()))


@pytest.mark.slow
@some("bits", [32, 36, 40, 64, 256, 1020, 1024], 36, 256, 1024)
def test_run_local_on_a_thousand_records(bits: int, tmp_path: Path) -> None:
    distance = bits // 8
    records = drawn_prints(1000, bits, distance, seed=bits, variants=2)
    (tmp_path / "prints").write_bytes(lines_of(records, bits))
    flags = ["--input=fingerprints", f"--bits={bits}", f"--distance={distance}"]
    expected = pair_lines(records, bits, distance)
    found = succeed([*RUN_LOCAL, *flags, "--exact", tmp_path / "prints"], tmp_path).out
    assert found == expected
    usual = succeed([*RUN_LOCAL, *flags, tmp_path / "prints"], tmp_path).out.splitlines()
    assert set(usual) <= set(expected.splitlines())
    assert len(usual) >= 0.99 * len(expected.splitlines())


@pytest.mark.slow
def test_without_kernels(files: Input, tmp_path: Path) -> None:
    command = [*RUN_LOCAL, *MISSING, "-v", *files.files]
    with_them = succeed(command, tmp_path)
    without = succeed(command, tmp_path, process=True, NEARDUP_KERNELS="numpy")
    assert without.out == with_them.out != b""
    assert without.count("tasks with compiled kernels") == 0


@pytest.mark.first_case
@pytest.mark.parametrize("data", [b"", b"\n", b"a %016x\n" % 1, b"a %016x\na %016x\n" % (1, 1)])
@pytest.mark.parametrize("jobs", ["1", "3"])
def test_nothing_to_find(data: bytes, jobs: str, tmp_path: Path) -> None:
    (tmp_path / "few").write_bytes(data)
    for output in ("pairs", "clusters"):
        command = [*RUN_LOCAL, *FLAGS, f"--output={output}", f"--jobs={jobs}", tmp_path / "few"]
        found = succeed(command, tmp_path).out
        assert found == (b"a\ta\n" * 2 if data.count(b"a ") == 2 and output == "clusters" else b"")


# Decisions.


def decided(records: list[Print]) -> tuple[list[Line], dict[tuple[int, int], str]]:
    lines = [Line(id_, frozenset(range(len(values)))) for id_, values in records]
    apart = record_distances(records, BITS)
    return lines, {
        (int(i), int(j)): f"{(BITS - apart[i, j]) / BITS:.6f}"
        for i, j in zip(*np.nonzero(apart <= DISTANCE))
        if i != j
    }


ASKED = [
    ("kept", "direct", "first"),
    ("removed", "direct", "longest"),
    ("kept", "cluster", "smallest"),
    ("removed", "direct", "smallest"),
    ("removed", "cluster", "first"),
    ("kept", "direct", "longest"),
    ("clusters", "direct", "first"),
]


@pytest.mark.slow
@in_turn(2, asked={"-".join(each): each for each in ASKED}, engine=DECIDING)
def test_decisions(
    asked: tuple[str, str, str], engine: object, files: Input, tmp_path: Path
) -> None:
    output, rule, keep = asked
    flags = [*FLAGS, "--exact", f"--output={output}"]
    if output != "clusters":
        flags += [f"--rule={rule}", f"--keep={keep}"]
    found = engine(files, flags, tmp_path)  # type: ignore[operator]
    lines, pairs = decided(mirrored(240, 5))
    gone = getattr(decision_oracle, rule)(lines, pairs, keep)
    assert 0 < len(gone) < len(lines)
    if output == "kept":
        at = {each.place for each in gone}
        texts = files.data.splitlines(keepends=True)
        assert found == b"".join(text for i, text in enumerate(texts) if i not in at)
    elif output == "removed":
        shown_ = [
            b"%b\t%b\t%b\n" % (lines[i].id, lines[kept].id, similarity.encode())
            for i, kept, similarity in gone
        ]
        assert found == in_order(b"".join(shown_))
    else:
        groups = [
            [lines[i].id for i in group] for group in decision_oracle.components(len(lines), pairs)
        ]
        shown_ = [b"%b\t%b\n" % (min(group), id_) for group in groups for id_ in group]
        assert found == in_order(b"".join(shown_))


# Old records.


@pytest.mark.first_case
@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("flags", [MISSING, [*FLAGS, "--exact"]], ids=["missing", "exact"])
def test_old_records_in_files_and_in_an_index(
    flags: list[str], between: bool, tmp_path: Path
) -> None:
    records = [Print(b"r%d" % i, values) for i, (_, values) in enumerate(mirrored(150, 8))]
    parts = {"old": records[:50], "more": records[50:90], "new": records[90:]}
    for name, part in parts.items():
        (tmp_path / name).write_bytes(lines_of(part, BITS))
    command = [*RUN_LOCAL, *flags, *["--between"] * between, tmp_path / "new"]
    expected = succeed(
        [*command, "--against", tmp_path / "old", "--against", tmp_path / "more"], tmp_path
    ).out
    assert expected.count(b"\told\n") > 0
    assert (expected.count(b"\tnew\n") > 0) == (not between)
    index = [*NEARDUP, "index", "--to", tmp_path / "index"]
    succeed([*index, *flags, tmp_path / "old"], tmp_path)
    succeed([*index, "--add", tmp_path / "more"], tmp_path)
    assert succeed([*command, "--against", tmp_path / "index"], tmp_path).out == expected
    taken_over = [*RUN_LOCAL, "--input=fingerprints", tmp_path / "new", *command[-2:-1] * between]
    assert succeed([*taken_over, "--against", tmp_path / "index"], tmp_path).out == expected
    if "--exact" in flags:
        near = similarities(records, BITS, DISTANCE)
        new = {record.id for record in parts["new"]}
        pairs = {
            frozenset(pair): shown(share)
            for pair, share in near.items()
            if not new.isdisjoint(pair) and not (between and new.issuperset(pair))
        }
        found = {
            frozenset(line.split(b"\t")[:2]): line.split(b"\t")[2] for line in expected.splitlines()
        }
        assert found == pairs
    for wrong in ("--distance=7", "--bits=68"):
        refused = run([*command, wrong, "--against", tmp_path / "index"], tmp_path)
        assert refused.code != 0
        assert refused.out == b""
        assert re.search(wrong.replace("=", " "), refused.err)


# What a shuffle may do.


@pytest.mark.slow
def test_damaged_lines_make_no_traceback() -> None:
    """Damaged lines cause only the reducer's own errors, never another exception."""
    job, rng = settings_of(*MISSING), random.Random(4)
    lines = mapped(lines_of(mirrored(20, 2), BITS), job)
    whole, refused = b"".join(lines), 0
    for _ in range(300):
        at = rng.randrange(len(whole))
        put = bytes(rng.choice(b"0123456789abcdef:\t\n-oP") for _ in range(rng.randrange(4)))
        data = whole[:at] + put + whole[at + rng.randrange(4) :]
        try:
            found = reduced([line + b"\n" for line in data.splitlines()], job)
        except StageError:
            refused += 1
        else:
            assert all(line.count(b"\t") == 2 for line in found)
    assert 0 < refused < 300


@pytest.mark.parametrize(
    "flags",
    [
        ["--input=fingerprints", "--bits=64", "--distance=9", "--bands=5", "--rows=16"],
        ["--input=fingerprints", "--bits=128", f"--distance={DISTANCE}"],
        ["--input=fingerprints", "--bits=32", f"--distance={DISTANCE}"],
        [*FLAGS, "--exact"],
        ["--scheme=simhash", f"--distance={DISTANCE}"],
    ],
)
def test_the_reducer_refuses_keys_of_other_options(flags: list[str]) -> None:
    """The reducer refuses the keys of other options, except another --distance with equal masks."""
    own = settings_of(*flags)
    bits = int(next((f[7:] for f in flags if f.startswith("--bits")), "64"))
    data = lines_of(drawn_prints(50, bits, 3), bits)
    if "--scheme=simhash" in flags:
        data = b"".join(b"%d %d %d\n" % (i, i % 5, i % 7) for i in range(50))
    keyed = mapped(data, own)
    if "--distance=9" in flags:
        assert reduced(keyed, settings_of(*MISSING)) != []
        return
    with pytest.raises(StageError, match="mapper and reducer need the same"):
        reduced(keyed, settings_of(*MISSING))


def test_lines_of_one_key_in_any_order() -> None:
    """The lines of one key may come in any order, since Hadoop sorts by the key alone."""
    job = settings_of(*MISSING)
    lines = mapped(lines_of(mirrored(80, 2), BITS), job)
    random.Random(1).shuffle(lines)
    by_key = sorted(lines, key=lambda line: line.split(b"\t")[:2])
    expected = sorted(reduced(sorted(lines), job))
    assert expected
    assert by_key != sorted(lines)
    assert sorted(reduced(by_key, job)) == expected
