"""Commands for text files, folders and test data: documents, folders and leaks.

In: names of folders, archives and files of records.
Out: pairs of files or folders, decisions, and records of test sets that are in training data.
May import: everything before but library.
"""
