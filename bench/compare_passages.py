"""Cut repeated passages out of texts: neardup, Google's suffix arrays, datatrove's sentences.

    git clone https://github.com/google-research/deduplicate-text-datasets
    (cd deduplicate-text-datasets && cargo build --release)
    python3 -m bench.compare_passages 30 --google deduplicate-text-datasets --peers-python PYTHON

PYTHON has datatrove[processing], orjson and spacy; /usr/bin/time is GNU's.  The texts are those of
`bench.repeated_passages`.  Google's program counts bytes, ours words, datatrove runs of three
sentences; the first leaves no copy of what it cuts, as `--keep none`, the last one, as ours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.repeated_passages import texts
from bench.report.tables import markdown

WORDS, BYTES = 50, 300  # of a passage: as long as each other, about
DATATROVE = """
from datatrove.executor.local import LocalPipelineExecutor as Executor
from datatrove.pipeline import dedup
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers.jsonl import JsonlWriter
config = dedup.sentence_dedup.SentDedupConfig(min_doc_words=0, min_num_sentences=0)
read = lambda: JsonlReader(".", glob_pattern="texts.jsonl")
for steps in (
    [read(), dedup.SentenceDedupSignature("signatures", config=config)],
    [dedup.SentenceFindDedups("signatures", "found", config=config)],
    [
        read(),
        dedup.SentenceDedupFilter("found", config=config),
        JsonlWriter("out", compression=None),
    ],
):
    Executor(steps, tasks=1, logging_dir=f"logs{len(steps)}{id(steps)}").run()
"""
GOOGLE = f"""
set -e
cd "$2"
mkdir "$1/cache"
run=./target/release/dedup_dataset
$run make --data-file "$1/texts.bin"
$run self-similar --data-file "$1/texts.bin" --length-threshold {BYTES} --cache-dir "$1/cache" \\
  --num-threads 2
$run collect --data-file "$1/texts.bin" --cache-dir "$1/cache" --length-threshold {BYTES} > "$1/cut"
"$0" scripts/finish_single_file.py "$1/texts.bin" "$1/cut" "$1/out.bin"
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m bench.compare_passages")
    parser.add_argument("megabytes", type=int)
    parser.add_argument("--google", type=Path, required=True)
    parser.add_argument("--peers-python", required=True)
    asked = parser.parse_args()
    rows = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "texts.jsonl").open("w") as lines, (folder / "texts.bin").open("wb") as flat:
            for number, text in enumerate(texts(asked.megabytes * 10**6)):
                lines.write(json.dumps({"id": str(number), "text": text}) + "\n")
                flat.write(b"\xff\xff" + number.to_bytes(4, "little") + text.encode())
        every = in_lines([folder / "texts.jsonl"])
        for keep in ("first", "none"):
            words = f"--length={WORDS} --output=kept --keep={keep}"
            ours = [sys.executable, "-m", "neardup", "passages", *words.split()]
            own = measured([*ours, "-o", f"{keep}.jsonl", "texts.jsonl"], folder)
            left = every - in_lines([folder / f"{keep}.jsonl"])
            rows.append([f"neardup passages {words}", *own, f"{left:,}"])
        own = measured([asked.peers_python, "-c", DATATROVE], folder)
        left = every - in_lines((folder / "out").rglob("*.jsonl"))
        rows.append(["datatrove, sentences", *own, f"{left:,}"])
        own = measured(["bash", "-c", GOOGLE, sys.executable, name, asked.google.resolve()], folder)
        left = (folder / "texts.bin").stat().st_size - (folder / "out.bin").stat().st_size
        rows.append([f"suffix array, {BYTES} bytes", *own, f"{left:,}"])
    print(markdown([f"{every:,} bytes", "CPU s", "s", "MiB", "bytes cut"], rows))


def in_lines(files: Iterable[Path]) -> int:
    """Return the bytes of all texts in JSON lines."""
    lines = (line for file in files for line in file.open())
    return sum(len(json.loads(line)["text"].encode()) for line in lines)


def measured(command: Sequence[object], folder: Path) -> list[str]:
    """Run a command; return its CPU seconds, seconds, and the MiB of its largest process."""
    time_it = ["/usr/bin/time", "-f", "%U %S %e %M", "-o", str(folder / "time")]
    subprocess.run([*time_it, *map(str, command)], check=True, cwd=folder, stdout=sys.stderr)
    user, system, elapsed, peak = map(float, (folder / "time").read_text().split())
    return [f"{user + system:.1f}", f"{elapsed:.0f}", f"{peak / 1024:.0f}"]


if __name__ == "__main__":
    main()
