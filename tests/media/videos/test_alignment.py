"""Runs common to two videos are found in copies, cuts, splices, other speeds and mirror images."""

import time

import numpy as np
import pytest

from neardup.media.frames.video_prints import VideoPrint
from neardup.media.videos.alignment import (
    Frames,
    _gain,
    align,
    distances,
    least_of_run,
    pair_of,
    standing,
)
from neardup.media.videos.runs import Run
from neardup.media.videos.time_lines import Line
from neardup.sets.bit_vectors import bits_apart
from tests.support.made_up_prints import (
    at_rate,
    calm_frames,
    copied,
    cut,
    filmed,
    frames,
    joined,
    made_up,
    mirrored,
    noisy,
)


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


def runs_of(x: VideoPrint, y: VideoPrint, mirror: bool = False) -> tuple[Run, ...]:
    a, b = Frames.of(x, mirror), Frames.of(y, mirror)
    seeds = seeds_of(a, b)
    return align(seeds, a, b) or (standing(seeds, a, b) if len(seeds) else ())


def seeds_of(a: Frames, b: Frames) -> np.ndarray:
    """Return the spans (m, 4) of all pairs of frames that differ in at most 31 bits."""
    i, j = (side.ravel() for side in np.indices((len(a.spans), len(b.spans))))
    near = distances(a, b, i, j) <= 31
    return np.hstack((a.spans[i[near]], b.spans[j[near]]))


def times(runs: tuple[Run, ...]) -> list[tuple[float, ...]]:
    return [tuple(round(seconds, 1) for seconds in run[1:5]) for run in runs]


def test_a_copy_is_one_run(random: np.random.Generator) -> None:
    video = made_up(random, "a", 30)
    (run,) = runs_of(video, copied(random, video, "b", 10))
    assert run == Run(30, 0, 30, 0, 30, 1, 120)


def test_videos_of_other_content_have_none(random: np.random.Generator) -> None:
    assert runs_of(made_up(random, "a", 30), made_up(random, "b", 30)) == ()


def test_a_clip_is_where_it_was_cut(random: np.random.Generator) -> None:
    video = made_up(random, "a", 60)
    clip = copied(random, cut(video, "b", 41, 45), "b", 20)
    assert times(runs_of(video, clip)) == [(41, 45, 0, 4)]
    assert times(runs_of(clip, video)) == [(0, 4, 41, 45)]


def test_the_longest_stretch_that_the_other_video_lacks(random: np.random.Generator) -> None:
    """Short gaps do not count together, and flat frames, which are no spans, do not count."""
    video = made_up(random, "a", 40)
    less = joined("b", cut(video, "", 2, 20), cut(video, "", 26, 38))
    a, b = Frames.of(video, False), Frames.of(less, False)
    pair = pair_of(0, 1, False, seeds_of(a, b), a, b)
    assert pair
    assert np.allclose(pair.missed, (6, 0), atol=0.5)
    dark = a.take(np.flatnonzero((a.spans[:, 0] < 22000) | (a.spans[:, 0] > 24000)))
    assert dark.missed(pair.runs) == pytest.approx(4, abs=0.5)


def test_parts_in_another_order_are_several_runs(random: np.random.Generator) -> None:
    video = made_up(random, "a", 60)
    parts = cut(video, "", 40, 50), made_up(random, "", 5), cut(video, "", 10, 20)
    spliced = copied(random, joined("b", *parts), "b")
    assert times(runs_of(video, spliced)) == [(10, 20, 15, 25), (40, 50, 0, 10)]


def test_a_clip_that_comes_twice_is_two_runs(random: np.random.Generator) -> None:
    clip = made_up(random, "a", 5)
    twice = joined("b", clip, made_up(random, "", 10), clip)
    assert times(runs_of(clip, twice)) == [(0, 5, 0, 5), (0, 5, 15, 20)]


@pytest.mark.parametrize("gap", [2.5, 4])
def test_a_short_gap_does_not_divide_a_run(random: np.random.Generator, gap: float) -> None:
    video = made_up(random, "a", 40)
    parts = cut(video, "", 0, 10), made_up(random, "", gap), cut(video, "", 10 + gap, 40)
    runs = runs_of(video, joined("b", *parts))
    assert len(runs) == (1 if gap < 3 else 2)
    assert sum(run.seconds for run in runs) == 40 - gap


