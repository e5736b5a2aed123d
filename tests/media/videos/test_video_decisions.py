"""Which of several similar videos is the original, where that is in doubt, and what is removed."""

import os
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.media.frames.sound_levels import packed
from neardup.media.pictures.keep_rules import (
    VIDEOS,
    Facts,
    FolderNames,
    add_sidecar,
    in_order,
    keep_rules,
)
from neardup.media.pictures.originals import doubt
from neardup.media.videos.runs import Run, VideoPair
from neardup.media.videos.video_decisions import (
    FoundPairs,
    RankedPair,
    clusters,
    compare,
    decide,
    links,
    removed,
)
from neardup.reading.folder_walk import path_id

COUNT = 9
ranks = st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1))
pairs_of_ranks = st.dictionaries(
    ranks.filter(lambda pair: pair[0] > pair[1]), st.integers(1, 8).map(lambda k: k / 8)
).map(lambda found: [(*pair, share) for pair, share in found.items()])
SPECTRUM = [float(4000 / (k + 1) ** 2) for k in range(17)]


def facts(fps: float = 25.0, **more: object) -> Facts:
    return {
        **{"seconds": 60.0, "width": 640, "height": 480, "bytes": 9, "fps": fps, "colour": 30.0},
        **{"inside": [1.0, 1.0], "spectrum": SPECTRUM, "noise": 0.5, "grain": 12.0},
        **{"levels": [120.0, 50.0], "cells": [9.0] * 16, "small": list(range(64)), **more},
    }


def pair(a: int, b: int, rate: float = 1.0, mirrored: bool = False) -> VideoPair:
    return VideoPair(a, b, mirrored, (Run(50.0, 0.0, 50.0, 0.0, 50.0, rate, 200),), 50.0, 1, 1, 1)


def order_of(some: list[Facts], pairs: list[VideoPair]) -> list[int]:
    compare(pairs, some)
    return in_order(some, list("abc")[: len(some)], keep_rules(VIDEOS))


@pytest.mark.parametrize("fps", [10.0, 23.976, 24.0, 25.0, 29.97, 30.0, 50.0, 59.94, 60.0])
def test_a_slowed_copy_has_an_unusual_rate_of_frames(fps: float) -> None:
    copy, original = facts(fps * 0.95, bytes=1), facts(fps)
    assert order_of([copy, original], [pair(0, 1, 1.05)]) == [1, 0]
    assert (copy["changes"], doubt(original, copy)) == (["speed"], "")


def test_of_two_usual_rates_the_speed_is_doubtful() -> None:
    some = [facts(24.0), facts(25.0)]
    order_of(some, [pair(0, 1, 1.04)])
    assert doubt(*some) == doubt(*some[::-1]) == "speed"


def test_the_one_that_is_mirrored_is_known_among_three() -> None:
    two = [facts(bytes=1), facts()]
    order_of(two, [pair(0, 1, mirrored=True)])
    assert doubt(*two) == "mirrored"
    three = [facts(bytes=1), facts(), facts()]
    found = [pair(0, 1, mirrored=True), pair(0, 2, mirrored=True), pair(1, 2)]
    assert order_of(three, found)[-1] == 0
    assert doubt(three[1], three[0]) == ""


def test_a_copy_compressed_again_has_less_power_whatever_its_rate_of_frames() -> None:
    for fps in (15.0, 30.0, 60.0):
        assert order_of([facts(fps, grain=11.5, bytes=1), facts(30.0)], [pair(0, 1)]) == [1, 0]


def test_grey_and_noise_are_known_beside_the_original() -> None:
    weak = [0.8 * power for power in SPECTRUM]
    for copy, word in ((facts(colour=0.5), "grey"), (facts(noise=9.0, spectrum=weak), "noise")):
        assert order_of([copy, facts()], [pair(0, 1)]) == [1, 0]
        assert copy["changes"] == [word]


def by_definition(pairs: list[RankedPair], old: int) -> dict[int, tuple[int, float]]:
    gone: dict[int, tuple[int, float]] = {}
    for rank in range(old, COUNT):
        near = [(-s, b >= old, b) for a, b, s in pairs if a == rank and b not in gone]
        best = min(near, key=lambda reason: (reason[1], reason[0], reason[2]), default=None)
        if best:
            gone[rank] = best[2], -best[0]
    return gone


