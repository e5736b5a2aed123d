"""run_hadoop.sh: the job by Hadoop Streaming, on the cluster that HADOOP_CONF_DIR points at.

It puts a command line together, shows it, runs it, and sums up the counters that Hadoop reports.
"""

from __future__ import annotations

import argparse
import getpass
import os
import posixpath
import re
import shlex
import shutil
import signal
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from neardup.interpreter import require

require("numpy", name="run_hadoop.sh")

from hadoop import package
from hadoop.tasklogs import first_message, first_of_ours
from neardup import options
from neardup.counters import Counters
from neardup.errors import StageError, UsageError
from neardup.options import Settings
from neardup.streaming import run
from neardup.summary import describe

DESCRIPTION = """Find the similar pairs of records in files on a Hadoop cluster.

INPUT is a file, a folder or a pattern, plain, .gz or .bz2; OUTPUT a folder that does not exist yet,
where the pairs will be: A TAB B TAB SIMILARITY.

    ./run_hadoop.sh --reducers 40 /data/videos /data/pairs
    ./run_hadoop.sh --input text --threshold 0.8 '/data/articles/*.txt.gz' /data/pairs

Needs HADOOP_HOME, or hadoop on the PATH, and on the nodes Python 3.9 with numpy.
"""
JARS = "hadoop-streaming*[0-9g].jar"  # not its sources, nor its tests
JAR_FOLDERS = ("share/hadoop/tools/lib", "lib", "hadoop-mapreduce", "../hadoop-mapreduce", ".")
KEY_FIELDS = 3  # KEY SIZE ID: the order in which `sort` would bring the lines, hot buckets too
JVM_SHARE = 0.45  # of a container; the rest is for Python
SORT_SHARE = 0.55  # of the JVM: a mapper writes five times what it reads
# What the archives are called in a task's folder.
CODE, NUMPY, VENV = "neardup-job", "numpy-lib", "venv"
EXPLAINED = re.compile(
    r"Output directory \S+ already exists|Input path does not exist: .*"
    r"|Input Pattern .* matches 0 files|Cannot run program .*"
)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    args = _arguments(sys.argv[1:])
    output = args.output_folder.rstrip("/") or "/"
    first = f"{output}.with-repeats" if args.dedup else output
    jobs = [_pairs_job(args, first)]
    if args.dedup:
        jobs.append(_dedup_job(args, first, output))
    if args.show:
        print("\n".join(map(shlex.join, jobs)))
        return
    counters = Counters("job")
    counters.promise = Settings.of(args).promise
    stale = [first] * args.dedup + [output] * args.overwrite
    if stale:
        _call([_hadoop(), "fs", "-rm", "-r", "-f", *stale])
    if args.dedup and not args.overwrite and _exists(output):  # else known after the first job
        raise StageError(f"{output} already exists; --overwrite removes it")
    for command in jobs:
        counters.counts.update(_counters(_call(command)))
    if args.dedup:
        _call([_hadoop(), "fs", "-rm", "-r", first])
    print(describe([counters.as_dict()], whole=True), file=sys.stderr)


# The command line.


def _arguments(given: list[str]) -> argparse.Namespace:
    args = _parser().parse_intermixed_args(given)
    Settings.of(args)
    options.integer("--reducers", args.reducers, 1, 999999)
    options.integer("--memory", args.memory, 512, 999999)
    if args.ship_venv and (args.python or args.ship_numpy):
        raise UsageError("--ship-venv brings its own Python and numpy")
    for text in args.define:
        if "=" not in text:
            raise UsageError(f"-D: expected NAME=VALUE, got {text!r}")
    _command(_python(args), *options.as_arguments(args))
    if not all([*args.inputs, args.output_folder]):
        raise UsageError("INPUT and OUTPUT must not be empty")
    for pattern in args.inputs:
        if args.overwrite and _may_remove(args.output_folder, pattern):
            raise UsageError(f"--overwrite {args.output_folder} might remove the input {pattern}")
    return args


