"""How a long run is watched and stopped: Ctrl-C heard between episodes, a bar on a terminal."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Stop = Callable[[], bool]
Report = Callable[[int], None]


@contextmanager
def ctrl_c() -> Iterator[Stop]:
    """The first Ctrl-C is a wish, heard between episodes; the second is Python's own. Only the main thread hears it."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = signal.getsignal(signal.SIGINT)

    def hear(_signal: int, _frame: object) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, hear)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress_bar(name: str, episodes: int, wanted: bool | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, silence elsewhere."""
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
