"""Repeated passages: what occurs in several texts, where, and texts without it.

    texts ─ word_lines ─▶ lines of words ─ repeated_runs ─▶ every run of K words that occurs twice
                                                             ├─▶ passages and their places
                                                             └─▶ cuts ─▶ rows without them

In: records with texts.
Out: passages and their places; the files without them, or with the share that is repeated.
May import: runtime, sets, reading, lines, decisions, options, stages.
"""
