"""Counts and summaries of runs over pictures and videos are correct."""

from __future__ import annotations

from collections import Counter

import pytest

from neardup.media.pictures import pictures
from neardup.media.pictures.picture_hashes import Fingerprint
from neardup.reading.decoders import Failure, Outcome
from neardup.reading.folder_walk import FoundFile
from neardup.reading.tally import FLAT, Rules, Tally, listed
from neardup.runtime.program import StageError
from neardup.runtime.summary import QUIET, SHORT_SUMMARY, VERBOSE


def rules(verbosity: int = SHORT_SUMMARY, strict: bool = False) -> Rules:
    return Rules("neardup images", "picture", strict, verbosity)


def outcome(result: Fingerprint | Failure, cached: bool = False) -> Outcome:
    return Outcome(FoundFile(b"a b\xff", 1, 1), result, cached)


def picture() -> Fingerprint:
    return Fingerprint(bytes(32), 99, 1, 1, "")


def test_what_is_kept() -> None:
    tally = Tally(rules())
    good = picture()
    assert tally.kept(outcome(good, cached=True)) is good
    assert tally.kept(outcome(picture())) is not None
    tally.leave_out(FLAT, b"white.png")
    tally.animate(b"a.gif")
    assert tally.kept(outcome(Failure(pictures.NOT_A_PICTURE, ".txt"))) is None
    assert tally.kept(outcome(Failure(pictures.DAMAGED, "cut"))) is None
    first, left_out, failed, last = tally.summary("").splitlines()
    assert first == (
        "2 pictures in 4 files, 1 animated, never like a still (a.gif); "
        "1 other file: 1 .txt (a%20b%FF)"
    )
    assert left_out == "not compared: 1 without detail (white.png)"
    assert failed == "1 file could not be read: 1 damaged"
    assert last.endswith(" seconds, 1 picture from the cache")


@pytest.mark.parametrize(("verbosity", "shown"), [(QUIET, 0), (SHORT_SUMMARY, 10), (VERBOSE, 12)])
def test_first_failures(verbosity: int, shown: int, capsys: pytest.CaptureFixture[str]) -> None:
    cleared = []
    tally = Tally(rules(verbosity), lambda: cleared.append(1))
    for _ in range(12):
        tally.kept(outcome(Failure(pictures.DAMAGED, "cut")))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["neardup images: a%20b%FF: damaged: cut"] * shown
    assert len(cleared) == shown


def test_strict() -> None:
    tally = Tally(rules(strict=True))
    tally.kept(outcome(Failure(pictures.NOT_A_PICTURE, ".txt")))
    with pytest.raises(StageError, match="a%20b%FF: damaged: cut; without --strict"):
        tally.kept(outcome(Failure(pictures.DAMAGED, "cut")))


def test_all_counts(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(rules(VERBOSE))
    tally.kept(outcome(picture()))
    tally.kept(outcome(Failure(pictures.NOT_A_PICTURE, ".x")))
    for path in (b"a/.b", b".c d"):
        tally.leave_out("hidden", path)
    said = [f"neardup images: {line}" for line in ("a%20b%FF: not a picture", "a/.b: hidden")]
    assert capsys.readouterr().err.splitlines() == [*said, "neardup images: .c%20d: hidden"]
    lines = tally.summary("no cache: why").splitlines()
    counts = dict(line.rsplit(maxsplit=1) for line in lines[:-1])
    assert counts["files"] == "2"
    assert counts["… .x"] == "1"
    assert counts["skipped: hidden"] == "2"
    assert lines[-1] == "no cache: why"


def test_videos(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(Rules("neardup videos", "video", False, SHORT_SUMMARY))
    assert tally.kept(outcome(Failure("not a video", ".txt"))) is None
    assert tally.kept(outcome(Failure("not a picture", ".txt"))) is None
    tally.kept(outcome(picture()))
    tally.seconds += 5400
    tally.report("", ["1 pair"])
    lines = capsys.readouterr().err.splitlines()[1:]
    assert lines[0] == "1 pair"
    assert lines[1] == "1 video in 3 files, 1.5 hours; 1 other file: 1 .txt (a%20b%FF)"
    assert lines[2] == "1 file could not be read: 1 not a picture"


def test_no_picture(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(rules(QUIET))
    with pytest.raises(StageError, match="found no picture"):
        tally.report("")
    tally.kept(outcome(picture()))
    tally.report("")
    assert capsys.readouterr().err == ""


def test_many_kinds() -> None:
    text = listed(Counter({f".{k}": 10 - k for k in range(9)}), 4)
    assert text == "10 .0, 9 .1, 8 .2, 7 .3 and 5 other kinds"
    assert "\x1b" not in listed(Counter({".\x1b[2J\udcff": 1}))


def test_nothing_that_is_left_out_goes_unnamed() -> None:
    """All reasons are listed, each with its first names, whatever the number of reasons."""
    tally = Tally(rules())
    for number in range(9):
        for name in range(number + 1):
            tally.leave_out(f"reason {number}", b"%d/%d" % (number, name))
    (line,) = tally.not_compared()
    assert line.startswith("not compared: 9 reason 8 (8/0, 8/1, 8/2, …), 8 reason 7 (")
    assert line.endswith("2 reason 1 (1/0, 1/1), 1 reason 0 (0/0)")


def test_failures_that_were_not_printed_are_named() -> None:
    tally = Tally(rules())
    for number in range(11):
        tally.fail(f"{number}.png", Failure(pictures.DAMAGED, ""))
    tally.fail("locked.png", Failure("no key", ""))
    (line,) = tally.not_compared()
    said = "11 damaged (0.png, 1.png, 2.png, …), 1 no key (locked.png)"
    assert line == f"12 files could not be read: {said}"
