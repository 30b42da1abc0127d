"""Files that load without running code: .npz without pickle, or JSON. Each states its kind and its
version, and has a hash of its content; it is written completely or not at all.

A file may come from anywhere. The declared size of its content is read first, and what is too large
is refused before memory is allocated for it; headers are matched, never evaluated.
"""

import json
import math
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from operator import methodcaller
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from surefoot.__about__ import __version__
from surefoot.base.arrays import AnyArray
from surefoot.base.digest import digest
from surefoot.base.validation import told
from surefoot.errors import InvalidFile, InvalidSetting

FORMAT = 1
LARGEST = 2**30  # bytes that the arrays of a file may take
LIMIT = "SUREFOOT_LARGEST_FILE"  # the environment variable that sets another limit
LARGEST_TEXT = 2**24  # characters of one text, or bytes of a JSON file
# bytes of the list of arrays in a file: our files have fewer than fifty arrays
LARGEST_DIRECTORY = 2**16
# of whole numbers in JSON, which has no limit: each of ours must fit into a float64, too
LARGEST_NUMBER = 10**300
ENTRY = 8  # bytes that an entry takes at least: smaller types in the file become int64 or float64
MAGIC = b"\x93NUMPY\x01\x00"
HEADER = re.compile(  # as numpy writes it; only plain numbers, True or False, and text are accepted
    rb"\{'descr': '([<>|](?:b1|[iu][1248]|f[48]|U\d{1,9}))', 'fortran_order': (False|True), "
    rb"'shape': \((|\d{1,18},|\d{1,18}(?:, \d{1,18}){1,7})\), \} *\n"
)
# What zipfile raises for damaged files, beside ValueError.
DAMAGE = (
    OSError,
    EOFError,
    LookupError,
    RuntimeError,
    OverflowError,
    zipfile.BadZipFile,
    zlib.error,
)


def as_path(path: object) -> Path:
    """Return the path that a file is named by, or raise an error if it is no name."""
    if not isinstance(path, str | os.PathLike) or "\0" in str(path):
        raise InvalidFile(
            f"A file is named {told(path)}, expected a text such as 'run.npz', or a pathlib.Path."
        )
    return Path(path)


def followed(path: str | Path) -> Path:
    """Return the file that a name stands for. A link is followed: it stays when the file is
    written, and what stands beside the file (its lock, its journal) has one place, whichever name
    it is called by.
    """
    target = as_path(path)
    if not target.is_symlink():
        return target
    # RuntimeError: how Python 3.12 says that links lead in a circle
    with suppress(OSError, RuntimeError):
        target = target.resolve()
    if target.is_symlink():
        raise InvalidFile(
            f"{path} is a link that leads in a circle. Remove it, or choose another file."
        )
    return target


def require_place(path: str | Path) -> Path:
    """Return the file to write, or raise an error if none can be written there."""
    with system_errors_told(path):
        target = followed(path)
        if not target.name or target.is_dir():
            raise InvalidFile(f"{target} is a folder, expected the name of a file to write.")
        if not target.parent.is_dir():
            raise InvalidFile(
                f"{target} cannot be written: the folder {target.parent} does not exist. Create it "
                "first."
            )
        # it would be replaced by a file, for all who use it
        if target.exists() and not target.is_file():
            raise InvalidFile(
                f"{target} is a device or a pipe, expected the name of a file to write."
            )
    return target


@contextmanager
def system_errors_told(path: object) -> Iterator[None]:
    """Turn what the system says of a file that cannot be written into a refusal that says which."""
    try:
        yield
    except OSError as reason:
        raise InvalidFile(
            f"{told(str(path))} cannot be written: {reason.strerror or reason}. Choose another "
            "place."
        ) from None


