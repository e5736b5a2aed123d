"""Which fields of a row are the id and the text of a record: --id and --text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from neardup.process.errors import UsageError

DEFAULT_ID, DEFAULT_TEXT = "id", "text"
MOST_DIGITS = 20  # of the number of a column; int() itself refuses more than some thousands


@dataclass(frozen=True)
class Fields:
    """The names of fields, or of columns their numbers, from "1" on.

    Several texts are one, with a line end between them.

    >>> fields = Fields.of(None, "title,meta.body")
    >>> fields.id, fields.texts, fields.value({"meta": {"body": "to be"}}, "meta.body")
    ('id', ('title', 'meta.body'), 'to be')
    """

    id: str  # "" is none: all rows have their numbers
    texts: tuple[str, ...]  # () is all there are
    needs_id: bool  # else rows have their numbers where there is none

    @classmethod
    def of(cls, id_: str | None, text: str | None) -> Fields:
        """UsageError for names that are none."""
        texts = tuple((DEFAULT_TEXT if text is None else text).split(","))
        if not all(texts):
            raise UsageError(f"--text: {text!r} is not NAME, or NAME,NAME… without blanks")
        fields = cls(DEFAULT_ID if id_ is None else id_, texts, needs_id=bool(id_))
        numbers = [name.isdecimal() for name in (*texts, *[fields.id] * fields.needs_id)]
        if any(numbers) and not all(numbers):
            raise UsageError("--id and --text are numbers of columns, or names: not one of each")
        columns = filter(str.isdecimal, fields.names)
        if not all(len(name) <= MOST_DIGITS and int(name) for name in columns):
            raise UsageError(
                f"--id and --text: columns are numbered from 1 on, in {MOST_DIGITS} digits at most"
            )
        return fields

    @property
    def names(self) -> tuple[str, ...]:
        return (self.id, *self.texts) if self.id else self.texts

    @property
    def numbered(self) -> bool:
        """Whether columns are told by number, and a table has no header."""
        return bool(self.texts) and self.texts[0].isdecimal()

    def places(self, columns: Sequence[str]) -> dict[str, int]:
        """Field → column, from 0, of a table with these, which `missing_fields` has checked."""
        if self.numbered:
            return {field: int(field) - 1 for field in self.names if field.isdecimal()}
        return {field: columns.index(field) for field in self.of_columns(columns)}

    def of_columns(self, columns: Sequence[str]) -> list[str]:
        """Those that are asked for; a field of fields is in the column before its dot."""
        if not self.texts:
            return list(dict.fromkeys(columns))
        known = (name for name in self.names if name in columns or name.split(".")[0] in columns)
        return list(dict.fromkeys(known))

    def value(self, row: dict[str, Any], name: str) -> Any:
        """What a row has there; None if nothing.  A dot goes into a field of fields."""
        if name and name in row:
            return row[name]
        value: Any = row
        for part in name.split(".") if "." in name else ():
            value = value.get(part) if isinstance(value, dict) else None
        return None if value is row else value


def listed(columns: Sequence[str], limit: int = 20) -> str:
    """
    >>> listed(["id", "body"])
    'it has id, body'
    """
    more = " …" if len(columns) > limit else ""
    return f"it has {', '.join(columns[:limit])}{more}" if columns else "it has none"
