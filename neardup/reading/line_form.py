"""What a line is, --input, --shingle and --clean, and the parser that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from neardup.process.errors import UsageError
from neardup.reading.bad_lines import Parser
from neardup.reading.cleaning import Cleaning
from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.reading.shingling import Shingler
from neardup.reading.text_lines import text_line_parser
from neardup.reading.weighted_lines import parse_weighted_lines
from neardup.sets.bags import bagged, counted
from neardup.sets.ragged import Ragged

INPUTS = ("shingles", "text")
DEFAULT_SHINGLE, BAG = "word:3", "bag"


@dataclass(frozen=True)
class LineForm:
    """As on the command line; UsageError from `of` for what is no such thing.

    >>> LineForm.of("text", "char:5", None).told()
    {'--input': 'text', '--clean': '', '--shingle': 'char:5'}
    """

    input: str
    shingle: Shingler | None  # of text
    clean: Cleaning
    bag: bool  # of shingles: whether repeats are shingles of their own

    @classmethod
    def of(cls, input_: str, shingle: str | None, clean: str | None) -> LineForm:
        if input_ not in INPUTS:
            raise UsageError(f"--input: {input_!r} is not {' or '.join(INPUTS)}")
        if input_ != "text":
            if clean is not None:
                raise UsageError("--clean is for --input text, and --input is shingles")
            if shingle not in (None, BAG):
                raise UsageError(
                    f"--shingle {shingle} is for --input text, and --input is shingles, which take "
                    f"--shingle {BAG}"
                )
            return cls(input_, None, Cleaning(), bag=shingle == BAG)
        try:
            shingler = Shingler.parse(DEFAULT_SHINGLE if shingle is None else shingle)
        except ValueError as error:
            raise UsageError(f"--shingle: {error}") from None
        try:
            cleaning = Cleaning() if clean is None else Cleaning.parse(clean)
        except ValueError as error:
            raise UsageError(f"--clean: {error}") from None
        return cls(input_, shingler, cleaning, bag=shingler.bag)

    def parser(self, repeats: bool = False, own: bool = False) -> Parser:
        """repeats: a token weighs as often as a record has it; own: as the line says."""
        if self.bag and (repeats or own):
            raise UsageError(
                "--shingle: in a bag repeats are tokens of their own, which weigh nothing more; "
                "leave out bag, or --weights"
            )
        gather = counted if repeats else Ragged.from_unsorted
        if self.shingle is not None:
            if own:
                raise UsageError("--weights own is for --input shingles, and --input is text")
            return text_line_parser(self.shingle, self.clean, gather)
        if own:
            return parse_weighted_lines
        return partial(parse_shingle_lines, gather=bagged if self.bag else gather)

    def told(self) -> dict[str, str]:
        """What is asked for, by flag."""
        shingle = BAG if self.bag else ""
        return {
            "--input": self.input,
            "--clean": str(self.clean),
            "--shingle": shingle if self.shingle is None else str(self.shingle),
        }