@pytest.mark.parametrize("rate", [0.952, 0.96, 1.05])
def test_another_speed_is_told(random: np.random.Generator, rate: float) -> None:
    video = made_up(random, "a", 240)
    (run,) = runs_of(video, at_rate(video, "b", rate))
    assert abs(run.rate - rate) < 0.001
    assert run.seconds > 230
    assert abs(run.b_to - 240 * rate) < 0.5


def test_a_mirror_image_is_a_run_of_mirrored_frames(random: np.random.Generator) -> None:
    video = made_up(random, "a", 20)
    other = mirrored(copied(random, video, "b"), "b")
    assert times(runs_of(video, other, mirror=True)) == [(0, 20, 0, 20)]
    assert runs_of(video, other, mirror=False) == ()


@pytest.mark.parametrize(("seconds", "found"), [(1.0, False), (1.75, False), (2.0, True)])
def test_a_run_of_long_videos_has_two_seconds(
    random: np.random.Generator, seconds: float, found: bool
) -> None:
    video = made_up(random, "a", 20)
    other = joined("b", made_up(random, "", 10), cut(video, "", 5, 5 + seconds))
    assert bool(runs_of(video, other)) == found


def test_most_of_a_short_clip_is_enough(random: np.random.Generator) -> None:
    video = made_up(random, "a", 20)
    assert times(runs_of(video, cut(video, "b", 5, 6.5))) == [(5, 6.5, 0, 1.5)]
    assert runs_of(video, cut(video, "b", 5, 6)) == ()
    assert least_of_run(2.25) == pytest.approx(1.8)


def test_frames_that_are_less_near_count_on_a_line(random: np.random.Generator) -> None:
    """A few near frames show which times correspond; frames that differ in 38 bits then match."""
    video = made_up(random, "a", 60)
    other = copied(random, video, "b", 38)
    a, b = Frames.of(video, False), Frames.of(other, False)
    assert 2 < len(seeds_of(a, b)) < 60
    assert sum(run.seconds for run in align(seeds_of(a, b), a, b)) > 50


@pytest.mark.parametrize("seed", [1, 3])
def test_frames_under_subtitles_match_if_the_moments_differ_clearly(seed: int) -> None:
    """The whole run is found although subtitles change about 45 bits of most frames."""
    random = np.random.default_rng(seed)
    scene = [frames(random, 1)]
    for _ in range(47):
        scene.append(noisy(random, scene[-1], 7))
    hashes = np.concatenate(scene)
    subtitled = hashes.copy()
    subtitled[8:] ^= noisy(random, np.zeros((1, 2, 4), np.uint64), 45)
    (run,) = runs_of(filmed("a", hashes), filmed("b", subtitled))
    assert run[1:5] == (0, 12, 0, 12)


# ---- what stands still


@pytest.mark.slow
def test_two_takes_of_a_fixed_camera_are_no_pair(random: np.random.Generator) -> None:
    picture = calm_frames(random, 1, 0)
    takes = [filmed(id_, noisy(random, picture.repeat(240, axis=0), 14)) for id_ in "ab"]
    a, b = (Frames.of(take, False) for take in takes)
    assert len(seeds_of(a, b)) > 10_000
    assert align(seeds_of(a, b), a, b) == ()


def test_a_copy_of_a_fixed_camera_is_a_pair(random: np.random.Generator) -> None:
    take = filmed("a", calm_frames(random, 240, 10))
    (run,) = runs_of(take, copied(random, take, "b", 3))
    assert (run.a_from, run.a_to, run.rate) == (0, 60, 1)


def test_the_end_of_a_calm_video_is_where_it_was_cut(random: np.random.Generator) -> None:
    """In a calm video, where every frame is near every other, a clip is found where it was cut."""
    take = filmed("a", calm_frames(random, 24, 8))
    assert times(runs_of(take, copied(random, cut(take, "", 2, 6), "b", 1))) == [(2, 6, 0, 4)]


@pytest.mark.parametrize(("shift", "known"), [(1.5, True), (1.75, False)])
def test_one_frame_on_a_shifted_line_says_nothing(
    shift: float, known: bool, random: np.random.Generator
) -> None:
    """Of eight frames of a quarter of a second, two have another one 1.5 seconds later."""
    video = Frames.of(made_up(random, "a", 2), mirrored=False)
    here, none = np.zeros(len(video.spans)), np.empty(0, np.int64)
    gain = _gain(Line(1.0, 0.0, 0.0), shift, video, video, none, here)
    assert not np.isnan(gain) if known else np.isnan(gain)


