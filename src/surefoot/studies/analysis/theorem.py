"""What the paper's theorems allow, in numbers: regret, and episodes that are not optimistic, with
every constant.

The constants are those of the proofs. e^13 and e^26 come from unrolling a recursion H times. With
them the bounds are far above K H, which no regret can exceed, for every K that can be run.
"""

import math
from typing import NamedTuple


class Setting(NamedTuple):
    """What the theorems speak of. Values are on the paper's scale: rewards of a step lie in
    0..1.
    """

    H: int
    S: int
    A: int
    K: int  # episodes
    kappa: float  # V^b - floor
    Delta_0: float  # V* - V^b
    delta_prime: float  # delta / (3(H+1)) for StepMix, delta / 4 for EpsMix


def delta_parts(agent: str, H: int) -> int:
    """Return into how many parts delta' divides delta (Theorem step: 3(H+1); Theorem episodic:
    4).
    """
    return 3 * (H + 1) if agent == "stepmix" else 4


def beta(it: Setting) -> float:
    """Return beta(K) = log(SAH/delta') + S log(8e(K+1)), as the theorems have it."""
    return math.log(it.S * it.A * it.H / it.delta_prime) + it.S * math.log(8 * math.e * (it.K + 1))


def beta_star(it: Setting) -> float:
    """Return beta*(K) = log(SAH/delta') + log(8e(K+1)), as the theorems have it."""
    return math.log(it.S * it.A * it.H / it.delta_prime) + math.log(8 * math.e * (it.K + 1))


def most_not_optimistic(it: Setting) -> float:
    """Return what Lemma finite allows for |N|, the episodes in which something else than pi_bar is
    played.

    (4608 e^26 beta* log(K+1) / kappa^2 + 2688 e^13 beta log(K+1) / kappa) H^3 S A: what follows
    from the line before the lemma's last, |N| kappa <= 48 e^13 sqrt(|N| H^3 S A beta* log) + 1344
    e^13 H^3 S A beta log. The lemma itself writes log^2(K+1), and S log^2(K+1), which leaves out
    log(SAH/delta').
    """
    log = math.log(it.K + 1)
    by_square = 4608 * math.e**26 * beta_star(it) * log / it.kappa**2
    by_kappa = 2688 * math.e**13 * beta(it) * log / it.kappa
    return (by_square + by_kappa) * it.H**3 * it.S * it.A


def growth_of_squared_logarithm(k: int, K: int) -> float:
    """Return by what part log^2(K+1), to which Lemma finite bounds |N|, grows from k to K."""
    ratio = math.log(K + 1) / math.log(k + 1)
    return ratio * ratio - 1.0


def optimistic_regret_bound(it: Setting) -> float:
    """Return what the corollary for floor 0 allows: the theorems' bound without their last term.

    48 e^13 sqrt(H^3 S A K beta* log(K+1)) + 1344 e^13 H^3 S A beta log(K+1).
    """
    log, HHHSA = math.log(it.K + 1), it.H**3 * it.S * it.A
    return (
        48 * math.e**13 * math.sqrt(HHHSA * it.K * beta_star(it) * log)
        + 1344 * math.e**13 * HHHSA * beta(it) * log
    )


def regret_bound(it: Setting) -> float:
    """Return what Theorems step (StepMix) and episodic (EpsMix) allow: the corollary's bound
    plus |N| Delta_0.
    """
    return optimistic_regret_bound(it) + most_not_optimistic(it) * it.Delta_0


def leading_order(it: Setting) -> float:
    """Return sqrt(H^3 S A K), the leading term of Table 1 for StepMix and EpsMix, without
    constants and logarithms.
    """
    return math.sqrt(it.H**3 * it.S * it.A * it.K)


# Table 1: the regret that is stated for each algorithm, without constants and logarithms, and whose
# floor it keeps.
EPISODIC, CUMULATIVE, NONE = "every episode", "the sum", "none"


class Stated(NamedTuple):
    """A row of Table 1."""

    constraint: str
    order: str


_OURS = Stated(EPISODIC, "sqrt(H^3 S A K) + H^3 S A Delta_0 / kappa^2")
TABLE_1 = {
    "bpi-ucbvi": Stated(NONE, "sqrt(H^3 S A K)"),
    "optpess-lp": Stated(EPISODIC, "sqrt(H^6 S^3 A K) / kappa"),
    "dope": Stated(EPISODIC, "sqrt(H^6 S^2 A K) / kappa"),
    "budget-exploration": Stated(
        CUMULATIVE, "sqrt(H^3 S A K) + H^3 S A Delta_0 / (kappa (kappa + Delta_0))"
    ),
    "stepmix": _OURS,
    "epsmix": _OURS,
}


def stated_order(agent: str, it: Setting) -> float:
    """Return the order of Table 1 as a number: the formula of `TABLE_1`, without constants and
    logarithms.
    """
    H, S, A, K, kappa, Delta_0, _ = it
    leading, added = leading_order(it), H**3 * S * A * Delta_0
    return {
        "bpi-ucbvi": leading,
        "optpess-lp": math.sqrt(H**6 * S**3 * A * K) / kappa,
        "dope": math.sqrt(H**6 * S**2 * A * K) / kappa,
        "budget-exploration": leading + added / (kappa * (kappa + Delta_0)),
        "stepmix": leading + added / kappa**2,
        "epsmix": leading + added / kappa**2,
    }[agent]
