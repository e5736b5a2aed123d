"""Pairs of videos found in steps are those of `find`, which holds all fingerprints in memory."""

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from neardup.media.frames.frame_store import FrameStore
from neardup.media.frames.video_prints import VideoPrint, to_line
from neardup.media.videos import video_steps
from neardup.media.videos.runs import format_run, pair_runs
from neardup.media.videos.step_lines import COMMON, PRINT, SEEDS, format_numbers, line
from neardup.media.videos.video_join import JoinOptions, find
from neardup.media.videos.video_steps import Clusters
from neardup.runtime.program import StageError, WireError
from tests.support import made_up_prints as made

DEFAULT = JoinOptions()


def in_steps(lines: Sequence[bytes], options: JoinOptions = DEFAULT, shares: int = 3) -> set[bytes]:
    """Run all steps, with sorts between them; return the lines."""

    def spread(*parts: Sequence[bytes]) -> list[bytes]:
        return sorted(video_steps.spread(chain(*parts), shares))

    seeds = list(video_steps.seeds(spread(lines), options))
    copies = video_steps.copies(spread(seeds, lines), options)
    clusters = Clusters.read(video_steps.clusters(copies))
    shown = sorted(video_steps.shown(seeds))
    common = list(video_steps.common_frames(shown, clusters, options))
    pairs = list(video_steps.pairs(spread(seeds, common, lines), options))
    assert len(pairs) == len(set(pairs))
    return set(pairs)


def at_once(prints: list[VideoPrint], options: JoinOptions, folder: Path) -> set[bytes]:
    folder.mkdir()
    store = FrameStore.write(folder, prints)
    pairs, _ = find(store, options, jobs=1)
    return {format_run(run) for pair in pairs for run in pair_runs(pair, store.ids)}


def found(prints: list[VideoPrint], tmp: Path, options: JoinOptions = DEFAULT) -> set[bytes]:
    """Return the lines that both `find` and the steps give."""
    expected = at_once(prints, options, tmp / "frames")
    assert in_steps(list(map(to_line, prints)), options) == expected
    return expected


@pytest.fixture(scope="module")
def prints() -> list[VideoPrint]:
    """Return fingerprints of copies, clips, mirror images, other rates, and twelve episodes."""
    random = np.random.default_rng(3)
    films = [made.made_up(random, f"film {k}", 30) for k in range(5)]
    opening = made.made_up(random, "opening", 6)
    episodes = [
        made.joined(f"episode{k}", made.copied(random, opening, "o"), made.made_up(random, "", 20))
        for k in range(12)
    ]
    return [
        *films,
        *episodes,
        *(made.copied(random, films[0], f"a.copy{k}") for k in range(8)),
        made.copied(random, episodes[3], "again", bits=10),
        made.cut(films[1], "clip", 4, 12),
        made.mirrored(films[2], "Zmirror"),
        made.at_rate(films[3], "slow", 1.05),
        made.joined("trailer", made.cut(films[4], "", 20, 26), made.made_up(random, "", 20)),
        made.joined("spliced", made.cut(films[1], "", 15, 25), made.cut(films[4], "", 3, 13)),
        made.filmed("empty", made.frames(random, 0)),
        made.filmed("calm", made.calm_frames(random, 60, 3)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        DEFAULT,
        JoinOptions(at_least=4.0, common_share=0.9),  # the opening is frequent, not common
        JoinOptions(measure="copy"),
        JoinOptions(measure="containment", threshold=0.7),
    ],
)
def test_steps_give_the_pairs_of_one_process(
    prints: list[VideoPrint], options: JoinOptions, tmp_path: Path
) -> None:
    expected = found(prints, tmp_path, options)
    assert any(line.startswith(b"a.copy0\ta.copy1\t") for line in expected)
    assert not any(line.startswith(b"episode0\tepisode1\t") for line in expected)
    parts = [line for line in expected if line.endswith(b"\tpart\n")]
    assert bool(parts) == (options.measure == "common")


