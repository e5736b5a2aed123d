"""Malformed lines between the stages, and lines made with other options, are refused."""

from __future__ import annotations

import random
from itertools import permutations
from pathlib import Path

import pytest

from tests.support.engines import (
    ANSWER,
    DEDUP,
    MAPPER,
    REDUCER,
    SHARE_KEYS,
    VIDEOS,
    in_order,
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
    result = run(REDUCER, tmp_path, GARBAGE[name])
    assert result.code == 1
    assert result.out == b""
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
    result = run(DEDUP, tmp_path, data)
    assert result.code == 1
    (message,) = result.err.splitlines()
    assert message.startswith("dedup_reducer.py: ")


def test_dedup_gets_partners_in_any_order(tmp_path: Path) -> None:
    """dedup_reducer.py accepts the lines of one first id in any order, as Hadoop may give them."""
    lines = b"a\tb\t0.900000\na\tc\t0.950000\na\tb\t1.000000\n"
    assert succeed(DEDUP, tmp_path, lines).out == b"a\tb\t1.000000\na\tc\t0.950000\n"


def test_the_last_line_may_lack_its_end(tmp_path: Path) -> None:
    keyed = succeed(MAPPER, tmp_path, GOOD[:-1])
    assert keyed.lines() == succeed(MAPPER, tmp_path, GOOD).lines()
    pairs = succeed(REDUCER, tmp_path, in_order(keyed.out)[:-1])
    assert pairs.out == PAIRS
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
    result = run(REDUCER, tmp_path, b"~a\n~a\n")
    assert (result.code, result.out) == (1, b"")
    assert "need the same --output" in result.err
    assert succeed([*REDUCER, "--output=removed"], tmp_path, b"~a\n~a\n").out == b"~a\t2\n"
