"""Where the kernel's scratch array happens to lie, which can move the time of a pass by half.

numpy aligns to 16 bytes. With scratch at 16 modulo 32 a pass was measured 1.3 to 1.6 times slower
in the two larger worlds (vectors that straddle cache lines would explain it; that was not
examined). If the library leaves the place to chance, a comparison must put both sides in the same
one, and an absolute time should be the unlucky one.
"""

import numpy as np

from surefoot import kernels
from surefoot.agents import SpliceAgent
from surefoot.kernels.splices import Splices

VECTOR = 32  # bytes
TRIES = 64


def splices_of(agent: SpliceAgent, aligned: bool) -> Splices:
    """The library's own allocation, tried until scratch lies as wanted. If it never does (because
    the library has come to align it), whatever it gives: then there is only one layout to measure.
    """
    kept = []  # alive until one fits, so that the next try lies elsewhere
    for attempt in range(TRIES):
        splices = kernels.empty_splices(agent.h0, agent.pi_b)
        if is_aligned(splices) == aligned:
            break
        kept.append((splices, np.empty(16 * (attempt + 1), dtype=np.uint8)))
    return splices


def is_aligned(splices: Splices) -> bool:
    return splices.scratch.ctypes.data % VECTOR == 0
