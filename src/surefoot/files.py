"""Arrays on disk: .npz without pickle, a line of JSON that says what it is, written whole or not at all."""

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.__about__ import __version__
from surefoot.arrays import AnyArray
from surefoot.errors import InvalidFile

FORMAT = 1
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, MemoryError, SyntaxError)  # what numpy and zipfile raise for it


def write_arrays(path: str | Path, kind: str, arrays: Mapping[str, Any]) -> None:
    """Write to a neighbour of `path` and rename it: a reader sees the old file or the new one, never half of one."""
    target = Path(path)
    about = {"format": FORMAT, "kind": kind, "surefoot": __version__}
    if not target.name or target.is_dir():
        raise InvalidFile(f"{target} is a folder, expected the name of a file to write.")
    if not target.parent.is_dir():
        raise InvalidFile(f"{target} cannot be written: the folder {target.parent} does not exist. Create it first.")
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            np.savez_compressed(stream, about=np.array(json.dumps(about, sort_keys=True)), **arrays)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def read_arrays(path: str | Path, kinds: Mapping[str, tuple[str, ...]]) -> tuple[str, dict[str, AnyArray]]:
    """The kind of the file and its arrays; `kinds` says which arrays each acceptable kind must have."""
    expected = " or ".join(kinds)
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
    except FileNotFoundError:
        raise InvalidFile(f"{path} does not exist. Expected a surefoot file of kind {expected}.") from None
    except (OSError, ValueError, TypeError, AttributeError, LookupError, RuntimeError, *DAMAGE):
        raise InvalidFile(
            f"{path} is not a surefoot file, or a damaged one. Expected kind {expected}, as written by save."
        ) from None
    try:
        about = json.loads(str(arrays.pop("about")))
        kind, version = about["kind"], about["format"]
    except (KeyError, TypeError, ValueError):
        raise InvalidFile(f"{path} has no surefoot header. Expected kind {expected}, as written by save.") from None
    if version != FORMAT:
        raise InvalidFile(
            f"{path} has format {version}; this version of surefoot reads format {FORMAT}. Update surefoot."
        )
    if kind not in kinds:
        raise InvalidFile(f"{path} holds {kind}, expected {expected}.")
    missing = [name for name in kinds[kind] if name not in arrays]
    if missing:
        raise InvalidFile(f"{path} lacks {', '.join(missing)}: the file is damaged. Restore it from a copy.")
    return kind, arrays
