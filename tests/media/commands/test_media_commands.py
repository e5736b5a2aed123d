"""`images` and `videos` alike count what they leave out, refuse mistakes, and end cleanly."""

import os
import re
import shlex
import shutil
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.media.commands.test_images import images, photos
from tests.media.commands.test_videos import film, filmed, films, videos
from tests.support.drawn_pictures import drawing, saved
from tests.support.engines import NEARDUP, ROOT, run
from tests.support.sessions import either_way, interrupt, session, started, wait_for_results

RUN = {"images": images, "videos": videos}
FOUND = {"images": (8, "pictures", 5), "videos": (9, "videos", 6)}  # files, and those compared
MANY = 100
PRINTS = {"images": "fingerprints", "videos": "prints"}  # values of --output
each_command = pytest.mark.parametrize("command", RUN)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return films(tmp_path_factory.mktemp("made"))


@pytest.fixture
def folder(command: str, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a folder of pictures or videos, with other and damaged files, for a command."""
    if command == "images":
        return photos(tmp_path / "files")
    made = request.getfixturevalue("made")
    return Path(shutil.copytree(made, tmp_path / "files", copy_function=os.link))


def many(command: str, folder: Path) -> Path:
    """Write equal files of one date, enough for a run of some seconds, to a folder; return it."""
    if command == "images":
        path = saved(drawing(1).resize((1600, 1200)), folder / "0.png")
    else:
        path = filmed(film(1), folder / "0.mp4")
    for k in range(1, MANY):
        shutil.copy2(path, folder / f"{k}{path.suffix}")
    return folder


@pytest.mark.slow
@each_command
def test_jobs_and_the_cache_do_not_change_the_answer(
    command: str, folder: Path, tmp_path: Path
) -> None:
    first = RUN[command](tmp_path, folder, "--jobs=1", "--no-cache")
    assert not (tmp_path / "cache").exists()
    for flag in ("--jobs=3", "--jobs=2", f"--cache={tmp_path}/own"):
        again = RUN[command](tmp_path, folder, flag)
        assert again.out == first.out
    assert "from the cache" not in again.err
    _, noun, number = FOUND[command]
    assert f"seconds, {number} {noun} from the cache" in RUN[command](tmp_path, folder).err
    assert (tmp_path / "cache" / "neardup" / f"{command}.sqlite").is_file()
    assert (tmp_path / "own").is_file()


@pytest.mark.slow
@each_command
def test_the_summary_counts_each_file_and_q_silences_it(
    command: str, folder: Path, tmp_path: Path
) -> None:
    result = RUN[command](tmp_path, folder, "-v")
    number, noun, compared = FOUND[command]
    counts = {"files": number, noun: compared, "… damaged": 2, "… .txt": 1}
    counts |= {"skipped: without detail": 1, "skipped: hidden": 1}
    counts |= {"skipped: hard links of other files": 1}
    assert {name: result.count(name) for name in counts} == counts
    quiet = RUN[command](tmp_path, folder, "-q")
    assert (quiet.out, quiet.err) == (result.out, "")


@pytest.mark.first_case
@each_command
def test_with_strict_a_damaged_file_ends_the_run(
    command: str, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "answer").write_text("as before")
    result = RUN[command](tmp_path, folder, "--strict", "--jobs=1", "-o", tmp_path / "answer")
    assert (result.code, result.out, result.left) == (1, b"", [])
    assert re.search(r"/(cut|empty)\.\w+: damaged: .*without --strict it is counted", result.err)
    assert (tmp_path / "answer").read_text() == "as before"


REFUSED = {
    "images": [("{} --quality=101", "--quality: "), ("{} --distance=129", "--distance: ")],
    "videos": [
        ("{} --ticks=0", "--ticks: "),
        ("{} --threshold=0", "--threshold: expected 0 < T <= 1, such as 0.8, got '0'"),
        ("{} --threshold=50%", "--threshold: expected 0 < T <= 1, such as 0.8, got '50%'"),
        ("{} --measure=common --at-least=ten", "--at-least: expected a time above 0, such as 10s"),
        ("{} --at-least=2m --measure=copy", "--at-least needs --measure common, but --m"),
        ("{} --at-least=9 --output=kept", "--at-least is for shared parts, which --output kept "),
        ("{} --measure=copies", "--measure: 'copies' is not one of common, "),
        ("{} --fast", "encoded again; type: python3 -m neardup videos FOLDER"),
        ("{} --format=csv", "the name of -o is the format: -o pairs.jsonl, pairs.csv"),
        ("{} -o ''", "-o: expected the name of a file, got ''"),
        ("{} --output=prints --common=x", "--common needs pairs, but --output is prints"),
        ("{} --against={}", "was not written by --output prints; make such a file: python3 -m "),
        ("{} --against={}/notes.txt", "notes.txt: was not written by --output prints; make such"),
        ("{} --against=", "--against: expected the name of a file, got ''"),
        ("{}/notes.txt -o {}/notes.txt", "notes.txt: is an input; name another file"),
    ],
}
BOTH = [
    ("", "the following arguments are required: FOLDER"),
    ("{} --jobs=0", "--jobs: "),
    ("{} --time-limit=0", "--time-limit: "),
    ("{} --keep=max:size", "--keep: 'max:size' is not one of straight, "),
    ("{} --keep='prefer:('", "--keep: '(' is not a regular expression: missing )"),
    ("{} --output=pair", "--output: 'pair' is not one of "),
    ("{} --no-cache --cache=x", "--no-cache and --cache exclude each other"),
    ("{} --cache=", "--cache: expected the name of a file, got ''"),
    ("{} --cache={}/notes.txt", "notes.txt: is not a cache of "),
]


@each_command
def test_mistakes_are_refused(command: str, folder: Path, tmp_path: Path) -> None:
    for words, said in BOTH + REFUSED[command]:
        named = (word.replace("{}", str(folder)) for word in shlex.split(words))
        result = RUN[command](tmp_path, *named)
        assert (result.code, result.out, result.left) == (2, b"", []), words
        assert said in result.err, words


@pytest.mark.slow
@each_command
def test_a_folder_without_pictures_or_videos_is_refused(command: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "answer").write_text("as before")
    for output in (PRINTS[command], "pairs", "kept"):
        words = f"--output={output}", "-o", tmp_path / "answer"
        result = RUN[command](tmp_path, tmp_path / "empty", *words)
        assert (result.code, result.out) == (1, b"")
        assert re.search(r"found no (\w+) to compare; name a folder of \1s", result.err)
    assert (tmp_path / "answer").read_text() == "as before"


HANGS = """
import sys, time
import {module} as module
read = module.{name}

def slow(file, *more, **options):
    if {hanging!r} in str(file):
        time.sleep(99)
    return read(file, *more, **options)

module.{name} = slow
from neardup.__main__ import main
main()
"""
DECODERS = {  # the module and the function that read a file, and the file on which it hangs
    "images": ("neardup.media.pictures.pictures", "decoded", "b.gif"),
    "videos": ("neardup.media.frames.print_sources", "print_of", "other.mp4"),
}


@pytest.mark.slow
@each_command
def test_a_decoder_that_hangs_leaves_out_one_file(
    command: str, folder: Path, tmp_path: Path
) -> None:
    """A decoder may hang on a file system that does not answer."""
    module, name, hanging = DECODERS[command]
    script = HANGS.format(module=module, name=name, hanging=hanging)
    words = [command, "--time-limit=2", "--no-cache", "--output=kept", folder]
    result = run([sys.executable, "-c", script, *words], tmp_path)
    assert f"{hanging}: time limit: not done after 2 seconds" in result.err
    (folder / hanging).unlink()
    assert result.out == RUN[command](tmp_path, folder, "--output=kept").out != b""


@either_way
@pytest.mark.slow
@each_command
def test_an_interrupted_run_leaves_the_answer_as_before(
    command: str, how: str, tmp_path: Path
) -> None:
    (tmp_path / "answer").write_text("as before")
    words = [*NEARDUP, command, str(many(command, tmp_path / "p")), "-o", str(tmp_path / "answer")]
    with session(words, tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache")) as it:
        started(it, 3)
        code = interrupt(it, how)
        assert it.ended_clean() == code
    assert (tmp_path / "answer").read_text() == "as before"


@pytest.mark.slow
@each_command
def test_after_kill_9_the_next_run_reads_the_cache(command: str, tmp_path: Path) -> None:
    top = many(command, tmp_path / "p")
    output = f"--output={PRINTS[command]}"
    with session(
        [*NEARDUP, command, str(top), output], tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache")
    ) as it:
        started(it, 3)
        cache = tmp_path / "cache" / "neardup" / f"{command}.sqlite"
        wait_for_results(cache)
        os.killpg(it.process.pid, signal.SIGKILL)
        it.ended()
    with closing(sqlite3.connect(cache)) as connection:
        ((done,),) = connection.execute("select count(*) from results")
    result = RUN[command](tmp_path, top, output)
    noun = FOUND[command][1]
    assert f"{done} {noun if done > 1 else noun[:-1]} from the cache" in result.err
    lines = result.out.splitlines()[command == "images" :]  # without a header
    assert len(lines) == MANY
    assert len({re.sub(rb"\b\d+\.(png|mp4)", b"", line) for line in lines}) == 1  # equal files


@pytest.mark.parametrize(("command", "module"), [("images", "PIL"), ("videos", "av")])
def test_without_its_package_a_command_installs_what_pyproject_names(
    command: str, module: str, tmp_path: Path
) -> None:
    (wanted,) = re.findall(rf'^{command} = \["(.*)"\]', (ROOT / "pyproject.toml").read_text(), re.M)
    script = f"import sys; sys.modules[{module!r}] = None\n"
    script += "from neardup.__main__ import main; sys.exit(main())"
    result = run([sys.executable, "-c", script, command, tmp_path], tmp_path)
    assert (result.code, result.out) == (2, b"")
    assert f"type: pip install '{wanted}'" in result.err


@pytest.mark.parametrize("version", [(3, 9, 18), (3, 10, 0)])
@pytest.mark.parametrize(
    "there", ["", "import types; sys.modules['mcp'] = types.ModuleType('mcp')\n"]
)
def test_mcp_names_its_python_and_its_version(
    version: tuple[int, ...], there: str, tmp_path: Path
) -> None:
    """Neither an older version of the package will do nor Python 3.9."""
    script = f"import sys; sys.modules['mcp'] = None\n{there}"
    script += "from neardup.__main__ import main; import neardup.commands.mcp\n"
    script += f"sys.version_info = {version}; sys.exit(main())"
    result = run([sys.executable, "-c", script, "mcp", tmp_path], tmp_path)
    assert (result.code, result.out) == (2, b"")
    needed = "Python 3.10 or later, and there" if version < (3, 10) else "a package"
    assert f"neardup mcp needs {needed}: pip install 'mcp>=2'" in result.err