def write_whole(path: str | Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write to a file beside `path` and rename it: a reader sees the old file or the new one,
    never half of one.
    """
    target = require_place(path)
    with system_errors_told(path), replacing(target) as partial, partial.open("wb") as stream:
        write(stream)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Give a file beside the target to write to. After success it is on disk as the target; else
    it is removed.
    """
    target = followed(target).absolute()
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        yield partial
        with partial.open("rb") as stream:
            os.fsync(stream.fileno())
        if target.exists():
            partial.chmod(target.stat().st_mode & 0o7777)  # who may read it stays as it was
        partial.replace(target)
        sync_folder(target.parent)
    finally:
        partial.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Write the new name to disk, too. Where folders cannot be opened (Windows), the system does
    this itself.
    """
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_arrays(path: str | Path, kind: str, arrays: Mapping[str, Any]) -> None:
    """Write named arrays as .npz."""
    given = {name: np.asarray(array) for name, array in arrays.items()}
    about = {"format": FORMAT, "kind": kind, "surefoot": __version__, "digest": digest(given)}
    line = np.array(json.dumps(about, sort_keys=True))
    write_whole(path, lambda stream: np.savez_compressed(stream, about=line, **given))  # type: ignore[arg-type]


def read_arrays(
    path: str | Path, kinds: Mapping[str, tuple[str, ...]], others: Collection[str] | None = None
) -> tuple[str, dict[str, AnyArray]]:
    """Return the kind of the file and its arrays. `kinds` maps each acceptable kind to the arrays
    it must have.

    `others` are those that it may have beside them; None: any. The arrays are read-only.
    """
    expected = f"kind {' or '.join(kinds)}"
    try:
        with opened(path, expected) as stream:
            arrays = _content(path, stream)
    except (ValueError, *DAMAGE) as reason:
        if isinstance(reason, InvalidFile | InvalidSetting):
            raise
        raise _not_ours(path, expected) from None
    about = _about(arrays.pop("about", None))
    kind = _kind_of(path, about, tuple(kinds))
    missing = [name for name in kinds[kind] if name not in arrays]
    if missing:
        raise InvalidFile(
            f"{path} lacks {', '.join(missing)}: the file is damaged. Restore it from a copy."
        )
    strange = (
        [] if others is None else [name for name in arrays if name not in (*kinds[kind], *others)]
    )
    if strange:
        raise InvalidFile(
            f"{path} has an array {strange[0]!r}, which this version of surefoot does not write "
            f"into a file of kind {kind}. Is it of a later version? Update surefoot, or restore a "
            "copy."
        )
    _require_digest(path, about, arrays)
    _require_json(path, arrays)
    return kind, arrays


@contextmanager
def opened(path: str | Path, expected: str) -> Iterator[IO[bytes]]:
    """Open a file for reading. Folders are refused, and so are pipes and devices, which may
    never end.
    """
    file = as_path(path)
    try:
        regular = stat.S_ISREG(file.stat().st_mode)
        stream = file.open("rb") if regular else None
    except FileNotFoundError:
        raise InvalidFile(
            f"{path} does not exist. Expected a surefoot file of {expected}."
        ) from None
    except (OSError, ValueError):
        stream = None
    if stream is None:
        raise _not_ours(path, expected)
    with stream:
        yield stream


def _not_ours(path: str | Path, expected: str) -> InvalidFile:
    return InvalidFile(
        f"{path} is not a surefoot file, or a damaged one. Expected {expected}, as written by save."
    )


class _Member(NamedTuple):
    """An array in a file, as its header describes it."""

    info: zipfile.ZipInfo
    dtype: np.dtype[Any]
    by_column: bool
    shape: tuple[int, ...]
    header: int  # bytes before the numbers

    @property
    def takes(self) -> int:
        """How many bytes the array takes once it is read."""
        return math.prod(self.shape) * max(ENTRY, self.dtype.itemsize)


def _content(path: str | Path, stream: IO[bytes]) -> dict[str, AnyArray]:
    """Return the arrays: all headers are read first, then, if all arrays fit, the numbers.
    ValueError: damaged.
    """
    _require_short_directory(stream)
    most = _limit()
    with zipfile.ZipFile(stream) as archive:
        infos = archive.infolist()
        names = [info.filename for info in infos]
        if len(set(names)) < len(names):
            raise ValueError("a name occurs twice")
        _require_memory(path, sum(info.file_size for info in infos), most)
        members = [_member(archive, info) for info in infos]
        _require_memory(path, sum(member.takes for member in members), most)
        return {
            member.info.filename.removesuffix(".npy"): _array(archive, member) for member in members
        }


def _require_short_directory(stream: IO[bytes]) -> None:
    """Refuse a directory that is too long before zipfile makes an object of each of its entries."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - 98))
    end = stream.read()
    if end[-22:-18] != b"PK\x05\x06" or end[-2:] != b"\0\0":
        raise ValueError("no zip file, or one with a comment")
    length = int.from_bytes(end[-10:-6], "little")
    if end[-42:-38] == b"PK\x06\x07":  # a large file has the length in a record of its own
        length = int.from_bytes(end[-58:-50], "little")
    if length > LARGEST_DIRECTORY:
        raise ValueError("a directory that is longer than any of ours")


def _limit() -> int:
    """Return how many bytes the arrays of a file may take."""
    given = os.environ.get(LIMIT)
    if given is None:
        return LARGEST
    if not (given.isascii() and given.isdigit() and len(given) <= 18):
        raise InvalidSetting(
            f"The environment's {LIMIT} is {given[:40]!r}, expected a number of bytes."
        )
    return int(given)


def _require_memory(path: str | Path, takes: int, most: int) -> None:
    """Refuse a file whose arrays would take more than `most` bytes."""
    if takes > most:
        raise InvalidFile(
            f"{path} says that its arrays take {takes / 2**30:.3g} GiB, expected at most "
            f"{most / 2**30:.3g} GiB. Nothing of it was read. If the file is yours and as large as "
            f"that, set {LIMIT}={takes} in the environment (bytes)."
        )


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    """Return what the header of an array says, if its size agrees with the directory."""
    if not re.fullmatch(r"[A-Za-z]\w{0,80}\.npy", info.filename, re.ASCII):
        raise ValueError("a file that is no array")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("a compression that numpy does not write")
    with archive.open(info) as stream:
        start = stream.read(len(MAGIC) + 2)
        length = int.from_bytes(start[len(MAGIC) :], "little")
        found = HEADER.fullmatch(stream.read(length))
    if start[: len(MAGIC)] != MAGIC or found is None:
        raise ValueError("no array of ours")
    kind, by_column, sizes = (part.decode() for part in found.groups())
    shape = tuple(int(size) for size in sizes.split(",") if size.strip())
    dtype = np.dtype(kind)
    member = _Member(info, dtype, by_column == "True", shape, len(start) + length)
    if member.header + math.prod(shape) * dtype.itemsize != info.file_size:
        raise ValueError("a size that is not what its header says")
    if dtype.kind == "U" and (
        math.prod(shape) != 1 or not 1 <= dtype.itemsize // 4 <= LARGEST_TEXT
    ):
        raise ValueError("a text that is not one, or too long")
    return member


def _array(archive: zipfile.ZipFile, member: _Member) -> AnyArray:
    """Return the numbers: as many as the header says, and never more."""
    with archive.open(member.info) as stream:
        stream.read(member.header)
        content = stream.read(member.info.file_size - member.header)
        if len(content) != member.info.file_size - member.header or stream.read(1):
            raise EOFError
    if member.dtype.kind == "b" and content.translate(None, b"\0\1"):
        raise ValueError("neither True nor False")
    array = (
        np.frombuffer(content, dtype=member.dtype) if content else np.empty(0, dtype=member.dtype)
    )
    array = array.reshape(member.shape, order="F" if member.by_column else "C")
    if member.dtype.kind == "U":  # invalid text is refused here: numpy would fail on it later
        content.decode("utf-32-be" if member.dtype.byteorder == ">" else "utf-32-le")
    return array


def _about(line: AnyArray | None) -> Any:
    """Return our own header, or None if it is not one."""
    try:
        return None if line is None else strict_json(str(line))
    except ValueError:
        return None


def _require_json(path: str | Path, arrays: Mapping[str, AnyArray]) -> None:
    """Refuse texts in braces that are not valid JSON: those are our records."""
    for name, array in arrays.items():
        text = str(array) if array.dtype.kind == "U" else ""
        try:
            if text.startswith("{"):
                strict_json(text)
        except ValueError as reason:
            raise InvalidFile(f"{path}: {name} is damaged ({reason}). Restore a copy.") from None


def strict_json(text: str) -> Any:
    """Return the content of a JSON text, or raise ValueError.

    Python alone would accept NaN and infinities, keys that occur twice, numbers of any length and
    lone surrogates.
    """
    try:
        found = json.loads(
            text,
            object_pairs_hook=_once,
            parse_constant=_no_number,
            parse_int=_whole,
            parse_float=_finite,
        )
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


def _whole(digits: str) -> int:
    if len(digits) > 301 or abs(int(digits)) > LARGEST_NUMBER:
        raise ValueError("a number is too large")
    return int(digits)


def _finite(digits: str) -> float:
    if not math.isfinite(float(digits)):
        raise ValueError("a number is too large")
    return float(digits)


def write_json(path: str | Path, kind: str, content: Mapping[str, Any]) -> None:
    """Write a plain record as JSON."""
    about = {
        "format": FORMAT,
        "kind": kind,
        "surefoot": __version__,
        "digest": digest(content),
    }
    text = json.dumps({"about": about, **content}, indent=2, ensure_ascii=False)
    if len(text.encode()) >= LARGEST_TEXT:
        raise InvalidFile(
            f"{path}: a {kind} of more than {LARGEST_TEXT:,} bytes could not be read again."
        )
    write_whole(path, methodcaller("write", f"{text}\n".encode()))


def read_json(path: str | Path, kind: str) -> dict[str, Any]:
    """Return what `write_json` wrote."""
    with opened(path, f"kind {kind}") as stream:
        content = stream.read(LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise InvalidFile(
            f"{path} has more than {LARGEST_TEXT:,} bytes, expected a surefoot file of kind {kind}."
        )
    try:
        given = strict_json(content.decode())
    except ValueError:
        raise _not_ours(path, f"kind {kind}") from None
    about = given.pop("about", None) if isinstance(given, dict) else None
    _kind_of(path, about, (kind,))
    _require_digest(path, about, given)
    return dict(given)


def _kind_of(path: str | Path, about: Any, kinds: tuple[str, ...]) -> str:
    """Return the kind that the header names, if this version reads it."""
    expected = " or ".join(kinds)
    kind, version = (
        about.get(word) if isinstance(about, dict) else None for word in ("kind", "format")
    )
    if not isinstance(kind, str) or not isinstance(version, int):
        raise InvalidFile(
            f"{path} has no surefoot header. Expected kind {expected}, as written by save."
        )
    if version != FORMAT:
        raise InvalidFile(
            f"{path} has format {str(version)[:20]}; this version of surefoot reads format "
            f"{FORMAT}. Update surefoot."
        )
    if kind not in kinds:
        raise InvalidFile(f"{path} holds {kind[:60]}, expected {expected}.")
    return kind


def _require_digest(path: str | Path, about: Any, content: Mapping[str, Any]) -> None:
    """Refuse a file whose content does not have the digest that its header says."""
    if about.get("digest") != digest(content):
        raise InvalidFile(
            f"{path}: its content is not what was written: the file is damaged. Restore it from a "
            "copy."
        )
