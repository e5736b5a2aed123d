"""Exact matches of frames are those of all pairs; masks find a stated share of them."""

from pathlib import Path

import numpy as np
import pytest

from neardup.media.frames.frame_hashes import SALT, VARIANTS
from neardup.media.frames.frame_store import FrameStore
from neardup.media.frames.video_prints import VideoPrint
from neardup.media.videos import frame_matches, seed_files
from neardup.media.videos.frame_matches import (
    CALM,
    FULL,
    HUBS,
    Matches,
    Rows,
    counted,
    in_buckets,
    keys_by,
    recall,
    video_numbers,
)
from neardup.media.videos.seed_files import PARTS, SeedSearch, by_videos, find_seeds, seeds_in
from neardup.sets.bit_vectors import bits_apart
from neardup.sets.ragged import starts_of_runs
from tests.support.made_up_prints import calm_frames, copied, filmed, frames, made_up, mirrored

Found = set[tuple[int, int, bool]]


def some_prints(random: np.random.Generator) -> list[VideoPrint]:
    """Return fingerprints of videos, of copies that differ in 3 to 35 bits, and a mirrored one."""
    first = [made_up(random, f"v{k}", 10) for k in range(4)]
    copies = [copied(random, first[0], f"c{bits}", bits) for bits in (10, 25, 30, 35)]
    calm = filmed("calm", calm_frames(random, 40, 8))
    return [*first, *copies, mirrored(first[1], "m1"), calm, copied(random, calm, "calm copy", 3)]


def written(folder: Path, prints: list[VideoPrint]) -> FrameStore:
    folder.mkdir()
    return FrameStore.write(folder, prints)


def by_all_pairs(store: FrameStore, distance: int) -> Found:
    found = set()
    own = store.hashes_of(0)
    for i in range(store.frames):
        for v in range(len(store.variants)):
            hashes = store.hashes_of(v)
            near = bits_apart(np.broadcast_to(own[i], hashes.shape), hashes) <= distance
            for j in np.flatnonzero(near & (store.owner != store.owner[i])).tolist():
                if store.fresh[j] >> v & 1:
                    a, b = (i, j) if comes_first(store, i, j) else (j, i)
                    found.add((a, b, bool(store.mirrored[v])))
    return found


def comes_first(store: FrameStore, i: int, j: int) -> bool:
    return bool(store.rank[store.owner[i]] < store.rank[store.owner[j]])


def searched(folder: Path, store: FrameStore, exact: bool, jobs: int = 1, old: int = 0) -> Found:
    search = SeedSearch.of(store, folder, 31, old)
    find_seeds(search, exact, jobs)
    rows = np.concatenate([seeds_in(folder, part) for part in range(PARTS)]).astype(np.int64)
    assert len(np.unique(rows, axis=0)) == len(rows)
    return {(row[0] >> 1, row[1], bool(row[0] & 1)) for row in rows.tolist()}


@pytest.mark.parametrize("jobs", [1, 3])
def test_exact_seeds_are_those_of_all_pairs(tmp_path: Path, jobs: int) -> None:
    store = written(tmp_path / "store", some_prints(np.random.default_rng(0)))
    expected = by_all_pairs(store, 31)
    assert {flipped for *_, flipped in expected} == {False, True}
    assert len(expected) < store.frames**2 / 4
    assert searched(tmp_path / "seeds", store, exact=True, jobs=jobs) == expected


