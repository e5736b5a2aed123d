"""The parser of command lines: options in groups, a short -h, hints for misspelt options."""

from __future__ import annotations

import argparse
import copy
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from neardup.runtime.flags import Flag, flags
from neardup.runtime.program import AS_COMMAND, AS_MODULE, as_called, nearest, whole
from neardup.runtime.summary import QUIET, SHORT_SUMMARY, VERBOSE

OF_SCHEMES = "for each scheme"
SECTIONS = {
    "what counts as similar": (
        "--threshold --measure --exact --recall --scheme --seed --weights --verify --distance"
    ),
    "input": (
        "--input --delimiter --quote --escape --encoding --id --text --fingerprint --include "
        "--exclude --unit --min-words --normalise --headers --shingle --clean --max-line "
        "--max-bad --strict"
    ),
    "output": "--output -0 -o --removed --report --audit --baseline --accept --fail -v -q",
    "decisions": (
        "--keep --rule --mark-prefix --merge --against --between --within --across --not-pairs"
    ),
    "speed and machine": (
        "--jobs --sort-memory --master --reducers --rounds --memory --work --keep-work --python "
        "--ship-numpy --ship-venv --dedup --overwrite --detach --show --name --conf -D"
    ),
    OF_SCHEMES: "--counts --own-counts",  # and each option of a scheme that is not named above
    "inside a cluster": "--input-files --blocks --shared-keys",
}
MAX_JOBS, MAX_SECONDS = 999, 86400