@pytest.mark.slow
@given(pairs_of_ranks, st.integers(0, COUNT))
def test_removed(pairs: list[RankedPair], old: int) -> None:
    found = {rank: (kept, float(share)) for rank, kept, share in removed(pairs, old)}
    assert found == by_definition(pairs, old)


def test_an_example() -> None:
    """Record 2, similar to 0 and 1, is removed; record 3 is similar only to 2, and is kept."""
    pairs = [(2, 0, 0.5), (2, 1, 0.75), (3, 2, 1.0)]
    assert list(removed(pairs, 0)) == [(2, 1, "0.750000")]
    assert list(removed([], 0)) == []
    assert list(removed(pairs, 3)) == [(3, 2, "1.000000")]


def test_clusters_are_named_by_the_first_of_their_videos() -> None:
    linked = [pair(1, 3), pair(3, 0)]
    videos = FoundPairs("cabd", [facts() for _ in "cabd"], [60.0] * 4, 0, linked, [])
    assert clusters(videos, [], False) == [b"a\ta\n", b"a\tc\n", b"a\td\n"]
    assert clusters(videos._replace(pairs=[]), [], False) == []


def test_a_part_removes_no_video_and_makes_no_group() -> None:
    """Links are those of copies and clips, and then parts between their groups."""
    parts = [pair(1, 2)._replace(kind="part"), pair(0, 3)._replace(kind="part", mirrored=True)]
    copies = [pair(1, 3)._replace(share=0.6), pair(3, 0)._replace(share=0.6, one_picture=True)]
    videos = FoundPairs("cabd", [facts() for _ in "cabd"], [60.0] * 4, 0, [*parts, *copies], [])
    assert links(videos.pairs, 4) == [parts[0], *copies]
    same = videos._replace(pairs=copies, facts=[facts() for _ in "cabd"])
    assert clusters(videos, [], True) == clusters(same, [], True) != []
    for threshold in (1e-6, 0.8):
        decided = decide(videos, [], threshold, False)
        assert decided == decide(same, [], threshold, False)
        assert decided.removed
        assert decide(videos._replace(pairs=parts), [], threshold, True).removed == []
    assert videos.facts == same.facts


def test_a_removal_of_what_only_that_video_has_is_doubtful() -> None:
    """Prints of an older version do not say whether there is sound."""
    mute, loud, unknown = ({"holds": ["pictures"]}, {"holds": ["pictures", "sound"]}, {})
    both = {"holds": ["pictures", "sound", "sound 2", "subtitles"]}
    measured = {"spectrum": SPECTRUM}
    doubts = {
        "no sound": [(mute, loud)],
        "no sound,no sound 2,no subtitles": [(mute, both)],
        "no sound 2,no subtitles": [(loud, both)],
        "": [(loud, mute), (mute, mute), (both, loud), (unknown, loud), (mute, unknown)],
        "language": [({"languages": ["eng"]}, {"languages": ["deu"]})],
        "language of subtitles": [({"written": ["eng"]}, {"written": ["deu", "eng"]})],
        "fewer frames": [({"fps": 12.5}, {"fps": 25.0})],
        "less sound": [({"sound": 0.4}, {"sound": 1.0}), ({"sound": 0.93}, {"sound": 0.99})],
    }
    doubts[""] += [({"languages": ["deu", "eng"]}, {"languages": ["deu"]})]
    doubts[""] += [({"languages": []}, {"languages": ["deu"]})]
    doubts[""] += [({"fps": 23.976}, {"fps": 29.97}), ({"fps": 50.0}, {"fps": 25.0})]
    doubts[""] += [({"fps": 0.0}, {"fps": 25.0}), (unknown, {"fps": 25.0})]
    doubts[""] += [({"sound": 0.97}, {"sound": 1.0}), (unknown, {"sound": 1.0})]
    for words, cases in doubts.items():
        assert {doubt({**kept, **measured}, {**gone, **measured}) for kept, gone in cases} == {
            words
        }