def test_one_gesture_in_two_takes_of_one_room_is_no_pair(random: np.random.Generator) -> None:
    """Each take has the same gesture of a second every two seconds, and moves freely between."""
    room = calm_frames(random, 1, 0).repeat(48, axis=0)
    gesture, between = noisy(random, room, 16), np.arange(48) // 4 % 2 == 1
    a, b = (noisy(random, gesture, 5) for _ in "ab")
    for take in (a, b):
        take[between] = noisy(random, room[between], 60)
    a, b = filmed("a", a), filmed("b", b)
    assert [run.seconds for run in runs_of(a, copied(random, a, "c"))] == [12]
    assert runs_of(a, b) == ()


def test_takes_whose_gestures_are_nearly_at_the_same_times_are_no_pair(
    random: np.random.Generator,
) -> None:
    """In each frame, 15 bits show the gestures of both takes, and 15 what is of one take only."""
    gestures = calm_frames(random, 48, 15)
    a, b = (filmed(name, noisy(random, gestures, 15)) for name in "ab")
    for of_copy in (6, 16):  # bits
        assert [run.seconds for run in runs_of(a, copied(random, a, "c", of_copy))] == [12]
    assert runs_of(a, b) == ()


@pytest.mark.parametrize("held", [1, 8])
def test_frames_that_soon_differ_in_more_bits_are_of_two_takes(
    random: np.random.Generator, held: int
) -> None:
    """Every other frame, or every other second, has some 28 bits of its own in each video."""
    gestures, nothing = calm_frames(random, 96, 20), np.zeros((96 // held, 2, 4), np.uint64)
    a, b = (noisy(random, nothing, 28) for _ in "ab")
    for own in (a, b):
        own[::2] = 0
    a, b = (gestures ^ own.repeat(held, axis=0) for own in (a, b))
    runs = runs_of(filmed("a", a, tick=125), filmed("b", b, tick=125))
    assert bool(runs) == (held == 8)


def test_two_copies_of_a_still_picture_are_a_pair(random: np.random.Generator) -> None:
    picture = calm_frames(random, 1, 0)
    still = filmed("a", picture, tick=10_000)
    other = filmed("b", noisy(random, picture, 3), tick=8000)
    (run,) = runs_of(still, other)
    assert run.seconds == 8
    assert runs_of(still, joined("b", other, made_up(random, "", 30))) == ()


@pytest.mark.parametrize("moves", [True, False], ids=["moves", "grain"])
def test_a_picture_with_grain_is_no_evidence_but_its_movement_is(
    random: np.random.Generator, moves: bool
) -> None:
    """Every frame differs from every other in some 8 bits, the same or others in both videos."""
    picture = calm_frames(random, 1, 0).repeat(80, axis=0)
    video = filmed("a", noisy(random, picture, 4))
    other = copied(random, video, "b", 1) if moves else filmed("b", noisy(random, picture, 4))
    a, b = Frames.of(video, False), Frames.of(other, False)
    pair = pair_of(0, 1, False, seeds_of(a, b), a, b)
    assert pair is not None
    assert (len(pair.runs), pair.one_picture) == (1, not moves)
    equal = (x._replace(digest="5a") for x in (a, b))
    of_equal = pair_of(0, 1, False, seeds_of(a, b), *equal)
    assert of_equal is not None
    assert (len(of_equal.runs), of_equal.one_picture) == (1, False)


@pytest.mark.parametrize("black", [0, 30, 90])
def test_little_before_a_long_black_picture_is_no_evidence(
    random: np.random.Generator, black: int
) -> None:
    """Flat frames are not compared: in most of both videos, only the sound is heard."""
    video = made_up(random, "a", 20)
    both = [video, copied(random, video, "b")]
    both = [x._replace(facts={"seconds": 20.0 + black}) for x in both]
    a, b = (Frames.of(x, False) for x in both)
    pair = pair_of(0, 1, False, seeds_of(a, b), a, b)
    assert pair is not None
    assert (pair.share, pair.one_picture) == (1.0, black == 90)


def test_slides_that_differ_are_a_run(random: np.random.Generator) -> None:
    slides = filmed("a", made_up(random, "", 2).hashes, tick=7000)
    assert times(runs_of(slides, copied(random, slides, "b", 4))) == [(0, 56, 0, 56)]


# ---- bounds


def test_nothing_depends_on_the_order_of_seeds_or_on_repeats(random: np.random.Generator) -> None:
    video = made_up(random, "a", 60)
    spliced = joined("b", cut(video, "", 30, 60), made_up(random, "", 8), cut(video, "", 0, 20))
    a, b = Frames.of(video, False), Frames.of(copied(random, spliced, "b", 20), False)
    seeds = seeds_of(a, b)
    expected = align(seeds, a, b)
    assert len(expected) == 2
    for _ in range(3):
        assert align(random.permutation(np.concatenate((seeds, seeds[::3]))), a, b) == expected


def test_the_other_way_round_the_runs_are_the_same(random: np.random.Generator) -> None:
    video = made_up(random, "a", 60)
    other = copied(random, joined("b", made_up(random, "", 7), cut(video, "", 5, 50)), "b", 15)
    (run,), (back,) = runs_of(video, other), runs_of(other, video)
    assert back.swapped() == pytest.approx(run)


@pytest.mark.slow
def test_a_long_film_has_seeds_to_its_end(random: np.random.Generator) -> None:
    """In an exact copy with an advert in it, the last minutes are found as well as the first."""
    film, advert = made_up(random, "a", 5400), made_up(random, "", 60)
    other = joined("b", cut(film, "", 0, 5100), advert, cut(film, "", 5100, 5400))
    a, b = Frames.of(film, False), Frames.of(other, False)
    seeds = np.hstack((a.spans, np.concatenate((b.spans[:20_400], b.spans[20_640:]))))
    assert times(align(seeds, a, b)) == [(0, 5100, 0, 5100), (5100, 5400, 5160, 5460)]


@pytest.mark.slow
def test_a_hundred_thousand_stray_seeds_take_bounded_time(random: np.random.Generator) -> None:
    video, other = made_up(random, "a", 3600), made_up(random, "b", 3600)
    other = joined("b", cut(other, "", 0, 1800), cut(video, "", 0, 60), cut(other, "", 1860, 3600))
    i, j = random.integers(0, 14_400, (2, 150_000))
    a, b = Frames.of(video, False), Frames.of(other, False)
    true = np.hstack((a.spans[:240], b.spans[7200:7440]))
    seeds = np.concatenate((true, np.hstack((a.spans[i], b.spans[j]))))
    began = time.process_time()
    assert (0, 60, 1800, 1860) in times(align(seeds, a, b))
    assert time.process_time() - began < 20


def test_distances_are_the_least_of_the_variants(random: np.random.Generator) -> None:
    video, other = made_up(random, "a", 10), made_up(random, "b", 10)
    a, b = Frames.of(video, True), Frames.of(other, True)
    i, j = random.integers(0, 40, (2, 100))
    one, two = video.hashes[i], other.hashes[j]  # the frame itself, and mirrored
    ways = bits_apart(one[:, 0], two[:, 1]), bits_apart(one[:, 1], two[:, 0])
    assert distances(a, b, i, j).tolist() == np.minimum(*ways).tolist()


def test_shares_are_those_of_frames_that_vote(random: np.random.Generator) -> None:
    video = made_up(random, "a", 40)
    clip = cut(video, "b", 10, 30)
    votes = np.ones(80, bool)
    votes[40:] = False
    a, b = Frames.of(video, False), Frames.of(clip, False, votes)
    pair = pair_of(3, 1, False, seeds_of(a, b), a, b)
    assert pair is not None
    assert (pair.share_a, pair.share_b, pair.share) == (0.25, 1.0, 1.0)
    assert pair.share_of_longer == 0.25


def test_the_share_is_that_of_the_shorter_video(random: np.random.Generator) -> None:
    """At another speed, a stretch may be a larger share of the longer video."""
    video = made_up(random, "a", 20)
    fast = at_rate(video, "b", 0.95)
    a, b = Frames.of(video, False), Frames.of(joined("b", fast, made_up(random, "c", 0.5)), False)
    for x, y in ((a, b), (b, a)):
        pair = pair_of(0, 1, False, seeds_of(x, y), x, y)
        assert pair is not None
        shares = pair.share_a, pair.share_b
        assert pair.share == min(shares) < max(shares)
