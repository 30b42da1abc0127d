"""How a long run is watched and stopped: Ctrl-C is handled between episodes, and a terminal shows a progress bar."""

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Stop = Callable[[], bool]
Report = Callable[[int], None]

_waiting: list[threading.Event] = []  # one for each `ctrl_c` in force
_told = threading.Event()  # was it said that this process compiles?


@contextmanager
def ctrl_c() -> Iterator[Stop]:
    """Handle the first Ctrl-C between episodes; the second one interrupts as usual. Only the main thread handles it."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(_signal: int, _frame: object) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    _waiting.append(asked)
    signal.signal(signal.SIGINT, handle)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
        _waiting.remove(asked)


def check_ctrl_c() -> None:
    """Raise KeyboardInterrupt if a Ctrl-C is waiting: compiling takes seconds, and asks here from time to time."""
    if any(asked.is_set() for asked in _waiting):
        raise KeyboardInterrupt("Interrupted while compiling.")


def say_compiling() -> None:
    """Say once that this process compiles. A terminal shows a progress bar that says so; elsewhere it is a line of the
    log "surefoot", which Python prints on standard error unless logging is configured otherwise."""
    if not _told.is_set() and not (sys.stderr is not None and sys.stderr.isatty()):
        logging.getLogger("surefoot").warning("surefoot is compiling; that takes some seconds, the first time.")
    _told.set()


@contextmanager
def progress_bar(name: str, episodes: int, wanted: bool | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, and nothing elsewhere."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} episodes, left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{name} (compiling, the first time)", total=episodes)

        def report(done: int) -> None:
            bar.update(task, completed=done, description=name if done else None)

        yield report