def test_a_removal_for_a_video_with_a_logo_or_subtitles_is_doubtful() -> None:
    """Which of both has it is not known; the mean of a mirrored one or a clip says nothing."""
    plain = (np.arange(4096).reshape(64, 64) ** 1.5 % 99 + 60).astype(np.uint8)
    marked = plain.copy()
    marked[50:54, 20:44] = 250
    logo, clean, bright = (
        facts(mean=b64encode(of.tobytes()).decode()) for of in (marked, plain, plain + 30)
    )
    assert doubt(logo, clean) == doubt(clean, logo) == "mark"
    assert doubt(clean, bright) == doubt(clean, {**clean}) == ""
    assert doubt(logo, {**clean, "seconds": 50.0}) == ""
    assert doubt(logo, {**clean, "changes": ["mirrored"]}) == ""
    assert doubt(logo, facts()) == ""


def test_a_whole_video_is_kept_and_the_damaged_one_removed() -> None:
    """If the damaged one is kept, as it shows more detail, that is doubtful."""
    some = [facts(damaged=True, bytes=1), facts()]
    assert order_of(some, [pair(0, 1)]) == [1, 0]
    assert (doubt(some[0], some[1]), doubt(some[1], some[0])) == ("damaged", "")


def test_of_equal_videos_the_one_with_more_sound_is_kept() -> None:
    some = [facts(holds=["pictures", "sound"], bytes=1)]
    some += [facts(holds=["pictures", "sound", "sound 2"])]
    assert order_of(some, [pair(0, 1)]) == [1, 0]


SUBTITLES = ["b 1.srt", "b 1.en.srt", "b 1.pt-BR.forced.ASS", "b 1.English.sdh.2.vtt", "Subs/2.srt"]


@pytest.mark.parametrize("name", SUBTITLES)
def test_of_equal_videos_the_one_with_subtitles_beside_it_is_kept(
    name: str, tmp_path: Path
) -> None:
    some = [facts(holds=["pictures"], bytes=1), facts(holds=["pictures"])]
    beside = tmp_path / "new" / name
    beside.parent.mkdir(parents=True)
    for file in (
        beside,
        tmp_path / "a part.srt",
        tmp_path / "a.2019.12.srt",
        tmp_path / "a.en.txt",
    ):
        file.touch()
    ids = [path_id(os.fsencode(tmp_path / video)) for video in ("a.mp4", "new/b 1.mp4")]
    videos = FoundPairs(ids, some, [60.0] * 2, 0, [pair(0, 1)], [])
    for keep, kept, words in ((VIDEOS, 1, b""), ("min:bytes", 0, b"no sidecar")):
        (line,) = decide(videos, keep_rules(keep), 0.8, False).removed
        _, other, _, doubts = line.rstrip(b"\n").split(b"\t")
        assert (other.decode(), doubts) == (ids[kept], words)


@pytest.mark.parametrize(
    ("names", "own"),
    [
        ("Subs/2_English.srt", True),
        ("Subs/2_English.srt other.mkv", False),
        ("Subs/b.en.srt other.mkv", True),
        ("Subs/b/2.srt other.mkv", True),
        ("Subs/other.en.srt other.mkv", False),
    ],
)
def test_a_folder_of_subtitles_is_of_the_films_that_it_names(
    names: str, own: bool, tmp_path: Path
) -> None:
    for name in ["b.mp4", *names.split()]:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
    some: Facts = {"holds": ["pictures"]}
    add_sidecar(some, os.fsencode(tmp_path / "b.mp4"), FolderNames())
    assert ("sidecar" in some["holds"]) == own


def test_of_equal_videos_the_one_with_the_last_minutes_is_kept() -> None:
    """A film without its last 5 % has fewer bytes, and may be the noisier one."""
    some = [facts(seconds=57.0, bytes=1, grain=12.5), facts()]
    assert order_of(some, [pair(0, 1)]) == [1, 0]


def test_a_video_kept_without_a_stretch_of_the_removed_one_is_doubtful() -> None:
    """The cinema version with more pixels is kept; the longer one, with a scene more, is named."""
    some = [facts(seconds=54.0, width=1280, height=960), facts()]
    for missed, words in (((0.0, 6.0), b"not whole"), ((6.0, 2.0), b"")):
        found = [pair(0, 1)._replace(missed=missed)]
        (line,) = decide(
            FoundPairs("ab", some, [54.0, 60.0], 0, found, []), keep_rules("max:pixels"), 0.8, False
        ).removed
        assert (line[:4], line.rstrip(b"\n").split(b"\t")[3]) == (b"b\ta\t", words)