def stills(random: np.random.Generator) -> list[VideoPrint]:
    """Return episodes with one cover, equal files, slides, and stills that are symmetric."""

    def shown(id_: str, seconds: float, picture: np.ndarray, digest: str = "") -> VideoPrint:
        video = made.filmed(id_, picture, tick=round(1000 * seconds))
        return video._replace(facts={**video.facts, "digest": digest})

    cover, other, symmetric = (made.frames(random, 1) for _ in range(3))
    symmetric[:, 1] = symmetric[:, 0]
    fade = np.repeat(cover, 8, axis=0)
    talk = made.filmed("slides1", made.frames(random, 12), tick=60_000)
    return [
        shown("ep1", 100, cover, "a"),
        shown("ep2", 110, made.noisy(random, cover, 2), "b"),
        shown("same1", 60, other, "c"),
        shown("same2", 60, other, "c"),
        shown("sym1", 50, symmetric, "d"),
        shown("sym2", 50, symmetric, "e"),
        made.joined(
            "fade", made.filmed("", made.noisy(random, fade, 30)), shown("", 1, cover)
        )._replace(spans=np.array([*([k * 250, k * 250 + 250] for k in range(8)), [2000, 60_000]])),
        talk,
        made.copied(random, talk, "slides2", bits=3),
        made.joined("open1", made.filmed("", np.repeat(other, 40, axis=0)), MOVING),
        made.joined("open2", made.filmed("", np.repeat(other, 40, axis=0)), MOVING),
    ]


MOVING = made.made_up(np.random.default_rng(9), "", 8)


def test_one_picture_is_no_evidence_for_a_copy(tmp_path: Path) -> None:
    """Episodes with one cover are pairs "of one picture", at speed 1; equal files are copies."""
    expected = found(stills(np.random.default_rng(5)), tmp_path)
    pairs = {tuple(fields[:2]): fields[2:] for fields in (x.split(b"\t") for x in expected)}
    one = {pair for pair, fields in pairs.items() if fields[-1] == b"one picture\n"}
    assert {(b"ep1", b"ep2"), (b"sym1", b"sym2")} <= one
    assert pairs[b"ep1", b"ep2"][1:5] == [b"0.0-100.0", b"0.0-100.0", b"1.00", b"1.000"]
    copies = {(b"same1", b"same2"), (b"slides1", b"slides2"), (b"open1", b"open2")}
    assert pairs.keys() - one == copies
    assert len(pairs) == len(expected)  # no mirrored pair beside a plain one


