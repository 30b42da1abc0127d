"""Worlds drawn at random: dense ones as in the paper, and sparse ones where a wrong guess costs
more.
"""

import numpy as np

from surefoot.base.validation import require_bool, require_integer, require_number
from surefoot.errors import InvalidModel
from surefoot.worlds.exact import with_soft_optimum
from surefoot.worlds.tabular_mdp import TabularMDP, random_mdp


def random(
    S: int = 5, A: int = 5, H: int = 3, seed: int = 1, eta: float = 10.0, stationary: bool = False
) -> TabularMDP:
    """The paper's synthetic world: rewards uniform on [0, 1], transitions uniform on the simplex.

        every state ──every action──> every state

    Easy: rewards are known and every row reaches every state, so mistakes heal in one step.
    Baseline: Boltzmann on Q* with eta. Suggested floor: nine tenths of the baseline's value.
    """
    drawn = random_mdp(S, A, H, seed, require_bool("stationary", stationary))
    return with_soft_optimum(
        "random", drawn.P_rows[0] if stationary else drawn.P, drawn.r_rescaled, H, eta
    )


def random_sparse(
    S: int = 10,
    A: int = 3,
    H: int = 5,
    seed: int = 0,
    branch: int = 2,
    share: float = 0.2,
    eta: float = 10.0,
) -> TabularMDP:
    """A random world with few successors and few rewards.

        state ──action──> `branch` of the S states;   reward only at a `share` of the pairs

    Each (h, s, a): `branch` successors drawn without replacement, Dirichlet(1) weights; reward
    uniform on [0, 1] at each pair with probability `share`, else 0. Baseline: Boltzmann on Q* with
    eta; floor: nine tenths of its value.
    """
    for name, size in (("S", S), ("A", A), ("H", H), ("branch", branch)):
        require_integer(name, size, 1, InvalidModel)
    if branch > S:
        raise InvalidModel(f"branch is {branch}, expected at most S = {S} successors.")
    if (
        not 0.0
        <= require_number("share", share, "a share of the pairs in [0, 1]", InvalidModel)
        <= 1.0
    ):
        raise InvalidModel(f"share is {share}, expected a share of the pairs in [0, 1].")
    rng = np.random.default_rng(require_integer("seed", seed, 0, InvalidModel))
    P = np.zeros((H, S, A, S))
    for place in np.ndindex(H, S, A):
        P[place][rng.choice(S, size=branch, replace=False)] = rng.dirichlet(np.ones(branch))
    r = rng.random((H, S, A)) * (rng.random((H, S, A)) < share)
    return with_soft_optimum("random-sparse", P, r, H, eta)
