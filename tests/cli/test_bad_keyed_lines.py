"""Malformed lines between the stages, and lines made with other options, are refused."""

from __future__ import annotations

import random
import shlex
from itertools import permutations
from pathlib import Path

import pytest

from tests.support.engines import (
    ANSWER,
    DECIDE,
    DEDUP,
    KEEP,
    MAPPER,
    REDUCER,
    RUN_LOCAL,
    SHARE_KEYS,
    VIDEOS,
    in_order,
    refuse,
    run,
    succeed,
)
from tests.support.failing import GOOD, PAIRS

KEY = b"000:0123456789\t"
GARBAGE = {
    "noise": random.Random(3).randbytes(300) + b"\n",
    "records": GOOD,
    "pairs": PAIRS * 2,
    "blank": b"\n\n",
    "key only": KEY.strip() + b"\n",
    "key and tab": KEY + b"\n" + KEY + b"\n",
    "three fields": (KEY + b"00000001\ta\n") * 2,
    "five fields": (KEY + b"00000001\ta\t3\t\n") * 2,
    "no hex": b"xyz:0123456789\t00000001\ta\t3\nxyz:0123456789\t00000001\tb\t3\n",
    "no colon": b"00000123456789\t00000001\ta\t3\n00000123456789\t00000001\tb\t3\n",
    "negative band": b"-01:0123456789\t00000001\ta\t3\n-01:0123456789\t00000001\tb\t3\n",
    "negative hash": b"000:-123456789\t00000001\ta\t3\n000:-123456789\t00000001\tb\t3\n",
    "underscored": b"0_0:01234567_9\t00000001\ta\t3\n0_0:01234567_9\t00000001\tb\t3\n",
    "empty sets": KEY + b"00000000\ta\t\n" + KEY + b"00000000\tb\t\n",
    "one empty set": KEY + b"00000000\ta\t\n" + KEY + b"00000001\tb\t3\n",
    "wrong size": KEY + b"00000002\ta\t3\n" + KEY + b"00000002\tb\t3\n",
    "no size": KEY + b"x\ta\t3\n" + KEY + b"x\tb\t3\n",
    "no digits": KEY + b"00000001\ta\t~~\n" + KEY + b"00000001\tb\t~~\n",
    "no last digit": KEY + b"00000001\ta\to\n" + KEY + b"00000001\tb\to\n",
    "many digits": (KEY + b"00000001\ta\t" + b"o" * 30 + b"3\n") * 2,
    "not ascending": KEY + b"00000002\ta\t30\n" + KEY + b"00000002\tb\t30\n",
    "another key": KEY + b"00000001\ta\t3\n" + KEY + b"00000001\tb\t3\n",
    "carriage return": KEY + b"00000001\ta\t3\r\n" + KEY + b"00000001\tb\t3\r\n",
}


@pytest.mark.parametrize("name", GARBAGE)
def test_reducer_gets_garbage(name: str, tmp_path: Path) -> None:
    result = refuse(REDUCER, tmp_path, code=1, stdin=GARBAGE[name])
    (message,) = result.err.splitlines()
    assert message.startswith("reducer.py: ")


@pytest.mark.slow
def test_reducer_gets_unsorted_lines(tmp_path: Path) -> None:
    ordered = sorted(succeed([*MAPPER, VIDEOS], tmp_path).out.splitlines(keepends=True))
    turned = [*ordered[15:], *ordered[:15]]
    for wrong, number in ((turned, len(ordered) - 14), ([*ordered, ordered[0]], len(ordered) + 1)):
        result = run(REDUCER, tmp_path, b"".join(wrong))
        assert result.code == 1
        assert f"line {number}: keys are not in order" in result.err


SKETCHES = ["exact", "sketch:64", "sketch"]
OTHER_OPTIONS = [
    *(("", flags) for flags in ("--seed=1", "--bands=9 --rows=7", "--threshold=0.8")),
    ("", "--bands=15 --rows=6"),
    *((f"--verify={a}", f"--verify={b}") for a, b in permutations(SKETCHES, 2)),
    *(
        (f"--scheme={scheme} --weights={a}", f"--scheme={scheme} --weights={b}")
        for scheme, a, b in zip(
            ("minhash", "simhash", "projection", "minhash"),
            ("tf", "one", "own", "own"),
            ("one", "tf", "tf", "one"),
        )
    ),
]


