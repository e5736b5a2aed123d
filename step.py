#!/usr/bin/env python3
"""Run an inner step of a job: see `./step.py --help`."""

import os
import sys

# Import the package from beside this file or, in a Hadoop task, from beside the link to it; nothing
# else is imported from there.
sys.path[:0] = [os.path.dirname(of(__file__)) for of in (os.path.realpath, os.path.abspath)]
try:
    from neardup.runtime.interpreter import start
except ImportError:
    sys.exit(os.path.basename(__file__) + ": needs the folder neardup beside it; ship both")
del sys.path[:2]

if __name__ == "__main__":
    sys.exit(start("step.py"))
