"""run_spark.sh: checks its options, and has spark-submit run `spark_job` with them."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from neardup.process.interpreter import require

require("numpy", name="run_spark.sh")

from neardup.engines.spark import spark_options
from neardup.engines.spark.spark_properties import DEFAULTS
from neardup.process.errors import StageError
from neardup.process.program import end_on_signals, run

JOB = Path(__file__).with_name("spark_job.py")
INSTALL = "python3 -m pip install 'neardup-mapreduce[spark]'"


def main() -> None:
    given = sys.argv[1:]
    args = spark_options.read(given)
    words = [*command(args), *(word for word in given if word != "--show")]
    if args.show:
        print(shlex.join(words))
        return
    if args.master == "yarn":
        check_yarn()
    sys.exit(_submit(words, environment(args)))


def command(args: argparse.Namespace) -> list[str]:
    """spark-submit, up to the arguments of the job."""
    here = args.master.startswith("local")
    python = args.python or (sys.executable if here else "python3")
    properties = {
        **DEFAULTS,
        "spark.pyspark.python": python,
        "spark.pyspark.driver.python": sys.executable,
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
    }
    told = [f"{name}={value}" for name, value in properties.items()] + args.conf
    return [
        *(spark_submit(), "--master", args.master, "--name", args.name),
        *(word for each in told for word in ("--conf", each)),
        str(JOB),
    ]


def environment(args: argparse.Namespace) -> dict[str, str]:
    """Of a Spark that is this machine's alone, nothing listens to other machines."""
    quiet = ("PySpark does not yet fully support:FutureWarning", "Unable to cleanly:RuntimeWarning")
    more = {"PYTHONWARNINGS": ",".join(f"ignore:{what}" for what in quiet)}
    if args.master.startswith("local"):
        more["SPARK_LOCAL_IP"] = "127.0.0.1"
    return {**more, **os.environ}


def spark_submit() -> str:
    """The command; StageError if there is none."""
    if home := os.environ.get("SPARK_HOME"):
        found = shutil.which("spark-submit", path=f"{home}/bin")
        if not found:
            raise StageError(f"there is no spark-submit in SPARK_HOME ({home}/bin)")
        return found
    if spec := importlib.util.find_spec("pyspark"):
        for folder in spec.submodule_search_locations or []:
            if found := shutil.which("spark-submit", path=f"{folder}/bin"):
                return found
    if found := shutil.which("spark-submit"):
        return found
    raise StageError(
        f"there is no spark-submit on the PATH; set SPARK_HOME, or install one: {INSTALL}"
    )


def check_yarn() -> None:
    """StageError where nothing says which cluster it is; Spark would show a stack trace, or ask
    this machine for a quarter of an hour."""
    home = Path(spark_submit()).resolve().parents[1]
    if not (home / "jars").is_dir():  # a command around the real one may say it
        return
    if Path(os.environ.get("SPARK_CONF_DIR", home / "conf"), "spark-env.sh").exists():
        return
    folders = filter(None, map(os.environ.get, ("HADOOP_CONF_DIR", "YARN_CONF_DIR")))
    if not any(Path(folder, "yarn-site.xml").exists() for folder in folders):
        raise StageError(
            "--master yarn: set HADOOP_CONF_DIR to the folder with the cluster's core-site.xml and "
            "yarn-site.xml"
        )


def _submit(words: list[str], env: dict[str, str]) -> int:
    """Its exit code is that of the job; what ends this ends it, too.

    What the job says on stderr comes out of spark-submit on stdout, so both go to stderr here.
    """
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=env) as client:
        end_on_signals(lambda _: client.terminate())
        try:
            return client.wait()
        except BaseException:  # Ctrl-C, which the client hears as well
            client.terminate()
            client.wait()
            raise


if __name__ == "__main__":
    sys.exit(run("run_spark.sh", main))
