# %% [markdown]
# # On Spark
#
# The same pairs from a DataFrame of Spark as from `neardup.pairs`, and the clusters that they make.

# %%
import os
import random
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable  # the executors' Python

import matplotlib.pyplot as plt
from pyspark.sql import SparkSession

import neardup
import neardup.library.spark

spark = SparkSession.builder.master("local[2]").appName("neardup").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")

# %% [markdown]
# A hundred texts of 40 words, and of each fourth one a copy in which some words are others.

# %%
dice = random.Random(1)
words = [f"word{number}" for number in range(1000)]
texts = {f"text{number:03}": dice.choices(words, k=40) for number in range(100)}
for number in range(0, 100, 4):
    copy = texts[f"text{number:03}"].copy()
    for place in dice.sample(range(40), number // 10):
        copy[place] = dice.choice(words)
    texts[f"text{number:03}.copy"] = copy
rows = [(name, " ".join(text)) for name, text in texts.items()]
articles = spark.createDataFrame(rows, "id string, text string")

# %%
pairs = neardup.library.spark.pairs(articles, threshold=0.5, shingle="word:1").cache()
pairs.show(5)
here = {pair[:2] for pair in neardup.pairs(rows, 0.5, shingle="word:1")}
assert {(row.a, row.b) for row in pairs.collect()} == here
print(len(here), "pairs, of 25 copies")

# %% [markdown]
# A filter in SQL: the copies that can be removed at 0.8.
#
# ![similarity of each copy to its text](frames.svg)

# %%
pairs.createOrReplaceTempView("pairs")
spark.sql("select count(*) from pairs where similarity >= 0.8").show()
changed = [(int(row.a[4:7]) // 10, row.similarity) for row in pairs.collect()]
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.scatter(*zip(*changed), color="#136a75")
axes.set(xlabel="words of 40 that were drawn again", ylabel="Jaccard similarity")
figure.savefig("frames.svg", metadata={"Date": None})
spark.stop()
