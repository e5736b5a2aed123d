#!/usr/bin/env python3
"""Token counts before the mapper, in three steps; `./count_tokens.py --help` tells more."""

import os
import sys

sys.path.append(os.getcwd())  # in a Hadoop task the package lies there, and not beside this file

from neardup.process.interpreter import require

require("numpy")

from neardup.engines.scripts import count_tokens

if __name__ == "__main__":
    sys.exit(count_tokens())
