"""docs/options.md is generated from the commands and from the output of --help.

To write it, and what it is made from; review the diff:
REWRITE_GOLDENS=1 python3 -m pytest tests/cli/test_goldens.py tests/docs/test_options_page.py
"""

import os
import re
from pathlib import Path

from neardup.__main__ import COMMANDS, JOBS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "options.md"
PROGRAMS = {
    "mapper.py": "",
    "run_local.sh": "run",
    "run_hadoop.sh": "hadoop",
    "run_spark.sh": "spark",
}
OPENING = """# Options

Every command, and every option of every way to run the job, as `--help` prints them.
[Choose threshold and scheme](choosing.md) helps to choose; [formats](formats.md) describes files.
"""

Entry = tuple[str, str, str]  # "--threshold T", what it does, its default


def groups(program: str) -> dict[str, list[Entry]]:
    """Return the options in a program's help by heading, without --help."""
    text = (ROOT / "tests" / "cli" / "golden" / f"{program}.help.txt").read_text("utf-8")
    found: dict[str, list[Entry]] = {}
    for heading, body in re.findall(r"^(\w[\w ,]*):\n((?:  .*\n|\n)+)", text, re.M):
        entries = [entry(part) for part in re.split(r"^  (?=-)", body, flags=re.M)[1:]]
        found[heading] = [each for each in entries if each[0] not in ("-h", "--help")]
    return {heading: entries for heading, entries in found.items() if entries}


def entry(text: str) -> Entry:
    option, does = re.split(r"\s\s+|\n\s+", text.rstrip(), maxsplit=1)
    does = " ".join(does.split())
    default = re.search(r" ?\(default: ([^)]*)\)", does)
    if default:
        does = does.replace(default[0], "")
    return option, does, default[1] if default else ""


def table(entries: list[Entry]) -> str:
    rows = (
        f"| `{option}` | {default} | {does.replace('|', chr(92) + '|')} |\n"
        for option, does, default in entries
    )
    return "| option | default | what it does |\n|---|---|---|\n" + "".join(rows)


def page() -> str:
    sections: dict[str, list[Entry]] = {}
    known = set()
    for program, command in PROGRAMS.items():
        for heading, entries in groups(program).items():
            title = f"Only `neardup {command}`" if command else heading.capitalize()
            sections.setdefault(title, []).extend(e for e in entries if e[0] not in known)
        known |= {each[0] for entries in sections.values() for each in entries}
    does = {name: what for name, (*_, what) in {**JOBS, **COMMANDS}.items()}
    rows = "".join(f"| `{name}` | {what} |\n" for name, what in does.items())
    commands = f"## Commands\n\n| `neardup` | what it does |\n|---|---|\n{rows}"
    tables = [commands]
    tables += [f"## {title}\n\n{table(entries)}" for title, entries in sections.items() if entries]
    return "\n".join([OPENING, *tables])


def test_the_page_is_what_help_prints() -> None:
    if "REWRITE_GOLDENS" in os.environ:
        PAGE.write_text(page(), "utf-8")
    assert PAGE.read_text("utf-8") == page(), __doc__


def test_help_is_understood() -> None:
    common = [each for entries in groups("mapper.py").values() for each in entries]
    assert len(common) > 30
    assert ("--bands B", "number of bands, set by hand together with --rows", "") in common
    assert ("--threshold T", "0.9") in [(option, default) for option, _, default in common]
    hadoop = {
        option: default for option, _, default in groups("run_hadoop.sh")["speed and machine"]
    }
    assert hadoop["-D NAME=VALUE"] == ""
    assert hadoop["--python PATH"] == "python3"
