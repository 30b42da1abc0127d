"""What each episode of a log was paid in all."""

from collections.abc import Mapping

import numpy as np

from surefoot.base.arrays import Floats
from surefoot.base.validation import require_number
from surefoot.errors import InvalidLog
from surefoot.logs.cells import MEMORY, Paths
from surefoot.logs.checking import NO_AMOUNT, first_problem
from surefoot.logs.counting import glanced, rows_of
from surefoot.logs.reading import open_log


def log_returns(
    paths: Paths,
    *,
    columns: Mapping[str, str] | None = None,
    horizon: int | None = None,
    after_end: float = 0.0,
    memory: str = MEMORY,
    delimiter: str | None = None,
) -> Floats:
    """Return what each episode of a log was paid in all, in the log's units; in any order.

    The arguments are those of `count_log`: a longer episode is cut, and after an early end
    `after_end` is paid at each remaining step. `agent.with_logged_returns` makes them evidence of
    the baseline that wrote the log.
    """
    paid_after = require_number(
        "after_end", after_end, "the reward of each step after an early end"
    )
    with open_log(paths, columns, memory, None, delimiter) as log:
        _, glance = glanced(log, horizon, None, None)
        if log.row(f"SELECT coalesce(bool_or({NO_AMOUNT}), false) FROM log")[0]:
            raise InvalidLog(first_problem(log, horizon))
        found = log.ask(
            f"SELECT fsum(reward) AS paid, count(*) AS steps FROM {rows_of(glance)} GROUP BY id, "
            "episode"
        )
    return np.asarray(found["paid"] + paid_after * (glance.H - found["steps"]), dtype=np.float64)
