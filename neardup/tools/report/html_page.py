"""Parts common to all pages; each page is one self-contained HTML file without scripts.

The templates have the words and elements, and call functions of this file.  Jinja escapes every
value; `shown` also makes hidden letters visible.
"""

import base64
import re
from collections.abc import Iterator, Sequence
from math import log1p
from pathlib import Path
from typing import Any, Callable

from neardup.reading.folder_walk import path_of
from neardup.runtime import VERSION
from neardup.runtime.program import StageError
from neardup.runtime.summary import many
from neardup.tools.report.facts import Bar

# Only its own style: anything that a text might smuggle in is refused.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
MAX_ID = 80  # letters
SLIVER = 0.6  # per cent: the shortest bar
DOUBTS = {  # what `originals` finds, in plain words
    "enlarged": "a small picture enlarged",
    "compressed": "compressed more strongly",
    "256 colours": "reduced to 256 colours",
    "clipped": "too bright or too dark in parts",
    "text": "overlaid with text",
    "first frame": "similar in the first frame only",
    "frames": "compared in five frames only",
    "language": "in another language",
    "one picture": "of one picture, with other sound",
    "speed": "played at another speed",
}
# Control characters, marks of direction (which can disguise a text), surrogates.
UNSEEN = re.compile(
    "[\0-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
LINE_END_IN_TEXT = re.compile(r"(?<!>)\s*\n\s*|\s*\n\s*(?!<)")  # of the template, not of a text


def check_jinja() -> None:
    """Raise StageError if the package jinja2 is missing."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise StageError(
            "a report needs the package jinja2: python3 -m pip install jinja2"
        ) from None


def filled(template: str, *calls: Callable[..., Any], **values: Any) -> str:
    """Fill a template, which may call CALLS and `calls`, with values; return the page."""
    import jinja2

    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    pages.globals.update({call.__name__: call for call in (*CALLS, *calls)})
    page = pages.get_template(template).render(policy=POLICY, version=VERSION, **values)
    return LINE_END_IN_TEXT.sub(" ", page.strip()) + "\n"


def data_uri(jpeg: bytes) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"


def shown(value: Any) -> Any:
    """Replace invisible characters of a text by their codes.

    >>> shown("<a>\\u202e\\0"), shown(7)
    ('<a>⟨U+202E⟩⟨U+0000⟩', 7)
    """
    if type(value) is not str:  # a number, or made by a macro
        return value
    return UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", value)


def id_text(id_: bytes) -> str:
    text = id_.decode("utf-8", "backslashreplace")
    return text if len(text) <= MAX_ID else text[: MAX_ID - 1] + "…"


def path_text(id_: "str | bytes") -> str:
    """Return the path that an id stands for, cut to its last MAX_ID letters."""
    id_ = id_.decode("utf-8", "surrogateescape") if isinstance(id_, bytes) else id_
    text = path_of(id_).decode("utf-8", "backslashreplace")
    return text if len(text) <= MAX_ID else "…" + text[1 - MAX_ID :]


def names(files: list[str]) -> str:
    """Format a list of files: the name of the first file, and the number of other files.

    >>> names(["a/pairs.tsv"]), names(["x", "y", "z"])
    ('pairs.tsv', 'x and 2 more files')
    """
    name = "standard input" if files[0] == "-" else Path(files[0]).name
    return name + (f" and {many(len(files) - 1, 'more files')}" if len(files) > 1 else "")


def doubt_text(words: str) -> str:
    """Describe why a removal is doubtful, given the words of an answer.

    >>> doubt_text("mirrored,colours")
    'doubtful: the kept one may be mirrored; the two differ in colours'
    """
    changes = [DOUBTS.get(word, word) for word in words.split(",") if word != "colours"]
    colours = ["the two differ in colours"] * (words.split(",")[-1] == "colours")
    kept = [f"the kept one may be {', '.join(changes)}"] if changes else []
    return f"doubtful: {'; '.join([*kept, *colours])}"


def duration(seconds: float) -> str:
    """Format a duration, which is given in seconds.

    >>> duration(0.04), duration(83.4), duration(7384)
    ('0.0 seconds', '1 min 23 s', '2 h 3 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} seconds"
    minutes = int(seconds) // 60
    if minutes < 60:
        return f"{minutes} min {int(seconds) % 60} s"
    return f"{minutes // 60} h {minutes % 60} min"


def comma(count: int) -> str:
    return f"{count:,}"


def percent(part: int, whole: int) -> Any:
    """Format a part of a whole as a percentage in parentheses; "" if the whole is 0."""
    from markupsafe import Markup

    return Markup(f" ({100 * part / whole:.1f}&nbsp;%)") if whole else ""


def lengths(rows: Sequence[Bar], logarithmic: bool) -> Iterator[tuple[Bar, float]]:
    """Yield each row and the length of its bar, 0 to 100; only a count of 0 has length 0.

    >>> [length for _, length in lengths([Bar("a", 5), Bar("b", 10), Bar("c", 0)], False)]
    [50.0, 100.0, 0.0]
    """
    top = max((row.count for row in rows), default=0)
    for row in rows:
        share = log1p(row.count) / log1p(top) if logarithmic else row.count / max(top, 1)
        yield row, max(SLIVER, 100 * share) if row.count else 0.0


CALLS = (comma, doubt_text, duration, lengths, many, names, path_text, percent)
