"""One backward pass on all cores: the states of each step in parts, which do not depend on each other.

Kernels run without the interpreter's lock, so threads of Python are enough. Every number is computed as in one part.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from surefoot.numerics.kernels.evidence import Evidence, look_ahead
from surefoot.numerics.kernels.sparse import SparseBalls
from surefoot.numerics.kernels.splices import Splices, bound_splices, bound_states, cache_aligned

LONG = 5_000  # states from which on a step takes longer than to start threads


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def bound_all(evidence: Evidence, splices: Splices, parts: int) -> None:
    """`bound_splices` of all states, after anything may have changed, in so many parts."""
    H, S, _ = splices.pi_b.shape
    if parts < 2:
        bound_splices(evidence, splices, np.zeros(0, dtype=np.int64), 0, S)
        return
    own = [(_own(evidence), splices._replace(scratch=cache_aligned(*splices.scratch.shape))) for _ in range(parts)]
    ends = [S * i // parts for i in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:
        for h in reversed(range(H)):
            ahead = S if h < H - 1 else 0
            for slot, h0 in enumerate(splices.h0.tolist()):
                if slot > 0 and h0 < h + 2:
                    continue  # its tail has begun: slot 0's table serves it
                look_ahead(evidence, splices.V_up[h + 1, slot, :ahead], splices.V_low[h + 1, slot, :ahead])
                work = [pool.submit(bound_states, *mine, h, slot, ends[i], ends[i + 1]) for i, mine in enumerate(own)]
                for done in work:
                    done.result()


def _own(evidence: Evidence) -> Evidence:
    """The same evidence with scratch arrays of its own; what `look_ahead` found is shared."""
    if isinstance(evidence, SparseBalls):
        return evidence._replace(gathered=evidence.gathered.copy(), p_hat=evidence.p_hat.copy())
    return evidence  # of the paper's bounds: it has none. (Tables have fewer states than it takes to come here.)
