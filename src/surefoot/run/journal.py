"""Journal: each draw of a guarded run on disk before its episode begins, and how the episode ended.

The file of a run is written whole now and then; its journal tells what happened since. A process
that is killed in an episode leaves the line of its draw, and no other: when the run is resumed,
that ticket is drawn again, and stays open.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from surefoot.base.files import strict_json, sync_folder, system_errors_told
from surefoot.errors import InvalidFile

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

FORMAT = 1


@contextmanager
def only_writer(path: Path | None) -> Iterator[None]:
    """Hold the file of a run for this process; None: there is none.

    Two processes that go on with one run would play its tickets twice, and which returns count
    would depend on who writes last. The system gives up the lock of a process that is killed. Where
    there are no locks, nothing is held.
    """
    if path is None:
        yield
        return
    beside = path.with_name(f"{path.name}.lock")
    with system_errors_told(path):
        opened = beside.open("ab")
    with opened as stream:
        if not _locked(stream, beside):
            raise InvalidFile(
                f"{path} is being written by another process. One process at a time goes on with a "
                "run: wait for it."
            )
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no file that is open
                beside.unlink()


def _locked(stream: IO[bytes], path: Path) -> bool:
    """Lock this file; False: another process has it, or has just removed it."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    with suppress(FileNotFoundError):
        return path.stat().st_ino == os.fstat(stream.fileno()).st_ino
    return False


class Outcome(NamedTuple):
    """How an episode ended: with a return, with an error of its policy, or nobody knows how."""

    ret: float | None = None
    failure: str = ""


class Told(NamedTuple):
    """What a journal tells of an episode."""

    policy: str
    outcome: Outcome


class Journal:
    """A file of lines that are only ever added, until the run is saved whole."""

    def __init__(self, path: Path, run: str) -> None:
        """Write to this file for the run with this fingerprint."""
        self.path, self.run = path, run
        self._stream: IO[bytes] | None = None

    def read(self) -> dict[int, Told]:
        """Return what is told, by the number of the episode. A last line that was cut off is
        removed.
        """
        if not self.path.exists():
            return {}
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            os.truncate(self.path, len(whole))
        try:
            lines = [strict_json(line.decode()) for line in whole.splitlines()]
            told = _told(lines[1:])
        except (ValueError, KeyError, TypeError) as reason:
            raise InvalidFile(
                f"{self.path}: its content is impossible ({reason!r}). Restore a copy."
            ) from None
        if lines and lines[0] != self._head:
            raise InvalidFile(
                f"{self.path} is the journal of another run, or of another version. Restore a copy."
            )
        return told

    @property
    def _head(self) -> list[Any]:
        return ["journal of a guarded run", FORMAT, self.run]

    def drawn(self, k: int, policy: str) -> None:
        """Write that episode k was drawn, and for whom. It is on disk when this returns."""
        stream = self._opened()
        self._add(["drawn", k, policy])
        os.fsync(stream.fileno())

    def ended(self, k: int, outcome: Outcome) -> None:
        """Write how episode k ended. The next draw writes it to disk, too."""
        if outcome.ret is not None:
            self._add(["paid", k, outcome.ret.hex()])
        elif outcome.failure:
            self._add(["failed", k, outcome.failure])

    def remove(self) -> None:
        """Remove the file: the run was saved whole."""
        if self._stream is not None:
            self._stream.close()
        self._stream = None
        self.path.unlink(missing_ok=True)

    def _opened(self) -> IO[bytes]:
        if self._stream is None:
            self._stream = self.path.open("ab")
            if self._stream.tell() == 0:
                self._add(self._head)
                sync_folder(self.path.absolute().parent)
        return self._stream

    def _add(self, line: list[Any]) -> None:
        stream = self._opened()
        stream.write(json.dumps(line).encode() + b"\n")
        stream.flush()


def _told(lines: list[Any]) -> dict[int, Told]:
    """Return what these lines tell, by the number of the episode."""
    found: dict[int, Told] = {}
    for kind, k, text in lines:
        if type(k) is not int or type(text) is not str or kind not in ("drawn", "paid", "failed"):
            raise ValueError("a line of another kind")
        if kind == "drawn":
            found[k] = Told(text, Outcome())
        else:
            outcome = Outcome(float.fromhex(text)) if kind == "paid" else Outcome(None, text)
            found[k] = found[k]._replace(outcome=outcome)
    return found
