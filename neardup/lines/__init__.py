"""Wire formats between the stages: formatters and parsers of lines.

In: batches and keys, pairs, edges, decisions, token counts.
Out: lines of bytes, and back.
May import: runtime, sets, reading.
"""
