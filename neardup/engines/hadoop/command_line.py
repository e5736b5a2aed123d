"""The options of run_hadoop.sh, read and checked before Hadoop is asked for anything."""

import os
from collections.abc import Mapping
from typing import Any

from neardup.engines.cluster import checked, cluster_parser
from neardup.engines.hadoop import folders, shipping
from neardup.engines.hadoop.jobs import Submission, command, flags, python
from neardup.engines.hadoop.sizes import AUTO, DEFAULT_MEMORY
from neardup.options.settings import with_input
from neardup.options.table import Options, integer
from neardup.runtime.errors import UsageError, shown

DESCRIPTION = """Find the similar pairs of records in files on a Hadoop cluster.

INPUT is a file, a folder or a pattern, plain, .gz or .bz2; OUTPUT a folder that does not exist yet,
where the pairs will be: A TAB B TAB SIMILARITY.

    ./run_hadoop.sh /data/videos /data/pairs
    ./run_hadoop.sh --input text --threshold 0.8 '/data/articles/*.txt.gz' /data/pairs
    ./run_hadoop.sh --output kept --removed /data/removed /data/videos /data/clean

With --output kept, each part of OUTPUT has the lines that stay of one split of the input; the one
that comes first is so by the paths of files, and by lines within them.

Several INPUTs are separated by blanks; a comma is a part of a pattern only, as in {jan,feb}.
What goes from job to job, where there are several, is in _neardup-ID.OUTPUT beside OUTPUT.
Ctrl-C ends the job on the cluster, too, and removes what it has written.

Needs HADOOP_HOME, or hadoop on the PATH, and on the nodes Python 3.9 with numpy.
"""

CLUSTER_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    # How much of the cluster a job takes.
    "--reducers": dict(
        metavar="N",
        default=AUTO,
        help=f"reduce tasks, or by the size of the input (default: {AUTO})",
    ),
    "--rounds": dict(
        metavar="N",
        choices=[AUTO, "1", "2"],
        default=AUTO,
        help="2: a first job finds the keys that two records share, and only these get lines; "
        "auto: where the input is large enough for one more job (default: auto)",
    ),
    "--memory": dict(
        metavar="MB",
        default=str(DEFAULT_MEMORY),
        help="of a task's container, shared by Hadoop's JVM and Python (default: "
        f"{DEFAULT_MEMORY})",
    ),
    # What its nodes run.
    "--python": dict(metavar="PATH", help="the nodes' Python, with numpy (default: python3)"),
    shipping.FLAG: shipping.OPTION,
    "--ship-venv": dict(
        action="store_true",
        help="send a virtual environment with numpy along, to nodes with Python where it is here",
    ),
    # Which jobs follow, and where their answers go.
    "--dedup": dict(
        action="store_true",
        help="a second job with dedup_reducer.py: each pair once, even where an id stands for "
        "several records",
    ),
    "--removed": dict(
        metavar="FOLDER",
        help="with --output kept: what --output removed writes, into this folder, which does not "
        "exist yet",
    ),
    "--overwrite": dict(
        action="store_true",
        help="remove OUTPUT first, if an earlier run has left its mark there, the file _neardup",
    ),
    # How they are submitted.
    "--detach": dict(
        action="store_true",
        help="on Ctrl-C, leave the job that runs to the cluster, and say how to end it",
    ),
    "--show": dict(
        action="store_true",
        help="print the commands on stdout, and do not run them: nothing on the cluster changes",
    ),
    "--name": dict(default="near-duplicates", help="of the job"),
    "-D": dict(
        dest="define",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a property for Hadoop; may be repeated, and takes precedence over what is set here",
    ),
}

AS_GIVEN = (
    *("inputs", "name", "reducers", "rounds", "python", "ship_numpy", "ship_venv"),
    *("define", "dedup", "overwrite", "detach", "show"),
)


def read(given: list[str], typed: str = "./run_hadoop.sh") -> Submission:
    """The options; UsageError for anything wrong or impossible."""
    parser = cluster_parser("run_hadoop.sh", typed, DESCRIPTION, CLUSTER_OPTIONS)
    args = parser.parse_intermixed_args(shipping.with_value(given))
    no_xz = "Hadoop cannot unpack .xz; pack it as .gz, .bz2 or .zst"
    reducers = None if args.reducers == AUTO else args.reducers
    settings = checked(args, no_xz, reducers, "-D", args.define)
    decides = bool(settings.output.decides)
    if args.dedup and decides:
        raise UsageError(f"--dedup is for pairs, and --output is {args.output}")
    if args.removed is not None and args.output != "kept":
        raise UsageError(f"--removed is for --output kept, and --output is {args.output}")
    memory = integer("--memory", args.memory, 512, 999999)
    shipping.check_version(args.ship_numpy)
    if args.ship_venv and (args.python or args.ship_numpy is not None):
        raise UsageError("--ship-venv brings its own Python and numpy")
    for text in given:
        if any("\udc80" <= letter <= "\udcff" for letter in text):
            raise UsageError(f"{shown(os.fsencode(text))} is not UTF-8, as Hadoop's names are")
    answers = [args.output_folder, *([] if args.removed is None else [args.removed])]
    asked = Submission(
        options=with_input(Options.of(args)),
        answers=[folder.rstrip("/") or "/" for folder in answers],
        memory=memory,
        decides=decides,
        tagged=settings.tag is not None,
        **{name: getattr(args, name) for name in AS_GIVEN},
    )
    command(python(asked), *flags(asked))  # which may be refused
    folders.check(args.inputs, asked.options.against, answers, args.overwrite)
    return asked
