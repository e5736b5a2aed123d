"""The pages of reports: parts common to all, and the page of a run on records.

A page is one self-contained HTML file without scripts.  The templates have the words and elements,
and call functions of the files with their pages.  Jinja escapes every value; `shown` also makes
hidden letters visible.
"""

import base64
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import log1p
from pathlib import Path
from typing import Any, Callable

import numpy as np

from neardup.media.pictures.pictures import RefusedError, thumbnail
from neardup.reading import shingling
from neardup.reading.folder_walk import path_of
from neardup.runtime import VERSION
from neardup.runtime.program import StageError
from neardup.runtime.summary import many
from neardup.tools.report.facts import MILLION, Bar, Found, bits_apart
from neardup.tools.report.material import Material, Parts

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
    "less detail": "less detailed",
    "frames": "compared in five frames only",
    "language": "in another language",
    "one picture": "of one picture, with other sound",
    "speed": "played at another speed",
    "less sound": "silent in parts",
    "other sound": "with another sound",
    "fewer frames": "with fewer frames a second",
    "language of subtitles": "with subtitles in another language",
}
OF_BOTH = {
    "colours": "the two differ in colours",
    "package": "one of the two belongs to a program or a library",
    "mark": "one of the two has a logo or subtitles in the picture",
    "disc": "the removed one is a file of a disc",
    "not measured": "one of the two could not be compared in all respects",
}
# Control characters, marks of direction (which can disguise a text), surrogates.
UNSEEN = re.compile(
    "[\0-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
LINE_END_IN_TEXT = re.compile(r"(?<!>)\s*\n\s*|\s*\n\s*(?!<)")  # of the template, not of a text
SIDE = 320  # pixels of a picture
RUN = 40  # words of one difference
WORD = 200  # letters of a word
ROOM = 1200  # letters of all differences
MIN_GAP = 4  # words: fewer are shown
GAP, DIFFERING = "gap", "differing"
DIFFERENT = ("only_a", "only_b")
BLANK = "\xa0"  # HTML does not collapse these


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

    how: Any = {"autoescape": True, "trim_blocks": True, "keep_trailing_newline": True}
    how |= {"finalize": shown, "undefined": jinja2.StrictUndefined}
    pages = jinja2.Environment(loader=jinja2.FileSystemLoader(Path(__file__).parent), **how)
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

    >>> doubt_text("mirrored,colours,no sound")
    'doubtful: the kept one may be mirrored, without sound; the two differ in colours'
    >>> doubt_text("less sound,disc")
    'doubtful: the kept one may be silent in parts; the removed one is a file of a disc'
    """
    found = [re.sub("^no ", "without ", word) for word in words.split(",")]
    changes = [DOUBTS.get(word, word) for word in found if word not in OF_BOTH]
    both = [OF_BOTH[word] for word in found if word in OF_BOTH]
    kept = [f"the kept one may be {', '.join(changes)}"] if changes else []
    return f"doubtful: {'; '.join([*kept, *both])}"


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


# ---- the page of a run on records


def page(material: Material, pictures: bool) -> str:
    """Return the report page; `pictures`: ids are paths of pictures, which are shown."""
    bits = material.asked.form.bits
    return filled(
        "page.html.j2",
        *OF_RECORDS,
        m=material,
        least=least(material.asked.threshold, bits),
        bits=bits,
        picture=picture,
        pictures=pictures,
        name_text=path_text if pictures else id_text,
    )


@cache
def picture(id_: bytes) -> str:
    """Return the picture with an id of `neardup images` as a data URI, or "" if unreadable."""
    try:
        jpeg = thumbnail(path_of(id_.decode("utf-8", "surrogateescape")), SIDE)
    except RefusedError:
        return ""
    return data_uri(jpeg)


def least(threshold: "Fraction | None", bits: int) -> str:
    """Format the threshold, or for fingerprints of `bits` bits the distance; "" if unknown.

    >>> least(Fraction(9, 10), 0), least(Fraction(225, 256), 256), least(None, 0)
    ('0.9 or more', '31 of 256 bits or fewer', '')
    """
    if threshold is None:
        return ""
    far = f"{int((1 - threshold) * bits)} of {bits} bits or fewer"
    return far if bits else f"{float(threshold):.9g} or more"


def likeness(similarity: int, bits: int) -> str:
    """Format a similarity in millionths, or for fingerprints the number of differing bits.

    >>> likeness(937500, 0), likeness(937500, 64)
    ('0.937500', '4 bits differ')
    """
    if bits:
        apart = int(bits_apart(np.array([similarity]), bits)[0])
        return f"{many(apart, 'bits')} differ{'s' if apart == 1 else ''}"
    return f"{similarity / MILLION:.6f}"


def similar(count: int) -> str:
    """Return the beginning of a sentence about `count` pairs, such as "No pair is"."""
    few = {0: "No pair is", 1: "One pair is"}
    return few.get(count, f"{count:,} pairs are")


def same(parts: Parts) -> bool:
    return all(kind in ("same", "gap") for kind, _ in parts)


def distinct(pairs: Sequence[Found]) -> bool:
    """Return True if no record is in two of the pairs."""
    return len({node for pair in pairs for node in (pair.a, pair.b)}) == 2 * len(pairs)


def passages(parts: Parts, context: int = 8, room: int = ROOM) -> Parts:
    """Shorten equal parts to `context` words beside a difference, and the whole to `room` letters.

    A part of the kind `gap` contains the number of words left out; the last part is of the kind
    `differing` if there are differences among them.

    >>> passages([("same", "1 2 3 4 5 6 7 8 9 10 11 12"), ("only_a", "x"), ("same", "y")])
    [('gap', '4'), ('same', '5 6 7 8 9 10 11 12'), ('only_a', 'x'), ('same', 'y')]
    """
    shown: list[tuple[str, str]] = []
    left_out, end = 0, GAP
    for kind, text in _cut(parts, context):
        if kind == GAP and not left_out:
            shown.append((kind, text))
        elif kind == GAP:
            left_out += int(text)
        else:
            words = shingling.words_in_lines(text)
            fitting = [] if left_out else _fitting(words, room)
            left_out += len(words) - len(fitting)
            end = DIFFERING if kind in DIFFERENT and len(words) > len(fitting) else end
            room -= sum(len(word) + 1 for word in fitting)
            shown += [(kind, shingling.joined(fitting))] if fitting else []
    return [*shown, (end, str(left_out))] if left_out else shown


def _fitting(words: Sequence[str], room: int) -> Sequence[str]:
    """Return the first words that begin within `room` characters."""
    taken = accumulate((len(word) + 1 for word in words), initial=0)
    return [word for word, before in zip(words, taken) if before < room]


def _cut(parts: Parts, context: int) -> Iterator[tuple[str, str]]:
    """Yield parts; gaps replace words far from differences, and the ends of long differences."""
    last = len(parts) - 1
    for i, (kind, text) in enumerate(parts):
        words = shingling.words_in_lines(text)
        before, after = RUN, 0
        if kind == "same":
            before, after = context * (i > 0), context * (i < last)
        if not last:  # nothing differs
            before = ROOM
        if len(words) - before - after < MIN_GAP:
            yield kind, _short(words)
            continue
        if before:
            yield kind, _short(words[:before])
        yield GAP, str(len(words) - before - after)
        if after:
            yield kind, _short(words[-after:])


def _short(words: Sequence[str]) -> str:
    """Join words, each shortened to WORD characters."""
    return shingling.joined(word if len(word) <= WORD else word[:WORD] + "…" for word in words)


def in_lines(words: str, tag: str = "") -> Any:
    """Return words as HTML, with their line ends and indentation; each line in an element `tag`.

    >>> str(in_lines("a < b:\\n  return", "ins"))
    '<ins>a &lt; b:</ins><br>\\xa0\\xa0<ins>return</ins>'
    """
    from markupsafe import Markup

    element = Markup(f"<{tag}>{{}}</{tag}>" if tag else "{}")
    lines = []
    for line in map(shown, words.split("\n")):
        text = line.lstrip(" ")
        lines.append(BLANK * (len(line) - len(text)) + (element.format(text) if text else ""))
    return Markup("<br>").join(lines)


def is_code(parts: Parts) -> bool:
    """Return True if a text has indented lines, as code has.

    >>> is_code([("same", "if a:"), ("only_a", "\\n  b")]), is_code([("same", "a\\nb")])
    (True, False)
    """
    return any("\n  " in words for _, words in parts)


OF_RECORDS = (distinct, in_lines, is_code, likeness, passages, same, similar)
