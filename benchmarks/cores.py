"""How many cores a measurement has. All other items are pinned to one (run.py)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def on_cores(cores: int) -> Iterator[None]:
    """Let this process, and all it starts, have so many cores; where that cannot be chosen, it
    has all.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(cores))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