def _parser() -> argparse.ArgumentParser:
    parser = options.parser("run_hadoop.sh", DESCRIPTION)
    parser.add_argument("inputs", nargs="+", metavar="INPUT")
    parser.add_argument("output_folder", metavar="OUTPUT")
    parser.add_argument("--reducers", metavar="N", default="8", help="reduce tasks (default: 8)")
    parser.add_argument(
        "--memory",
        metavar="MB",
        default="2048",
        help="of a task's container, shared by Hadoop's JVM and Python (default: 2048)",
    )
    parser.add_argument(
        "--python", metavar="PATH", help="the nodes' Python, with numpy (default: python3)"
    )
    parser.add_argument(
        "--ship-numpy",
        action="store_true",
        help="send numpy along, to nodes with this machine's system and Python version",
    )
    parser.add_argument(
        "--ship-venv",
        action="store_true",
        help="send a virtual environment with numpy along, to nodes with Python where it is here",
    )
    parser.add_argument(
        "--dedup",
        action="store_true",
        help="a second job with dedup_reducer.py: each pair once, even where an id stands for "
        "several records",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="remove OUTPUT first, if it exists"
    )
    parser.add_argument(
        "--show", action="store_true", help="print the command on stdout, and do not run it"
    )
    parser.add_argument("--name", default="near-duplicates", help="of the job")
    parser.add_argument(
        "-D",
        dest="define",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a property for Hadoop; may come several times, and wins over what is set here",
    )
    return parser


def _may_remove(output: str, pattern: str) -> bool:
    """Whether what a pattern stands for may lie in `output`, as far as names tell.

    >>> _may_remove("/data/pairs", "/data/videos"), _may_remove("/data/pairs", "/data/vid*")
    (False, False)
    >>> _may_remove("/data", "/data/videos"), _may_remove("/data/pairs", "/data/*")
    (True, True)
    """
    folder = _path(output)
    for name in pattern.split(","):
        literal = re.split(r"[*?\[{]", name)[0]
        start = _path(literal) + "/" * (literal.endswith("/") or literal == name)
        if f"{start}/".startswith(f"{folder}/") or (literal != name and folder.startswith(start)):
            return True
    return folder == "/"


def _path(uri: str) -> str:
    """Where a URI or a relative path leads in the file system."""
    path = urlsplit(uri).path
    user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    return posixpath.normpath(posixpath.join("/user", user, path))


def _pairs_job(args: argparse.Namespace, output: str) -> list[str]:
    python, flags = _python(args), options.as_arguments(args)
    heap = _heap(args)
    properties = {
        "mapreduce.job.name": args.name,
        "mapreduce.map.memory.mb": args.memory,
        "mapreduce.map.java.opts": f"-Xmx{heap}m",
        "mapreduce.task.io.sort.mb": min(2047, int(heap * SORT_SHARE)),
        "mapreduce.map.sort.spill.percent": 0.95,  # the fewer spills, the less there is to merge
        "mapreduce.input.fileinputformat.input.dir.recursive": "true",
        "mapreduce.partition.keypartitioner.options": "-k1,1",
        "stream.num.map.output.key.fields": KEY_FIELDS,
    }
    return [
        *_streaming(args, properties),
        *("-partitioner", "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner"),
        *(word for folder in args.inputs for word in ("-input", folder)),
        *("-output", output),
        *("-mapper", _command(python, f"{CODE}/mapper.py", *flags)),
        *("-reducer", _command(python, f"{CODE}/reducer.py", *flags)),
        *_environment(args),
    ]


def _dedup_job(args: argparse.Namespace, pairs: str, output: str) -> list[str]:
    return [
        *_streaming(args, {"mapreduce.job.name": f"{args.name}: dedup"}),
        *("-inputformat", "org.apache.hadoop.mapred.KeyValueTextInputFormat"),
        *("-input", pairs, "-output", output),
        *("-mapper", "org.apache.hadoop.mapred.lib.IdentityMapper"),
        *("-reducer", _command(_python(args), f"{CODE}/dedup_reducer.py")),
        *_environment(args),
    ]


def _streaming(args: argparse.Namespace, properties: dict[str, object]) -> list[str]:
    """The head of the command: what Hadoop wants to have before streaming's own options."""
    common = {
        "mapreduce.job.reduces": args.reducers,
        "mapreduce.reduce.memory.mb": args.memory,
        "mapreduce.reduce.java.opts": f"-Xmx{_heap(args)}m",
        # The reducers' JVMs have no other use for their memory than to hold what they fetched.
        "mapreduce.reduce.shuffle.merge.percent": 0.9,
        "mapreduce.reduce.input.buffer.percent": 0.7,
        "mapreduce.map.output.compress": "true",
        "mapreduce.map.output.compress.codec": "org.apache.hadoop.io.compress.SnappyCodec",
        "stream.jobconf.truncate.limit": 20000,  # a task finds its configuration in its environment
    }
    defined = [f"{name}={value}" for name, value in {**properties, **common}.items()]
    archives = [f"{package.our_code()}#{CODE}"]  # one file: each costs the client half a second
    if args.ship_numpy:
        archives.append(f"{package.numpy()}#{NUMPY}")
    if args.ship_venv:
        archives.append(f"{package.virtual_environment()}#{VENV}")
    if not re.fullmatch("[A-Za-z0-9/._+@-]+", str(package.SHIP)):
        raise StageError(f"Hadoop takes no file from a folder of this name: {package.SHIP}")
    return [
        *(_hadoop(), "jar", _streaming_jar()),
        *(word for text in (*defined, *args.define) for word in ("-D", text)),
        *("-archives", ",".join(archives)),
    ]


