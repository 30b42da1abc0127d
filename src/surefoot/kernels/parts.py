"""Backward passes on all cores: the states of each step in parts, which do not depend on each
other.

Kernels run without the interpreter's lock, so threads of Python are enough. Every number is
computed as in one part.
"""

import os
from concurrent.futures import ThreadPoolExecutor

from surefoot.base.arrays import Floats
from surefoot.kernels.candidates import (
    TABLE,
    begin_range,
    bound_candidates,
    first_range,
    next_range,
    values_of_slots,
    widen_range,
)
from surefoot.kernels.evidence import Evidence, look_ahead
from surefoot.kernels.kl import Balls
from surefoot.kernels.mixing import Rule, candidate_values, lower_at_start
from surefoot.kernels.splices import Splices, bound_states, cache_aligned
from surefoot.kernels.start_and_returns import BaselineReturns, Start

LONG = 5_000  # states from which on a step takes longer than to start threads


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def bound_on_cores(
    evidence: Evidence,
    splices: Splices,
    start: Start,
    returns: BaselineReturns,
    rule: Rule,
    L: Floats,
) -> float:
    """`bound_candidates`, on all cores where a step takes longer than to start threads."""
    if splices.pi_b.shape[1] < LONG:
        return bound_candidates(evidence, splices, start, returns, rule, L)
    return bound_in_parts(evidence, splices, start, returns, rule, L, cores())


def bound_in_parts(
    evidence: Evidence,
    splices: Splices,
    start: Start,
    returns: BaselineReturns,
    rule: Rule,
    L: Floats,
    parts: int,
) -> float:
    """`bound_candidates` of all states, after anything may have changed, in so many parts.
    Return the floor.
    """
    H, S, A = splices.pi_b.shape
    own = [
        (_own(evidence), splices._replace(scratch=cache_aligned(*splices.scratch.shape)))
        for _ in range(parts)
    ]
    ends = [S * i // parts for i in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:

        def bound_step(h: int, slot: int) -> None:
            ahead = S if h < H - 1 else 0
            up, low = splices.V_up[h + 1, slot, :ahead], splices.V_low[h + 1, slot, :ahead]
            look_ahead(evidence, up, low, S * A, slot == 0)
            work = [
                pool.submit(bound_states, *mine, h, slot, ends[i], ends[i + 1])
                for i, mine in enumerate(own)
            ]
            for done in work:
                done.result()

        for h in reversed(range(H)):
            for slot, h0 in enumerate(splices.h0.tolist()):
                if slot == 0 or h0 >= h + 2:  # else its tail has begun: slot 0's table serves it
                    bound_step(h, slot)
        if len(splices.h0) == len(L):
            return candidate_values(splices, start, returns, rule, L)
        floor = values_of_slots(splices, start, returns, rule, L)
        lo, hi = first_range(L, floor)
        while hi > 0:
            begin_range(splices, hi)
            for h in reversed(range(hi)):
                bound_step(h, TABLE)
                widen_range(splices, h, lo)
            lo, hi = next_range(L, floor, H, lo, hi, lower_at_start(start, splices.V_low[0, TABLE]))
    return floor


def _own(evidence: Evidence) -> Evidence:
    """The same evidence with scratch arrays of its own; what `look_ahead` found is shared."""
    if isinstance(evidence, Balls):
        return evidence._replace(gathered=evidence.gathered.copy(), p_hat=evidence.p_hat.copy())
    return evidence  # the paper's bounds have none
