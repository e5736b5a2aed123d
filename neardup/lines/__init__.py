"""Wire formats between the stages: parse beside format, and a round trip in the tests.

In: batches and keys, pairs, edges, decisions, token counts.
Out: lines of bytes, and back.
May import: runtime, sets, reading.
"""
