#!/usr/bin/env python3
"""The inner steps of a run on a cluster: `./step.py count|share|decide|keep`; `--help` has more."""

import os
import sys

# The package lies beside this file or, in a Hadoop task, beside the link to it; and it alone is
# taken from there.
sys.path[:0] = [os.path.dirname(of(__file__)) for of in (os.path.realpath, os.path.abspath)]
try:
    import neardup.runtime  # noqa: F401
except ImportError:
    sys.exit(os.path.basename(__file__) + ": needs the folder neardup beside it; ship both")
del sys.path[:2]

from neardup.runtime.interpreter import require

require("numpy")

from neardup.engines.pipe import step

if __name__ == "__main__":
    sys.exit(step())
