"""How often a piece of work is repeated: for as long as its time allows, and not less often than
its number needs.
"""

import time
from collections.abc import Callable, Iterator

MOST = 1_000_000


def rounds(seconds: float, least: int, most: int = MOST) -> Iterator[int]:
    """Count rounds from 0: `least` of them in any case, then until so many seconds have passed,
    at most `most`.
    """
    started = time.perf_counter()
    for done in range(most):
        if done >= least and time.perf_counter() - started >= seconds:
            return
        yield done


def best_of(
    work: Callable[[], object], seconds: float = 0.0, least: int = 1, most: int = MOST
) -> float:
    """Seconds of the quickest of several rounds of this work."""
    best = float("inf")
    for _ in rounds(seconds, least, most):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best
