"""run_spark.sh: check the options, and run `spark_job` with spark-submit."""

import os
import sys

sys.path.insert(0, os.path.abspath(os.path.join(os.path.realpath(__file__), *[os.pardir] * 4)))

from neardup.runtime.interpreter import require

if __name__ == "__main__":  # otherwise the importing program did so
    require("numpy", name="run_spark.sh")

import argparse
import importlib.util
import shlex
import shutil
import subprocess
from pathlib import Path

from neardup.engines.pipe import checked, cluster_parser, name_and_value
from neardup.engines.spark import INSTALL
from neardup.options.settings import Settings, counts_first
from neardup.options.table import Options
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, UsageError, end_on_signals, run

DEFAULTS = {
    # Bounded, since a batch of Arrow is in the memory of both the executor and Python.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "4m",
    "spark.io.compression.codec": "zstd",  # writes a third of the bytes that the default writes
    "spark.driver.memory": "2g",  # it receives the shared keys, and with local[N] runs all tasks
    "spark.executor.minMemoryOverhead": "1g",  # for one Python besides the JVM, and its sort
    "spark.submit.deployMode": "client",  # the driver is this machine
    "spark.log.level": "FATAL",  # after a failure, our last line names the reason
}
NAME = "run_spark.sh"
CALLED = "NEARDUP_CALLED"  # the environment variable with the name of the command
DESCRIPTION = """Find the similar pairs of records in files on Spark.

INPUT is a file, a folder or a pattern, plain, .gz or .bz2, on any file system that Spark reads;
OUTPUT a new folder for the pairs: A TAB B TAB SIMILARITY.
With --output kept or marked, each part of OUTPUT has the lines of some splits of the input.

    ./run_spark.sh data/videos.txt pairs
    ./run_spark.sh --master yarn --conf spark.executor.instances=40 /data/videos /data/pairs
    ./run_spark.sh --master spark://node:7077 --input text s3a://bucket/articles s3a://bucket/pairs

Needs Spark 4.1 or later: SPARK_HOME, spark-submit on the PATH, or pyspark from pip; and on the
nodes Python 3.10 or later with numpy and pyarrow.
"""
SPARK_OPTIONS = flags(
    """
    --master URL    local[N], yarn, spark://HOST:PORT or another master of Spark [local[*]]
                    -h: local[N], yarn or spark://HOST:PORT (default: local[*])
    --reducers N    number of partitions, and so of tasks and of files in OUTPUT (default: the
                    number of splits of the input or of Spark's cores, whichever is larger)
                    -h: number of reducers (default: chosen for the input)
    --rounds N      2: send keys first, and then records only for keys that two or more records
                    share; 1: send records for all keys; auto: 2 [auto]
    --python PATH   the nodes' Python, with numpy and pyarrow (default: the current Python with
                    local[N], else python3)
    --conf NAME=VALUE…  a property for Spark; may be repeated, and takes precedence over the job's
                    own
    --show          print the spark-submit command on stdout without running it
    --name NAME     name of the application
    """,
    rounds={"choices": ["auto", "1", "2"]},
    conf=name_and_value,
    name={"default": "near-duplicates"},
)
JOB = Path(__file__).with_name("spark_job.py")


def read(given: list[str], typed: str = f"./{NAME}") -> argparse.Namespace:
    """Parse and check the command line; raise UsageError for an invalid or impossible option."""
    args = cluster_parser(NAME, typed, DESCRIPTION, SPARK_OPTIONS).parse_intermixed_args(given)
    check(args)
    options = Options.of(args)
    if counts_first(options):
        words = shlex.join([*options.given_arguments(), *args.inputs, args.output_folder])
        raise UsageError(
            "Spark cannot run a scheme that counts tokens first; add --counts FILE, or type: "
            f"./run_hadoop.sh {words}"
        )
    return args


def check(args: argparse.Namespace) -> Settings:
    """Return the settings, without token counts; UsageError for an option that Spark cannot use."""
    settings = checked(args, "Spark cannot decompress .xz; use .gz or .bz2")
    for name in [*Options.of(args).against, *args.inputs]:
        if name.rstrip("/").rpartition("/")[2].startswith(("_", ".")) and name.strip("./"):
            raise UsageError(f"{name}: Spark skips names that begin with _ or .; rename it")
    if "spark.submit.deployMode=cluster" in args.conf:
        raise UsageError(
            "--conf spark.submit.deployMode=cluster: the driver must run here; leave it out"
        )
    return settings


