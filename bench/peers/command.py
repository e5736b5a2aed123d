"""Common parts of the adapters: their options, the import of the peer, and a quiet stderr."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from neardup.similarity.measures import Threshold

STDERR = 2  # the descriptor


def options(
    doc: str | None,
    bands: int | None = None,
    rows: int | None = None,
    banded: bool = True,
    index: bool = False,
    **more: int | None,
) -> argparse.Namespace:
    """Parse the command line of an adapter; its --help starts with the first line of `doc`.

    bands, rows: the default, or None where the peer makes its own choice; more: further options
    that are numbers, and their defaults; index: --index FOLDER, which --build makes.
    """
    name = Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(
        prog=f"python3 -m bench.peers.{name}", description=(doc or "").split("\n")[0]
    )
    parser.add_argument("file")
    parser.add_argument("--threshold", type=Threshold.parse, default="0.9")
    parser.add_argument(
        "--threads", type=int, default=2, help="threads or processes of a peer that has them"
    )
    if banded:
        more = {**more, "bands": bands, "rows": rows}
    for option, default in more.items():
        parser.add_argument(f"--{option}", type=int, default=default)
    if index:
        parser.add_argument("--index", type=Path, required=True, metavar="FOLDER")
        parser.add_argument("--build", action="store_true", help="make the index of FILE")
    args = parser.parse_args()
    if banded and (args.bands is None) != (args.rows is None):
        parser.error("--bands needs --rows, and --rows needs --bands")
    return args


def load(module: str, threads: int = 1) -> Any:
    """Import the peer, limited to `threads` threads; SystemExit if it is not installed."""
    # Rayon and Polars (Rust) and OpenMP (C++) read these when the first thread starts.
    for variable in ("RAYON_NUM_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS"):
        os.environ[variable] = str(threads)
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SystemExit(f"bench.peers: {error}: pip install '.[bench]'") from None


@contextmanager
def quiet() -> Iterator[None]:
    """Context manager: what is written to stderr is shown only if an exception is raised."""
    with tempfile.TemporaryFile() as chatter:
        sys.stderr.flush()
        stderr = os.dup(STDERR)
        os.dup2(chatter.fileno(), STDERR)
        try:
            yield
        except BaseException:
            chatter.seek(0)
            os.write(stderr, chatter.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stderr, STDERR)
            os.close(stderr)
