"""Policies are arrays: pi[h, s, a], the probability of action a in state s at step h, shape (H, S,
A).

`EpisodicMixture` is the one exception: no Markov policy behaves like a coin tossed once per
episode.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import Floats, Ints
from surefoot.base.files import read_arrays, write_arrays
from surefoot.base.validation import (
    LARGEST_NUMBER,
    NEARLY,
    FrozenRecord,
    as_floats,
    freeze,
    read_only,
    require_distributions,
    require_finite,
    require_integer,
    require_number,
    require_size,
)
from surefoot.errors import InvalidFile, InvalidPolicy, InvalidSetting
from surefoot.model.problem import Problem
from surefoot.model.steps import added_steps

ROUNDED = (
    " These nearly are: were they computed in float32? Cast to float64 and divide each row by its "
    "sum, which is what sf.normalise(policy) does."
)


def check_policy(policy: ArrayLike, problem: Problem | None = None, name: str = "policy") -> Floats:
    """Return the policy as a read-only float64 array (H, S, A), or raise InvalidPolicy with the
    offending index.
    """
    pi = as_floats(name, policy, InvalidPolicy)
    if problem is not None and pi.shape != (problem.H, problem.S, problem.A):
        hint = ""
        if pi.shape == (problem.S, problem.A):
            hint = (
                " For a rule that is the same at every step use np.broadcast_to(rule, (H, S, A))."
            )
        added = (problem.absorbing_state is not None) + added_steps(problem)
        if added and pi.ndim in (2, 3) and pi.shape[-2:] == (problem.S - added, problem.A):
            which = (
                "the absorbing state" if added == 1 else "the absorbing state and the common start"
            )
            hint = (
                f" It fits the process's own states, without {which}: use "
                "sf.embed_policy(problem, rule)."
            )
        if pi.shape == (problem.H, problem.S):
            hint = " For actions (H, S) use np.eye(A)[actions]."
        expected = f"(H, S, A) = ({problem.H}, {problem.S}, {problem.A})"
        raise InvalidPolicy(
            f"{name} has shape {pi.shape}, expected {expected}: probabilities of actions.{hint}"
        )
    if pi.ndim != 3 or 0 in pi.shape:
        raise InvalidPolicy(
            f"{name} has shape {pi.shape}, expected (H, S, A) with at least one step, state and "
            "action."
        )
    require_distributions(name, pi, "distributions over actions", InvalidPolicy, hint=ROUNDED)
    return read_only(pi)


def normalise(policy: ArrayLike) -> Floats:
    """Return probabilities as float64 with every row (the last axis, over actions) divided by its
    sum.

    It is for rows that were distributions before they were rounded, such as a softmax in float32. A
    row whose sum differs from 1 by more than 0.001, or that has an entry below 0, was none, and is
    refused.
    """
    rows = as_floats("policy", policy, InvalidPolicy)
    if rows.ndim == 0 or 0 in rows.shape:
        raise InvalidPolicy(
            f"policy has shape {rows.shape}, expected rows of probabilities, such as (H, S, A)."
        )
    require_distributions(
        "policy", rows, "nearly distributions over actions", InvalidPolicy, NEARLY
    )
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


def uniform(H: int, S: int, A: int) -> Floats:
    """Return the policy that always takes every action with the same probability."""
    for size_name, size in (("H", H), ("S", S), ("A", A)):
        require_integer(size_name, size, 1, InvalidPolicy)
    require_size("The policy", (H, S, A), InvalidPolicy)
    return np.full((H, S, A), 1.0 / A)


def greedy(Q: ArrayLike) -> Floats:
    """Return the policy that takes the action with the largest Q[h, s, a]; the first index wins
    ties.
    """
    q = _values(Q)
    return one_hot(q.argmax(axis=2), q.shape[2])


def one_hot(actions: Ints, A: int) -> Floats:
    """Return the policy that takes these actions (H, S), as probabilities (H, S, A), without a
    table of A x A.
    """
    policy = np.zeros((*actions.shape, A))
    np.put_along_axis(policy, actions[..., None], 1.0, axis=-1)
    return policy


def boltzmann(Q: ArrayLike, eta: float) -> Floats:
    """Return pi(a|s) proportional to exp(eta Q[h, s, a]): uniform at eta = 0, greedy as eta
    grows.
    """
    meaning = "a finite number >= 0 (0 is uniform, 10 close to greedy)"
    sharpness = require_number("eta", eta, meaning)
    if not 0 <= sharpness < np.inf:
        raise InvalidSetting(f"eta is {eta}, expected {meaning}.")
    q = _values(Q)
    weights = np.exp(sharpness * (q - q.max(axis=2, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=2, keepdims=True))


def splice(pi_b: ArrayLike, pi_bar: ArrayLike, h0: int) -> Floats:
    """Return pi^{h0}: pi_b for the first h0 steps, then pi_bar (h0 = 0 is pi_bar, h0 = H is
    pi_b).
    """
    first, second = _pair(pi_b, pi_bar)
    H = first.shape[0]
    if not 0 <= require_integer("h0", h0, 0, InvalidSetting) <= H:
        raise InvalidSetting(f"h0 is {h0}, expected a step in 0..{H}.")
    return np.concatenate([first[:h0], second[h0:]])


def step_mixture(first: ArrayLike, second: ArrayLike, rho: float) -> Floats:
    """Return (1-rho) first + rho second at every step: a Markov policy (paper, definition of step
    mixture).

    Where the two agree the entry is copied, so rounding cannot move it. The value is linear in rho
    when they differ at ONE step; it is not when they differ at two.
    """
    x, y = _pair(first, second)
    weight = _weight(rho)
    return np.where(x == y, x, (1.0 - weight) * x + weight * y)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class EpisodicMixture(FrozenRecord):
    """A coin tossed once, at the START of an episode: `second` with probability rho, else `first`,
    to its end.

    Its value is the coin-averaged (1-rho) V^first + rho V^second. A promise about the mixture is a
    promise about that average; the policy that the coin selects may be worth less on its own.
    """

    first: Floats
    second: Floats
    rho: float

    def __init__(self, first: ArrayLike, second: ArrayLike, rho: float) -> None:
        """Mix both policies (H, S, A) with the weight rho of the second."""
        x, y = _pair(first, second)
        freeze(self, first=x.copy(), second=y.copy(), rho=_weight(rho))

    def draw(self, rng: np.random.Generator) -> Floats:
        """Return the policy for one episode. A coin with one side (rho 0 or 1) is not tossed: no
        number is drawn.
        """
        if self.rho == 0.0:
            return self.first
        if self.rho == 1.0:
            return self.second
        return self.second if rng.random() < self.rho else self.first

    def __getitem__(self, place: object) -> Floats:
        raise InvalidPolicy(
            "An EpisodicMixture is a coin, not an array. Toss it first: policy = plan.draw(rng, "
            "episode=k).policy."
        )

    def __repr__(self) -> str:
        return f"EpisodicMixture(rho={self.rho:g}, shape={self.first.shape})"


def draw(weights: Floats, rng: np.random.Generator) -> int:
    """Draw an index with these probabilities. If rounding leaves their sum below u: the last
    index with any weight.
    """
    i = int(np.searchsorted(np.cumsum(weights), rng.random(), side="right"))
    return i if i < len(weights) else int(np.flatnonzero(weights)[-1])


def save_policy(path: str | Path, policy: ArrayLike | EpisodicMixture) -> None:
    """Write a policy as .npz: plain arrays and a line of JSON, nothing that runs when it is
    read.
    """
    if isinstance(policy, EpisodicMixture):
        arrays = {"first": policy.first, "second": policy.second, "rho": np.float64(policy.rho)}
        write_arrays(path, "episodic-mixture", arrays)
    else:
        write_arrays(path, "policy", {"policy": check_policy(policy)})


def load_policy(path: str | Path) -> Floats | EpisodicMixture:
    """Read what `save_policy` wrote; validated like any other input."""
    kind, arrays = read_arrays(
        path, {"policy": ("policy",), "episodic-mixture": ("first", "second", "rho")}
    )
    if kind == "policy":
        return check_policy(arrays["policy"], name=f"policy in {path}")
    if arrays["rho"].ndim != 0 or arrays["rho"].dtype.kind != "f":
        raise InvalidFile(
            f"{path}: rho is not one number, but {arrays['rho'].dtype} {arrays['rho'].shape}."
        )
    return EpisodicMixture(arrays["first"], arrays["second"], float(arrays["rho"]))


def _values(Q: ArrayLike) -> Floats:
    q = as_floats("Q", Q, InvalidPolicy)
    if q.ndim != 3 or 0 in q.shape:
        raise InvalidPolicy(f"Q has shape {q.shape}, expected (H, S, A). `solve(world).Q` has it.")
    require_finite("Q", q, InvalidPolicy)
    if np.abs(q).max() > LARGEST_NUMBER:
        raise InvalidPolicy(
            f"Q has entries as large as {np.abs(q).max():g}: no values of episodes, expected at "
            "most 1e100."
        )
    return q


def _pair(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    x, y = check_policy(first, name="first policy"), check_policy(second, name="second policy")
    if x.shape != y.shape:
        raise InvalidPolicy(
            f"The policies have shapes {x.shape} and {y.shape}, expected the same (H, S, A)."
        )
    return x, y


def _weight(rho: float) -> float:
    meaning = "a weight in [0, 1]: the share of the second policy"
    weight = require_number("rho", rho, meaning)
    if not 0.0 <= weight <= 1.0:
        raise InvalidSetting(f"rho is {rho}, expected {meaning}.")
    return weight
