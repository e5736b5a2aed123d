"""Compute the fingerprints of pictures, or take them from a cache, and sort and format them.

A line is the id of a picture and its hashes in hex, separated by blanks:

    ID HEX[ HEX…]

The first hash is that of the picture itself; the others are of its variants.  Two pictures are a
pair if the first hash of one is within D bits of any hash of the other.  With `mirror`, `rotate`
and `crops` there are 8 symmetries of 3 cuts, 24 hashes:

    whole picture: upright, mirrored, turned by 90, 180, 270 degrees, and these mirrored
    its centre 95 %, in the same order; its centre 90 %

**Animations.**  The waves of five frames, each times random signs that depend on its place and the
number of frames, are added up before the hash is taken.  So it is near another one only if all five
are, in this order, and the number is the same: another picture for one of the five changes 52 bits
(36 at least, of 300), half the sides and JPEG at quality 50 change 20.  No still is near.

A picture of stripes, a gradient, or a pattern that repeats has few waves, and most bits of its hash
are 0, as in the hash of any other such picture.  It counts as flat: its quality is 0.

The first of similar pictures is the one to keep, so lines are in the order of --keep.

Memory: about 250 bytes for each picture besides those of the walk, and 32 for each hash.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Callable, NamedTuple

import numpy as np

from neardup.files.decoders import Failure, Outcome, Work
from neardup.files.folder_walk import FoundFile, path_id
from neardup.media.pictures import originals, perceptual_hash, pictures
from neardup.media.pictures.originals import Facts
from neardup.media.pictures.perceptual_hash import WAVES, Bytes, Symmetry
from neardup.sets.bit_vectors import popcount
from neardup.sets.hashing import random_words

HASH_BYTES = perceptual_hash.BITS // 8
MIN_ONES = perceptual_hash.BITS // 4  # bits of a hash that are 1; half of them are usual
LOUD, FAINT = 1e5, 5e3  # the norm of the waves of a frame, and one below which it is nearly flat
NEARER = 8  # bits
OTHERS = 64  # pictures of a group with which each of it is compared


class Variants(NamedTuple):
    """The variants of a picture to hash, besides the picture itself."""

    mirror: bool = False
    rotate: bool = False
    crops: bool = False
    first_frame: bool = False  # only the first frame of an animation is examined

    def kind(self) -> str:
        """Return a text for the cache key: what hashes depend on besides the picture."""
        wanted = [name for name, value in self._asdict().items() if value]
        return " ".join([hash_kind(), *wanted, pictures.decoder_versions()])

    def cuts(self) -> list[float]:
        """Return the sizes of centres to hash, as shares of a side: [1.0] or [1.0, 0.95, 0.9]."""
        return [perceptual_hash.WHOLE, *(perceptual_hash.CROPS if self.crops else ())]


def hash_kind() -> str:
    """Return a text for what all hashes depend on."""
    return f"hash {perceptual_hash.VERSION}, {MIN_ONES} ones, {pictures.SAMPLES} frames"


class Fingerprint(NamedTuple):
    """The concatenated hashes of a picture, its quality, and what decides which picture is kept."""

    hashes: bytes
    quality: int
    width: int
    height: int
    date: str
    frames: int = 1


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
    turned = perceptual_hash.symmetries(variants.mirror, variants.rotate)
    batches = [grey[np.newaxis] for grey in (picture.grey, *picture.later)]
    quality = 0
    for batch in batches:
        hashes = perceptual_hash.hashes(batch, turned, variants.cuts())[0]
        if np.unpackbits(hashes[0]).sum() >= MIN_ONES:
            quality = max(quality, int(perceptual_hash.quality(batch)[0]))
    if picture.later:
        hashes = of_frames(batches, picture.frames, turned, variants.cuts())
    return Fingerprint(hashes.tobytes(), quality, *picture[1:5])


def of_frames(
    samples: Sequence[Bytes], count: int, turned: Sequence[Symmetry], cuts: Sequence[float]
) -> Bytes:
    """Return the hashes (V, 32) of an animation of `count` frames.

    samples: pictures (1, height, width), in order.
    """
    words = random_words(count, 4 * (1 + len(samples)), stream=8).astype("<u8").view(np.uint8)
    salt, *others = words.reshape(-1, HASH_BYTES)
    signs = [1 - 2.0 * np.unpackbits(other).reshape(1, WAVES, WAVES) for other in others]
    found = []
    for cut in cuts:
        waves = [perceptual_hash.waves(sample, cut) for sample in samples]
        waves = [frame * (LOUD / max(float(np.linalg.norm(frame)), FAINT)) for frame in waves]
        for to in turned:
            total = sum(sign * perceptual_hash.turn(w, to) for sign, w in zip(signs, waves))
            found.append(perceptual_hash.bits(np.rint(total))[0] ^ salt)
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
    variants: Variants,
    measure: Callable[[Iterable[FoundFile]], Iterable[Outcome]],
) -> None:
    """Add facts that distinguish the original from its copies to the facts of similar pictures."""
    of_path = {file.path: facts for facts, (file, _) in zip(group, found)}
    for outcome in measure(file for file, _ in found):
        if not isinstance(outcome.result, Failure):
            of_path[outcome.file.path].update(outcome.result)
    relate(group, [of.hashes for _, of in found], variants)
    originals.compare(group)


def relate(group: Sequence[Facts], hashes: Sequence[bytes], variants: Variants) -> None:
    """Add "changes" to the facts of similar pictures: cropped, mirrored and turned ones.

    A picture is cropped if it is nearer to the centre of another one than to all of it.  The
    majority decides which is mirrored or turned; in a group of two, either may be.
    """
    words = np.frombuffer(b"".join(hashes), np.uint64).reshape(len(group), -1, HASH_BYTES // 8)
    turned = perceptual_hash.symmetries(variants.mirror, variants.rotate)
    chosen = np.unique(np.linspace(0, len(group) - 1, OTHERS).astype(int))
    bare = np.array([min(of.get("inside", [1])) > 1 - originals.FRAMED for of in group])[chosen]
    for k, facts in enumerate(group):
        bits = popcount(words[chosen] ^ words[k, 0]).sum(axis=2)  # (at most OTHERS, V)
        best = bits.argmin(axis=1)
        which, cut = best % len(turned), best // len(turned)
        others = chosen != k
        whole = bits[np.arange(len(chosen)), which]
        centre = (cut > 0) & (bits.min(axis=1) + NEARER < whole) & others
        facts["changes"] = ["cropped"] * bool((centre & bare).any())
        if (which[others] > 0).sum() > (which[others] == 0).sum():
            usual = np.bincount(which[others & (which > 0)]).argmax()
            facts["changes"].append(
                "mirrored" if turned[usual] == perceptual_hash.MIRROR else "turned"
            )


def line(path: bytes, hashes: bytes) -> bytes:
    """Format the path and the hashes of a picture as a fingerprint line: ID HEX ….

    >>> line(b"a b.png", bytes(30) + b"ab" + bytes(31) + b"c")[56:]
    b'000000000000006162 0000000000000000000000000000000000000000000000000000000000000063\\n'
    """
    starts = range(0, len(hashes), HASH_BYTES)
    words = [path_id(path), *(hashes[k : k + HASH_BYTES].hex() for k in starts)]
    return " ".join(words).encode() + b"\n"
