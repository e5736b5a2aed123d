"""The shared keys of the first round, as a task of the second reads them: --shared-keys."""

from __future__ import annotations

import tempfile
from pathlib import Path

from neardup.options.settings import Settings
from neardup.process.errors import UsageError
from neardup.reading.blocks import blocks_of
from neardup.round_stages import shared_keys
from neardup.rounds.key_filter import KeyFilter
from neardup.rounds.mapped_files import mapped


def read_shared_keys(path: str, settings: Settings) -> KeyFilter | None:
    """From a file, or a folder of such as Hadoop writes it."""
    if not path:
        raise UsageError("--shared-keys: expected the name of a file, got ''")
    given = Path(path)
    files = [given]
    if given.is_dir():
        files = [file for file in sorted(given.iterdir()) if file.name.startswith("part-")]
    elif given.exists() and not given.is_file():  # a pipe, which cannot be mapped
        with given.open("rb") as pipe, tempfile.NamedTemporaryFile() as copy:
            copy.writelines(blocks_of(pipe))
            copy.flush()
            return shared_keys(mapped([Path(copy.name)]), settings)
    return shared_keys(mapped(files), settings)
