"""Cases: a task, a baseline, a learner and a floor; at random, and what production makes of
each.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

import surefoot as sf

from .twin import UNITS, Literal, Sharp, Task, parts_of

LEARNERS = {"StepMix": sf.StepMix, "EpsMix": sf.EpsMix, "StepNoMix": sf.StepNoMix}
# Dirichlet(1/2), or a mixture over unknown supports
PRIORS = {"KL(full)": Fraction(1, 2), "KL": None}
FAMILIES = (*PRIORS, "Bernstein")


@dataclass(frozen=True)
class Case:
    task: Task
    baseline: np.ndarray  # (H, S, A)
    learner: str
    family: str
    floor: float
    # a relative floor: what share of the baseline's value may be given up
    max_loss: float | None = None

    @property
    def asked(self) -> "float | sf.Relative":
        return self.floor if self.max_loss is None else sf.Relative(self.max_loss)

    def bounds(self, scale: float = 1.0) -> sf.KL | sf.Bernstein:
        if self.family == "Bernstein":
            return sf.Bernstein(scale)
        return sf.KL(scale=scale, full_support=PRIORS[self.family] is not None)

    def twin(self) -> Sharp | Literal:
        """The same bounds by the other hand."""
        if self.family == "Bernstein":
            return Literal(
                self.task, Fraction(self.task.delta) / parts_of(self.learner, self.task.H)
            )
        return Sharp(self.task, PRIORS[self.family])

    @cached_property
    def problem(self) -> sf.Problem:
        task = self.task
        # masks of a stationary problem are the same at every step
        one = 0 if task.pooled else slice(None)
        return sf.Problem(
            task.r,
            H=task.H,
            stationary=task.pooled,
            start="unknown" if task.start is None else task.start,
            r_next=task.r_next,
            unknown=None if task.unknown is None else task.unknown[one],
            support=None if task.support is None else task.support[one],
        )

    @cached_property
    def counts(self) -> sf.Counts:
        task = self.task
        one = 0 if task.pooled else slice(None)
        sums = (
            {}
            if task.x_sa is None
            else {name: getattr(task, name)[one] for name in ("played", "x_sa", "z_sa")}
        )
        return sf.Counts(task.n_sas[one], task.H, **sums, n_start=task.n_start)

    def agent(
        self, floor: float | sf.Relative, scale: float = 1.0
    ) -> sf.StepMix | sf.EpsMix | sf.StepNoMix:
        make = LEARNERS[self.learner]
        settings = {
            "delta": self.task.delta,
            "bounds": self.bounds(scale),
            "pooled": self.task.pooled,
            "returns": None,
        }
        return make(self.problem, self.baseline, floor, **settings)


class Seen(NamedTuple):
    """What production says of a case."""

    pi_bar: np.ndarray  # (H, S, A)
    candidates: list[float]
    upper: float
    lower: float
    h: int
    rho: float
    source: str
    policy: np.ndarray | None  # None where a coin is tossed


def plan_of(case: Case, scale: float = 1.0) -> Seen:
    """A plan by production. With a floor of 0 the optimistic policy is played: so its policy is
    seen.
    """
    counts = case.counts
    bold = case.agent(0.0, scale).plan(counts).policy
    plan = case.agent(case.asked, scale).plan(counts)
    coin = isinstance(plan.policy, sf.EpisodicMixture)
    return Seen(
        pi_bar=bold.second if isinstance(bold, sf.EpisodicMixture) else bold,
        candidates=[float(x) for x in plan.candidates],
        upper=float(plan.upper),
        lower=float(plan.lower),
        h=plan.h,
        rho=float(plan.rho),
        source=plan.source,
        policy=None if coin else plan.policy,
    )


def some_counts(rng: np.random.Generator, shape: tuple[int, ...], family: str) -> np.ndarray:
    """Mostly few; some up to 1e9. Each row has its own size and its own gaps."""
    largest = rng.choice([2, 8, 60, 1000, 10**6, 10**9], p=[0.2, 0.25, 0.25, 0.15, 0.1, 0.05])
    if family == "Bernstein":  # its lower values are 0 until there are many
        largest = rng.choice([50, 10**5, 10**7, 10**9], p=[0.1, 0.3, 0.3, 0.3])
    size = np.exp(rng.random(shape[:-1]) * np.log(largest))
    # one action of each state was tried much, the others hardly
    if rng.random() < 0.5 and len(shape) == 4:
        usual = np.eye(shape[2], dtype=bool)[rng.integers(shape[2], size=shape[:2])]
        size = np.where(usual, largest, np.minimum(size, 3))
    rows = rng.dirichlet(np.full(shape[-1], rng.choice([0.2, 1.0, 5.0])), size=shape[:-1])
    n = np.rint(rows * size[..., None]).astype(np.int64)
    return n * (rng.random((*shape[:-1], 1)) > rng.choice([0.0, 0.1, 0.5]))


def some_policy(rng: np.random.Generator, H: int, n_sa: np.ndarray) -> np.ndarray:
    """Mostly what was tried most, as after a while on the baseline; or multiples of 1/16, any
    floats, one action.
    """
    S, A = n_sa.shape[1:]
    kind = rng.integers(6)
    usual = np.broadcast_to(np.eye(A)[n_sa.argmax(axis=-1)], (H, S, A))
    if kind == 0:
        return np.eye(A)[rng.integers(A, size=(H, S))]
    if kind == 1:
        return rng.multinomial(16, np.full(A, 1 / A), size=(H, S)) / 16
    if kind == 2:
        return rng.dirichlet(np.full(A, rng.choice([0.5, 3.0])), size=(H, S))
    if kind == 3:  # rows that do not quite sum to 1
        return (usual * 0.75 + 0.25 / A) * (1.0 + 8e-10 * (rng.random((H, S, 1)) - 0.5))
    return usual * 0.9 + 0.1 / A


def some_rewards(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Any floats, or few levels with many ties, or only in a few places, or late and decided by
    the dynamics.
    """
    kind = rng.integers(6)
    if kind == 0:
        return rng.integers(0, 3, size=shape) / 2
    if kind == 1:
        return rng.random(shape) * (rng.random(shape) < 0.4)
    if kind > 3 and shape[0] > 1:
        last = np.broadcast_to(
            rng.random(shape[1])[(slice(None),) + (None,) * (len(shape) - 2)], shape[1:]
        )
        return np.concatenate([0.1 * rng.random((shape[0] - 1, *shape[1:])), last[None]])
    return rng.random(shape)


