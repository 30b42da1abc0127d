"""Files that load without running code: .npz without pickle, or JSON. Each says what it is, of which version, and has a
hash of its content; it is written whole or not at all.
"""

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from surefoot.__about__ import __version__
from surefoot.arrays import AnyArray
from surefoot.errors import InvalidFile

FORMAT = 1
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, MemoryError, SyntaxError)  # what numpy and zipfile raise for it


def require_place(path: str | Path) -> Path:
    """Can a file be written here?"""
    target = Path(path)
    if not target.name or target.is_dir():
        raise InvalidFile(f"{target} is a folder, expected the name of a file to write.")
    if not target.parent.is_dir():
        raise InvalidFile(f"{target} cannot be written: the folder {target.parent} does not exist. Create it first.")
    return target


def write_whole(path: str | Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write to a neighbour of `path` and rename it: a reader sees the old file or the new one, never half of one."""
    with replacing(require_place(path)) as partial, partial.open("wb") as stream:
        write(stream)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """The neighbour to write to. Once that is done it is on disk and has the target's name; if not, it is gone."""
    partial = target.absolute().with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        yield partial
        with partial.open("rb") as stream:
            os.fsync(stream.fileno())
        partial.replace(target)
        _sync_folder(target.absolute().parent)
    finally:
        partial.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """The new name, too, is on disk; where folders cannot be opened (Windows) the system sees to it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_arrays(path: str | Path, kind: str, arrays: Mapping[str, Any]) -> None:
    """Named arrays as .npz."""
    given = {name: np.asarray(array) for name, array in arrays.items()}
    about = {"format": FORMAT, "kind": kind, "surefoot": __version__, "sha256": digest_of(given)}
    line = np.array(json.dumps(about, sort_keys=True))
    write_whole(path, lambda stream: np.savez_compressed(stream, about=line, **given))  # type: ignore[arg-type]


def digest_of(arrays: Mapping[str, AnyArray]) -> str:
    """A hash of names, kinds, shapes and contents."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {arrays[name].shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


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
    except (KeyError, TypeError, ValueError):
        about = None
    kind = _kind_of(path, about, tuple(kinds))
    missing = [name for name in kinds[kind] if name not in arrays]
    if missing:
        raise InvalidFile(
            f"{path} lacks {', '.join(missing)}: the file is damaged, or an earlier surefoot wrote it. Restore it "
            "from a copy, or go on with the version that wrote it."
        )
    _require_digest(path, about, digest_of(arrays))
    return kind, arrays


def write_json(path: str | Path, kind: str, content: Mapping[str, Any]) -> None:
    """A plain record as JSON."""
    about = {"format": FORMAT, "kind": kind, "surefoot": __version__, "sha256": _digest_of_json(content)}
    text = json.dumps({"about": about, **content}, indent=2, ensure_ascii=False)
    write_whole(path, lambda stream: _write_bytes(stream, f"{text}\n".encode()))


def read_json(path: str | Path, kind: str) -> dict[str, Any]:
    """What `write_json` wrote."""
    try:
        given = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidFile(f"{path} does not exist. Expected a surefoot file of kind {kind}.") from None
    except (OSError, ValueError, RecursionError):
        raise InvalidFile(
            f"{path} is not a surefoot file, or a damaged one. Expected kind {kind}, as written by save."
        ) from None
    about = given.pop("about", None) if isinstance(given, dict) else None
    _kind_of(path, about, (kind,))
    _require_digest(path, about, _digest_of_json(given))
    return dict(given)


def _write_bytes(stream: IO[bytes], content: bytes) -> None:
    stream.write(content)


def _digest_of_json(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _kind_of(path: str | Path, about: Any, kinds: tuple[str, ...]) -> str:
    """The kind that the header names, if this version reads it."""
    expected = " or ".join(kinds)
    try:
        kind, version = about["kind"], about["format"]
    except (KeyError, TypeError):
        raise InvalidFile(f"{path} has no surefoot header. Expected kind {expected}, as written by save.") from None
    if version != FORMAT:
        raise InvalidFile(
            f"{path} has format {version}; this version of surefoot reads format {FORMAT}. Update surefoot."
        )
    if kind not in kinds:
        raise InvalidFile(f"{path} holds {kind}, expected {expected}.")
    return str(kind)


def _require_digest(path: str | Path, about: Any, found: str) -> None:
    """Files of before there was a hash have none."""
    if about.get("sha256", found) != found:
        raise InvalidFile(f"{path}: its content is not what was written: the file is damaged. Restore it from a copy.")
