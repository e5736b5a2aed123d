"""Help, refusals, summaries and keyed lines equal those in the text files of tests/cli/golden.

To write them, and docs/options.md; review the diff:
REWRITE_GOLDENS=1 python3 -m pytest tests/cli/test_goldens.py tests/docs/test_options_page.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from neardup.__main__ import COMMANDS
from neardup.options.table import OPTIONS
from neardup.runtime.program import UsageError
from tests.support.cases import some
from tests.support.drawn import settings_of
from tests.support.engines import (
    COUNT_TOKENS,
    DEDUP,
    INLINE,
    JOB,
    MAPPER,
    NEARDUP,
    REDUCER,
    RUN_HADOOP,
    RUN_LOCAL,
    refuse,
    run,
)
from tests.support.failing import PAIRS
from tests.support.programs import RUN_SPARK, SHARE_KEYS

GOLDEN = Path(__file__).parent / "golden"
SCRIPTS = {
    "mapper.py": MAPPER,
    "dedup_reducer.py": DEDUP,
    "step.py count": COUNT_TOKENS,
    "step.py share": SHARE_KEYS,
    "run_local.sh": RUN_LOCAL,
    "run_hadoop.sh": RUN_HADOOP,
    "run_spark.sh": RUN_SPARK,
    "neardup": NEARDUP,
    **{f"neardup.{command}": [*NEARDUP, command] for command in ("run", *COMMANDS)},
}
RUNNERS = {**SCRIPTS, "job.py": INLINE}

# Every refusal of the options: the command line, as options.
REFUSED = """
--threshold 0
--threshold 1.000000001
--threshold -0.5
--threshold half
--threshold 1/0
--threshold 0.1234567891
--threshold nan
--threshold inf
--recall 0
--recall 1
--recall most
--recall nan
--max-bands 0
--max-bands 4097
--max-bands many
--max-bands 3
--threshold 0.05 --max-bands 100
--recall 0.9999 --threshold 0.001
--bands 10
--rows 5
--bands 0 --rows 5
--bands 5000 --rows 5
--bands 10 --rows 0
--bands 10 --rows 257
--bands 20 --rows 5 --max-bands 16
--bands 5 --rows 10 --recall 0.99
--seed -1
--seed 18446744073709551616
--seed x
--seed １
--input video
--input files
--clean html
--delimiter ;
--input tsv --delimiter ;
--input csv --delimiter ;;
--input csv --delimiter ¦
--input csv --delimiter "
--input csv --encoding klingon
--input csv --encoding rot13
--input csv --encoding iso2022_jp
--input parquet --encoding cp1252
--input text --clean html,tags
--shingle word:3
--input text --shingle word
--input text --shingle word:0
--input text --shingle char:101
--input text --shingle line:3
--weights heavy
--weights tf --scheme partition
--weights tf --exact
--weights tf --scheme auto
--weights tf --measure cosine
--weights tf --scheme projection --measure jaccard
--weights own --input text
--weights tf --shingle bag
--weights own --shingle bag
--weights idf
--weights tfidf --scheme simhash
--weights tfidf --input text --shingle word:1:bag
--supershingles 84:5:2
--supershingles 84:6:7
--scheme supershingle --supershingles 84:5:2
--scheme simhash --bits 16
--scheme simhash --distance 64
--scheme projection --bits 384
--verify nearly
--verify sketch:0
--verify sketch --weights tf
--verify sketch --measure dice
--verify sketch --output kept
--verify sketch --output removed
--verify sketch --output clusters
--verify sketch --output links
--verify sketch --against old.txt
--verify sketch --scheme simhash
--verify sketch --exact
--output groups
--rule direct
--keep longest --output clusters
--output kept --rule all
--output removed --keep last
--output links --scheme prefix --measure containment
--output links --against old.txt
--output clusters --against old.txt
--output kept --against old.txt --rule cluster
--between
--max-line 0
--max-line 65
--max-line 1.5
--max-bad 1.01
--max-bad -0.5
--max-bad few
--max-bad 0.1 --strict
"""

RUN_LOCAL_REFUSED = """
--jobs 0 FILE
--jobs 1000 FILE
--jobs two FILE
--sort-memory 1 FILE
--sort-memory 10% FILE
--memory 1 FILE
--memory 2g FILE
--memory 1.5G FILE
--memory G2 FILE
--memory ²M FILE
--removed removed.tsv FILE
--removed removed.tsv --output removed FILE
--removed removed.tsv --output clusters FILE
--removed x.pq.zst --output kept FILE
--against FILE
--against= FILE
-o FILE FILE
-o . FILE
-o new/ FILE
-o .y.neardup.json FILE
-o ./x --removed x --output kept FILE
-o x --removed .x.neardup.json --output kept FILE
-o r/ --removed r/FILE --output kept FILE
-o r/ --removed r/.neardup.json --output kept FILE
-o x.parquet.gz FILE
-o x.parquet.gz --output kept --input csv FILE
-o x.tsv --output kept --input csv FILE
-o x.jsonl --output kept FILE
-o x.jsonl --output kept --input csv --id 1 --text 2 FILE
-output=kept FILE
--report= FILE
--report - FILE
--report FILE FILE
--report x --verify sketch FILE
--report x -o x FILE
--report x --removed x --output kept FILE
- -
--treshold 0.9 FILE
--thresh 0.9 FILE
--threshold
"""

RUN_HADOOP_REFUSED = """
IN
--reducers 0 IN OUT
--reducers many IN OUT
--memory 100 IN OUT
--ship-venv --python python3 IN OUT
--ship-venv --ship-numpy IN OUT
--ship-numpy=2.7 IN OUT
-D mapreduce.job.maps IN OUT
--overwrite /data/videos/today /data/videos
--overwrite hdfs:///user/root/../data/in /user/data/
--overwrite /data/* /data/pairs
--overwrite --against /data/pairs/old /data/in /data/pairs
--output kept --removed /data/in --overwrite /data/in /data/kept
--output kept --removed OUT/gone IN OUT
--output kept --removed a,b IN OUT
--output removed --removed GONE IN OUT
--output clusters --dedup IN OUT
--input-files list IN OUT
--against /data/jan,/data/feb IN OUT
--overwrite /data/videos /data/*
IN /data/{a,b}
IN OUT\\PUT
/data/jan,/data/feb OUT
/data/{jan,feb}/x,y OUT
--python /opt/it's/python IN OUT
--thresh 0.9 IN OUT
--threshold 2 IN OUT
"""


JOB_REFUSED = """
--removed x FILE
--rounds 2 FILE
--input-files x FILE
--output kept --threshold 0.8 - FILE
-r hadoop --output clusters - FILE
--against=-- FILE
--against - - FILE
--against index FILE
--encoding latin-1 FILE
--ship-numpy FILE
-r emr FILE
-r dataproc FILE
-r spark FILE
- -
"""


# Refusals that depend on what a file holds are tested with the command.
NEARDUP_REFUSED = """
convert --input fingerprints FILE
curve --exact
curve --scheme prefix --measure containment
curve --scheme fingerprints --exact
curve --scheme fingerprints --bits 64 --distance 3
curve --threshold 0.3 --max-bands 16
curve --svg curve.svg
dedup
documents --output=groups FILE
documents --scheme=fingerprints FILE
documents --input=text FILE
documents --output=kept --keep=max:size FILE
documents --jobs= FILE
documents --sort-memory=all FILE
documents --output=lines --report=x FILE
evaluate --confidence=1 PAIRS PAIRS
evaluate --confidence=nan PAIRS PAIRS
evaluate --confidence= PAIRS PAIRS
example --records=ten
example --copies=1.1
example --copies=nan
example --long=5000001
example --records=9 --hot=6 --cluster=4
folders --by=size index
folders --measure=dice index
folders --threshold=0 index
folders --cache x --no-cache index
folders -0 index
folders index --keep a --removed b
folders index --report a
folders index --against FILE
index --scheme=imatch FILE --to new
index --weights=idf FILE --to new
leaks FILE
leaks --test FILE FILE
leaks - --test=FILE
leaks FILE --test=FILE --measure=dice
leaks FILE --test=FILE --output=kept
leaks FILE --test=FILE --threshold=2
leaks FILE --test=FILE -o out/
leaks FILE --test=FILE -0
leaks FILE --test=FILE --report new
leaks FILE --test=FILE --removed new
report PAIRS -o new
report PAIRS -o - --records FILE
report PAIRS -o FILE --records FILE
report PAIRS -o index --records FILE
report PAIRS -o new --records FILE --output=kept
report PAIRS -o new --records FILE --common PAIRS
report PAIRS -o new --records FILE --folder index
report --videos PAIRS -o new --records PAIRS
report --videos PAIRS -o new --threshold 0.5
report --videos PAIRS -o new --pictures
report --videos PAIRS -o new --folder nowhere
report --videos PAIRS -o new --folder=
run -0 FILE
similar FILE --threshold 0
similar FILE --confidence 1
similar FILE --measure dice
sketch FILE --to FILE
sketch FILE --to=
sketch FILE --to new --kind min:0
sketch FILE --to new --kind signature:8:1
sketch --input fingerprints FILE --to new
trth FILE
truth --join fast FILE
truth --join ppjoin_plus --measure overlap FILE
truth --join ppjoin_plus --weights tf FILE
truth --measure hamming FILE
truth --weights idf --measure overlap FILE
truth --distance 3 FILE
truth --input fingerprints --bits 66 FILE
truth --input fingerprints --join ppjoin_plus FILE
truth --input fingerprints --measure jaccard FILE
truth --input fingerprints --threshold 0.8 FILE
truth --input fingerprints --weights idf FILE
tune --fingerprint=hash FILE
tune --input fingerprints FILE
tune --input text --clean tags FILE
tune --recall=1 FILE
tune --sample=1 FILE
tune --shingle=word:3 FILE
why --run= a b
why FILE one one
"""


def check(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("REWRITE_GOLDENS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), __doc__


def steady(text: str) -> str:
    """Return a text without the parts that depend on the machine or on the version of Python."""
    text = text.replace("optional arguments:", "options:")  # Python 3.9
    text = re.sub(r"\[FILE \[FILE \.\.\.\]\]|\[FILE \.\.\.\]", "[FILE ...]", text)
    text = re.sub(r"\(default: \d+\)(?=\s+--sort)", "(default: cores)", text)
    text = re.sub(r"(count|send|mapper|reducer|dedup) \d+\.\d", r"\1 0.0", text)
    return re.sub(r"\d+\.\d seconds$", "0.0 seconds", text, flags=re.M)


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_help(name: str, tmp_path: Path) -> None:
    shell = name.endswith(".sh")  # which bash starts
    result = run([*SCRIPTS[name], "--help"], tmp_path, process=shell, COLUMNS="100")
    assert result.code == 0
    assert result.err == ""
    check(f"{name}.help.txt", steady(result.out.decode()))


@pytest.mark.parametrize("name", ["run_local.sh", "run_hadoop.sh", "neardup.audit"])
def test_short_help(name: str, tmp_path: Path) -> None:
    result = run([*SCRIPTS[name], "-h"], tmp_path, COLUMNS="100")
    assert (result.code, result.err) == (0, "")
    check(f"{name}.h.txt", steady(result.out.decode()))
    assert len(result.out.splitlines()) <= 50  # a screen


def test_help_of_the_others(tmp_path: Path) -> None:
    """The help of reducer.py and of job.py includes all options that the stages share."""
    for command in (REDUCER, JOB):
        result = run([*command, "--help"], tmp_path, COLUMNS="100")
        assert result.code == 0
        said = "".join(result.out.decode().split())
        for flag in OPTIONS.values():
            text = f"{flag.usage.rstrip('…')} {flag.help}"
            assert "".join(text.split()) in said


def test_refusals() -> None:
    lines = []
    for flags in REFUSED.strip().splitlines():
        with pytest.raises(UsageError) as refusal:
            settings_of(*flags.split())
        lines += [f"{flags}\n", f"    {refusal.value}\n"]
    check("refusals.txt", "".join(lines))


@pytest.mark.parametrize("flag", [name for name, flag in OPTIONS.items() if " " in flag.usage])
def test_an_empty_value_is_refused(flag: str) -> None:
    """For input as lines, shared options refuse an empty value, as given by an unset variable."""
    others = {"--bands": ["--rows=5"], "--rows": ["--bands=5"], "--shingle": ["--input=text"]}
    others["--clean"] = ["--input=text"]
    with pytest.raises(UsageError):
        settings_of(f"{flag}=", *others.get(flag, []))


PROGRAMS_REFUSED = {
    "run_local.sh": RUN_LOCAL_REFUSED,
    "run_hadoop.sh": RUN_HADOOP_REFUSED,
    "job.py": JOB_REFUSED,
    "neardup": NEARDUP_REFUSED,
}


@some("name", {name: name for name in PROGRAMS_REFUSED}, "run_local.sh", "neardup")
def test_refusals_of_programs(name: str, tmp_path: Path) -> None:
    """A refusal is one line, and neither changes an input nor makes a file."""
    (tmp_path / "FILE").write_bytes(RECORDS)
    (tmp_path / "PAIRS").write_bytes(PAIRS)
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "manifest.json").write_text("{}")
    lines = []
    for flags in PROGRAMS_REFUSED[name].strip().splitlines():
        command = [*RUNNERS[name], *flags.split()]
        result = refuse(command, tmp_path, cwd=tmp_path, HADOOP_HOME="/nowhere")
        assert sorted(os.listdir(tmp_path)) == ["FILE", "PAIRS", "index", "tmpdir"], flags
        lines += [f"{flags}\n", f"    {result.err.splitlines()[-1]}\n"]
    assert (tmp_path / "FILE").read_bytes() == RECORDS
    check(f"{name}.refusals.txt", "".join(lines))


@pytest.mark.parametrize("name", ["mapper.py", "run_local.sh", "job.py"])
def test_a_refusal_reads_nothing(name: str, tmp_path: Path) -> None:
    """Impossible options end with exit code 2 and one line, before any file is read."""
    command = RUNNERS[name]
    flags = ["--bands=5", "--rows=10", "--recall=0.99"]
    result = refuse([*command, *flags, "no such file"], tmp_path)
    assert result.err.count("\n") == 1


RECORDS = b"""\
VIDEO_1 1007 3 7 3
VIDEO_2 7 3 1007
VIDEO_3 3 7 1007 18446744073709551615
VIDEO_4 five
VIDEO_5
VIDEO_6 5 -5

VIDEO_1 3 7 1007
VIDEO_7 100 200 300
"""


def test_keyed_lines(tmp_path: Path) -> None:
    result = run([*MAPPER, "--bands=2", "--rows=3"], tmp_path, RECORDS)
    check("keyed_lines.txt", result.out.decode())


@pytest.mark.parametrize("name", ["mapper.py", "run_local.sh"])
def test_summary(name: str, tmp_path: Path) -> None:
    (tmp_path / "videos.txt").write_bytes(RECORDS)
    flags = ["--threshold", "0.75", "--max-bands", "30"]
    result = run([*SCRIPTS[name], *flags, "videos.txt"], tmp_path, cwd=tmp_path)
    out = result.out.decode() if name == "run_local.sh" else ""
    check(f"{name}.summary.txt", f"{out}{steady(result.err)}")