def _heap(args: argparse.Namespace) -> int:
    return int(int(args.memory) * JVM_SHARE)


def _python(args: argparse.Namespace) -> str:
    return f"{VENV}/bin/python" if args.ship_venv else args.python or "python3"


def _environment(args: argparse.Namespace) -> list[str]:
    words = ["-cmdenv", "OPENBLAS_NUM_THREADS=1"]
    return [*words, "-cmdenv", f"PYTHONPATH={NUMPY}"] if args.ship_numpy else words


def _command(*words: str) -> str:
    """As one argument; Streaming takes it apart at blanks and knows no escapes."""
    for word in words:
        if re.search(r"[\s'\"\\]", word):
            raise UsageError(f"Hadoop cannot pass {word!r} on: it has a blank or a quote in it")
    return " ".join(words)


def _hadoop() -> str:
    home = os.environ.get("HADOOP_HOME")
    found = shutil.which("hadoop", path=f"{home}/bin" if home else None)
    if not found:
        where = f"in HADOOP_HOME ({home}/bin)" if home else "on the PATH; or set HADOOP_HOME"
        raise StageError(f"there is no hadoop command {where}")
    return found


def _streaming_jar() -> str:
    """Where distributions of Hadoop keep it, unless HADOOP_STREAMING_JAR tells."""
    if told := os.environ.get("HADOOP_STREAMING_JAR"):
        return told
    homes = [os.environ.get(name) for name in ("HADOOP_HOME", "HADOOP_MAPRED_HOME")]
    homes += [str(Path(_hadoop()).resolve().parent.parent), "/usr/lib", "/usr/lib/hadoop"]
    for home in filter(None, homes):
        for folder in JAR_FOLDERS:
            if jars := sorted(Path(home, folder).glob(JARS)):
                return str(jars[-1])
    raise StageError("there is no hadoop-streaming jar; say where it is: HADOOP_STREAMING_JAR")


# The run.


def _call(command: list[str]) -> list[str]:
    """Run a command of Hadoop; returns what it said, which is also shown."""
    print(f"\n{shlex.join(command)}\n", file=sys.stderr, flush=True)
    said: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,  # stdout is for pairs, and these go to OUTPUT
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="backslashreplace",
    ) as process:
        assert process.stderr
        try:
            for line in process.stderr:
                said.append(line.rstrip("\n"))
                sys.stderr.write(line)
                sys.stderr.flush()
        except BaseException:  # Ctrl-C, most of all
            process.terminate()
            if application := _application(said):
                hint = f"The job goes on; to end it: yarn application -kill {application}"
                print(hint, file=sys.stderr)
            raise
    if process.returncode:
        raise StageError(_reason(said) or "Hadoop gave up, and said why above")
    return said


def _exists(path: str) -> bool:
    command = [_hadoop(), "fs", "-test", "-e", path]
    return not subprocess.run(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ).returncode


def _counters(said: list[str]) -> dict[str, int]:
    r"""Ours among those that Hadoop prints at the end of a job.

    >>> _counters(["\tneardup", "\t\tkeys=30", "\t\trecords=2", "\tFile Input Format Counters "])
    {'keys': 30, 'records': 2}
    """
    if "\tneardup" not in said:
        return {}
    ours = takewhile(lambda line: line.startswith("\t\t"), said[said.index("\tneardup") + 1 :])
    fields = (line.strip().rpartition("=") for line in ours)
    return {name: int(value) for name, _, value in fields}


def _reason(said: list[str]) -> str:
    """Why a job failed: what Hadoop found wrong before it started, or the first of our messages."""
    explained = [found[0] for line in said if (found := EXPLAINED.search(line))]
    if explained:
        return explained[0].replace("already exists", "already exists; --overwrite removes it")
    return first_of_ours(said) or first_message(_application(said), _hadoop())


def _application(said: list[str]) -> str:
    """YARN's name for the job; "" if it ran without YARN, or not at all."""
    found = re.search(r"Submitted application (application_\d+_\d+)", "\n".join(said))
    return found[1] if found else ""


if __name__ == "__main__":
    sys.exit(run("run_hadoop.sh", main))
