"""Folders of a run on the cluster: their names, locks and removal, and archives for later runs.

    /data/pairs                          OUTPUT; once complete, it has an empty file _neardup
    /data/_neardup-0123456789abcdef.pairs    data between jobs
    .neardup/numpy-cp311-linux-x86_64-0123456789abcdef.tar.gz    in the user's home

*OUTPUT*.  --overwrite removes a folder only if it has our mark, _neardup.  Hadoop refuses an
existing folder, but two jobs that are submitted at the same time would mix their lines; so if two
runs on this machine write to one folder, the later one stops.  A claim is a lock on one byte of a
file; the lock ends with its process.

*Between jobs*.  The name is random.  Hadoop skips names that begin with `_` when it reads a folder
or a pattern, so that leftovers of a killed run are never taken for input; see job_sequence.py.

*Archives* are shared by all jobs of the user.  A node unpacks a file of HDFS once, as long as its
path and date stay the same.  So a copy is never rewritten, and its name contains a content hash.
"""

import fcntl
import getpass
import hashlib
import itertools
import os
import posixpath
import re
import secrets
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from neardup.engines.hadoop import shipping, sizes, watching
from neardup.runtime.program import StageError, UsageError

SPECIAL = re.compile(r"[*?\[\]{}\\,]")  # characters of patterns, and the separator of names
MARK = "_neardup"  # an empty file
PLACES = 1 << 62  # offsets in an empty file, which can be locked
KEPT = ".neardup"  # in the user's home
REPLICAS = ("-D", "dfs.replication=10")  # as for files that Hadoop itself sends to all nodes


def check(new: Sequence[str], old: Sequence[str], answers: list[str], overwrite: bool) -> None:
    """Raise UsageError for unusable names of folders, or if --overwrite might remove an input.

    A name is unusable if it is empty, if Hadoop would misread it, or if one output is in the other.

    `answers` are OUTPUT and perhaps the folder of --removed.
    """
    inputs = [("INPUT", name) for name in new] + [("--against", name) for name in old]
    for kind, name in zip(("OUTPUT", "--removed"), answers):
        if not name:
            raise UsageError(f"{kind} must not be empty")
        if found := SPECIAL.search(name):
            raise UsageError(
                f"{kind} {name}: Hadoop would not take {found[0]} as a part of the name; "
                "name a folder without * ? [ ] { } \\ or commas"
            )
    paths = [f"{path_of(name).rstrip('/')}/" for name in answers]
    if any(b.startswith(a) for a, b in itertools.permutations(paths, 2)):
        raise UsageError(f"--removed {answers[-1]} and OUTPUT must be separate folders")
    for kind, name in inputs:
        outside = name
        while (less := re.sub(r"\{[^{}]*\}", "", outside)) != outside:
            outside = less
        if "," in outside:
            raise UsageError(
                f"{kind} {name}: Hadoop would take the comma as the end of a name; separate "
                "several names by blanks, and type ? for a comma in a name"
            )
        for output in answers:
            if overwrite and _may_remove(output, name):
                raise UsageError(
                    f"--overwrite {output} might remove the input {name}; name another folder"
                )


def _may_remove(output: str, pattern: str) -> bool:
    r"""Return whether `pattern` may match `output` or files in it, judging by names alone.

    >>> _may_remove("/data/pairs", "/data/videos"), _may_remove("/data/pairs", "/data/vid*")
    (False, False)
    >>> _may_remove("/data", "/data/videos"), _may_remove("/data/pairs", "/data/*")
    (True, True)
    >>> [_may_remove("/data/pairs", name) for name in (r"/data/pair\s", "/x/*/../../data/pairs")]
    [True, True]
    """
    folder = path_of(output)
    literal, *after = re.split(r"[*?\[{\\]", pattern, maxsplit=1)
    if after and ".." in after[0]:
        return True
    start = path_of(literal) + "/" * (literal.endswith("/") or literal == pattern)
    inside = f"{start}/".startswith(f"{folder}/")
    return inside or folder == "/" or (literal != pattern and folder.startswith(start))


def path_of(uri: str) -> str:
    """Return the absolute path on the cluster of a URI, or of a path relative to a user's home."""
    path = urlsplit(uri).path
    user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    return posixpath.normpath(posixpath.join("/user", user, path))


def exists(folder: str) -> bool:
    return watching.fs("-test", "-e", folder).returncode == 0


def between_jobs(output: str, run: str = "") -> str:
    """Return the name of the folder of the data between jobs, beside OUTPUT: by default a new one.

    run: what tells it from that of other runs
    """
    parent, slash, name = (output.rstrip("/") or "/").rpartition("/")
    return f"{parent}{slash}_neardup-{run or secrets.token_hex(8)}.{name}"


