"""Commands that choose the settings of a run, or explain a pair.

In: records, or two ids; a sample of a file.
Out: samples, explanations, pictures; what other settings would find and cost.
May import: everything before but engines and library.
"""