@pytest.mark.parametrize("name", ["VIDEO_TS/VTS_01_1.VOB", "a/bdmv/stream/00001.m2ts", "film.vob"])
def test_a_file_of_a_disc_is_removed_with_a_doubt(name: str) -> None:
    """Its menu and its list of parts name it."""
    videos = FoundPairs(["a.mkv", name], [facts(), facts()], [60.0] * 2, 0, [pair(0, 1)], [])
    (line,) = decide(videos, keep_rules("prefer:^a.mkv"), 0.8, False).removed
    assert line.split(b"\t")[3] == (b"\n" if name == "film.vob" else b"disc\n")


@pytest.mark.parametrize(
    ("kept", "removed"), [("a.mkv", "My.app/b.mkv"), ("Films.imovielibrary/b.mkv", "a.mkv")]
)
def test_a_file_of_a_program_or_library_and_its_copy_are_doubtful(kept: str, removed: str) -> None:
    """Without its file a program may break; and with the program, the kept copy is removed."""
    videos = FoundPairs([kept, removed], [facts(), facts()], [60.0] * 2, 0, [pair(0, 1)], [])
    decision = decide(videos, keep_rules(f"prefer:^{kept}"), 0.8, False)
    assert decision.removed[0].endswith(b"\tpackage\n")
    assert decision.doubtful == decision.removed


class CountedPairs(list[VideoPair]):
    """A list that counts how often it is read."""

    passes = 0

    def __iter__(self) -> Iterator[VideoPair]:
        self.passes += 1
        return super().__iter__()


def test_pairs_are_read_as_often_for_many_copies_with_sound_as_for_two() -> None:
    """Of thousands of copies there are millions of pairs."""
    passes, heard = [], [packed(np.arange(60, 180, dtype=np.uint8))]
    for many in (2, 20):
        pairs = CountedPairs(pair(a, b) for a in range(many) for b in range(a + 1, many))
        some = [facts(holds=["sound"], heard=heard) for _ in range(many)]
        ids = [f"{k:02}.mp4" for k in range(many)]
        found = FoundPairs(ids, some, [60.0] * many, 0, pairs, [])
        assert len(decide(found, keep_rules(VIDEOS), 0.8, False).removed) == many - 1
        passes.append(pairs.passes)
    assert passes[0] == passes[1]


@pytest.mark.parametrize("keep", ["max:bytes", "min:bytes", "min:seconds"])
@pytest.mark.parametrize("old", [0, 1], ids=["new", "old"])
def test_a_whole_video_is_never_removed_for_its_crop(keep: str, old: int) -> None:
    """A crop of a crop comes after it; an old crop stays, and so does a new whole video."""
    crops = [pair(0, 1)._replace(crop=0), pair(1, 2)._replace(crop=1), pair(0, 2)._replace(crop=0)]
    some = [facts(bytes=99), facts(bytes=50), facts(bytes=9)]
    videos = FoundPairs(["a.mp4", "b.mp4", "c.mp4"], some, [60.0] * 3, old, crops, [])
    gone = {
        line.split(b"\t")[0]: line.split(b"\t")[1]
        for line in decide(videos, keep_rules(keep), 0.8, False).removed
    }
    assert gone == {b"b.mp4": b"c.mp4", **({} if old else {b"a.mp4": b"c.mp4"})}
    assert len(clusters(videos, keep_rules(keep), False)) == 3


def test_a_crop_kept_before_a_framed_video_is_doubtful() -> None:
    """The frame may be all that it has more."""
    some = [facts(), facts(inside=[0.95, 0.95], bytes=1)]
    videos = FoundPairs("ab", some, [60.0] * 2, 0, [pair(0, 1)._replace(crop=0)], [])
    (line,) = decide(videos, keep_rules("max:bytes"), 0.8, False).removed
    assert line.split(b"\t")[3] == b"cropped\n"
    assert [of["changes"] for of in some] == [["cropped"], ["framed"]]
