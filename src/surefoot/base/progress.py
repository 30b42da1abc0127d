"""How a long run is watched and stopped: Ctrl-C is handled between episodes, and a terminal
shows a progress bar.
"""

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Stop = Callable[[], bool]
Report = Callable[[int], None]


class _CtrlC:
    """A Ctrl-C that is handled between episodes."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        # did a loop ask whether to stop? Then something was played, which is returned
        self.looked = False

    def stop(self) -> bool:
        """Return whether to stop."""
        self.looked = True
        return self.asked.is_set()


# Signals belong to the process, and so does what is told once: the only state that is not passed
# on.
_in_force: list[_CtrlC] = []
_told = threading.Event()  # was it said that this process compiles?


@contextmanager
def ctrl_c() -> Iterator[Stop]:
    """Handle the first Ctrl-C between episodes; the second one interrupts as usual. Only the
    main thread handles it.
    """
    mine = _CtrlC()
    if threading.current_thread() is not threading.main_thread():
        yield mine.stop
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(_signal: int, _frame: object) -> None:
        mine.asked.set()
        signal.signal(signal.SIGINT, before)

    _in_force.append(mine)
    signal.signal(signal.SIGINT, handle)
    try:
        yield mine.stop
    finally:
        signal.signal(signal.SIGINT, before)
        _in_force.remove(mine)


@contextmanager
def ctrl_c_while_compiling() -> Iterator[None]:
    """End compiling at the next place that asks (`check_ctrl_c`), unless a run has begun, which
    ends as always.

    An exception that a signal raises inside the callbacks of LLVM would be lost.
    """
    if any(one.looked for one in _in_force):
        yield
        return
    with ctrl_c():
        yield
        check_ctrl_c()


def check_ctrl_c() -> None:
    """Raise KeyboardInterrupt if there was a Ctrl-C, and nothing was played that would be lost."""
    if any(one.asked.is_set() for one in _in_force) and not any(one.looked for one in _in_force):
        raise KeyboardInterrupt("Interrupted while compiling.")


def say_compiling() -> None:
    """Say once that this process compiles, where no terminal shows a progress bar that says so.

    It is a line of the log "surefoot", which Python prints on standard error unless logging is
    configured otherwise.
    """
    if not _told.is_set() and not (sys.stderr is not None and sys.stderr.isatty()):
        logging.getLogger("surefoot").warning(
            "surefoot is compiling; the first time that takes up to a minute."
        )
        _told.set()


@contextmanager
def progress_bar(
    name: str, total: int, wanted: bool | None, what: str = "episodes"
) -> Iterator[Report]:
    """Show a progress bar on a terminal, and nothing elsewhere."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} " + what + ", left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{name} (compiling, the first time)", total=total)

        def report(done: int) -> None:
            bar.update(task, completed=done, description=name if done else None)

        yield report
