"""Wire formats between the stages; each parser is beside its formatter.

In: batches and keys, pairs, edges, decisions, token counts.
Out: lines of bytes, and back.
May import: runtime, sets, reading.
"""
