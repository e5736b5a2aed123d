"""Near-duplicate search in collections too large to compare pair by pair.

A *scheme* gives each record its keys; two records are a candidate pair exactly when they share a
key.  The reducer turns the records of one key, a bucket, into pairs whose similarity it has
verified exactly.  Start reading at `neardup/stages/pairs.py`: the whole flow on one screen.

A room of this house imports only from those before it, and its docstring says from which:

    runtime, sets
    reading, similarity
    lines
    schemes, joins
    verification
    decisions
    options
    stages, stored
    engines
    library
    evaluation
    report
    commands

What it offers to other programs is `pairs`, `clusters` and `deduplicate`, from the room `library`.
They come with their first use, since a script of a cluster imports this before it knows that numpy
is there.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neardup.library import Deduplicated, Pair, Removed, clusters, deduplicate, pairs

from neardup.runtime import VERSION

__version__ = VERSION
__all__ = ["Deduplicated", "Pair", "Removed", "__version__", "clusters", "deduplicate", "pairs"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import neardup.library

        return getattr(neardup.library, name)

    def __dir__() -> list[str]:
        return sorted([*globals(), *__all__])
