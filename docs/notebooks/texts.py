# %% [markdown]
# # Near-duplicate texts
#
# The docstrings of Python's standard library repeat each other. Which do, and what is left
# without the repeats?

# %%
import ast
import sysconfig
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt

import neardup

library = Path(sysconfig.get_paths()["stdlib"])
texts = {}
for file in sorted(library.glob("*.py")):
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            text = ast.get_docstring(node) or ""
            if len(text.split()) >= 10:
                texts[f"{file.stem}.{getattr(node, 'name', '')}:{len(texts)}"] = text
print(len(texts), "docstrings of ten words or more")

# %% [markdown]
# Every pair whose words are at least half the same; `exact=True` misses none.

# %%
pairs = neardup.pairs(texts.items(), 0.5, shingle="word:1", exact=True)
print(len(pairs), "pairs;", sum(pair.similarity == 1 for pair in pairs), "have the same words")
for pair in sorted(pairs, key=lambda pair: pair.similarity)[-3:]:
    print(pair.a, pair.b, float(pair.similarity))

# %% [markdown]
# Where should the threshold be? Where the histogram has a gap, if it has one.
#
# ![pairs by similarity](texts.svg)

# %%
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.hist([float(pair.similarity) for pair in pairs], bins=25, range=(0.5, 1), color="#136a75")
axes.set(xlabel="Jaccard similarity of the words", ylabel="pairs", yscale="log")
figure.savefig("texts.svg", metadata={"Date": None})

# %% [markdown]
# Remove at 0.8. A text is removed only if it is in a pair with one that is kept: here each is
# looked up in the pairs.

# %%
answer = neardup.deduplicate(texts.items(), 0.8, shingle="word:1", exact=True, keep="longest")
known = {frozenset(pair[:2]) for pair in pairs}
assert all(frozenset((gone.id, gone.because)) in known for gone in answer.removed)
print(len(answer.kept), "kept,", len(answer.removed), "removed")
modules = Counter(gone.id.split(".")[0] for gone in answer.removed)
print("most in", modules.most_common(3))

# %% [markdown]
# Look at one removal before believing any.

# %%
gone = max(answer.removed, key=lambda gone: len(texts[gone.id]))
print(texts[gone.id], "\n--- duplicates ---\n", texts[gone.because])
