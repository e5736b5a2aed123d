"""Tables, CSV, TSV and Parquet, → blocks of JSON lines; and their rows that stay.

In: a file, and which of its columns are the id and the text.
Out: pieces of lines, one a row, as `json_lines` reads them; or the same table with fewer rows.
May import: as `reading`.
"""
