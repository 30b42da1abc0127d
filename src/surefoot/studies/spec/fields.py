"""Reading the tables of a study's file. Every field has a meaning; what is not a field is
refused by name.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields, is_dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

from surefoot.base.validation import told
from surefoot.errors import InvalidStudy

LARGEST = 1e15
LONGEST_SHOWN = 100  # letters of a value in a message
REQUIRED = object()  # a field that must be there
Read = Callable[[str, object], Any]


class Field(NamedTuple):
    """One field of a table: how its value is read, what it means, and its default."""

    read: Read
    meaning: str
    default: Any = REQUIRED


def entry(read: Read, meaning: str, default: Any = REQUIRED) -> Any:
    """Return a field of a record that is a table of a study's file."""
    return field(metadata={"entry": Field(read, meaning, default)})


def entries(record: Any) -> dict[str, Field]:
    """Return what may stand in the table of a record, or of its class."""
    return {one.name: one.metadata["entry"] for one in fields(record) if one.metadata}


def a_table(record: Any) -> Read:
    """Return a reader of the table of a class of records."""
    return lambda where, value: record(**read_table(where, value, entries(record)))


def as_written(value: Any) -> Any:
    """Return a value as TOML has it: of a record what has not its default, of a choice such as
    eta a table.
    """
    if is_dataclass(value):
        given = {
            name: (getattr(value, name), entry.default) for name, entry in entries(value).items()
        }
        return {
            name: as_written(found) for name, (found, default) in given.items() if found != default
        }
    if isinstance(value, tuple):
        is_choice = len(value) == 2 and isinstance(value[1], float)
        return {value[0]: value[1]} if is_choice else list(map(as_written, value))
    return value


def refusal(where: str, value: object, expected: str) -> InvalidStudy:
    """Return the error for a value that is not as expected."""
    return InvalidStudy(f"{where} is {told(value)}, expected {expected}.")


def _close_to(word: str, known: Iterable[str]) -> str:
    """Return which known word may be meant, in words, and all that there are."""
    close = get_close_matches(word[:LONGEST_SHOWN], list(known), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{hint} There are: {', '.join(known) or 'none'}."


def read_table(where: str, given: object, known: Mapping[str, Field]) -> dict[str, Any]:
    """Return every field of a table, checked. `where` is the position in the file, for messages."""
    if not isinstance(given, dict):
        raise refusal(where, given, f"a table with {', '.join(known)}")
    for name in given:
        if name not in known:
            raise InvalidStudy(f"{where} has no field {told(name)}.{_close_to(str(name), known)}")
    missing = [
        name for name, entry in known.items() if entry.default is REQUIRED and name not in given
    ]
    if missing:
        raise InvalidStudy(
            f"{where} lacks {', '.join(missing)} ({missing[0]}: {known[missing[0]].meaning})."
        )
    return {
        name: entry.read(f"{where}: {name}", given[name]) if name in given else entry.default
        for name, entry in known.items()
    }


def text(where: str, value: object) -> str:
    """Read text that is not empty, and can be printed. Line breaks are spaces."""
    words = " ".join(value.split()) if isinstance(value, str) else ""
    if not words or not words.isprintable():
        raise refusal(where, value, "text")
    return words


def legend(where: str, value: object) -> str:
    """Read the words of a legend. Matplotlib would leave out a label that begins with _."""
    word = text(where, value)
    if word.startswith("_") or len(word) > 60:
        raise refusal(where, word, "at most 60 letters, the first of them not '_'")
    return word


def identifier(where: str, value: object) -> str:
    """Read an id. It is part of a file's name, and permanent."""
    word = text(where, value)
    if not re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9._-]{,59}", word):
        raise refusal(where, word, "at most 60 of a-z, A-Z, 0-9, '-', '_' and '.'")
    return word


def whole(low: int, high: int = 10**15) -> Read:
    """Return a reader of whole numbers from `low` to `high`; 2e7 is one, too."""

    def read(where: str, value: object) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise refusal(where, value, f"a whole number, at least {low} and at most {high:,}")
        return value

    return read


def number(where: str, value: object) -> float:
    """Read a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise refusal(where, value, f"a number of at most {LARGEST:g}")
    return float(value)


def between(low: float, high: float, meaning: str) -> Read:
    """Return a reader of numbers strictly between `low` and `high`."""

    def read(where: str, value: object) -> float:
        if not low < number(where, value) < high:
            raise refusal(where, value, meaning)
        return number(where, value)

    return read


def yes_or_no(where: str, value: object, more: str = "") -> bool:
    """Read true or false. `more` names, for the message, what else the field takes."""
    if not isinstance(value, bool):
        raise refusal(where, value, f"true or false{more}")
    return value


def one_of(choices: Mapping[str, Any] | tuple[str, ...]) -> Read:
    """Return a reader that takes one of these words."""

    def read(where: str, value: object) -> str:
        word = text(where, value).lower()
        if word not in choices:
            raise InvalidStudy(f"{where} is {told(value)}.{_close_to(word, choices)}")
        return word

    return read


def several(read_one: Read) -> Read:
    """Return a reader of lists, whose entries are all read by `read_one`."""

    def read(where: str, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise refusal(where, value, "a list (of tables: write [[...]] above each)")
        return tuple(read_one(f"{where}[{i}]", entry) for i, entry in enumerate(value))

    return read


def usual_or_one_key(keys: Mapping[str, Read], more: str = "") -> Read:
    """Return a reader of choices such as "usual" or { eta = 5.0 }, kept so that a study can be
    written out again. `more` names, for the message, what else the field takes.
    """
    can = " or ".join(['"usual"', *(f"{{ {key} = ... }}" for key in keys)])

    def read(where: str, value: object) -> str | tuple[str, Any]:
        if isinstance(value, str) and value.strip().lower() == "usual":
            return "usual"
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in keys:
            key, entry = next(iter(value.items()))
            return key, keys[key](f"{where}: {key}", entry)
        raise refusal(where, value, f"{can}{more}")

    return read