# Options with the same meaning in all programs that have them.
_SHARED = """
    -o FILE             write the answer to FILE when it is complete, instead of standard output;
                        JSON lines, CSV, Parquet or Arrow if it ends with .jsonl, .csv, .parquet or
                        .arrow; lines are compressed if it ends with .gz, .bz2, .xz or .zst
                        -h: write the answer to this file when it is complete
    --removed FILE      with --output kept: also write to FILE what --output removed prints
                        -h: with --output kept: also write the removed records, with this name
    --report FILE       write an HTML page of what was found, with texts, pictures or frames side by
                        side  -h: write an HTML page of what was found, such as page.html
    -0                  with --output kept or removed: the answer is unescaped paths, each followed
                        by a NUL byte, for xargs -0; doubtful removals are kept
                        -h: with --output kept or removed: paths for xargs -0
    --jobs N            number of processes (default: one per core)  -h
    --time-limit SECONDS  give up on a file after this time
    --sort-memory SIZE  maximum memory of each sort, such as 256M or 2G [256M]
    --strict            stop at the first file that cannot be read
    --work DIR          keep what is done in DIR, so that the same line goes on where a killed run
                        has ended; DIR is removed at the end
    --keep-work         leave the files of --work there at the end
    --no-cache          do not read or write the cache  -h
    --include GLOB…     read only files whose name (or path, if GLOB has a /) matches, such as
                        '*.py'; may be repeated
                        -h: read only files with names like this, such as '*.py'; may be repeated
    --exclude GLOB…     skip files and folders whose name (or path, if GLOB has a /) matches; may be
                        repeated  -h: skip files and folders with names like this; may be repeated
    -v                  print all counts at the end, and each file that is not compared
                        -h: print all counts at the end
    -q                  print no summary; errors only
"""
_LEVEL = {"action": "store_const", "dest": "verbosity", "default": SHORT_SUMMARY}
_MORE: Mapping[str, Any] = {
    "o": {"dest": "answer"},
    "0": {"dest": "null"},
    "jobs": whole(1, MAX_JOBS),
    "time_limit": whole(1, MAX_SECONDS),
    "v": {**_LEVEL, "const": VERBOSE},
    "q": {**_LEVEL, "const": QUIET},
}
SHARED = {flag.name: flag for flag in flags(_SHARED, **_MORE)}
VERBOSITY = SHARED["-v"], SHARED["-q"]
(STANDARD_INPUT,) = flags("files FILE  default: -, standard input", files={"nargs": "*"})
(FILES,) = flags("files FILE…  plain or compressed; - is standard input")
# Options of other commands, and what to type instead: by command, or for all of them.
FOR_SETS = (
    "tune is for sets; for the pairs of fingerprints, type: python3 -m neardup truth --input "
    "fingerprints FILE"
)
_TO_REMOVE = "python3 -m neardup images (or videos, documents) FOLDER --output removed"
ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "": {
        "--report": "to make a page of an answer, type: python3 -m neardup report PAIRS --records "
        "FILE -o page.html",
        "-0": f"it is for paths of files; type: {_TO_REMOVE} -0",
        **dict.fromkeys(
            ("--within", "--across"),
            "it limits the pairs of a run; type: python3 -m neardup run FILE with it",
        ),
    },
    "images": dict.fromkeys(
        ("--mirror", "--rotate", "--crops"),
        "mirrored, turned and cropped copies are found by default; leave it out, or to compare "
        "pictures only as they are, type: python3 -m neardup images --no-variants FOLDER",
    ),
    "curve": {"--svg": "leave it out: neardup curve prints the curve as a table"},
    "videos": {
        "--within": "run it for each folder: python3 -m neardup videos FOLDER",
        "--across": "all pairs are listed; leave those of one folder out of -o pairs.jsonl",
        "--format": "the name of -o is the format: -o pairs.jsonl, pairs.csv or pairs.parquet",
        "--fast": "it missed copies that were encoded again; type: python3 -m neardup videos "
        "FOLDER",
    },
    "frames_mapper.py": {"--fast": "it missed copies that were encoded again; leave it out"},
    "tune": dict.fromkeys(("--fingerprint", "--bits", "--distance"), FOR_SETS),
    "folders": {
        "--against": "name both, the old folder first: python3 -m neardup folders OLD NEW",
        **dict.fromkeys(
            ("--removed", "--keep", "--report"),
            f"folders are listed, and none is removed; for files, type: {_TO_REMOVE}",
        ),
    },
    "passages": dict.fromkeys(
        ("--unit", "--normalise", "--fail", "--baseline"),
        "passages are equal runs of words; for near-copies of paragraphs or functions, type: "
        "python3 -m neardup documents --unit UNIT FOLDER",
    ),
    "leaks": {
        "--against": "name the test records with --test: python3 -m neardup leaks TRAIN --test "
        "TEST",
        "--keep": "test records are always kept; to choose among similar records, type: python3 "
        "-m neardup run --output kept --keep RULES FILE",
        "--report": "type: python3 -m neardup run --scheme prefix --measure containment "
        "--threshold 0.7 --shingle word:8 --between --against TEST --report page.html TRAIN",
    },
}
MANY = 15  # with more options, -h lists only those with a short text


