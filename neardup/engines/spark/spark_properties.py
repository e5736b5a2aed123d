"""What is set of Spark where nobody says otherwise."""

# A batch of Arrow lies in the executor's memory and in Python's, and so it is bounded.
BATCHES = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "4m",
}
DEFAULTS = {
    **BATCHES,
    "spark.io.compression.codec": "zstd",  # a third of the bytes that the default leaves
    "spark.driver.memory": "2g",  # the shared keys pass through it, and local[N] works in it
    "spark.executor.minMemoryOverhead": "1g",  # for one Python beside the JVM, and its sort
    "spark.submit.deployMode": "client",  # the driver is this machine
    "spark.log.level": "FATAL",  # why a run fails is said in its last line
}
