"""Functions and blocks of source code as tokens, by the grammars of tree-sitter.

    def area(r):            def  area  (  r  )  :  return  3.14  *  r  **  2
        # of a circle
        return 3.14*r**2

    --normalise names       def  identifier  (  identifier  )  :  return  3.14  *  …

A token is a leaf of the syntax tree, or a whole literal.  Layout and comments are no tokens, nor
are literals that are statements, such as docstrings.

A function is a node whose kind is named so and that has a body: a method, a closure.  A block is a
list of statements, in braces or indented.  A token belongs to the innermost unit that is long
enough: a function in another is a unit of its own, and one token, its kind, in the outer one.

What does not parse is in the tree, too, as leaves of a node ERROR; the functions around and beside
it are found.  No recursion: trees may be deep.
"""

from __future__ import annotations

import os
import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from neardup.runtime.program import UsageError

if TYPE_CHECKING:
    import tree_sitter

FUNCTION, BLOCK = "function", "block"
NAMES, LITERALS = "names", "literals"
MODULES = {  # by extension: the package of the grammar, and its function
    ".py .pyi": ("tree_sitter_python", "language"),
    ".java": ("tree_sitter_java", "language"),
    ".c": ("tree_sitter_c", "language"),
    ".h .cc .cpp .cxx .c++ .hh .hpp .hxx": ("tree_sitter_cpp", "language"),
    ".js .jsx .mjs .cjs": ("tree_sitter_javascript", "language"),
    ".ts .mts .cts": ("tree_sitter_typescript", "language_typescript"),
    ".tsx": ("tree_sitter_typescript", "language_tsx"),
    ".go": ("tree_sitter_go", "language"),
    ".rs": ("tree_sitter_rust", "language"),
}
GRAMMARS = {ending: how for endings, how in MODULES.items() for ending in endings.split()}
KINDS = {  # of units: by the names of their nodes
    FUNCTION: re.compile("function|method|constructor|lambda|closure|func_literal"),
    BLOCK: re.compile(r"(?:block|compound_statement|constructor_body)\Z"),
}
COMMENT, NAME = re.compile("comment"), re.compile("identifier")
LITERAL = re.compile(
    r"(?:\A|_)(?:string|char|character|rune|number|int|integer|float|floating_point|imaginary|regex)"
    r"(?:_literal)?\Z"
)
STATEMENT = re.compile(r"\Aexpression_statement\Z")


class Language(NamedTuple):
    parser: tree_sitter.Parser
    unit: str  # one of KINDS
    kinds: dict[int, str]  # by number; the sets below are of such numbers
    comments: set[int]
    units: set[int]
    literals: set[int]
    names: set[int]
    statements: set[int]  # that may be a literal


class Span(NamedTuple):
    """A unit in its file."""

    start: int  # bytes, and then characters
    end: int
    text: str  # its tokens, with blanks between them
    size: int  # in tokens


class Frame(NamedTuple):
    """A unit, or the file, that the walk is in."""

    depth: int
    start: int  # bytes
    end: int
    kind: str
    tokens: list[str]


def check_packages() -> None:
    """Raise UsageError if a package is missing."""
    needed = ["tree_sitter", *(module for module, _ in MODULES.values())]
    if missing := [name for name in dict.fromkeys(needed) if not find_spec(name)]:
        packages = " ".join(name.replace("_", "-") for name in missing)
        raise UsageError(f"units of code need packages, the extra `code`: pip install {packages}")


def language_of(path: bytes, unit: str) -> Language | None:
    """Return the language of a file by its extension; None if it is not a known one."""
    how = GRAMMARS.get(os.path.splitext(os.fsdecode(path))[1].lower())
    return _language(*how, unit) if how else None


@cache
def _language(module: str, function: str, unit: str) -> Language:
    import tree_sitter

    grammar = tree_sitter.Language(getattr(import_module(module), function)())
    numbers = range(grammar.node_kind_count)
    kinds = {number: grammar.node_kind_for_id(number) or "" for number in numbers}
    named = {number: kind for number, kind in kinds.items() if grammar.node_kind_is_named(number)}
    patterns = COMMENT, KINDS[unit], LITERAL, NAME, STATEMENT
    sets = [{number for number in named if each.search(named[number])} for each in patterns]
    try:
        return Language(tree_sitter.Parser(grammar), unit, kinds, *sets)
    except ValueError as error:  # as of a grammar that is newer than tree-sitter
        name = module.replace("_", "-")
        line = f"pip install --upgrade {name} 'neardup[code]'"
        raise UsageError(f"{name} cannot be used ({error}); type: {line}") from None


def units(
    text: str, language: Language, normalise: frozenset[str], least: int
) -> tuple[list[Span], bool]:
    """Return the units of a text: start, end and tokens of each; and whether all of it parsed.

    Units of fewer than `least` tokens are part of the one around them, or without one are returned
    as they are.
    """
    data = text.encode("utf-8", "surrogatepass")
    tree = language.parser.parse(data)
    kinds, comments, of_units, literals, names, statements = language[2:]
    replaced = {NAMES: names, LITERALS: literals}
    alike = set[int]().union(*map(replaced.__getitem__, normalise))
    cursor = tree.walk()
    frames, found, depth = [Frame(-1, 0, 0, "", [])], list[Span](), 0
    while True:
        node = cursor.node
        assert node
        kind, begun = node.kind_id, False
        if kind in of_units and (language.unit == BLOCK or node.child_by_field_name("body")):
            frames.append(Frame(depth, node.start_byte, node.end_byte, kinds[kind], []))
        if kind not in comments and not (kind in statements and is_literal(node, literals)):
            begun = kind not in literals and cursor.goto_first_child()
            if not begun:
                start, end = node.start_byte, node.end_byte
                if token := data[start:end].strip():
                    name = kinds[kind] if kind in alike else token.decode("utf-8", "replace")
                    frames[-1].tokens.append(name)
        depth += begun
        while not begun:  # the node is done
            if frames[-1].depth == depth:
                _close(frames, found, least)
            begun = cursor.goto_next_sibling()
            if not begun:
                if not cursor.goto_parent():
                    return _in_characters(text, data, sorted(found)), not tree.root_node.has_error
                depth -= 1


def is_literal(node: tree_sitter.Node, literals: set[int]) -> bool:
    """Return whether a statement is a literal."""
    return node.named_child_count == 1 and node.named_children[0].kind_id in literals


def _close(frames: list[Frame], found: list[Span], least: int) -> None:
    unit, outer = frames.pop(), frames[-1]
    if len(unit.tokens) < least and outer.depth >= 0:
        outer.tokens.extend(unit.tokens)
    elif unit.tokens:  # or else it is missing, where code does not parse
        outer.tokens.append(unit.kind)
        found.append(Span(unit.start, unit.end, " ".join(unit.tokens), len(unit.tokens)))


def _in_characters(text: str, data: bytes, found: list[Span]) -> list[Span]:
    """Return the units with their starts and ends in characters of the text, not in bytes."""
    if len(text) == len(data):
        return found
    at, last = {0: 0}, 0
    for place in sorted({place for unit in found for place in unit[:2]}):
        at[place] = at[last] + len(data[last:place].decode("utf-8", "surrogatepass"))
        last = place
    return [unit._replace(start=at[unit.start], end=at[unit.end]) for unit in found]
