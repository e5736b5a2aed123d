"""What the daemons need: Java, Hadoop's jars, and their configuration with free ports."""

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
    ClusterError,
    environment,
    pid,
    ports,
    run_logged,
)

COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
FIRST_PORT = 29800


def check_machine() -> None:
    if not re.fullmatch("[A-Za-z0-9/._+@-]+", str(HOME)):
        raise ClusterError(f"Hadoop cannot live in a folder of this name; letters, digits: {HOME}")
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
    """Fetch the jars that pom.xml names, unless they are there."""
    lib, pom = HOME / "lib", SOURCE / "pom.xml"
    with suppress(FileNotFoundError):
        if (lib / "pom.xml").read_bytes() == pom.read_bytes():
            return
    if not shutil.which("mvn"):
        raise ClusterError("needs Maven; on Debian and Ubuntu: apt-get install maven")
    print("cluster.py: fetching Hadoop (100 MB) from Maven's registry", file=sys.stderr)
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
    """Fill in the templates, with free ports; a cluster that runs keeps what it has."""
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
        for name, value in {"home": HOME, **ports()}.items():
            text = text.replace(f"@{name}@", str(value))
        (HOME / "conf" / template.name).write_text(text)


def free_ports() -> dict[str, int]:
    """The first that nobody listens on; below those that systems give to anyone who asks."""
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