def some_task(rng: np.random.Generator, family: str) -> Task:
    """A small task; under KL with everything that may be known or not."""
    S, A, H = (
        int(rng.choice([1, 2, 3], p=p))
        for p in ([0.1, 0.5, 0.4], [0.15, 0.55, 0.3], [0.2, 0.5, 0.3])
    )
    pooled = bool(rng.random() < 0.4)
    rows = 1 if pooled else H
    sharp = family != "Bernstein"
    n_sas = some_counts(rng, (rows, S, A, S), family)
    start, n_start = np.eye(S)[rng.integers(S)], None
    if sharp and rng.random() < 0.3:
        start = None if rng.random() < 0.6 else rng.dirichlet(np.ones(S))
        n_start = some_counts(rng, (1, S), family)[0]
    task = Task(
        H,
        S,
        A,
        float(rng.choice([0.05, 0.1, 0.5, 0.9, 1e-9])),
        pooled,
        n_sas,
        None,
        start=start,
        n_start=n_start,
    )
    if sharp and rng.random() < 0.25:
        support = rng.random((rows, S, A, S)) < 0.6
        support[..., 0] |= ~support.any(axis=-1)
        task = replace(task, support=np.broadcast_to(support, (H, S, A, S)), n_sas=n_sas * support)
    kind = (
        rng.choice(["known", "by next state", "unknown"], p=[0.6, 0.2, 0.2]) if sharp else "known"
    )
    if kind == "by next state":
        return replace(task, r_next=some_rewards(rng, (H, S, A, S)))
    task = replace(task, r=some_rewards(rng, (H, S, A)))
    if kind == "known":
        return task
    hidden = np.broadcast_to(rng.random((rows, S, A)) < rng.choice([0.5, 1.0]), (H, S, A))
    visits = task.n_sas.sum(axis=-1)
    # visits of the last step: next states of shared rows are not counted there
    if pooled and H > 1:
        visits = visits + some_counts(rng, (rows, S, A), family)
    share = rng.choice([0.0, 0.25, 0.5, 1.0, -1.0])
    sums = np.floor((rng.random(visits.shape) if share < 0 else share) * visits * UNITS).astype(
        np.int64
    )
    inner = some_between(sums, visits, float(rng.choice([0.0, 0.9, 1.0])))
    return replace(task, unknown=hidden, played=visits, x_sa=sums, z_sa=inner)


def some_between(x_sa: np.ndarray, n: np.ndarray, share: float) -> np.ndarray:
    """Sums of x (1 - x): such a share of the most that they can be, where all rewards of a pair
    are the same.
    """
    pairs = zip(map(int, x_sa.flat), (int(k) * UNITS for k in n.flat), strict=True)
    most = [x * (k - x) // max(k, 1) for x, k in pairs]
    return np.array([int(share * m) if share < 1.0 else m for m in most], dtype=np.int64).reshape(
        x_sa.shape
    )


def some_floor(rng: np.random.Generator, L: list[float], H: int) -> float:
    """Between the bolder candidates and a safer one, where there is one; at a candidate or an ulp
    beside it; at 0, at H, anywhere.
    """
    kind = rng.integers(10)
    c = int(rng.integers(len(L)))
    safer = [i for i in range(1, len(L)) if L[i] > max(L[:i])]
    if kind < 7 and safer:
        c = int(rng.choice(safer))
        share = float(rng.choice([rng.random(), rng.random(), 1e-9, 1e-14]))
        floor = L[c] + share * (max(L[:c]) - L[c])
    elif kind < 9:
        floor = float(rng.choice([L[c], np.nextafter(L[c], 9.0), np.nextafter(L[c], -9.0)]))
    else:
        floor = float(rng.choice([0.0, H, H * rng.random()]))
    return min(float(H), max(0.0, floor))


def random_case(rng: np.random.Generator) -> Case:
    learner = str(rng.choice(list(LEARNERS), p=[0.5, 0.3, 0.2]))
    family = str(rng.choice(FAMILIES, p=[0.375, 0.375, 0.25]))
    task = some_task(rng, family)
    case = Case(task, some_policy(rng, task.H, task.n_sas.sum(axis=-1)), learner, family, 0.0)
    L = case.agent(0.0).plan(case.counts).candidates
    if rng.random() < 0.15:
        return replace(
            case, max_loss=float(rng.choice([0.05, 0.3, 0.9, rng.random() * 0.98 + 0.01]))
        )
    return replace(case, floor=some_floor(rng, [float(x) for x in L], task.H))
