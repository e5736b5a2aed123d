"""Compute the fingerprints of pictures, or take them from a cache, and sort and format them.

A line is the id of a picture and its hashes in hex, separated by blanks:

    ID HEX[ HEX…]

The first hash is that of the picture itself; the others are of its variants.  Two pictures are a
pair if the first hash of one is within D bits of any hash of the other.  Each part of a picture has
eight hashes: upright, mirrored, turned by 90, 180, 270 degrees, and these mirrored.

    the whole picture
    its centre 95 %, and its centre 90 %
    what is inside plain borders, if it has any

**Animations.**  The waves of five frames, each times random signs that depend on its place and the
number of frames, are added up before the hash is taken.  So it is near another one only if all five
are, in this order, and the number is the same: another picture for one of the five changes 52 bits
(36 at least, of 300), half the sides and JPEG at quality 50 change 20.  No still is near.

A picture of stripes, a gradient, rings, or a pattern that repeats has few waves, and most bits of
its hash are those of any other such picture.  It counts as flat: its quality is 0.

**Variants count eight bits more.**  There are up to 32 of them, any of which may be near another
picture by chance.  So eight bits of their hashes are inverted, those of long waves, which two
similar pictures have in common.

The first of similar pictures is the one to keep, so lines are in the order of --keep.

Memory: about 250 bytes for each picture besides those of the walk, and 32 for each hash.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import Callable, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.media.pictures import originals, perceptual_hash, picture_parts, pictures
from neardup.media.pictures.keep_rules import FolderNames, add_sidecar, set_cuts
from neardup.media.pictures.originals import Facts
from neardup.media.pictures.perceptual_hash import (
    ALL_EIGHT,
    CROPS,
    MIRROR,
    TURNS,
    UPRIGHT,
    WAVES,
    WHOLE,
    Box,
    Bytes,
    Floats,
    Symmetry,
    centre,
)
from neardup.reading.decoders import Failure, Outcome, Work
from neardup.reading.folder_walk import FoundFile, path_id
from neardup.sets.bit_vectors import popcount
from neardup.sets.hashing import random_words

HASH_BYTES = perceptual_hash.BITS // 8
MIN_WAVES, WEAK = 96, 1 / 50  # waves of a picture that are not weak beside the mean one
INVERTED = 0xFF  # the bits of a variant in its last byte
LOUD, FAINT = 1e5, 5e3  # the norm of the waves of a frame, and one below which it is nearly flat
NEARER = 8  # bits
NEAR_WHOLE = 31  # bits; those of a crop, taken as a whole, are more
CROPPED = 16  # bits, of centres: 18 or more for 98 % of each side, 12 at most for most other edits
OTHERS, DISTINCT = 64, 1000  # pictures of a group with which each is compared; with other hashes
PARTS = 1  # the version of `Variants.parts`: must change with it
CENTRES, INSIDE = (1, 2), 3  # places in it
HASHES = len(ALL_EIGHT) * (INSIDE + 1)
INVERSE = np.arange(len(ALL_EIGHT))  # of each symmetry; those of two quarter turns are each other
_quarters = [ALL_EIGHT.index(TURNS[0]), ALL_EIGHT.index(TURNS[2])]
INVERSE[_quarters] = _quarters[::-1]
Words = NDArray[np.uint64]
MAX_LOOKS = 16  # of one picture; the other similar ones count as different
MAX_APART = 300_000  # pairs, of which each takes some 400 bytes
DRAWN = 0.5  # share of neighbours that are equal, in drawings; few photos have as many


class Variants(NamedTuple):
    """How much of a picture file is hashed."""

    no_variants: bool = False  # only the picture as it is
    first_frame: bool = False  # only the first frame of an animation is examined

    def kind(self) -> str:
        """Return a text for the cache key: what hashes depend on besides the picture."""
        wanted = [name for name, value in self._asdict().items() if value]
        marks = f"marks {picture_parts.VERSION}"
        return " ".join([hash_kind(), marks, *wanted, pictures.decoder_versions()])

    def symmetries(self) -> list[Symmetry]:
        """Return the symmetries to hash, the picture as it is first."""
        return ALL_EIGHT[: 1 if self.no_variants else None]

    def parts(self, samples: Sequence[Bytes]) -> list[Box]:
        """Return the parts to hash of a picture, or of the frames of an animation, the whole first.

        What is inside borders is last, and left out if these are hardly wider than 1 %.
        """
        if self.no_variants:
            return [WHOLE]
        boxes = np.array([originals.inside(grey) for grey in samples])
        (top, _, left, _), (_, bottom, _, right) = boxes.min(axis=0), boxes.max(axis=0)
        framed = max(top, 1 - bottom, left, 1 - right) > originals.FRAMED
        centres = [centre(WHOLE, share) for share in CROPS]
        return [WHOLE, *centres, *[(top, bottom, left, right)] * bool(framed)]


def hash_kind() -> str:
    """Return a text for what all hashes depend on."""
    hashed = f"hash {perceptual_hash.VERSION}, {INVERTED:x} inverted, parts {PARTS}"
    return f"{hashed}, {MIN_WAVES} waves, {pictures.SAMPLES} frames"


class Fingerprint(NamedTuple):
    """The concatenated hashes of a picture, its quality, and what decides which picture is kept."""

    hashes: bytes
    quality: int
    width: int
    height: int
    date: str
    frames: int = 1
    parts: str = ""  # of a still: the hashes of `picture_parts`, in hex
    cuts: str = ""  # if it has parts


def hashing(variants: Variants, seconds: float) -> Work:
    """Return how a `Fingerprint` is made of each file; seconds: the time limit of a file."""
    task = partial(fingerprint, variants=variants)
    return Work(task, lambda _: seconds, to_cache, from_cache)


def measuring(seconds: float) -> Work:
    """Return how the facts of each file are measured; seconds: the time limit of a file."""
    return Work(facts_in, lambda _: seconds, lambda facts: json.dumps(facts).encode(), json.loads)


def fingerprint(file: FoundFile, variants: Variants) -> Fingerprint | Failure:
    """Decode and hash a picture file; return a Failure if that is impossible."""
    try:
        picture = pictures.decoded(file.path, not variants.first_frame)
    except pictures.RefusedError as error:
        return Failure(*error.args)
    samples = picture.grey, *picture.later
    batches = [grey[np.newaxis] for grey in samples]
    turned, parts = variants.symmetries(), variants.parts(samples)
    waves = [perceptual_hash.waves(batch, parts)[0] for batch in batches]
    full = [batch for batch, own in zip(batches, waves) if has_waves(own[0])]
    quality = max((int(perceptual_hash.quality(batch)[0]) for batch in full), default=0)
    if picture.later:
        hashes = of_frames(waves, picture.frames, turned)
    else:
        hashes = perceptual_hash.of_waves(waves[0][np.newaxis], turned)[0]
    hashes[1:, -1] ^= INVERTED
    still = not (variants.no_variants or picture.later)
    of_parts = picture_parts.part_hashes(picture.grey) if still else ""
    cuts = picture_parts.cut_hashes(picture.grey) if of_parts else hashes[:0]
    cuts[:, -1] ^= INVERTED
    hex_ = of_parts, cuts.tobytes().hex()
    return Fingerprint(hashes.tobytes(), quality, *picture[1:5], *hex_)


def has_waves(waves: Floats) -> bool:
    """Return whether a picture has enough waves (16, 16) to be told from other pictures."""
    power = waves**2
    return int((power > max(power.mean(), 1.0) * WEAK**2).sum()) >= MIN_WAVES


def of_frames(samples: Sequence[Floats], count: int, turned: Sequence[Symmetry]) -> Bytes:
    """Return the hashes (V, 32) of an animation of `count` frames.

    samples: waves (parts, 16, 16) of some frames, in order.
    """
    words = random_words(count, 4 * (1 + len(samples)), stream=8).astype("<u8").view(np.uint8)
    salt, *others = words.reshape(-1, HASH_BYTES)
    signs = [1 - 2.0 * np.unpackbits(other).reshape(WAVES, WAVES) for other in others]
    found = []
    for of_part in zip(*samples):
        waves = [frame * (LOUD / max(float(np.linalg.norm(frame)), FAINT)) for frame in of_part]
        for to in turned:
            total = sum(sign * perceptual_hash.turn(w, to) for sign, w in zip(signs, waves))
            found.append(perceptual_hash.bits(np.rint(total)[np.newaxis])[0] ^ salt)
    return np.stack(found)


def to_cache(result: Fingerprint) -> bytes:
    """Return a fingerprint as bytes for the cache."""
    return json.dumps(result[1:]).encode() + b"\n" + result.hashes


def from_cache(value: bytes) -> Fingerprint:
    """Return the fingerprint that is stored in bytes."""
    rest, _, hashes = value.partition(b"\n")
    return Fingerprint(hashes, *json.loads(rest))


def facts_in(file: FoundFile) -> Facts | Failure:
    """Measure a picture file; return a Failure if that is impossible."""
    try:
        return pictures.measured(file.path)
    except pictures.RefusedError as error:
        return Failure(*error.args)


def measures_kind() -> str:
    """Return a text for the cache key: what facts depend on besides the picture."""
    return f"facts {pictures.FACTS}, {pictures.decoder_versions()}"


def facts_of_file(file: FoundFile, of: Fingerprint) -> Facts:
    """Return the facts of a picture that need no decoding: its size, bytes and date."""
    date = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(file.mtime_ns // 10**9))
    size = {"width": of.width, "height": of.height}
    return {**size, "bytes": file.size, "date": of.date or date, "dated": bool(of.date)}


def compared(
    group: Sequence[Facts],
    found: Sequence[tuple[FoundFile, Fingerprint]],
    distance: int,
    measure: Callable[[Iterable[FoundFile]], Iterable[Outcome]],
    names: FolderNames,
    counted: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> None:
    """Add facts that distinguish the original from its copies to the facts of similar pictures.

    names: of the folders, for sidecars; counted: called with the places of pictures, of which it
    reports each as compared.

    Those with a clear mark between them, such as cards of one template, are not copies of another.
    """
    of_path = {file.path: facts for facts, (file, _) in zip(group, found)}
    for outcome in measure(file for file, _ in found):
        if not isinstance(outcome.result, Failure):
            of_path[outcome.file.path].update(outcome.result)
            add_sidecar(of_path[outcome.file.path], outcome.file.path, names)
    hashes = [of.hashes for _, of in found]
    for copies in _without_marks(group, hashes, distance, counted):
        some = [group[k] for k in copies]
        relate(some, [hashes[k] for k in copies], distance)
        originals.compare(some)


class Relation(NamedTuple):
    """How one picture is seen in another: as which of its parts, and how it is turned.

    A part below 0: the other one is seen in it.  whole: bits between both as wholes.
    """

    bits: int
    turned: Symmetry
    part: int  # place in `Variants.parts`
    whole: int

    def words(self) -> list[str]:
        """Return how the first picture is changed, if the second one is not."""
        turned = "mirrored" if self.turned == MIRROR else "turned"
        words = [turned] * (self.turned != UPRIGHT) + ["cropped"] * (self.part in CENTRES)
        return words + ["framed"] * (self.part == -INSIDE)


def relations(hashes: bytes, others: Words) -> list[Relation]:
    """Return how a picture is seen in each of the others, given the `words_of` these.

    It is a centre of another only if it is clearly farther from the whole and from its inside.
    """
    own, rows, found, centres, wholes = words_of(hashes), np.arange(len(others)), [], [], []
    for sign, bits in ((1, popcount(others ^ own[0])), (-1, popcount(others[:, :1] ^ own))):
        bits = bits.sum(axis=2)  # (m, HASHES)
        centres.append(bits.reshape(len(bits), -1, len(ALL_EIGHT))[:, CENTRES].min(axis=1))
        wholes.append(bits[:, : len(ALL_EIGHT)].min(axis=1))
        best = bits.argmin(axis=1)
        least, place = bits[rows, best], best % len(ALL_EIGHT)
        for part in (INSIDE, 0):
            at = part * len(ALL_EIGHT) + place
            best = np.where(bits[rows, at] <= least + NEARER, at, best)
        turned = place if sign > 0 else INVERSE[place]
        found.append(np.stack((least, turned, sign * (best // len(ALL_EIGHT))), axis=1))
    nearer = np.where(found[0][:, :1] <= found[1][:, :1], *found)
    turned, part = nearer[:, 1:].T  # views
    less = centres[1][rows, INVERSE[turned]] - centres[0][rows, turned]
    slight = (part == 0) & (np.abs(less) > CROPPED)  # one is much nearer to a centre of the other
    part[slight] = np.sign(less[slight])
    return [
        Relation(bits, ALL_EIGHT[turned], part, whole)
        for (bits, turned, part), whole in zip(nearer.tolist(), np.minimum(*wholes).tolist())
    ]


def bits_between(a: bytes, b: bytes) -> int:
    """Return in how many bits two pictures differ: the first hash of one, any of the other."""
    return int(_bits_to(words_of(a), words_of(b)[np.newaxis])[0])


def _bits_to(own: Words, others: Words) -> NDArray[np.int64]:
    """Return the bits between a picture and each of others (int64 (m,)), given their `words_of`."""
    every = (popcount(others ^ own[0]), popcount(others[:, :1] ^ own))
    return np.minimum(*(bits.sum(axis=2).min(axis=1) for bits in every))


@lru_cache(maxsize=4096)  # 4 MB; of a group, each is compared with all before it
def words_of(hashes: bytes) -> Words:
    """Return the hashes of a picture as words (HASHES, 4); the first stands for those left out."""
    words = np.frombuffer(hashes, np.uint64).reshape(-1, HASH_BYTES // 8)
    return np.concatenate((words, words[:1].repeat(HASHES - len(words), axis=0)))


def marked(kept: Facts, removed: Facts, seen: Relation) -> float:
    """Return how strong (levels) a mark of one of two pictures is, 0 if one was not measured.

    seen: how the removed picture is seen in the other.
    """
    if not (kept.get("look") and removed.get("look")):
        return 0.0
    if kept["look"] == removed["look"] and not seen.part and seen.turned == UPRIGHT:
        return 0.0
    parts = [WHOLE, *(centre(WHOLE, share) for share in CROPS), None]

    def strength(part: int) -> float:
        side = originals.LOOK // 2 if part else originals.LOOK  # a part is less sharp
        one = originals.look(kept, parts[max(part, 0)], seen.turned, side)
        other = originals.look(removed, parts[max(-part, 0)], side=side)
        return originals.mark_between(one, other)

    # A mark may be why a part is nearer than the whole is.
    both = abs(seen.part) in CENTRES and seen.whole <= NEAR_WHOLE
    return max(map(strength, {seen.part, 0} if both else {seen.part}))


class Apart(NamedTuple):
    """Similar pictures that differ in a place, of which none may be removed for the other.

    pairs: places; kept: the places of those kept for such a difference; left: of those that are not
    compared, since they are in too many such pairs.
    """

    pairs: list[tuple[int, int]]
    kept: list[int]
    left: list[int]


def keep_apart(
    found: Apart,
    order: Iterable[int],
    facts: Sequence[Facts],
    hashes: Sequence[bytes],
    decisive: Sequence[bytes],
    distance: int,
    may_remove: Callable[[int, int], bool],
    all_pairs: bool = False,
) -> None:
    """Add to `found` the pictures of a group that differ from a kept one by a clear mark.

    order: the places of the group in the order of --keep; decisive: all hashes `for_decisions`;
    may_remove: whether the first may be removed for the second, given two places; all_pairs: also
    those with a picture that is removed here, but may be kept, as another one may be removed first
    """
    kept: list[int] = []
    for k in order:
        near = _nearest(k, [j for j in kept if may_remove(k, j)], decisive, distance)
        unmarked = _unmarked(k, near, facts, hashes)
        pairs = [(k, j) for j in near if j not in unmarked]
        if len(found.pairs) + len(pairs) > MAX_APART:
            found.left.append(k)
            continue
        found.pairs.extend(pairs)
        if all_pairs or not unmarked:
            kept.append(k)
        if not unmarked:
            found.kept.extend([k] * bool(near))


def _without_marks(
    group: Sequence[Facts],
    hashes: Sequence[bytes],
    distance: int,
    counted: Callable[[Iterable[int]], Iterable[int]],
) -> list[list[int]]:
    """Return places of similar pictures in sets, in which each is near another without a mark."""
    firsts: list[int] = []  # places that began a set
    of: list[int] = []  # the set of each one so far
    for k in counted(range(len(group))):
        unmarked = _unmarked(k, _nearest(k, firsts, hashes, distance), group, hashes)
        if not unmarked:
            others = sorted({*range(k)}.difference(firsts))
            unmarked = _unmarked(k, _nearest(k, others, hashes, distance), group, hashes)
        firsts += [k] * (not unmarked)
        joined = {of[j] for j in unmarked} or {k}
        of.append(min(joined))
        if len(joined) > 1:
            of = [of[k] if each in joined else each for each in of]
    found: dict[int, list[int]] = {}
    for k, first in enumerate(of):
        found.setdefault(first, []).append(k)
    return list(found.values())


def _nearest(k: int, others: Sequence[int], hashes: Sequence[bytes], distance: int) -> list[int]:
    """Return the others within a distance (bits) of a picture, the nearest first."""
    if not others:
        return []
    bits = _bits_to(words_of(hashes[k]), np.stack([words_of(hashes[j]) for j in others]))
    order = bits.argsort(kind="stable")[: np.count_nonzero(bits <= distance)]
    return [others[place] for place in order.tolist()]


def _unmarked(
    k: int, near: Sequence[int], facts: Sequence[Facts], hashes: Sequence[bytes]
) -> list[int]:
    """Return those without a clear mark beside a picture, or damage; of many, some are looked at.

    These are those with an equal look, and the first of the others.
    """
    own = facts[k].get("look")
    if not (looked := sorted(near, key=lambda j: facts[j].get("look") != own)[:MAX_LOOKS]):
        return []
    seen = relations(hashes[k], np.stack([words_of(hashes[j]) for j in looked]))
    return [
        j
        for j, each in zip(looked, seen)
        if marked(facts[j], facts[k], each) <= originals.CLEAR
        and not originals.is_altered(facts[j], facts[k])
    ]


def relate(group: Sequence[Facts], hashes: Sequence[bytes], distance: int) -> None:
    """Add "changes" to the facts of similar pictures: cropped, mirrored and turned ones.

    The majority decides which is mirrored or turned; in a group of two, either may be.
    """
    some = np.linspace(0, len(group) - 1, OTHERS).astype(int).tolist()
    distinct = list({of: k for k, of in enumerate(hashes)}.values())[:DISTINCT]
    chosen = sorted({*some, *distinct})
    others = np.stack([words_of(hashes[k]) for k in chosen])
    centres = []
    for k, facts in enumerate(group):
        every = zip(chosen, relations(hashes[k], others))
        near = [(other, each) for other, each in every if other != k and each.bits <= distance]
        seen = [each for _, each in near]
        centres += [
            (k, other, each.part)
            for other, each in near
            if each.part in CENTRES and not originals.has_frame(group[other], facts)
        ]
        cropped = any(each.part in CENTRES for each in seen)
        framed = any(
            each.part == -INSIDE
            or (-each.part in CENTRES and originals.has_frame(facts, group[other]))
            for other, each in near
        )
        facts["changes"] = ["cropped"] * cropped + ["framed"] * framed
        turns = [each.words()[0] for each in seen if each.turned != UPRIGHT]
        if 2 * len(turns) > len(seen):
            facts["changes"].append(max(sorted(set(turns)), key=turns.count))
    set_cuts(group, centres)


def for_decisions(hashes: bytes, facts: Facts, against: bool) -> bytes:
    """Return the hashes of a new picture by which it, or a copy of it, may be removed.

    Left out are those of a drawing that is mirrored or turned, such as an arrow, which may mean
    something else; and against old pictures, which come first, the crops of the new one.
    """
    each = np.frombuffer(hashes, np.uint8).reshape(-1, HASH_BYTES)
    part, turned = np.divmod(np.arange(len(each)), len(ALL_EIGHT))
    drawn, cropped = facts.get("flat", 1.0) > DRAWN, np.isin(part, CENTRES)
    return each[~(drawn & (turned > 0)) & ~(against & cropped)].tobytes()


def line(path: bytes, hashes: bytes) -> bytes:
    """Format the path and the hashes of a picture as a fingerprint line: ID HEX ….

    >>> line(b"a b.png", bytes(30) + b"ab" + bytes(31) + b"c")[56:]
    b'000000000000006162 0000000000000000000000000000000000000000000000000000000000000063\\n'
    """
    starts = range(0, len(hashes), HASH_BYTES)
    words = [path_id(path), *(hashes[k : k + HASH_BYTES].hex() for k in starts)]
    return " ".join(words).encode() + b"\n"
