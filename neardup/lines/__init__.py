"""Wire formats between the stages: parse beside format, with round trips in the tests.

In: batches and keys, pairs, edges, decisions, token counts.
Out: lines of bytes, and back.
May import: runtime, sets, reading.
"""