@pytest.mark.first_case
@pytest.mark.parametrize(("mapper", "reducer"), OTHER_OPTIONS)
def test_reducer_gets_other_options(mapper: str, reducer: str, tmp_path: Path) -> None:
    """Other options are refused, even if by chance they lead to the same lines."""
    data = GOOD if "--weights" in mapper else VIDEOS.read_bytes()
    keyed = in_order(succeed([*MAPPER, *mapper.split()], tmp_path, data).out)
    result = run([*REDUCER, *reducer.split()], tmp_path, keyed)
    assert result.code == 1
    assert "mapper and reducer need the same" in result.err
    assert "--verify" not in reducer or "--verify" in result.err
    assert set(result.out.splitlines()) <= set(ANSWER.read_bytes().splitlines())


@pytest.mark.parametrize(
    "data",
    [b"\n", b"a\tb\n", b"a\t\t\n", b"a\tb\t0.9\tc\n", b"a b 0.900000\n", b"a\tb\tx\n", b"\0\xff\n"],
)
def test_dedup_gets_garbage(data: bytes, tmp_path: Path) -> None:
    result = refuse(DEDUP, tmp_path, code=1, stdin=data)
    (message,) = result.err.splitlines()
    assert message.startswith("dedup_reducer.py: ")


def test_dedup_gets_partners_in_any_order(tmp_path: Path) -> None:
    """dedup_reducer.py accepts the lines of one first id in any order, as Hadoop may give them."""
    lines = b"a\tb\t0.900000\na\tc\t0.950000\na\tb\t1.000000\n"
    assert succeed(DEDUP, tmp_path, lines).out == b"a\tb\t1.000000\na\tc\t0.950000\n"


def test_the_last_line_may_lack_its_end(tmp_path: Path) -> None:
    keyed = succeed(MAPPER, tmp_path, GOOD[:-1])
    assert keyed.lines() == succeed(MAPPER, tmp_path, GOOD).lines()
    assert succeed(REDUCER, tmp_path, in_order(keyed.out)[:-1]).out == PAIRS
    assert succeed(DEDUP, tmp_path, PAIRS + PAIRS[:-1]).out == PAIRS


OLD = ["--against", str(VIDEOS)]
WAYS = [[], ["--output", "kept"], ["--output=removed", "--keep=longest"]]
WAYS += [["--output=removed", "--keep=smallest"], ["--output=clusters"]]
WAYS += [OLD, [*OLD, "--between"], ["--output=kept", *OLD], ["--output=kept", *OLD, "--between"]]


