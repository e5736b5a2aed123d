#!/usr/bin/env python3
"""The optional second reduce: equal pairs in, one of them out; `./dedup_reducer.py --help`."""

import os
import sys

sys.path.append(os.getcwd())  # in a Hadoop task the package lies there, and not beside this file

from neardup.process.interpreter import require

require("numpy")

from neardup.engines.scripts import dedup_reducer

if __name__ == "__main__":
    sys.exit(dedup_reducer())
