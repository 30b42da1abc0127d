"""One digest identifies agents, problems and runs: SHA-256 of what they are, as canonical JSON."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from surefoot.base.arrays import AnyArray
from surefoot.errors import InvalidSetting


def digest(value: object) -> str:
    """Return 32 hexadecimal digits that identify a value, to the last bit.

    An object of ours is its class with its `settings`, or with its fields; in which of our files
    the class is says nothing. A function, or a user's own object, is its module and qualified name:
    what else it holds is not known here. `repr` says nothing: it is for people.
    """
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def one_row(array: AnyArray | None) -> AnyArray | None:
    """Return the first row of an array whose rows are all equal; any other as it is."""
    return (
        array[:1]
        if array is not None and len(array) > 1 and bool((array == array[:1]).all())
        else array
    )


def _plain(value: Any) -> Any:
    """Return a value as JSON has it. Floats are written so that they are read back to the last
    bit.
    """
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray):
        little = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
        return [list(value.shape), little.dtype.str, hashlib.sha256(little.tobytes()).hexdigest()]
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(inner) for inner in value]
    named = value if hasattr(value, "__qualname__") else type(value)
    where = "surefoot" if named.__module__.startswith("surefoot.") else named.__module__
    return [f"{where}.{named.__qualname__}", _plain(_inside(value))]


def _inside(value: object) -> Mapping[str, object] | None:
    """Return what is in an object of ours, or of a class that is derived from ours; None of any
    other.
    """
    kind = type(value)
    if kind.__module__ == "builtins" and not callable(value):
        raise InvalidSetting(
            f"A {kind.__name__} identifies nothing, expected numbers, texts, arrays, lists, "
            "mappings."
        )
    if not any(base.__module__.startswith("surefoot.") for base in kind.__mro__):
        return None
    settings: Mapping[str, object] | None = getattr(value, "settings", None)
    if settings is None and is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.compare}
    return settings
