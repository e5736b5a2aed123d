"""How Hadoop cuts its input, brings the lines of a bucket together, and in which order.

A keyed line is KEY TAB SIZE TAB ID TAB SET.  The partitioner goes by KEY alone; the sort goes by
KEY SIZE ID, the order in which `sort` would bring the lines, so that a hot bucket is compared piece
by piece as it stands.
"""

MAPS, REDUCERS = "mapreduce.job.maps", "mapreduce.job.reduces"
PARTITIONER = "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner"
SECONDARY_SORT = {
    "mapreduce.partition.keypartitioner.options": "-k1,1",
    "stream.num.map.output.key.fields": 3,
}

# A line's place is told from where its split begins (`reading.places`), so two jobs that speak of
# the same lines need the same splits.  By default these depend on how much all the input files
# have, and on how many maps there should be; with this, on the blocks of each file alone.
SAME_SPLITS = {MAPS: 1}

# A mapper's lines become the output as they are: no part of them is a key, and no tab is added.
WHOLE_LINES = {"stream.map.output": "keyonlytext"}
