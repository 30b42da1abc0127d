"""The three exits shared by StepMix, EpsMix and StepNoMix, and the rule of one mixed step."""

from surefoot.arrays import Floats
from surefoot.kernels.jit import compiled

BASELINE, MIXTURE, OPTIMISTIC = 0, 1, 2
ROUNDING = 2.0**-53
NEARLY_EQUAL = 2.0**-40


@compiled
def weight(safe: float, bold: float, floor: float) -> float:
    """rho = (safe - floor) / (safe - bold), shrunk so that (1-rho) safe + rho bold >= floor holds exactly, not nearly.

    Float rho alone puts the exact mixture below the floor in a third to a half of all cases. Neighbours that are hardly
    apart are not worth a division: then the safe one.
    """
    apart = safe - bold
    if not apart > NEARLY_EQUAL:
        return 0.0
    rho = (safe - floor) / apart
    rho -= 8.0 * ROUNDING * rho + 2.0 * ROUNDING * floor / apart
    return min(max(rho, 0.0), 1.0)


@compiled
def choose(L: Floats, floor: float, mixes: bool) -> tuple[int, float, bool]:
    """Which candidate to play, the weight rho of its less conservative neighbour, and whether the floor is reached.

    L holds the candidates' lower values, boldest first. The first one at or above the floor is taken; its bolder
    neighbour is below, and rho = (L[c] - floor) / (L[c] - L[c-1]) puts the mixture of the two AT the floor
    (Eq. stepmix1; for two candidates it is EpsMix's). Nothing certified: the last candidate, which is pi_b.
    """
    for c in range(L.shape[0]):
        if L[c] >= floor:
            if c == 0:
                return 0, 1.0, True
            return c, weight(L[c], L[c - 1], floor) if mixes else 0.0, True
    return L.shape[0] - 1, 0.0, False


@compiled
def exit_taken(h: int, rho: float, H: int) -> int:
    """0 baseline, 1 mixture, 2 optimistic. With h = H and rho = 0 it is pi_b that is played, certified or not."""
    if h == 0:
        return OPTIMISTIC
    return BASELINE if h == H and rho == 0.0 else MIXTURE


@compiled
def mix_splices(pi_b: Floats, pi_bar: Floats, h: int, rho: float, out: Floats) -> None:
    """The step mixture (1-rho) pi^h + rho pi^{h-1} (Eq. stepmix2): pi_b, one mixed row h-1, then pi_bar.

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
