"""The three exits shared by StepMix, EpsMix and StepNoMix, and the rule of one mixed step."""

from typing import NamedTuple

from surefoot.base.arrays import Floats
from surefoot.kernels.jit import compiled
from surefoot.kernels.splices import Splices
from surefoot.kernels.start_and_returns import BaselineReturns, Start, returns_bounds, start_bound

BASELINE, MIXTURE, OPTIMISTIC = 0, 1, 2
ROUNDING = 2.0**-53
NEARLY_EQUAL = 2.0**-40


class Rule(NamedTuple):
    """How a plan follows from the candidates' lower values."""

    floor: float  # -inf: everything is certified, and the optimistic policy is played
    mixes: bool  # False: the first certified candidate is played as it is
    by_coin: bool  # the neighbours are mixed by a coin for the whole episode, not at one step
    # of a relative floor: which share of the baseline's value may be lost; negative: none
    max_loss: float = -1.0
    # the user's zero, in units of return: shares are of values in the user's units
    offset: float = 0.0
    amount: float = 0.0  # of a relative floor: how much may be lost beside that share


@compiled
def weight(above: float, below: float, floor: float) -> float:
    """rho = (above - floor) / (above - below), reduced so that (1-rho) above + rho below >= floor
    holds exactly.

    Without that, the rounding of rho puts the exact mixture below the floor in a third to a half of
    all cases. Where the neighbours are nearly equal, the weight is 0: the one above the floor is
    played.
    """
    apart = above - below
    if not apart > NEARLY_EQUAL:
        return 0.0
    rho = (above - floor) / apart
    rho -= 8.0 * ROUNDING * rho + 2.0 * ROUNDING * floor / apart
    return min(max(rho, 0.0), 1.0)


@compiled
def choose(L: Floats, floor: float, mixes: bool) -> tuple[int, float, bool]:
    """Which candidate to play, the weight rho of its less conservative neighbour, and whether the
    floor is reached.

    L holds the candidates' lower values, the least conservative first. The first one at or above
    the floor is taken; its less conservative neighbour is below, and rho = (L[c] - floor) / (L[c] -
    L[c-1]) puts the mixture of the two AT the floor (Eq. stepmix1; for two candidates it is
    EpsMix's). If none is certified: the last one, pi_b.
    """
    for c in range(L.shape[0]):
        if L[c] >= floor:
            if c == 0:
                return 0, 1.0, True
            return c, weight(L[c], L[c - 1], floor) if mixes else 0.0, True
    return L.shape[0] - 1, 0.0, False


@compiled
def lower_at_start(start: Start, V_low: Floats) -> float:
    """What a policy is worth at least, by its lower values at the first step."""
    low = start_bound(start, V_low, 1.0)
    return max(low - start.final, 0.0) if start.final > 0.0 else low


@compiled
def candidate_values(
    splices: Splices, start: Start, returns: BaselineReturns, rule: Rule, L: Floats
) -> float:
    """Write the candidates' lower values into L, and return the floor they are compared with.

    The last candidate is pi_b: its own returns, or an earlier certificate, may bound it better than
    the model does. A floor of (1-a) of what pi_b is worth, U at most, is met by any policy worth
    (1-a) U, and by a mixture of pi_b with something worth at least x if its weight is at most a U /
    (U - x): that is `choose` with U in pi_b's place. (In V^b, a V^b / (V^b - x) decreases, so V^b
    <= U makes it larger.) So is a floor of an amount y below pi_b, with y / (U - x), which
    decreases in V^b, too.
    """
    b = L.shape[0] - 1
    for c in range(b + 1):
        L[c] = lower_at_start(start, splices.V_low[0, c])
    if splices.h0[b] == 0:
        return rule.floor  # no candidate is the baseline
    by_returns, up = returns_bounds(returns)
    L[b] = max(L[b], by_returns, returns.before)
    if rule.max_loss < 0.0:
        return rule.floor
    U = min(-start_bound(start, splices.V_up[0, b], -1.0) + start.final, up)
    L[b] = U
    floor = (1.0 - rule.max_loss) * U - rule.max_loss * rule.offset - rule.amount
    return max(floor + 4.0 * ROUNDING * U, 0.0)


@compiled
def exit_taken(h: int, rho: float, H: int) -> int:
    """Which exit a plan takes: 0 baseline, 1 mixture, 2 optimistic. With h = H and rho = 0 pi_b is
    played, certified or not.
    """
    if h == 0:
        return OPTIMISTIC
    return BASELINE if h == H and rho == 0.0 else MIXTURE


@compiled
def mix_splices(pi_b: Floats, pi_bar: Floats, h: int, rho: float, out: Floats) -> None:
    """Write the step mixture (1-rho) pi^h + rho pi^{h-1} (Eq. stepmix2): pi_b, one mixed row h-1,
    then pi_bar.

    Equal entries of the mixed row are copied: rounding must not move them.
    """
    H, S, A = pi_b.shape
    for row in range(H):
        for s in range(S):
            for a in range(A):
                x, y = pi_b[row, s, a], pi_bar[row, s, a]
                if row >= h:
                    out[row, s, a] = y
                elif row < h - 1 or x == y:
                    out[row, s, a] = x
                else:
                    out[row, s, a] = (1.0 - rho) * x + rho * y
