"""Time `neardup passages` on package texts; write a table for bench/results/passages.md.

    python3 -m bench.repeated_passages 100 300 1000 > bench/results/passages.md

The texts are those below /usr/share/doc.  Where these are too few, they come again with the words
of each paragraph in another order, which repeats no passage.  A tenth of all texts gets a licence.

The rows without MB are the hardest texts: one or two words over and over, a text as long as
--max-line allows, without a repeated word, and many equal texts.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

DOCS, LICENCES = Path("/usr/share/doc"), Path("/usr/share/common-licenses")
LONGEST = 1 << 20  # bytes of a text
CALLS = (["--length=50"], ["--length=13"], ["--length=50", "--output=kept"])
HARD: dict[str, Iterable[Iterable[str]]] = {  # texts in parts, so that this process stays small
    "`a a …`": [["a " * 1000] * 12_000],
    "`a b a b …`": [["a b " * 1000] * 6_000],
    "`0 1 2 …`": [(f"{number} " for number in range(8_000_000))],
    "`0 … 99`, 100,000 times": [[" ".join(map(str, range(100)))]] * 100_000,
}


def documents() -> Iterator[str]:
    for path in sorted(DOCS.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            data = gzip.decompress(data) if path.suffix == ".gz" else data
            if len(data) <= LONGEST and b"\0" not in data:
                yield data.decode("utf-8", "replace")


def texts(size: int) -> Iterator[str]:
    """Yield texts of `size` characters in all."""
    dice, own = random.Random(1), list(documents())
    licences = [path.read_text("utf-8") for path in sorted(LICENCES.iterdir()) if path.is_file()]
    some, done = iter(own), 0
    while done < size:
        text = next(some, "")
        if not text:
            paragraphs = [each.split() for each in dice.choice(own).split("\n\n")]
            for words in paragraphs:
                dice.shuffle(words)
            text = "\n\n".join(" ".join(words) for words in paragraphs)
        if dice.random() < 0.1:
            text += "\n\n" + dice.choice(licences)
        done += len(text)
        yield text


def measured(words: list[str]) -> list[str]:
    """Run a command; return CPU seconds, seconds, peak memory in MiB, and its last line."""
    began = time.time()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert child.stderr
    said = child.stderr.read().splitlines()
    _, status, used = os.wait4(child.pid, 0)
    assert status == 0, said
    seconds = used.ru_utime + used.ru_stime, time.time() - began
    return [*(f"{each:.0f}" for each in seconds), f"{used.ru_maxrss >> 10}", said[-1]]


def row(name: str, texts: Iterable[Iterable[str]], calls: Iterable[list[str]]) -> None:
    """Print the rows of some texts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "texts.jsonl")
        with path.open("w", encoding="utf-8") as file:
            for number, text in enumerate(texts):
                file.write(f'{{"id": {number}, "text": "')
                file.writelines(json.dumps(part)[1:-1] for part in text)
                file.write('"}\n')
        for flags in calls:
            command = [sys.executable, "-m", "neardup", "passages", *flags, str(path)]
            cells = [name, f"`{' '.join(flags)}`", *measured(command)]
            print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    print(f"# Passages in package texts\n\n{__doc__ and __doc__.split(chr(10) * 2, 1)[1]}")
    print("| MB | options | CPU s | s | MiB | result |\n|---:|---|---:|---:|---:|---|")
    for megabytes in map(int, sys.argv[1:]):
        row(str(megabytes), ([text] for text in texts(megabytes * 10**6)), CALLS)
    for name, hard in HARD.items():
        row(name, hard, (["--max-line=64"], ["--max-line=64", "--output=kept"]))


if __name__ == "__main__":
    main()