class CommandParser(argparse.ArgumentParser):
    """An argument parser whose help groups options by SECTIONS, with `description` unchanged."""

    def __init__(self, name: str, description: str):
        super().__init__(
            prog=name,
            description=description,
            allow_abbrev=False,
            add_help=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._negative_number_matcher = re.compile(r"-(?!0$)[0-9]+$|-[0-9]*\.[0-9]+$")  # not -0
        self._short: dict[str, str | bool] = {}  # what -h prints if there are many options
        self._sections = {title: self.add_argument_group(title) for title in SECTIONS}
        title_of = {flag: title for title, names in SECTIONS.items() for flag in names.split()}
        self._section_of = {flag: self._sections[title] for flag, title in title_of.items()}
        self._brief = self.add_argument("-h", action=_ShortHelp, nargs=0, dest=argparse.SUPPRESS)
        self.add_argument("--help", action="help", help="print all options")

    def add(self, *options: Flag, section: str | None = None) -> None:
        """Add options, each in its section of SECTIONS, else in `section`."""
        for flag in options:
            self._short[flag.name] = flag.short
            if section:
                self._section_of.setdefault(flag.name, self._sections[section])
            self.add_argument(flag.name, **flag.spec)

    def add_shared(self, names: str, *others: Flag) -> None:
        """Add options of SHARED, with blanks between their names, and then -v and -q.

        others: options that do more here, instead of those of the same name.
        """
        known = {**SHARED, **{flag.name: flag for flag in others}}
        self.add(*map(known.__getitem__, names.split()), *VERBOSITY)

    def add_argument(self, *flags: Any, **spec: Any) -> argparse.Action:
        if flags[0] in self._section_of:
            return self._section_of[flags[0]].add_argument(*flags, **spec)
        return super().add_argument(*flags, **spec)

    def format_help(self) -> str:
        return self._page(short=False)

    def format_usage(self) -> str:
        return self._with_usage().format_help()

    def short_help(self) -> str:
        """Return the text that -h prints: all options if they are few, else those with `short`."""
        short = len(self._actions) > MANY
        return self._page(short) + "\n--help lists all options.\n" * short

    def _page(self, short: bool) -> str:
        many = len(self._actions) > MANY
        self._brief.help = "print the options that most people need" if many else "same as --help"
        formatter = self._with_usage()
        formatter.add_text(self.description)
        for group in self._action_groups:
            formatter.start_section(group.title)
            for action in group._group_actions:
                flag = (action.option_strings or [""])[0]
                if not short or not flag:
                    formatter.add_argument(action)
                elif short_text := self._short.get(flag):
                    brief = copy.copy(action)
                    brief.help = action.help if short_text is True else short_text
                    formatter.add_argument(brief)
            formatter.end_section()
        formatter.add_text(self.epilog)
        return as_called(formatter.format_help())

    def _with_usage(self) -> argparse.HelpFormatter:
        formatter = self._get_formatter()
        formatter._prog += " [OPTIONS]"
        usage = [action for action in self._actions if not action.option_strings]
        formatter.add_usage(self.usage, usage, [])
        return formatter

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 and a message, which suggests the nearest option for an unknown one."""
        _, unknown, words = message.partition("unrecognized arguments: ")
        wrong = [word.partition("=")[0] for word in words.split() if unknown and word[0] == "-"]
        known = [flag for flag in self._option_string_actions if flag.startswith("--")]
        here = {**ELSEWHERE[""], **ELSEWHERE.get(self.prog.rpartition(" ")[2], {})}
        files = {w: f"a file is ./{shlex.quote(w)}" for w in wrong if os.path.exists(w)}
        here = {**files, **here}
        advice = (f"; {here[w]}" if w in here else nearest(w, known) for w in wrong)
        meant = "".join(dict.fromkeys(advice))
        if "arguments are required" in message:  # perhaps an option has taken the files
            takers = [some.option_strings[:1] for some in self._actions if some.nargs == "+"]
            flags = [flag for (flag,) in filter(None, takers) if flag not in message]
            meant = "".join(f"; name it before {flag}" for flag in flags)
        meant, prog = as_called(meant), as_called(self.prog)
        name = self.prog.replace(AS_MODULE, AS_COMMAND)  # as in all other messages
        self.exit(2, f"{name}: {message}{meant}; {prog} -h lists the options\n")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Return an option's value, even if it is `--` (`--rows=--`), which old Pythons drop."""
        if action.nargs is None and arg_strings == ["--"]:
            return self._get_value(action, "--")
        return super()._get_values(action, arg_strings)

    def parse_known_intermixed_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse arguments; words after `--` are files, though Python before 3.13 drops the `--`."""
        given = sys.argv[1:] if args is None else list(args)
        known = self.parse_known_args if "--" in given else super().parse_known_intermixed_args
        return known(given, namespace)


class _ShortHelp(argparse.Action):
    def __call__(self, parser: Any, *_: Any) -> None:
        print(parser.short_help(), end="")
        parser.exit()


def plain_names(words: list[str]) -> list[str]:
    """Remove `--` from a command line, and put ./ before later names that begin with -.

    From Python 3.7 to 3.12, `parse_intermixed_args` drops the `--`.

    >>> plain_names(["--strict", "--", "-x.txt", "-", "y.txt"])
    ['--strict', './-x.txt', '-', 'y.txt']
    """
    if "--" not in words:
        return words
    end = words.index("--")
    names = [f"./{name}" if name[:1] == "-" != name else name for name in words[end + 1 :]]
    return words[:end] + names
