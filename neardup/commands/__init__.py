"""The commands of `python3 -m neardup`, one file each; `neardup.__main__` has the table.

`main` of a command reads the command line and returns the exit code.  The other files are what
they are made from:

    asked       options and inputs        pairs    pair lines, both ways
    quality     shares and intervals      ids      a random sample of them
    explain     two records, in words     similarity, tokens   what that takes
    svg         a curve as a picture
"""
