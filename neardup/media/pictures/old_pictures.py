"""Files of picture hashes, with which later runs compare new pictures.

A file is a header and fingerprint lines; several such files may be written into one:

    # neardup images {"options": "--quality=50", "hash": "…", "lines": 1, "sum": "9c…", …}
    photos/a.png 8f… 07…

The header is checked before any picture is read: a file that was cut or changed, or was made with
other options or another hash, is refused.  `neardup run --input fingerprints` skips the header.

Memory: one line.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, Callable

from neardup.media.pictures.picture_hashes import Variants, hash_kind
from neardup.media.pictures.pictures import decoder_versions
from neardup.reading.compressed import opened
from neardup.reading.fingerprint_lines import HEADER
from neardup.reading.folder_walk import HARD_LINKS, NAMED_TWICE, FoundFile
from neardup.runtime.program import StageError, UsageError
from neardup.runtime.summary import many

MAKE = "--output fingerprints -o"
MAX_LINE = 1 << 17  # bytes: 32 hashes, and a path of which each byte is escaped
IN_BOTH = "in --against, too, and old"


def header(lines: Iterable[bytes], variants: Variants, quality: int, unread: int) -> bytes:
    """Return the header of a file with these lines.

    quality: the least of a picture; unread: number of files that could not be read.
    """
    count, digest = 0, blake2b(digest_size=16)
    for line in lines:
        count += 1
        digest.update(line)
    about = {"options": options_of(variants, quality), "hash": hash_kind()}
    about["decoder"] = decoder_versions()
    text = json.dumps({**about, "unread": unread, "lines": count, "sum": digest.hexdigest()})
    return b"%b%b\n" % (HEADER, text.encode())


def options_of(variants: Variants, quality: int) -> str:
    """Return the options on which hashes depend.

    >>> options_of(Variants(first_frame=True), 50)
    '--first-frame --quality=50'
    """
    names = [name.replace("_", "-") for name, wanted in variants._asdict().items() if wanted]
    return " ".join([*(f"--{name}" for name in names), f"--quality={quality}"])


def is_hash_file(name: str) -> bool:
    """Return whether a name is that of a regular file which begins with a header."""
    if not os.path.isfile(name):
        return False
    with opened(name, name) as source:
        return bool(source.read(len(HEADER)) == HEADER)


def check_hash_file(
    name: str, program: str, variants: Variants, quality: int
) -> tuple[int, list[str]]:
    """Raise UsageError if a file is damaged, or its hashes are not made as those of this run.

    Return how many files could not be read when it was made, and lines for the summary on that and
    on another decoder.
    """
    asked, unread, decoders, why = options_of(variants, quality), 0, set[str](), ""
    again = f"make it again: {program} FOLDER {asked} {MAKE} {shlex.quote(name)}"
    try:
        sections = list(_sections(name))
    except StageError as error:
        raise StageError(f"{error}; {again}") from None
    for about in sections:
        if not about["whole"]:
            why = "is not as it was written;"
        elif about["hash"] != hash_kind():
            why = "another version of neardup made its hashes;"
        elif about["options"] != asked:
            why = f"was made with {about['options']}, but this run has {asked}; give the "
            why += "same options, or"
        if why:
            raise UsageError(f"--against {name}: {why} {again}")
        unread += about["unread"]
        decoders.add(about["decoder"])
    said = f"{name}: {many(unread, 'files')} could not be read when it was made"
    notes = [said] * bool(unread)
    for decoder in sorted(decoders - {decoder_versions()}):
        here = f"here, with {decoder_versions()}, hashes may differ in a few bits"
        notes.append(f"{name}: made with {decoder}; {here}")
    return unread, notes


def _sections(name: str) -> Iterator[dict[str, Any]]:
    """Yield what each header of a file says, and whether the lines below are "whole"."""
    about: dict[str, Any] = {}
    count, digest = 0, blake2b(digest_size=16)

    def ended() -> dict[str, Any]:
        found = {"lines": count, "sum": digest.hexdigest()}
        known = all(isinstance(about.get(key), str) for key in ("options", "hash", "decoder"))
        known &= isinstance(about.get("unread"), int)
        return {**about, "whole": known and found.items() <= about.items()}

    with opened(name, name) as source:
        for line in iter(lambda: source.readline(MAX_LINE), b""):
            if not line.startswith(HEADER):
                count += 1
                digest.update(line)
                continue
            if about:
                yield ended()
            try:
                about = dict(json.loads(line[len(HEADER) :]))
            except (ValueError, TypeError, RecursionError):
                about = {"lines": "unknown"}
            count, digest = 0, blake2b(digest_size=16)
    yield ended()


def pictures_in(names: Iterable[str]) -> int:
    """Return the number of pictures in files of fingerprint lines."""
    count = 0
    for name in names:
        with opened(name, name) as source:
            count += sum(not line.startswith(HEADER) for line in source)
    return count


def without(old: Iterable[FoundFile], skip: Callable[[str, bytes], object]) -> Callable[..., None]:
    """Return a `skip` for the walk of new pictures, which names files that are old, too."""
    known = {(status.st_dev, status.st_ino) for file in old if (status := os.stat(file.path))}

    def skip_new(why: str, path: bytes) -> None:
        if why in (NAMED_TWICE, HARD_LINKS):
            status = os.stat(path)
            why = IN_BOTH if (status.st_dev, status.st_ino) in known else why
        skip(why, path)

    return skip_new