def command() -> int:
    """Run `neardup spark`; run_spark.sh runs this file as a script and calls `main`."""
    name = "neardup spark"
    return run(name, lambda: main(name, f"python3 -m {name}"))


def main(name: str = NAME, typed: str = f"./{NAME}") -> None:
    submit(read(sys.argv[1:], typed), JOB, name)


def submit(args: argparse.Namespace, job: Path, name: str) -> None:
    """Run a program with spark-submit and the arguments of this one, or with --show print how."""
    given = sys.argv[1:]
    words = [*submitting(args, job), *(word for word in given if word != "--show")]
    if args.show:
        print(shlex.join(words))
        return
    if args.master == "yarn":
        check_yarn()
    sys.exit(_submit(words, {**environment(args), CALLED: name}))


def submitting(args: argparse.Namespace, job: Path = JOB) -> list[str]:
    """Return the spark-submit command, up to the arguments of the job."""
    here = args.master.startswith("local")
    python = args.python or (sys.executable if here else "python3")
    properties = {
        **DEFAULTS,
        "spark.pyspark.python": python,
        "spark.pyspark.driver.python": sys.executable,
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
    }
    given = [f"{name}={value}" for name, value in properties.items()] + args.conf
    return [
        *(spark_submit(), "--master", args.master, "--name", args.name),
        *(word for each in given for word in ("--conf", each)),
        str(job),
    ]


def environment(args: argparse.Namespace) -> dict[str, str]:
    """Return the environment of spark-submit; a local Spark listens on 127.0.0.1 only."""
    quiet = ("PySpark does not yet fully support:FutureWarning", "Unable to cleanly:RuntimeWarning")
    own = {"SPARK_LOCAL_IP": "127.0.0.1"} if args.master.startswith("local") else {}
    return {"PYTHONWARNINGS": ",".join(f"ignore:{what}" for what in quiet), **own, **os.environ}


def spark_submit() -> str:
    """Return the path of the spark-submit command; raise StageError if it is not found."""
    home = os.environ.get("SPARK_HOME")
    if home:
        folders, where = [f"{home}/bin"], f"in SPARK_HOME ({home}/bin); correct or unset it"
    else:
        pyspark = importlib.util.find_spec("pyspark")
        packages = (pyspark and pyspark.submodule_search_locations) or []
        folders = [f"{package}/bin" for package in packages]
        folders.append(os.environ.get("PATH", os.defpath))
        where = f"on the PATH; set SPARK_HOME, or install one: {INSTALL}"
    found = shutil.which("spark-submit", path=os.pathsep.join(folders))
    if not found:
        raise StageError(f"no spark-submit found {where}")
    return found


def check_yarn() -> None:
    """Raise StageError if no Hadoop configuration names the YARN cluster.

    Spark would print a stack trace, or ask this machine for a quarter of an hour.
    """
    home = Path(spark_submit()).resolve().parents[1]
    script = Path(os.environ.get("SPARK_CONF_DIR", home / "conf"), "spark-env.sh")
    if script.exists() or not (home / "jars").is_dir():  # it or a wrapper may set the folder
        return
    folders = filter(None, map(os.environ.get, ("HADOOP_CONF_DIR", "YARN_CONF_DIR")))
    if not any(Path(folder, "yarn-site.xml").exists() for folder in folders):
        raise StageError(
            "--master yarn: set HADOOP_CONF_DIR to the folder with the cluster's core-site.xml and "
            "yarn-site.xml"
        )


def _submit(words: list[str], env: dict[str, str]) -> int:
    """Run spark-submit and return its exit code; spark-submit is terminated if this program ends.

    It prints the job's stderr on stdout, so both go to stderr here.
    """
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=env) as client:
        end_on_signals(lambda _: client.terminate())
        try:
            return client.wait()
        except BaseException:  # Ctrl-C, which the client receives as well
            client.terminate()
            client.wait()
            raise


if __name__ == "__main__":
    sys.exit(run("run_spark.sh", main))