def test_exact_seeds_have_all_that_masks_find(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    made = random.integers(0, 2**64, (2, 200, len(VARIANTS), 4), dtype=np.uint64)
    a, b = random.integers(0, len(VARIANTS), (2, 200))
    made[1, np.arange(200), b] = made[0, np.arange(200), a]
    made ^= SALT
    prints = [filmed(name, hashes)._replace(variants=VARIANTS) for name, hashes in zip("ab", made)]
    store = written(tmp_path / "store", prints)
    by_masks = searched(tmp_path / "masks", store, exact=False)
    assert len(by_masks) > 20
    assert by_masks <= searched(tmp_path / "exact", store, exact=True)


@pytest.mark.slow
def test_masks_find_a_stated_share_of_them(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    video = made_up(random, "v", 200)
    prints = [video, *(copied(random, video, f"c{bits}", bits) for bits in (12, 24))]
    store = written(tmp_path / "store", prints)
    n, hashes = len(video.spans), store.hashes_of(0)
    found = searched(tmp_path / "seeds", store, exact=False)
    assert found <= by_all_pairs(store, 31)
    for number in (1, 2):
        apart = bits_apart(hashes[:n], hashes[number * n : (number + 1) * n])
        pairs = {(k + number * n, k) for k in np.flatnonzero(apart <= 31).tolist()}
        expected = sum(recall(int(bits)) for bits in apart[apart <= 31])
        deviation = np.sqrt(sum(recall(int(b)) * (1 - recall(int(b))) for b in apart[apart <= 31]))
        both = pairs & {(i, j) for i, j, _ in found}
        assert expected - 6 * deviation - 1 <= len(both)  # 6 deviations: 1e-9


@pytest.mark.first_case
@pytest.mark.parametrize("exact", [False, True])
def test_nothing_depends_on_the_order_of_videos_or_on_the_processes(
    tmp_path: Path, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(2)
    prints = some_prints(random)

    def of(name: str, order: list[int], jobs: int) -> set[tuple[str, int, str, int, bool]]:
        store = written(tmp_path / name, [prints[k] for k in order])
        found = searched(tmp_path / f"{name}.seeds", store, exact, jobs)
        at = [(store.ids[k], int(start)) for k, start in zip(store.owner, store.spans[:, 0])]
        return {(*at[a], *at[b], flipped) for a, b, flipped in found}

    expected = of("plain", [*range(len(prints))], 1)
    assert expected
    monkeypatch.setattr(seed_files, "ROWS", 300)
    monkeypatch.setattr(seed_files, "CHUNK", 64)
    monkeypatch.setattr(seed_files, "GATHERED", 50)
    assert of("shuffled", random.permutation(len(prints)).tolist(), 2) == expected


@pytest.mark.slow
def test_pairs_of_old_videos_are_not_looked_for(tmp_path: Path) -> None:
    store = written(tmp_path / "store", some_prints(np.random.default_rng(0)))
    every = searched(tmp_path / "all", store, exact=False)
    new = {seed for seed in every if max(store.owner[seed[0]], store.owner[seed[1]]) >= 7}
    assert searched(tmp_path / "new", store, exact=False, old=7) == new
    assert 0 < len(new) < len(every)


def test_seeds_come_by_pairs_of_videos(tmp_path: Path) -> None:
    store = written(tmp_path / "store", some_prints(np.random.default_rng(0)))
    expected = searched(tmp_path / "seeds", store, exact=False)
    found, pairs = set(), []
    for part in range(PARTS):
        for a, b, flipped, i, j in by_videos(store, seeds_in(tmp_path / "seeds", part)):
            pairs.append((a, b, flipped))
            assert (store.owner[i] == a).all()
            assert (store.owner[j] == b).all()
            assert store.rank[a] < store.rank[b]
            found |= {(x, y, flipped) for x, y in zip(i.tolist(), j.tolist())}
    assert found == expected
    assert len(set(pairs)) == len(pairs) > 3


# ---- large buckets


def matches_in(rows: Rows, buckets: np.ndarray, mask: int) -> Matches:
    """Return the matches within one bucket, or within those with the numbers `buckets`."""
    order = np.lexsort((~rows.own, buckets))
    rows = rows.take(order)
    starts = starts_of_runs(buckets[order])
    sizes, owns = np.diff(starts, append=len(order)), counted(rows.own, starts)
    found = in_buckets(rows.hashes, rows.videos, owns, sizes, rows.take, mask, 31)
    return Matches(order[found.left], order[found.right])


def test_calm_frames_cost_no_square() -> None:
    """Two hour-long videos of a fixed camera give fewer matches than either has frames."""
    random = np.random.default_rng(4)
    video = calm_frames(random, 14_000, 6)[:, 0]
    both = np.concatenate((video, video))
    n = len(video)
    times = np.tile(np.arange(n), 2) * 250
    videos = np.repeat(np.array([1, 2], np.uint64), n)
    rows = Rows(both, videos, times, np.zeros(2 * n, np.int64), np.ones(2 * n, bool))
    found = matches_in(rows, keys_by(both, 0).astype(np.int64), 0)
    assert len(found.left) < n
    assert len(set(times[found.left].tolist())) > 100
    same = times[found.left] == times[found.right]
    assert same.mean() > 0.1  # those that are kept are mostly the same in both


def test_a_frame_of_very_many_videos_costs_no_square() -> None:
    random = np.random.default_rng(5)
    n = 2000
    hashes = np.repeat(frames(random, 1)[:, 0], n, axis=0)
    numbers = video_numbers([f"v{k}".encode() for k in range(n)])
    zeros = np.zeros(n, np.int64)
    rows = Rows(hashes, numbers, zeros, zeros, np.ones(n, bool))
    found = matches_in(rows, np.zeros(n, np.int64), 0)
    assert len(found.left) < HUBS * n
    assert set(found.left.tolist()) == set(np.argsort(numbers)[:HUBS].tolist())
    assert set(found.left.tolist()) | set(found.right.tolist()) == set(range(n))
    few = matches_in(rows.take(np.arange(FULL)), np.zeros(FULL, np.int64), 0)
    assert len(few.left) == FULL * (FULL - 1) / 2


def test_masks_are_the_same_on_every_machine() -> None:
    """Each machine may search by some of them."""
    hashes = np.arange(8, dtype=np.uint64).reshape(2, 4) * np.uint64(0x9E3779B97F4A7C15)
    keys = [[3399644, 5358349], [7424211, 16161621]]
    assert [keys_by(hashes, mask).tolist() for mask in (0, 39)] == keys
    assert frame_matches.MASK_BITS == 24


@pytest.mark.parametrize("own", [CALM, CALM + 1])
def test_matches_of_a_calm_video_are_found_by_later_masks_too(own: int) -> None:
    """A frame that one mask found.left out of a crowd may be in no crowd by the next one."""
    hashes = np.repeat(frames(np.random.default_rng(6), 1)[:, 0], own + 1, axis=0)
    videos = np.array([1] * own + [2], np.uint64)
    times, zeros = np.arange(own + 1) * 250, np.zeros(own + 1, np.int64)
    rows = Rows(hashes, videos, times, zeros, np.ones(own + 1, bool))
    first, later = (matches_in(rows, zeros, mask) for mask in (0, 1))
    assert len(first.left) == CALM
    assert len(later.left) == (CALM if own > CALM else 0)
