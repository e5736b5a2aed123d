"""Fixtures: a local Spark for all tests in this process, and one with a master and two workers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.spark_cluster import LOOPBACK, SOON_WARM, SparkCluster, started


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield a Spark session with master local[2], configured as run_spark.sh configures it."""
    from pyspark.sql import SparkSession

    from neardup.engines.spark.spark_submit import DEFAULTS

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", LOOPBACK)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONWARNINGS", "ignore")
        builder = SparkSession.builder.master("local[2]")
        folder = str(tmp_path_factory.mktemp("spark"))
        more = {
            "spark.local.dir": folder,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.extraJavaOptions": SOON_WARM,
        }
        for name, value in {**DEFAULTS, **more}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        yield session
        session.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with started(tmp_path_factory.mktemp("cluster")) as running:
        yield running