@pytest.fixture(scope="module")
def keyed_ways(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = tmp_path_factory.mktemp("ways")
    data = b"".join(b"%b %b\n" % (id_, b"1 2 3 4 5 6 7 8 9") for id_ in (b"a", b"b", b"c"))
    old = folder / "old.txt"
    old.write_bytes(data)
    found = []
    for flags in WAYS:
        named = [str(old) if flag == OLD[1] else flag for flag in flags]
        found.append(in_order(succeed([*MAPPER, *named], folder, data).out))
    return found


@pytest.mark.parametrize("reducer", range(len(WAYS)))
def test_reducer_refuses_lines_that_travel_in_another_way(
    reducer: int, keyed_ways: list[bytes], tmp_path: Path
) -> None:
    """A reducer refuses keyed lines made for another --output, --keep, --against or --between."""
    assert succeed([*REDUCER, *WAYS[reducer]], tmp_path, keyed_ways[reducer]).out
    for mapper in {0, reducer - 1} - {reducer}:
        result = run([*REDUCER, *WAYS[reducer]], tmp_path, keyed_ways[mapper])
        assert (result.code, result.out) == (1, b"")
        assert "need the same --scheme (--recall, --max-bands, --bands, --rows" in result.err
        assert "--output, --rule, --keep, --against, --between" in result.err


@pytest.mark.parametrize("flags", ["--seed=1", "--threshold=0.8", "--bands=9 --rows=7"])
def test_shared_keys_of_other_options_are_refused(flags: str, tmp_path: Path) -> None:
    """`step.py share reduce` refuses keys that `share map` made with other options."""
    blocks = in_order(succeed([*SHARE_KEYS, "map", VIDEOS, *flags.split()], tmp_path).out)
    result = run([*SHARE_KEYS, "reduce"], tmp_path, blocks)
    assert result.code == 1
    assert "run share map again, and share reduce with the same options" in result.err


def test_lines_of_ids_alone_are_refused_where_no_ids_are_wanted(tmp_path: Path) -> None:
    refuse(REDUCER, tmp_path, "need the same --output", code=1, stdin=b"~a\n~a\n")
    assert succeed([*REDUCER, "--output=removed"], tmp_path, b"~a\n~a\n").out == b"~a\t2\n"


def test_keep_refuses_options_of_the_decision(tmp_path: Path) -> None:
    """They would have no effect: a record would be removed by another rule than the one typed."""
    (tmp_path / "decided").write_bytes(b"")
    (tmp_path / "a.txt").write_bytes(GOOD)
    words = ["--decided", tmp_path / "decided", "--output=kept", "--keep=longest", "--shingle=bag"]
    result = run([*KEEP, *words, tmp_path / "a.txt"], tmp_path)
    assert (result.code, result.out) == (2, b"")
    assert "--shingle=bag --keep=longest has no effect here: give it to mapper.py" in result.err
    line = result.err.strip().rpartition("then type: ./step.py keep ")[2]
    assert succeed([*KEEP, *shlex.split(line)], tmp_path).out == GOOD
    marked = [*KEEP, "--decided", tmp_path / "decided", "--output=marked", "--keep=longest"]
    assert "--keep=longest has no effect" in run([*marked, tmp_path / "a.txt"], tmp_path).err


@pytest.mark.parametrize(
    ("name", "flags", "data"),
    [
        ("a.csv", ["--id=1", "--text=2"], b"1,a b c\n2,a b c\n3,d\n4,e\n"),
        ("a.tsv", ["--id=1", "--text=2"], b"1\ta b c\n2\ta b c\n3\td\n4\te\n"),
        ("a.csv", ["--delimiter=;"], b'id;text\n1;"a\nb c"\n2;"a\nb c"\n3;d\n4;e\n'),
    ],
)
def test_keep_refuses_rows_that_were_read_in_another_way(
    name: str, flags: list[str], data: bytes, tmp_path: Path
) -> None:
    """With a header, or other quotes, another row would be removed."""
    (tmp_path / name).write_bytes(data)
    given, output = [f"--input={name[2:]}", *flags], ["--output=kept"]
    keyed = in_order(succeed([*MAPPER, *output, *given, tmp_path / name], tmp_path).out)
    edges = in_order(succeed([*REDUCER, *output, *given], tmp_path, keyed).out)
    decided = succeed([*DECIDE, *output, *given], tmp_path, edges).out
    (tmp_path / "decided").write_bytes(decided)
    words = [*KEEP, "--decided", tmp_path / "decided", tmp_path / name]
    refuse(words, tmp_path, "give step.py keep the --id and --text, --delimiter, --quote", code=1)
    kept = succeed([*words, *given], tmp_path).out
    assert kept == succeed([*RUN_LOCAL, *output, *given, tmp_path / name], tmp_path).out
    assert len(kept) < len(data)


def test_keep_refuses_a_line_whose_id_only_begins_like_the_removed_one(tmp_path: Path) -> None:
    (tmp_path / "decided").write_bytes(b"8000000000000001\t1\t0\t1.000000\n")
    (tmp_path / "a.txt").write_bytes(b"0 1 2\n10 1 2\n")
    result = run([*KEEP, "--decided", tmp_path / "decided", tmp_path / "a.txt"], tmp_path)
    assert (result.code, "expected a line of '1', got '10 1 2'" in result.err) == (1, True)
    (tmp_path / "a.txt").write_bytes(b"0 1 2\n1\t1 2\n")
    assert succeed([*KEEP, "--decided", tmp_path / "decided", tmp_path / "a.txt"], tmp_path).out
