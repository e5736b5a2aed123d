"""Real lines, ten million: the paths of all files in the packages of Debian.

    python3 -m bench.data.archive_paths > paths.txt
    python3 -m bench.data.archive_paths --releases bookworm > paths.txt

A line is a number, a tab, and a path, for `--input text`; paths are distinct and sorted by bytes:

    1	bin/afio
    2	bin/arch

Paths come from the lists that `apt-file` reads (Contents, for amd64 and all machines), fetched and
checked by apt-get in a folder of its own.  Paths are as alike as lines of life are: those of one
package in several releases, numbered files, the same names in many packages.

Debian changes sid every day; a later day is other data.  Disk: 1 GB a release; memory: that of
`sort`.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.data.packages import print_lines

RELEASES = ["bullseye", "bookworm", "sid"]
SOURCE = "deb [target=Contents-deb] http://deb.debian.org/debian {} main\n"
TARGET = """
Acquire::IndexTargets::deb::Contents-deb {
    MetaKey "$(COMPONENT)/Contents-$(ARCHITECTURE)";
    ShortDescription "Contents-$(ARCHITECTURE)";
    Description "$(RELEASE)/$(COMPONENT) $(ARCHITECTURE) Contents";
    KeepCompressed "true";
    KeepCompressedAs "gz";
};
"""


def lines(paths: Iterable[bytes]) -> Iterator[bytes]:
    r"""Yield numbered text lines.

    >>> list(lines([b"bin/afio\n", b"bin/arch\n"]))
    [b'1\tbin/afio\n', b'2\tbin/arch\n']
    """
    return (b"%d\t%b" % pair for pair in enumerate(paths, 1))


def path_of(line: bytes) -> bytes:
    r"""Return the path in a line of a list, and a line end.

    >>> path_of(b"usr/share/a file.txt      text/cat,libs/dog\n")
    b'usr/share/a file.txt\n'
    """
    return line.rsplit(None, 1)[0] + b"\n"


def distinct(files: Iterable[Path]) -> Iterator[bytes]:
    """Yield the sorted distinct paths in lists."""
    environment = {**os.environ, "LC_ALL": "C"}
    with TemporaryDirectory() as folder:
        all_paths = Path(folder, "paths")
        with all_paths.open("wb") as sink:
            for file in files:
                with gzip.open(file) as source:
                    sink.writelines(map(path_of, source))
        command = ["sort", "-u", "-S", "512M", "-T", folder, str(all_paths)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdout
            yield from process.stdout


def fetched(releases: Iterable[str], folder: Path) -> list[Path]:
    """Fetch the lists of releases with apt-get, into a folder; return the files."""
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "sources.list").write_text("".join(map(SOURCE.format, releases)))
    (folder / "apt.conf").write_text(TARGET)
    where = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder,
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "root",
    }
    command = ["apt-get", "update", "-c", str(folder / "apt.conf")]
    command += [word for name, value in where.items() for word in ("-o", f"{name}={value}")]
    try:
        subprocess.run(command, stdout=sys.stderr, check=True)
    except FileNotFoundError:
        raise SystemExit("bench.data.archive_paths: no apt-get: run it on Debian") from None
    except subprocess.CalledProcessError:
        raise SystemExit("bench.data.archive_paths: `apt-get update` failed; see above") from None
    return sorted((folder / "lists").glob("*Contents-*"))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.data.archive_paths",
        description="Print the paths of all files in Debian's packages as lines of texts.",
    )
    parser.add_argument("--releases", nargs="+", default=RELEASES)
    args = parser.parse_args()
    with TemporaryDirectory() as folder:
        print_lines(lines(distinct(fetched(args.releases, Path(folder)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