def remove_answers(outputs: list[str]) -> None:
    """Remove output folders that exist; StageError if one lacks _neardup, the mark of our runs."""
    there = list(filter(exists, outputs))
    for output in there:
        if not exists(f"{output}/{MARK}"):
            line = shlex.join([watching.hadoop(), "fs", "-rm", "-r", output])
            raise StageError(
                f"{output} has no {MARK} in it, so it may not be the answer of an earlier run; to "
                f"remove it, type: {line}"
            )
    if there:
        remove(there, trash=True)


def marking(outputs: list[str]) -> list[str]:
    """Return the command that marks folders as output of our runs: it creates _neardup in each."""
    return [watching.hadoop(), "fs", "-touchz", *(f"{output}/{MARK}" for output in outputs)]


def is_of_job(output: str, number: str) -> bool:
    """Return whether a folder is missing or holds only temporary files of the job `number`."""
    done = watching.fs("-ls", "-R", output)
    if done.returncode and b"No such file or directory" not in done.stderr:
        return False  # unknown
    tasks = rf"(attempt|task)_{re.escape(number)}_\w+(/.*)?"
    folder = re.escape(path_of(output))
    own = re.compile(rf"{folder}/_temporary(/\d+(/(_temporary(/{tasks})?|{tasks}))?)?")
    listing = done.stdout.decode("utf-8", "backslashreplace")
    found = [sizes.LISTED.fullmatch(line) for line in listing.splitlines()]
    return all(one and own.fullmatch(path_of(one["name"])) for one in found)


def removing(folders: Sequence[str]) -> str:
    """Return the line that removes folders for good."""
    return shlex.join([watching.hadoop(), "fs", "-rm", "-r", "-skipTrash", *folders])


def remove(folders: list[str], trash: bool = False) -> None:
    """Remove folders; if that fails, print the command that removes them."""
    command = [watching.hadoop(), "fs", "-rm", "-r", "-f", *["-skipTrash"] * (not trash), *folders]
    if not watching.succeeds(command):
        watching.say(f"Clean-up failed; run: {shlex.join(command)}")


@contextmanager
def claimed(outputs: Sequence[str]) -> Iterator[None]:
    """Context manager: lock outputs against this machine's other runs; StageError if locked."""
    with (shipping.folder() / "outputs.lock").open("w") as file:
        for output in outputs:
            # Each path locks the byte at its hash; two paths hardly ever have the same.
            digest = hashlib.sha256(os.fsencode(path_of(output))).digest()
            place = int.from_bytes(digest[:8], "big") % PLACES
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            except BlockingIOError:
                raise StageError(
                    f"{output}: another run on this machine is writing to it; wait until that "
                    "run ends, or name another folder"
                ) from None
        yield


def kept_on_cluster(archive: Path, program: Sequence[str] = ()) -> str:
    """Upload an archive to the cluster if missing; return its path there, or "" after a failure."""
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    copy = f"{KEPT}/{archive.name.removesuffix('.tar.gz')}-{digest}.tar.gz"
    try:
        if not _is_whole(copy, archive, program):
            _upload(archive, copy, program)
    except StageError as error:
        watching.say(f"{archive.name} is sent with each job, not kept on the cluster: {error}")
        return ""
    return copy


def _is_whole(copy: str, archive: Path, program: Sequence[str]) -> bool:
    """Return whether `copy` has the archive's size; StageError if its folder is not private."""
    lines = watching.fs("-ls", "-d", KEPT, copy, program=program).stdout.decode("utf-8", "replace")
    folder, *files = lines.splitlines() or [""]
    if folder and not folder.startswith("drwx------"):
        raise StageError(f"{KEPT} is not private; type: hadoop fs -chmod 700 {KEPT}")
    found = map(sizes.LISTED.fullmatch, files)
    return any(one and int(one["size"]) == archive.stat().st_size for one in found)


def _upload(archive: Path, copy: str, program: Sequence[str]) -> None:
    """Copy an archive to the cluster, and rename it once it is complete; StageError on failure."""

    def succeed(*words: str) -> None:
        done = watching.fs(*words, program=program)
        if done.returncode:
            said = done.stderr.decode("utf-8", "backslashreplace").splitlines()
            raise StageError(said[-1] if said else f"{shlex.join(words)} failed")

    part = f"{copy}.{secrets.token_hex(8)}"
    succeed("-mkdir", "-p", KEPT)
    succeed("-chmod", "700", KEPT)
    try:
        succeed(*REPLICAS, "-put", str(archive), part)
        if not _is_whole(part, archive, program):
            raise StageError(f"{part}: the copy on HDFS is incomplete; the next run tries again")
        succeed("-mv", part, copy)
    except BaseException as error:
        remove([f"{part}*"])  # an unfinished -put leaves a file with a longer name
        # Another run may have made the copy at the same time.
        if not isinstance(error, StageError) or not _is_whole(copy, archive, program):
            raise
