#!/usr/bin/env python3
"""The reducer: one bucket after another in, verified pairs out; `./reducer.py --help`."""

import os
import sys

sys.path.append(os.getcwd())  # in a Hadoop task the package lies there, and not beside this file

from neardup.process.interpreter import require

require("numpy")

from neardup.engines.scripts import reducer

if __name__ == "__main__":
    sys.exit(reducer())
