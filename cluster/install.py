"""Set up the cluster: check Java, download Hadoop's jars, write a configuration with free ports."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from cluster.daemons import (
    DAEMONS,
    FETCH_SECONDS,
    HOME,
    PORTS,
    SOURCE,
    START_SECONDS,
    ClusterError,
    environment,
    pid,
    ports,
    run_logged,
)

COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
FIRST_PORT = 29800
# Few cores and JVMs that live for seconds: a collector of one thread, no second compiler, and
# classes that are parsed already.  JVMs share those of jars that are first on their class path.
CLASSES = HOME / "lib" / "classes.jsa"
QUICK_JVM = (
    f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:SharedArchiveFile={CLASSES}"
    f" -Xlog:disable -Xlog:all=error:stderr -cp {HOME}/lib/*:{HOME}/conf:."
)


def check_machine() -> None:
    if not re.fullmatch("[A-Za-z0-9/._+@-]+", str(HOME)):
        raise ClusterError(
            f"{HOME}: Hadoop needs a path of only ASCII letters, digits and / . _ + @ -; move the "
            "repository to such a folder"
        )
    java = Path(environment()["JAVA_HOME"], "bin", "java")
    said = ""
    with suppress(OSError, subprocess.TimeoutExpired):
        command = [str(java), "-version"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60).stderr
    version = re.search(r'version "(\d+)', said)
    if not version or int(version[1]) < 17:
        found = f", and {java} is {version[1]}" if version else ""
        advice = "on Debian and Ubuntu: apt-get install openjdk-17-jre"
        raise ClusterError(f"needs Java 17 or later{found}; {advice}")


def fetch() -> None:
    """Download the jars that pom.xml names, unless they have been downloaded already."""
    lib, pom = HOME / "lib", SOURCE / "pom.xml"
    with suppress(FileNotFoundError):
        if (lib / "pom.xml").read_bytes() == pom.read_bytes():
            return
    if not shutil.which("mvn"):
        raise ClusterError("needs Maven; on Debian and Ubuntu: apt-get install maven")
    print("fetching Hadoop (100 MB) from Maven's registry, once", file=sys.stderr)
    new = HOME / "lib.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    log = HOME / "fetch.log"
    goal = ["mvn", "-B", "-f", str(pom), COPY, f"-DoutputDirectory={new}", "-DincludeScope=runtime"]
    with log.open("wb") as output:
        code = run_logged(goal, output, FETCH_SECONDS)
    if code:
        said = log.read_text("utf-8", "replace").splitlines()
        reason = next((line for line in said if "[ERROR]" in line), "no reason given")
        raise ClusterError(f"Maven could not fetch Hadoop: {reason}\nThe whole log is {log}")
    shutil.copy(pom, new)
    shutil.rmtree(lib, ignore_errors=True)
    new.rename(lib)  # only whole


def configure() -> None:
    """Write the configuration from its templates, with free ports, unless a daemon is running."""
    if any(pid(name) for name in DAEMONS):
        return
    for folder in ("conf", "logs", "pids"):
        (HOME / folder).mkdir(parents=True, exist_ok=True)
    shutil.rmtree(HOME / "bin", ignore_errors=True)
    shutil.copytree(SOURCE / "bin", HOME / "bin", symlinks=True)
    (HOME / "conf" / "ports.new").write_text(json.dumps(free_ports()))
    (HOME / "conf" / "ports.new").replace(HOME / "conf" / "ports.json")
    for page in ("hdfs", "datanode"):  # the jars lack these pages, and the servers look for them
        (HOME / "conf" / "webapps" / page).mkdir(parents=True, exist_ok=True)
    for template in sorted((SOURCE / "conf").iterdir()):
        text = template.read_text()
        for name, value in {"home": HOME, "quick_jvm": QUICK_JVM, **ports()}.items():
            text = text.replace(f"@{name}@", str(value))
        (HOME / "conf" / template.name).write_text(text)


def share_classes() -> None:
    """Archive the Java classes of a small job, once, so that JVMs start in half the time.

    A failure is no error: JVMs start without the archive too.
    """
    if CLASSES.exists():
        return
    print("running a small job, once, so that later ones start faster", file=sys.stderr)
    folder = HOME / "data" / "classes"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "sample.txt").write_text("a line\n")
    record = f"JDK_JAVA_OPTIONS=-XX:DumpLoadedClassList={folder}/%p.list"  # %p: one file a JVM
    kinds = ("mapreduce.map", "mapreduce.reduce", "yarn.app.mapreduce.am")
    (streaming,) = (HOME / "lib").glob("hadoop-streaming-*.jar")
    job = ["env", record, str(HOME / "bin" / "hadoop"), "jar", str(streaming)]
    job += [f"-D{kind}.env={record}" for kind in kinds]
    job += ["-input", f"file://{folder}/sample.txt", "-output", f"file://{folder}/output"]
    job += ["-mapper", "cat", "-reducer", "cat"]
    java = [str(Path(environment()["JAVA_HOME"], "bin", "java")), "-XX:+UseSerialGC"]
    dump = [f"-XX:SharedClassListFile={folder}/all", f"-XX:SharedArchiveFile={folder}/new"]
    log = HOME / "logs" / "classes.log"
    with log.open("ab") as output:
        failed = run_logged(job, output, START_SECONDS)
        (folder / "all").write_text("".join(loaded_classes(folder)))
        dump = [*java, "-Xshare:dump", *dump, "-cp", f"{HOME}/lib/*"]
        failed = failed or run_logged(dump, output, START_SECONDS)
    if failed:
        reason = "Java could not archive Hadoop's classes, so programs start slower"
        print(f"cluster.py: {reason}; the log is {log}", file=sys.stderr)
    else:
        (folder / "new").rename(CLASSES)  # only whole


def loaded_classes(folder: Path) -> list[str]:
    """Return the complete lines of all class lists in a folder, sorted and without repeats.

    A JVM that is killed leaves part of a line; Java refuses a list with such a line.
    """
    texts = (file.read_text() for file in folder.glob("*.list"))
    lines = {line for text in texts for line in text.splitlines(keepends=True)}
    return sorted(line for line in lines if line[0] != "#" and line.endswith("\n"))


def free_ports() -> dict[str, int]:
    """Return a free port for each name in PORTS, below the ports that systems give to clients."""
    free = filter(is_free, range(FIRST_PORT, FIRST_PORT + 1000))
    found = dict(zip(PORTS, free))
    if len(found) < len(PORTS):
        raise ClusterError(f"too few free ports from {FIRST_PORT} to {FIRST_PORT + 999}")
    return found


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("localhost", port))
        except OSError:
            return False
    return True
