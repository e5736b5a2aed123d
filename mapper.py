#!/usr/bin/env python3
"""The mapper: record lines in, keyed records out; `./mapper.py --help` tells more."""

import os
import sys

sys.path.append(os.getcwd())  # in a Hadoop task the package lies there, and not beside this file

from neardup.process.interpreter import require

require("numpy")

from neardup.engines.scripts import mapper

if __name__ == "__main__":
    sys.exit(mapper())
