"""How Hadoop cuts its input, and what it does with lines."""

MAPS, REDUCERS = "mapreduce.job.maps", "mapreduce.job.reduces"

# A line's place is told from where its split begins (`reading.places`), so two jobs that speak of
# the same lines need the same splits.  By default these depend on how much all the input files
# have, and on how many maps there should be; with this, on the blocks of each file alone.
SAME_SPLITS = {MAPS: 1}

# A mapper's lines become the output as they are: no part of them is a key, and no tab is added.
WHOLE_LINES = {"stream.map.output": "keyonlytext"}
