"""What is installed of Hadoop on this machine: its commands, and the jar of Streaming."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from neardup.process.errors import StageError

JARS = "hadoop-streaming*[0-9g].jar"  # not its sources, nor its tests
JAR_FOLDERS = ("share/hadoop/tools/lib", "lib", "hadoop-mapreduce", "../hadoop-mapreduce", ".")


def hadoop() -> str:
    """The hadoop command; StageError if there is none."""
    home = os.environ.get("HADOOP_HOME")
    found = shutil.which("hadoop", path=f"{home}/bin" if home else None)
    if not found:
        where = f"in HADOOP_HOME ({home}/bin)" if home else "on the PATH; or set HADOOP_HOME"
        raise StageError(f"there is no hadoop command {where}")
    return found


def mapred() -> str:
    """The mapred command; where there is none, `hadoop` still takes what it took once."""
    beside = os.path.dirname(hadoop())
    return shutil.which("mapred", path=beside) or shutil.which("mapred") or hadoop()


def streaming_jar() -> str:
    """Where distributions of Hadoop keep it, unless HADOOP_STREAMING_JAR tells."""
    if told := os.environ.get("HADOOP_STREAMING_JAR"):
        return told
    homes = [os.environ.get(name) for name in ("HADOOP_HOME", "HADOOP_MAPRED_HOME")]
    homes += [str(Path(hadoop()).resolve().parent.parent), "/usr/lib", "/usr/lib/hadoop"]
    for home in filter(None, homes):
        for folder in JAR_FOLDERS:
            if jars := sorted(Path(home, folder).glob(JARS)):
                return str(jars[-1])
    raise StageError("there is no hadoop-streaming jar; say where it is: HADOOP_STREAMING_JAR")
