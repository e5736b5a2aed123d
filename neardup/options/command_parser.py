"""The parser of command lines: options in groups, a short -h, hints for misspelt options."""

import argparse
import copy
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from neardup.runtime.program import AS_COMMAND, AS_MODULE, as_called, nearest
from neardup.runtime.summary import QUIET, SHORT_SUMMARY, VERBOSE

SECTIONS = {
    "what counts as similar": (
        "--threshold --measure --exact --recall --scheme --seed --weights --verify --distance"
    ),
    "input": (
        "--input --delimiter --quote --escape --encoding --id --text --fingerprint --include "
        "--exclude --shingle --clean --max-line --max-bad --strict"
    ),
    "output": "--output -0 -o --removed --report -v -q",
    "decisions": "--keep --rule --against --between",
    "speed and machine": (
        "--jobs --sort-memory --master --reducers --rounds --memory --python --ship-numpy "
        "--ship-venv --dedup --overwrite --detach --show --name --conf -D"
    ),
    "for each scheme": (
        "--max-bands --bands --rows --bits --supershingles --idf --lexicons --counts --own-counts"
    ),
    "inside a cluster": "--input-files --blocks --shared-keys",
}
# What -h prints, one line per option.
SHORT = {
    "--threshold": "the minimum similarity of a pair (default: 0.9)",
    "--exact": "find every pair; without it, at most 1 in 10,000 at the threshold is missed",
    "--input": "shingles, text, fingerprints, jsonl, csv, tsv, parquet (default: by extension)",
    "--id": "the field of the id (default: id)",
    "--text": "the field of the text, or several (default: text)",
    "--shingle": "runs of K words or characters, such as word:3 or char:5 (default: word:3)",
    "--clean": "ignore html, width, accents, digits or punctuation; several with commas",
    "--output": "pairs, links, kept, removed or clusters (default: pairs)",
    "-o": "write the answer to this file when it is complete",
    "--include": "read only files with names like this, such as '*.py'; may be repeated",
    "--exclude": "skip files and folders with names like this; may be repeated",
    "-0": "with --output kept or removed: paths for xargs -0",
    "--removed": "with --output kept: also write the removed records, with this name",
    "--report": "write an HTML page of what was found, such as page.html",
    "-v": "print all counts at the end",
    "--keep": "of similar records, the one to keep: first, longest, max:FIELD … (default: first)",
    "--against": "old records: find only pairs with a new record; may be repeated",
    "--jobs": "number of processes (default: one per core)",
    "--reducers": "number of reducers (default: chosen for the input)",
    "--master": "local[N], yarn or spark://HOST:PORT (default: local[*])",
}
# Options with the same meaning in all commands that have them.
SHARED: Mapping[str, Mapping[str, Any]] = {
    "-o": dict(
        dest="answer",
        metavar="FILE",
        help="write the answer to FILE when it is complete, instead of standard output; JSON "
        "lines, CSV or Parquet if it ends with .jsonl, .csv or .parquet; lines are compressed if "
        "it ends with .gz, .bz2, .xz or .zst",
    ),
    "--removed": dict(
        metavar="FILE", help="with --output kept: also write to FILE what --output removed prints"
    ),
    "--report": dict(
        metavar="FILE",
        help="write an HTML page of what was found, with texts, pictures or frames side by side",
    ),
    "-0": dict(
        dest="null",
        action="store_true",
        help="with --output kept or removed: the answer is unescaped paths, each followed by a "
        "NUL byte, for xargs -0",
    ),
    "--jobs": dict(metavar="N", help="number of processes (default: one per core)"),
    "--sort-memory": dict(
        metavar="SIZE",
        default="256M",
        help="maximum memory of each sort, such as 256M or 2G (default: 256M)",
    ),
    "--strict": dict(action="store_true", help="stop at the first file that cannot be read"),
    "--no-cache": dict(action="store_true", help="do not read or write the cache"),
    "--include": dict(
        metavar="GLOB",
        action="append",
        default=[],
        help="read only files whose name (or path, if GLOB has a /) matches, such as '*.py'; may "
        "be repeated",
    ),
    "--exclude": dict(
        metavar="GLOB",
        action="append",
        default=[],
        help="skip files and folders whose name (or path, if GLOB has a /) matches; may be "
        "repeated",
    ),
}
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
    },
    "curve": {"--svg": "leave it out: neardup curve prints the curve as a table"},
    "videos": {
        "--format": "the name of -o is the format: -o pairs.jsonl, pairs.csv or pairs.parquet"
    },
    "tune": dict.fromkeys(("--fingerprint", "--bits", "--distance"), FOR_SETS),
    "folders": {
        "--against": "name both, the old folder first: python3 -m neardup folders OLD NEW",
        **dict.fromkeys(
            ("--removed", "--keep", "--report"),
            f"folders are listed, and none is removed; for files, type: {_TO_REMOVE}",
        ),
    },
    "leaks": {
        "--against": "name the test records with --test: python3 -m neardup leaks TRAIN --test "
        "TEST",
        "--keep": "test records are always kept; to choose among similar records, type: python3 "
        "-m neardup run --output kept --keep RULES FILE",
        "--report": "type: python3 -m neardup run --scheme prefix --measure containment "
        "--threshold 0.7 --shingle word:8 --between --against TEST --report page.html TRAIN",
    },
}
MANY = 15  # with more options, -h lists only those in SHORT


