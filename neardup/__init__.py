"""Near-duplicate search in collections too large to compare pair by pair.

A *scheme* gives each record its keys; two records are a candidate pair exactly when they share a
key.  The reducer turns the records of one key, a bucket, into pairs whose similarity it has
verified exactly.  Start reading at `neardup.stages`, where the whole flow stands on one screen.

A room of this house imports only from those before it, and its docstring says from which:

    process, sets
    reading, token_counts, similarity
    lines
    schemes, joins
    verification
    decisions
    options
    stages, count_stages, decision_stages, index, sketch_files
    engines
    evaluation, tuning
    report
    commands
"""

__version__ = "0.1.0"
