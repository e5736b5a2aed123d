"""`python3 -m neardup tune`: a bounded sample, estimates close to the truth, a recommendation.

Statistical tests have fixed seeds, and bounds of at least four standard deviations.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import shlex
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from neardup.commands.example import lines as videos
from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.reading.shingling import Shingler
from neardup.reading.text_rows import text_lines, text_parser
from neardup.sets.ragged import Ragged
from neardup.similarity.definitions import resemblance
from neardup.similarity.measures import NINE_TENTHS, Cosine, Jaccard, SetMeasure, Threshold
from neardup.tools.judge.estimates import (
    Cost,
    Setting,
    Survey,
    Weights,
    best,
    candidate_counts,
    cost,
    likeness,
)
from neardup.tools.judge.estimates import choices as settings
from neardup.tools.judge.line_sample import MAX_BYTES, MAX_LINE_BYTES, draw
from tests.support.drawn import mapped, settings_of
from tests.support.engines import NEARDUP, RUN_LOCAL, VIDEOS, a_file, refuse, succeed

TUNE = [*NEARDUP, "tune"]
MEASURE = Jaccard(NINE_TENTHS)


def words(records: int, seed: int = 1) -> bytes:
    """Return records of about 36 tokens; common tokens make even unrelated records similar.

    Token k is in a record with probability 1/(1 + k/12); one record in ten copies the one before
    it, but for one token.
    """
    dice = np.random.default_rng(seed)
    chance = 1 / (1 + np.arange(200) / 12)
    rows: list[list[int]] = []
    for i in range(records):
        if i % 10 == 9:
            rows.append([*rows[-1][1:], 10**19 + i])
        else:
            rows.append(np.flatnonzero(dice.random(200) < chance).tolist() + [10**18 + i])
    return b"".join(b"W%d %b\n" % (i, b" ".join(map(b"%d".__mod__, x))) for i, x in enumerate(rows))


@pytest.fixture(scope="module")
def video_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("videos") / "videos.txt"
    path.write_bytes(b"".join(videos(records=20_000, seed=5, copies=0.1)))
    return path


@pytest.fixture(scope="module")
def word_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = a_file(tmp_path_factory.mktemp("words") / "words.txt", words(10_000))
    return path


def surveyed(path: Path, size: int = 2000, seed: int = 0) -> Survey:
    return Survey.of(draw([str(path)], size, seed), parse_shingle_lines, MEASURE, seed)


def test_texts_without_spots_are_records_that_meet_nobody(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    texts = [f"t{i}\tHome | News\nu{i}\tthe storm {i % 7} arrives\n" for i in range(50)]
    path.write_text("".join(texts) + "bad\n", "utf-8")
    parse = text_parser(text_lines, Shingler.parse("spot:2:1"))
    survey = Survey.of(draw([str(path)], 1000, 0), parse, MEASURE, 0)
    assert (len(survey), len(survey.weights.cells), survey.bad, survey.whole) == (50, 50, 1, True)


def costs_of(survey: Survey, *names: str) -> dict[str, Cost]:
    """Return the cost of each named setting, or of every setting if none is named."""
    return {
        each.name: cost(survey, each, ["--threshold=0.9"])
        for each in settings(MEASURE, "jaccard", 0.9999)
        if each.name in names or not names
    }


def counted(path: Path, *flags: str) -> int:
    """Return the number of pairs that share a key and whose sizes allow a match."""
    settings = settings_of(*flags)
    batch, _ = settings.parse(path.read_bytes())
    buckets: dict[int, list[int]] = {}
    keys = settings.scheme.keys(batch.sets)
    for record in range(len(batch.ids)):
        for key in keys.row(record).tolist():
            buckets.setdefault(key, []).append(record)
    pairs = np.unique(
        [i * 2**32 + j for some in buckets.values() for i, j in combinations(some, 2)]
    )
    sizes = np.sort(batch.sets.sizes[np.array(np.divmod(pairs, 2**32))], axis=0)
    return int((sizes[1] <= settings.measure.largest_partner(sizes[0])).sum())


# The sample.


@pytest.mark.slow
def test_every_line_is_as_likely_however_long(tmp_path: Path) -> None:
    """Lines are sampled whatever their length: if half are long, half of the sample is long."""
    path = tmp_path / "lines.txt"
    path.write_bytes(b"".join(b"s%d\n" % i + b"l%d %b\n" % (i, b"7" * 400) for i in range(10_000)))
    longer = lines = 0
    for seed in range(5):
        sample = draw([str(path)], 1000, seed)
        longer += sum(line.startswith(b"l") for line in sample.lines)
        lines += len(sample.lines)
        assert len(sample.lines) == 1000
        assert len(set(sample.lines)) == 1000
        assert sample.total == pytest.approx(20_000, rel=0.05)
    assert longer / lines == pytest.approx(0.5, abs=4 * 0.5 / lines**0.5)


@pytest.mark.slow
def test_lines_come_from_all_over_the_files(tmp_path: Path) -> None:
    names = []
    for name in "ab":
        names.append(str(tmp_path / name))
        data = b"".join(b"%b%06d 1\n" % (name.encode(), i) for i in range(600_000))
        Path(names[-1]).write_bytes(data)
    sample = draw(names, 1000, 0)
    tenths = [(line[:1], int(line[1:7]) // 60_000) for line in sample.lines]
    counts = [tenths.count((name, tenth)) for name in (b"a", b"b") for tenth in range(10)]
    assert min(counts) > 10
    assert sample.total == pytest.approx(1_200_000, rel=0.01)


@pytest.mark.slow
def test_pairs_of_neighbours_are_weighed_as_what_they_are(tmp_path: Path) -> None:
    """If only adjacent lines match, the mean estimate of matches is within 15 % of the truth."""
    path = tmp_path / "copies.txt"
    dice = np.random.default_rng(3)
    sets = [
        b" ".join(map(b"%d".__mod__, dice.integers(0, 10**9, 20).tolist())) for _ in range(9000)
    ]
    path.write_bytes(b"".join(b"a%d %b\nb%d %b\n" % (i, x, i, x) for i, x in enumerate(sets)))
    found = [surveyed(path, 2000, seed).likeness.matches.sum() for seed in range(5)]
    assert np.mean(found) == pytest.approx(9000, rel=0.15)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_small_file_is_sampled_whole(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "lines.txt"
    lines = [b"v%d %b" % (i, b"5" * (i * 37 % 9000)) for i in range(1000)]
    path.write_bytes(b"\xef\xbb\xbf" + end.join([*lines[:500], b"", b" ", *lines[500:]]))
    sample = draw([str(path)], 5000, 1)
    assert {line.rstrip(b"\r\n") for line in sample.lines} == set(lines)
    assert len(sample.lines) == sample.total == 1000
    assert sample.whole
    assert sample.within == sample.between == 1


@pytest.mark.slow
def test_the_same_seed_gives_the_same_sample(video_file: Path) -> None:
    one, same, other = (draw([str(video_file)], 500, seed) for seed in (1, 1, 2))
    assert one.lines == same.lines
    assert one.lines != other.lines


def bytes_read() -> int:
    return int(re.findall(r"rchar: (\d+)", Path("/proc/self/io").read_text())[0])


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux counts what is read")
def test_a_large_file_is_not_read_whole(tmp_path: Path) -> None:
    """A sparse file of a tebibyte, 150 MB of lines and the endless /dev/zero are not read whole."""
    hole = tmp_path / "hole.txt"
    with open(hole, "wb") as file:
        file.truncate(1 << 40)
    large = tmp_path / "large.txt"
    large.write_bytes((b"v 1 2 3 4 5 6 7 8 9 10\n" * 1000 + b"x" * 3_000_000 + b"\n") * 50)
    for name in (hole, large, Path("/dev/zero")):
        before = bytes_read()
        sample = draw([str(name)], 3000, 0)
        assert bytes_read() - before <= MAX_BYTES + 3 * MAX_LINE_BYTES
        assert all(len(line) <= MAX_LINE_BYTES for line in sample.lines)
    assert not draw([str(hole)], 10, 0).whole


@pytest.mark.slow
def test_packed_files_and_pipes_are_read_from_the_start(tmp_path: Path, video_file: Path) -> None:
    data = video_file.read_bytes() * 2
    packed = a_file(tmp_path / "videos.txt.gz", gzip.compress(data, 1))
    sample = draw([str(packed)], 1000, 0)
    assert "start" in sample.origin
    assert sample.total == pytest.approx(40_000, rel=0.05)
    assert set(sample.lines) <= set(data[:MAX_BYTES].splitlines(keepends=True))
    result = succeed([*TUNE, "--sample=300", "-"], tmp_path, data, process=True)
    assert "how much more a pipe holds is unknown" in result.out.decode()
    packed.write_bytes(packed.read_bytes()[:-9000])
    short = a_file(tmp_path / "short.gz", gzip.compress(data[:100_000])[:-50])
    refuse([*TUNE, short], tmp_path, f"neardup tune: {short}: damaged: ", code=1)


# The estimates.


def surveyed_sets() -> Ragged:
    return parse_shingle_lines(words(60) + b"".join(videos(60, 1, 0.3)))[0].sets


@pytest.mark.parametrize("measure", [MEASURE, Cosine(Threshold(9, 10)), Jaccard(Threshold(1, 2))])
def test_a_whole_file_is_no_estimate(measure: SetMeasure) -> None:
    """If all records are sampled, matches are exact; candidates are within 0.2 % of the formula."""
    sets = surveyed_sets()
    n = len(sets)
    known = likeness(sets, measure, Weights(np.arange(n), 1, 1, 1))
    rows = [sets.row(i).tolist() for i in range(n)]
    similarity = {(i, j): float(resemblance(rows[i], rows[j])) for i in range(n) for j in range(i)}
    left, right = (np.array(column) for column in zip(*similarity))
    matches = len(measure.verified(sets, left, right).left)
    assert matches > 0
    assert known.matches.sum() == matches
    assert known.seen == matches
    small, large = np.sort([sets.sizes[left], sets.sizes[right]], axis=0)
    near = large <= measure.largest_partner(small)
    assert not near.all()
    s = np.array(list(similarity.values()))[near]
    for bands, rows_ in (15, 7), (8, 3), (64, 19):
        mean = (1 - (1 - s**rows_) ** bands).sum()
        assert known.sharing(known.window, bands, rows_) == pytest.approx(mean, rel=2e-3)


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("8 × 3", ["--bands=8", "--rows=3"]),
        ("15 × 7", ["--bands=15", "--rows=7"]),
        ("partition", ["--scheme=partition"]),
        ("auto", ["--scheme=auto"]),
    ],
)
def test_candidates_of_a_whole_file_are_those_of_the_reducer(
    tmp_path: Path, name: str, flags: list[str]
) -> None:
    path = a_file(tmp_path / "words.txt", words(400) + b"".join(videos(100, 1, 0.3)))
    survey = surveyed(path)
    assert survey.whole
    found = next(each for each in settings(MEASURE, "jaccard", 0.9999) if each.name == name)
    estimate = cost(survey, found, ["--threshold=0.9"])
    assert estimate.candidates == counted(path, *flags) > 0
    lines = mapped(path.read_bytes(), settings_of(*flags))
    assert estimate.keys == len(lines)
    assert estimate.shuffled == sum(map(len, lines))


@pytest.mark.slow
def test_estimates_come_near_the_truth(video_file: Path, word_file: Path) -> None:
    """A sample of 2,000 of 10,000 or 20,000 records estimates candidates within a factor of two."""
    for path, names in (video_file, ("6 × 2", "8 × 3")), (word_file, ("9 × 4", "11 × 5")):
        found = costs_of(surveyed(path), *names)
        for name in names:
            bands, rows = name.split(" × ")
            truth = counted(path, f"--bands={bands}", f"--rows={rows}")
            assert truth / 2 < found[name].candidates < 2 * truth
            # Dissimilar records are alike among words.
            assert truth > 9 * 10**4 or path == video_file


@pytest.mark.slow
def test_pruning_is_foreseen(word_file: Path, tmp_path: Path) -> None:
    """Estimates of the pairs left by pruning are within a factor of five of their true number."""
    found = costs_of(surveyed(word_file), "11 × 5", "15 × 7")
    for bands, rows in (11, 5), (15, 7):
        flags = ["-v", f"--bands={bands}", f"--rows={rows}"]
        verified = succeed([*RUN_LOCAL, *flags, word_file], tmp_path).count("candidate pairs")
        assert verified / 5 < found[f"{bands} × {rows}"].verified < 5 * verified


def test_too_many_pairs_to_look_at() -> None:
    """`candidate_counts` returns None if too many pairs share a key, and counts 0 if none do."""
    n = 6000
    sets = Ragged.from_rows([[1, 2, 3, 4, i + 10] for i in range(n)])
    same = Ragged(np.zeros(n, np.uint64), np.arange(n + 1))
    assert candidate_counts(sets, same, MEASURE, Weights(np.arange(n), 1, 1, 1)) is None
    none = Ragged(np.arange(n, dtype=np.uint64), np.arange(n + 1))
    assert candidate_counts(sets, none, MEASURE, Weights(np.arange(n), 1, 1, 1)).candidates == 0


# The recommendation.


def test_every_setting_keeps_the_promise(word_file: Path) -> None:
    for recall in (0.9, 0.999999):
        for measure, name in (MEASURE, "jaccard"), (Cosine(Threshold(4, 5)), "cosine"):
            found = list(settings(measure, name, recall))
            assert len(found) > 5
            for each in found:
                flags = [f"--threshold={measure.threshold}", f"--measure={name}", *each.flags]
                scheme = settings_of(*flags).scheme
                assert scheme.recall(float(measure.resemblance)) >= recall - 1e-9


@pytest.mark.slow
def test_similar_dissimilar_records_get_no_setting_of_millions(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_bytes(words(60_000))
    found = costs_of(surveyed(tmp_path / "words.txt"))
    assert found["8 × 3"].candidates > 10**7
    chosen = best(list(found.values()))
    assert chosen.choice.name not in ("4 × 1", "6 × 2", "8 × 3")
    assert chosen.candidates < 4 * 10**6


def test_the_least_work_is_recommended() -> None:
    """The settings with the least work are recommended; ties go to the fewest bytes."""
    counts = [(80, 10, 0, 9), (50, 41, 0, 9), (20, 10, 60, 9), (80, 10, 0, 8), (60, 40, 0, 1)]
    costs = [
        Cost(Setting(str(i), []), 1, 1, 10, keys, candidates, candidates, bytes_, counted)
        for i, (keys, candidates, counted, bytes_) in enumerate(counts)
    ]
    assert [each.work for each in costs] == [90, 91, 90, 90, 100]
    assert best(costs) is costs[3]


@pytest.mark.slow
def test_dissimilar_records_get_few_keys(video_file: Path) -> None:
    chosen = best(list(costs_of(surveyed(video_file)).values()))
    assert chosen.keys / chosen.records < 16
    assert chosen.candidates < 10**6


RECOMMENDED = re.compile(rb"^    (\./run_local\.sh .*)$", re.MULTILINE)


@pytest.mark.slow
def test_the_command(video_file: Path, tmp_path: Path) -> None:
    """The recommended command line works, and the same seed gives the same output."""
    command = [*TUNE, "--recall=0.999", "--sample=1000", "--seed=7", str(video_file)]
    result = succeed(command, tmp_path)
    assert result.err == ""
    assert result.out.isascii() or "×" in result.out.decode()
    bandings = [line for line in result.out.splitlines() if "×".encode() in line]
    assert succeed(command, tmp_path).out == result.out
    assert len(bandings) >= 1
    pasted = shlex.split(RECOMMENDED.search(result.out)[1].decode())
    assert pasted[:3] == ["./run_local.sh", "--threshold", "0.9"]
    assert pasted[-1] == str(video_file)
    assert succeed([*RUN_LOCAL, *pasted[1:]], tmp_path).count("records") == 20_000
    assert succeed([*command[:-2], "--seed=8", str(video_file)], tmp_path).out != result.out


@pytest.mark.slow
def test_text_and_odd_names(tmp_path: Path) -> None:
    line = "t{}\tto be {} or not to be that is the question\n"
    path = a_file(tmp_path / "my texts.txt", "".join(line.format(i, i % 7) for i in range(99)))
    flags = ["--threshold", "4/5", "--measure", "dice", "--input", "text", "--shingle", "word:2"]
    result = succeed([*TUNE, *flags, path], tmp_path)
    pasted = shlex.split(RECOMMENDED.search(result.out)[1].decode())
    assert pasted[1:9] == flags
    assert succeed([*RUN_LOCAL, *pasted[1:]], tmp_path).count("pairs") > 100


def test_containment_is_for_prefix(tmp_path: Path) -> None:
    result = succeed([*TUNE, "--measure=containment", "-"], tmp_path, words(50))
    assert b"./run_local.sh --threshold 0.9 --measure containment --scheme prefix -" in result.out
    assert b"--output kept" not in result.out


@pytest.mark.parametrize(
    ("flags", "data", "message"),
    [
        ("", b"", "no record in a sample of 0 lines; at least two are needed"),
        ("", b"\n \n", "no record in a sample of 0 lines; at least two are needed"),
        ("", b"a 1 2 3\n", "one record in a sample of 1 lines; at least two are needed"),
        ("", b"a\nb x\nc -1\n", "none of 3 lines could be read; a line is an id and its shingles,"),
        # Without --shingle, texts are compared by all lengths.
        ("--input=text", b"", "no record in a sample of 0 lines; at least two are needed"),
        ("--input=text --clean=html", b"a\t<p>\nb\t<br>\n", "no record in a sample of 2 lines; at"),
        ("--input=text", b"a\tto be\nb\n", "one record in a sample of 2 lines; at least two"),
    ],
)
@pytest.mark.parametrize("name", ["few.txt", "-"])
def test_nothing_to_tune(flags: str, data: bytes, message: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_bytes(data)
    command = [*TUNE, *flags.split(), name]
    refuse(command, tmp_path, f"tune: {message}", code=1, stdin=data, cwd=tmp_path)


@pytest.mark.slow
def test_what_it_says_of_a_whole_file(tmp_path: Path) -> None:
    result = succeed([*TUNE, "--sample=5000", VIDEOS], tmp_path)
    assert result.out.decode().split("\n\n")[0] == (
        "records                                2,000  everything was read\n"
        "tokens a record                          121\n"
        "similar pairs                            790  790 in the sample"
    )
    line = next(line for line in result.out.splitlines() if line.startswith(b"partition"))
    assert line.split()[:5] == b"partition 1.000000 1.000000 23.5 46.9k".split()


def test_two_records_and_bad_lines(tmp_path: Path) -> None:
    out = succeed([*TUNE, "-"], tmp_path, "é 1 2 3\nb\ne 1 2 3\n".encode()).out
    assert b"bad lines                                  1  in the sample" in out
    assert b"similar pairs                              1  1 in the sample" in out
    assert b"--clean" not in out  # for shingles, there is no advice on cleaning


@pytest.mark.slow
def test_only_what_is_exact_is_said_to_miss_none(tmp_path: Path) -> None:
    """Only exact schemes show a recall of 1.000000; a recall just below 1 is shown as 0.999999."""
    flags = ["--recall", "0.9999999999999999", VIDEOS]
    out = succeed([*TUNE, *flags], tmp_path).out.decode()
    shares = re.findall(r"^(\d+ × \d+|[a-z]+) +([01]\.\d{6}) +([01]\.\d{6}) ", out, re.M)
    assert len(shares) > 4
    for name, at_threshold, of_pairs in shares:
        by_chance = "×" in name or name == "auto"
        assert at_threshold == of_pairs == ("0.999999" if by_chance else "1.000000"), name


@pytest.mark.slow
def test_what_more_a_cleaning_or_a_lower_threshold_would_find(tmp_path: Path) -> None:
    """Tags, accents, full-width forms and pairs just below T are seen, with a command."""
    draw = random.Random(3)
    words = [a + b + c for a in "bdfg" for b in "aeiou" for c in "lmnrst"]
    wide = {code: code + 0xFEE0 for code in range(ord("a"), ord("z") + 1)}
    rows = []
    for i in range(60):
        some = draw.choices(words, k=40)
        plain = " ".join(some)
        other = (plain.replace(" ", "</b> "), plain.replace("e", "é"), plain.translate(wide))[i % 3]
        below = [*some[:3], "zzz", *some[4:]]
        for name, text in (("a", " ".join(some)), ("b", other), ("c", " ".join(below))):
            rows.append(json.dumps({"id": f"{name}{i}", "text": text}, ensure_ascii=False))
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    flags = ["--shingle", "word:3", "rows.jsonl"]
    out = succeed([*NEARDUP, "tune", *flags], tmp_path, cwd=tmp_path).out.decode()
    found = {}
    for flag, value, line in re.findall(r"\nWith (\S+) (\S+) it would .*:\n\n    (.*)\n", out):
        assert f" {flag} {value} " in line
        command = [*RUN_LOCAL, *shlex.split(line)[1:]]
        found[value] = succeed(command, tmp_path, cwd=tmp_path).out.count(b"\n")
    assert set(found) == {"html", "accents", "width", "0.8"}
    usual = succeed([*RUN_LOCAL, *flags], tmp_path, cwd=tmp_path).out.count(b"\n")
    assert min(found.values()) > usual