class CommandParser(argparse.ArgumentParser):
    """An argument parser whose help groups options by SECTIONS, with `description` unchanged."""

    def __init__(self, name: str, description: str, short: Mapping[str, str] = SHORT):
        """Make a parser; if it gets many options, -h prints only those in `short`, {flag: help}."""
        super().__init__(
            prog=name,
            description=description,
            allow_abbrev=False,
            add_help=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._negative_number_matcher = re.compile(r"-(?!0$)[0-9]+$|-[0-9]*\.[0-9]+$")  # not -0
        self._short = short
        self._sections = {title: self.add_argument_group(title) for title in SECTIONS}
        title_of = {flag: title for title, flags in SECTIONS.items() for flag in flags.split()}
        self._section_of = {flag: self._sections[title] for flag, title in title_of.items()}
        self._brief = self.add_argument("-h", action=_ShortHelp, nargs=0, dest=argparse.SUPPRESS)
        self.add_argument("--help", action="help", help="print all options")

    def add_shared(self, flags: str, **texts: str) -> None:
        """Add options of SHARED, with blanks between them, and then -v and -q.

        texts: help of an option that does more here, by the option's name without dashes.
        """
        for flag in flags.split():
            spec = dict(SHARED[flag])
            spec["help"] = texts.get(flag.lstrip("-"), spec["help"])
            self.add_argument(flag, **spec)
        self.add_verbosity()

    def add_verbosity(self) -> None:
        """Add the options -v and -q, which set `verbosity`."""
        everything = "all counts at the end, and each file that is not compared"
        kinds = {"-v": (VERBOSE, everything), "-q": (QUIET, "no summary; errors only")}
        self.set_defaults(verbosity=SHORT_SUMMARY)
        for flag, (const, what) in kinds.items():
            self.add_argument(
                flag, dest="verbosity", action="store_const", const=const, help=f"print {what}"
            )

    def add_argument(self, *flags: Any, **spec: Any) -> argparse.Action:
        if flags[0] in self._section_of:
            return self._section_of[flags[0]].add_argument(*flags, **spec)
        return super().add_argument(*flags, **spec)

    def format_help(self) -> str:
        return self._page(short=False)

    def format_usage(self) -> str:
        return self._with_usage().format_help()

    def short_help(self) -> str:
        """Return the text that -h prints: all options if they are few, else those in `short`."""
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
                elif flag in self._short:
                    brief = copy.copy(action)
                    brief.help = self._short[flag]
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
        meant = "".join(f"; {here[w]}" if w in here else nearest(w, known) for w in wrong)
        if "arguments are required" in message:  # perhaps an option has taken the files
            takers = [some.option_strings[:1] for some in self._actions if some.nargs == "+"]
            flags = [flag for (flag,) in filter(None, takers) if flag not in message]
            meant = "".join(f"; name it before {flag}" for flag in flags)
        meant, prog = as_called(meant), as_called(self.prog)
        name = self.prog.replace(AS_MODULE, AS_COMMAND)  # as in all other messages
        self.exit(2, f"{name}: {message}{meant}; {prog} -h lists the options\n")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Return an option's value, even if it is `--` (`--rows=--`), which old Pythons drop."""
        alone = action.nargs is None and arg_strings == ["--"]
        return "--" if alone else super()._get_values(action, arg_strings)

    def parse_known_intermixed_args(  # type: ignore[override]
        self, args: "Sequence[str] | None" = None, namespace: Any = None
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
