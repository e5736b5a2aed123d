"""Near-duplicate search in collections too large to compare pair by pair.

A *scheme* gives each record its keys; two records are a candidate pair if they share a key.  The
reducer turns the records of one key, a bucket, into verified pairs.  Start reading at
`neardup/stages/pairs.py`: the whole flow on one screen.

A folder imports only from those before it; its docstring lists them:

    runtime, sets
    reading, similarity
    lines
    schemes, joins
    verification
    decisions
    options
    stages
    engines
    library
    commands
    media.pictures, media.frames, media.videos, media.commands
    tools.judge, tools.sketches, tools.documents, tools.report

For other programs there are `pairs`, `clusters`, `deduplicate`, `passages` and `Index`.  They are
imported on first use: scripts on a cluster import this package before they know that numpy is
installed.
"""

import sys

if sys.platform == "win32":
    raise ImportError("neardup does not run on Windows; install it in WSL, where it does")

from neardup.runtime import VERSION

TYPE_CHECKING = False  # for type checkers it is true; `typing` itself takes long to import

if TYPE_CHECKING:
    from neardup.library import (
        Deduplicated,
        Index,
        Kept,
        Match,
        Pair,
        Passage,
        PassagePlace,
        Removed,
        clusters,
        deduplicate,
        pairs,
        passages,
    )

__version__ = VERSION
__all__ = [
    "Deduplicated",
    "Index",
    "Kept",
    "Match",
    "Pair",
    "Passage",
    "PassagePlace",
    "Removed",
    "__version__",
    "clusters",
    "deduplicate",
    "pairs",
    "passages",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import neardup.library

        return getattr(neardup.library, name)

    def __dir__() -> "list[str]":  # an older Python gets as far as `require`
        return sorted([*globals(), *__all__])