def test_takes_of_a_camera_count_as_one_video(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    parts = made.frames(random, 20)
    takes = [
        made.filmed(f"take{k}", made.noisy(random, parts[random.permutation(20)], 6), tick=1000)
        for k in range(9)
    ]
    expected = found([*takes, made.copied(random, takes[0], "copy", 3)], tmp_path)
    assert {line.split(b"\t")[1] for line in expected if line.startswith(b"copy")} == {b"take0"}


@pytest.mark.slow
def test_a_whole_copy_of_common_frames(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    decks = made.slides(random, 7)
    more = np.concatenate((decks[1].hashes, made.frames(random, 2)))
    longer = made.filmed("longer", made.noisy(random, more, 3), tick=5000)
    expected = found([*decks, made.copied(random, decks[0], "copy", 3), longer], tmp_path)
    assert {line.split(b"\t")[1] for line in expected if line.startswith(b"copy")} == {b"slides0"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [DEFAULT, JoinOptions(at_least=2.0), JoinOptions(measure="containment")]
)
def test_a_whole_copy_with_few_frames_of_its_own(options: JoinOptions, tmp_path: Path) -> None:
    """Copies of a video are found, although most of its frames are in seven other videos, too."""
    random = np.random.default_rng(1)
    opening = made.made_up(random, "", 20)
    hosts = [
        made.joined(f"host{k}", made.copied(random, opening, ""), made.made_up(random, "", 40))
        for k in range(7)
    ]
    video = made.joined("a", opening, made.made_up(random, "", 4))
    changed = made.joined("changed", made.cut(video, "", 0, 22.5), made.made_up(random, "", 1.5))
    prints = [*hosts, video, made.copied(random, video, "same"), made.copied(random, changed, "c")]
    pairs = {tuple(line.split(b"\t")[:2]) for line in found(prints, tmp_path, options)}
    assert {(b"a", b"same"), (b"a", b"c"), (b"c", b"same")} <= pairs


@pytest.mark.slow
def test_a_repeated_opening_is_not_a_whole_copy(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    opening = made.made_up(random, "", 6)
    hosts = [
        made.joined(f"host{k}", made.copied(random, opening, ""), made.made_up(random, "", 80))
        for k in range(7)
    ]
    episode = made.joined("episode", opening, made.made_up(random, "", 32))
    prints = [*hosts, made.joined("loop", *[opening] * 6), made.copied(random, episode, "episode")]
    assert found(prints, tmp_path) == set()


@pytest.mark.slow
def test_the_answer_does_not_depend_on_the_order_or_on_shares(prints: list[VideoPrint]) -> None:
    lines = list(map(to_line, prints[15:24]))
    assert in_steps(lines, shares=1) == in_steps(lines[::-1], shares=7) != set()


@pytest.mark.slow
def test_an_opening_is_common_only_where_many_show_it(prints: list[VideoPrint]) -> None:
    lines = [to_line(video) for video in prints if video.id.startswith("episode")]
    options = JoinOptions(measure="common")
    assert in_steps(lines, options) == set()
    few = in_steps(lines, options._replace(common_least=20))
    assert len(few) == len(lines) * (len(lines) - 1) // 2


def test_very_short_videos_that_match_in_one_frame_count_as_one(tmp_path: Path) -> None:
    """Seven clips of one frame, too short for a run, are one cluster: their frame is not common."""
    random = np.random.default_rng(7)
    frame, other = made.frames(random, 1), made.frames(random, 20)
    clips = [made.filmed(f"clip{k}", made.noisy(random, frame, 3), tick=1500) for k in range(7)]
    twins = [made.filmed(id_, np.concatenate((frame, other)), tick=1500) for id_ in "ab"]
    expected = found([*clips, *twins], tmp_path)
    assert [line.split(b"\t")[2:4] for line in expected] == [[b"31.5", b"0.0-31.5"]]


def spread_and_sorted(*lines: bytes) -> list[bytes]:
    return sorted(video_steps.spread(lines, 1))


def test_what_does_not_fit_together_is_refused() -> None:
    random = np.random.default_rng(5)
    a, b = made.made_up(random, "a", 5), made.made_up(random, "a\tb", 5)
    with pytest.raises(StageError, match="two prints have the id a"):
        list(video_steps.copies(spread_and_sorted(to_line(a), to_line(a)), DEFAULT))
    other = made.made_up(random, "b", 5)._replace(variants=("x", "y"))
    with pytest.raises(StageError, match="prints of b and a have different variants"):
        list(video_steps.seeds(spread_and_sorted(to_line(a), to_line(other)), DEFAULT))
    starts = format_numbers(np.array([[0, 0]]))
    seeds = line(b"0.1", SEEDS, b"a", b"b", starts)
    with pytest.raises(StageError, match="b has no print of these frames"):
        list(video_steps.pairs(spread_and_sorted(to_line(a), seeds), DEFAULT))
    common = line(COMMON, b"a", format_numbers(np.array([1])))
    every = to_line(a), line(b"0.1", SEEDS, b"a", b"a", starts), common
    with pytest.raises(StageError, match="a has no print of these frames"):
        list(video_steps.pairs(spread_and_sorted(*every), DEFAULT))
    with pytest.raises(StageError, match="not sorted"):
        list(video_steps.seeds(video_steps.spread([to_line(a), to_line(a)], 2), DEFAULT))
    with pytest.raises(WireError, match="expected a print, seeds or common frames"):
        list(video_steps.pairs([line(b"0.1", SEEDS, b"a")], DEFAULT))
    with pytest.raises(WireError, match="expected the print"):
        list(video_steps.spread([to_line(b)]))
    with pytest.raises(WireError, match="base 64"):
        list(video_steps.shown([line(b"0.1", SEEDS, b"a", b"b", b"?")]))


def test_lines_that_are_not_sorted_are_refused() -> None:
    """A step would overlook common frames, by which videos that share an opening are no pair."""
    random = np.random.default_rng(2)
    opening = made.made_up(random, "", 6)
    hosts = [
        made.joined(f"host{k}", made.copied(random, opening, ""), made.made_up(random, "", 20))
        for k in range(8)
    ]
    prints = list(map(to_line, hosts))
    seeds = list(video_steps.seeds(spread_and_sorted(*prints), DEFAULT))
    clusters = Clusters.read([line(b"", b"8")])
    shown = list(video_steps.shown(seeds))
    common = list(video_steps.common_frames(sorted(shown), clusters, DEFAULT))
    assert common
    with pytest.raises(StageError, match="not sorted; put LC_ALL=C sort before this step"):
        list(video_steps.common_frames(shown, clusters, DEFAULT))
    assert not list(video_steps.pairs(spread_and_sorted(*seeds, *common, *prints), DEFAULT))
    for first, second, third in ((common, seeds, prints), (prints, seeds, common)):
        lines = video_steps.spread([*first, *second, *third], 1)
        with pytest.raises(StageError, match="not sorted"):
            list(video_steps.pairs(lines, DEFAULT))


def test_damaged_lines_are_refused() -> None:
    """Each step reads lines with a damaged field or raises a StageError, and no other error."""
    random = np.random.default_rng(4)
    film = made.made_up(random, "film", 5)
    again = [made.copied(random, film, f"copy{k}") for k in range(3)]
    prints = [to_line(video) for video in [film, *again]]
    alone = spread_and_sorted(*prints)
    seeds = list(video_steps.seeds(alone, DEFAULT))
    common = line(COMMON, b"film", format_numbers(film.spans[:3, 0]))
    every = spread_and_sorted(*seeds, common, *prints)
    copies = list(video_steps.copies(every, DEFAULT))
    shown = sorted(video_steps.shown(seeds))
    clusters = list(video_steps.clusters(copies))
    steps: dict[str, tuple[list[bytes], Callable[[list[bytes]], object]]] = {
        "seeds": (alone, lambda lines: list(video_steps.seeds(lines, DEFAULT))),
        "pairs": (every, lambda lines: list(video_steps.pairs(lines, DEFAULT))),
        "clusters": (copies, lambda lines: list(video_steps.clusters(lines))),
        "read": (clusters, Clusters.read),
        "shown": (seeds, lambda lines: list(video_steps.shown(lines))),
        "common": (
            shown,
            lambda lines: list(video_steps.common_frames(lines, Clusters.read(clusters), DEFAULT)),
        ),
    }
    refused = dict.fromkeys(steps, 0)
    for name, (lines, step) in steps.items():
        step(lines)
        for _ in range(40):
            damaged = list(lines)
            at = int(random.integers(len(lines)))
            fields = damaged[at].rstrip(b"\n").split(b"\t")
            number = int(random.integers(len(fields)))
            cut = len(fields[number]) * int(random.integers(4)) // 4
            others = [b"", b"x", b"1", fields[number][:cut], format_numbers(np.arange(7))]
            instead = others[int(random.integers(len(others)))]
            fields[number : number + 1] = [] if random.integers(4) == 0 else [instead]
            damaged[at] = b"\t".join(fields) + b"\n"
            try:
                step(damaged)
            except StageError:
                refused[name] += 1
    assert min(refused.values()) > 5, refused


def test_wrong_numbers_are_refused() -> None:
    for text in (b"a\t1", b"\t" + b"9" * 5000, b"\t-1", b"\t1_0", b"\t1.0", b"\t"):
        with pytest.raises(WireError, match="expected the clusters of videos"):
            Clusters.read([text + b"\n"])
    for key in (b"9" * 5000 + b".1", b"1.1", b"0.", b"0", b"-1.0"):
        with pytest.raises(WireError, match=r"expected the lines that `step\.py videos spread`"):
            list(video_steps.seeds([line(key, PRINT, b"a", b"")], DEFAULT))
