"""Gymnasium both ways: an environment becomes a world or a problem, and our worlds become
environments.

Importing this module registers our worlds, so `gymnasium.make("surefoot.worlds.gymnasium:Trap-v0")`
works by itself.

How an environment with n states becomes a problem with exactly H steps:
- state n is the absorbing state of an episode after `terminated`: it stays there and earns 0 in the
  user's units;
- where episodes start in several states, state n+1 is the common start of all of them. Its one
  step, before the H real
  ones, draws the first state and earns nothing, so the problem has H+1 steps and stays stationary;
- rewards, floors and values are in the environment's units. Inside, rewards are rescaled from their
  range to [0, 1].
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import ArrayLike

from surefoot.base.arrays import Floats
from surefoot.base.ranges import DeclaredRange
from surefoot.base.validation import (
    as_floats,
    require_finite,
    require_integer,
    require_number,
    where,
)
from surefoot.errors import InvalidModel, InvalidPolicy
from surefoot.model.given_rows import require_room
from surefoot.model.names import Name
from surefoot.model.policy import draw
from surefoot.model.problem import Problem, require_problem
from surefoot.model.units import Rescaled, Units
from surefoot.worlds.env_names import named, names_of
from surefoot.worlds.environments import Env, EnvOrId, can_be_flat, make, require_time
from surefoot.worlds.outcomes import Outcomes, structure, with_start
from surefoot.worlds.registry import FAMILIES, Size, world
from surefoot.worlds.tabular_mdp import TabularMDP


class Coder:
    """How the states and actions of an environment are numbered in its problem."""

    def __init__(self, env: Env) -> None:
        """Read the spaces of the environment; those that are not Discrete are refused."""
        spaces = (("observation", env.observation_space), ("action", env.action_space))
        for name, space in spaces:
            if not isinstance(space, Discrete):
                flat = name == "observation" and can_be_flat(space)
                how = " sf.FlatDiscrete(env) does that." if flat else ""
                raise InvalidModel(
                    f"The {name} space is {space}, expected Discrete(n). Tabular learning needs "
                    f"finitely many states and actions: wrap the environment so that each {name} "
                    f"is a number.{how}"
                )
        states, actions = env.observation_space, env.action_space
        assert isinstance(states, Discrete)
        assert isinstance(actions, Discrete)
        self.n, self.A = int(states.n), int(actions.n)
        self.first_state, self.first_action = int(states.start), int(actions.start)

    @property
    def absorbing_state(self) -> int:
        """The absorbing state in which an episode remains after its end."""
        return self.n

    @property
    def start(self) -> int:
        """The common start, where there are several first states."""
        return self.n + 1

    def state(self, observation: Any) -> int:
        """Return the number of an observation, which may be any kind of integer."""
        try:
            s = operator.index(observation) - self.first_state
        except TypeError:
            raise InvalidModel(
                f"The environment showed {observation!r}, expected an integer."
            ) from None
        if not 0 <= s < self.n:
            raise InvalidModel(
                f"The environment showed {observation!r}, outside its own space of {self.n} states."
            )
        return s

    def action(self, a: int) -> int:
        """Return the number that the environment gives to action a."""
        return a + self.first_action


# The wrappers that gymnasium.make adds to an environment, and one that only watches. Any other
# wrapper may change actions, rewards or observations, and then the model of the bare environment is
# not that of the wrapped one.
HARMLESS = (
    gymnasium.wrappers.TimeLimit,
    gymnasium.wrappers.OrderEnforcing,
    gymnasium.wrappers.PassiveEnvChecker,
    gymnasium.wrappers.RecordEpisodeStatistics,
)


def shown_model(env: Env) -> Any:
    """Return `env.unwrapped.P`, if it is the model of the environment behind its wrappers; None
    if there is none.
    """
    P: Any = getattr(env.unwrapped, "P", None)
    if P is None and not isinstance(env.unwrapped, TabularEnv):
        return None
    if getattr(env.unwrapped, "fickle_passenger", False):
        raise InvalidModel(
            "Taxi's P does not include fickle_passenger=True, so it is not this environment's "
            "model."
        )
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper):
        if not isinstance(inner, HARMLESS):
            raise InvalidModel(
                f"The environment is wrapped in {type(inner).__name__}, which may change what it "
                "does, but its model P describes the bare environment. Use env.unwrapped, or put "
                "what the wrapper does into the environment."
            )
        inner = inner.env
    return P


def from_gymnasium(
    env: EnvOrId,
    *,
    horizon: int,
    reward_range: tuple[float, float] | None = None,
    rewards: ArrayLike | None = None,
    start: int | None = None,
    stationary: bool = False,
    state_names: Sequence[Name] | None = None,
    action_names: Sequence[Name] | None = None,
    unit: str = "",
) -> TabularMDP | Problem:
    """Return a TabularMDP where the environment shows its model (`env.unwrapped.P`), else a Problem
    to learn live.

    - `horizon`: the number of steps in an episode. A time limit of the environment must not be
      shorter.
    - `reward_range`: the lowest and highest reward of a step, in the environment's units; it must
      contain 0, which is what an episode earns after its end. Found from P where there is one.
    - `rewards`: without P, the reward (n, A) or (horizon, n, A) of each state and action, in the
      environment's units. Left out, rewards are unknown: they are learnt, and may be random.
    - `start`: without P, the observation in which every episode starts, if there is just one.
    - `stationary`: without P, you assert that the dynamics do not depend on the step: a premise
      that nothing checks, and that lets an agent pool its counts.
    - `state_names`, `action_names`: what you call the environment's own n states and its actions,
      for people. Left out, they are those that the environment has: its attributes `state_names`
      and `action_names`, or what its method `get_action_meanings()` returns.
    - `unit`: what the rewards are counted in, such as "EUR", for people.

    Rewards of P that depend on the next state stay so (`r_next`), which the paper's bounds do not
    cover: with `world.averaged()` agents know their means instead. With `world.with_support()`
    agents know which transitions are possible.
    """
    made = make(env)
    H = require_integer("horizon", horizon, 1, InvalidModel)
    coder = Coder(made)
    require_time(made, H)
    require_room(H + 1, coder.n + 2, coder.A)
    P = shown_model(made)
    declared = None if reward_range is None else _range(reward_range)
    names = names_of(made, (coder.n, coder.A), state_names, action_names)
    if P is None and not isinstance(made.unwrapped, TabularEnv):
        return named(_problem(coder, H, declared, rewards, start, stationary, unit), names)
    if rewards is not None or start is not None:
        raise InvalidModel(
            "The environment shows its model, which has the rewards and the start. Leave `rewards` "
            "and `start` out."
        )
    if isinstance(made.unwrapped, TabularEnv):
        return named(_own(made.unwrapped, H), names)
    return named(_world(made, coder, P, H, declared, unit), names)


def true_model(env: Env, problem: Problem, steps: int) -> TabularMDP | None:
    """Return the world behind the environment, where it shows one."""
    P = shown_model(env)
    if P is None:
        return env.unwrapped.model if isinstance(env.unwrapped, TabularEnv) else None
    found = from_gymnasium(env, horizon=steps, reward_range=(problem.units.low, problem.units.high))
    assert isinstance(found, TabularMDP)
    return found


def embed_policy(problem: Problem, rule: ArrayLike) -> Floats:
    """Return a policy for the environment's own n states as a policy for its problem.

    rule is (n, A) or (horizon, n, A). In the added states (absorbing state, common start) actions
    do not matter: they are uniform.
    """
    require_problem(problem)
    given = as_floats("rule", rule, InvalidPolicy)
    for extra in (0, 1):  # 1 with a common start, 0 without
        n, H = problem.S - 1 - extra, problem.H - extra
        if given.shape in ((n, problem.A), (H, n, problem.A)):
            policy = np.full((problem.H, problem.S, problem.A), 1.0 / problem.A)
            policy[extra:, :n] = given
            return policy
    raise InvalidPolicy(
        f"rule has shape {given.shape}, which fits no environment behind {problem}. Expected (n, "
        "A) or (H, n, A)."
    )


def _range(given: object) -> tuple[float, float]:
    """Return the declared range: two numbers."""
    meaning = "two numbers: the lowest and the highest reward of a step"
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidModel(f"reward_range is {given!r}, expected {meaning}.")
    low, high = (require_number("reward_range", number, meaning, InvalidModel) for number in given)
    return low, high


def _units(low: float, high: float, steps: int, unit: str) -> Units:
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidModel(
            f"reward_range is ({low}, {high}), expected two finite numbers, the lower one first."
        )
    if not low <= 0.0 <= high:
        raise InvalidModel(
            f"reward_range is ({low:g}, {high:g}), which does not contain 0. After its end an "
            f"episode earns 0: declare ({min(low, 0.0):g}, {max(high, 0.0):g})."
        )
    return Units(low, high, steps, unit)


def _world(
    env: Env,
    coder: Coder,
    P: Mapping[int, Any],
    H: int,
    reward_range: tuple[float, float] | None,
    unit: str,
) -> TabularMDP:
    """Build the world of an environment: equal next states are added up, `terminated` is taken from
    the transition.

    Rewards that differ between the outcomes of a pair become rewards by next state: the mean of
    those that lead there. No array over all next states is made.
    """
    if reward_range is not None:
        _units(*reward_range, H, unit)
    first = _start_distribution(env, coder)
    several = bool(np.count_nonzero(first) > 1)
    S, A = coder.n + 1 + several, coder.A
    found = Outcomes.of(_all_outcomes(P, coder, reward_range), S, A)
    lowest, highest = found.lowest, found.highest
    low, high = reward_range if reward_range is not None else (lowest, max(highest, lowest + 1e-12))
    units = _units(low, high, H, unit)
    # Sums of probabilities such as 1/3 + 1/3 + 1/3 have rounding errors, and so have averages of
    # equal rewards. For transitions without probability nothing is paid.
    transitions = found.transitions
    paid = np.clip((found.earned / transitions.value - low) / (high - low), 0.0, 1.0)
    nothing = float(np.clip((0.0 - low) / (high - low), 0.0, 1.0))
    r = np.clip((found.mean_rewards() - low) / (high - low), 0.0, 1.0)
    s1 = int(first.argmax())
    if several:
        s1 = coder.start
        transitions = with_start(transitions, s1, first)
        paid = np.append(paid, np.zeros(len(transitions.value) - len(paid)))
        r[s1] = 0.0
    after: Any = transitions._replace(value=paid, elsewhere=nothing)
    return TabularMDP(
        transitions,
        None if found.varied else Rescaled(r),
        s1=s1,
        H=H + int(several),
        r_next=Rescaled(after) if found.varied else None,
        support=_structure(coder, several),
        units=units,
        name=env.spec.id if env.spec is not None else type(env.unwrapped).__name__,
    )


def _all_outcomes(
    P: Mapping[int, Any], coder: Coder, reward_range: tuple[float, float] | None
) -> Iterator[tuple[int, int, float, float]]:
    """Yield pair, next state, probability and reward of every outcome, those of the absorbing
    state last.
    """
    declared = None if reward_range is None else DeclaredRange(*reward_range)
    for s, a in np.ndindex(coder.n, coder.A):
        pair = f"P[{s + coder.first_state}][{coder.action(a)}]"
        try:
            rows = P[s + coder.first_state][coder.action(a)]
            outcomes = [
                (float(p), s_next, float(reward), bool(ended)) for p, s_next, reward, ended in rows
            ]
        except (LookupError, TypeError, ValueError) as reason:
            raise InvalidModel(
                f"{pair} is missing or not a list of (probability, next state, reward, "
                f"terminated): {type(reason).__name__}: {reason}."
            ) from None
        for p, s_next, reward, terminated in outcomes:
            if declared is not None and not declared.admits(reward):
                outside = f"outside the declared reward_range ({declared.low:g}, {declared.high:g})"
                raise InvalidModel(f"{pair} pays {reward:g}, {outside}. Widen it.")
            yield (
                s * coder.A + a,
                coder.absorbing_state if terminated else coder.state(s_next),
                p,
                reward,
            )
    for a in range(coder.A):
        yield coder.absorbing_state * coder.A + a, coder.absorbing_state, 1.0, 0.0


def _structure(coder: Coder, several: bool) -> Any:
    """Return the support that follows from how a problem of this environment is built."""
    S, start = coder.n + 1 + several, coder.start if several else None
    return structure(S, coder.A, coder.absorbing_state, start)


def _start_distribution(env: Env, coder: Coder) -> Floats:
    """Return where episodes start: as the environment declares it, or else as found by resets
    with fixed seeds.
    """
    said = getattr(env.unwrapped, "initial_state_distrib", None)
    if said is not None:
        first = as_floats("initial_state_distrib", said, InvalidModel)
        if first.shape != (coder.n,) or abs(first.sum() - 1.0) > 1e-9 or (first < 0).any():
            raise InvalidModel(
                f"initial_state_distrib is not a distribution over the {coder.n} states."
            )
        return np.asarray(first / first.sum())
    seen = {coder.state(env.reset(seed=seed)[0]) for seed in range(20)}
    if len(seen) > 1:
        raise InvalidModel(
            f"The environment starts in several states ({sorted(seen)[:5]}...) and does not say "
            "how likely each is. Set env.unwrapped.initial_state_distrib to the probabilities."
        )
    first = np.zeros(coder.n)
    first[seen.pop()] = 1.0
    return first


def _problem(
    coder: Coder,
    H: int,
    reward_range: tuple[float, float] | None,
    rewards: ArrayLike | None,
    start: int | None,
    stationary: bool,
    unit: str,
) -> Problem:
    """Return what an agent knows about an environment that does not show its model."""
    if reward_range is None:
        raise InvalidModel(
            "Without a model the range of rewards must be declared: give reward_range=(lowest, "
            "highest)."
        )
    low, high = reward_range
    units = _units(low, high, H, unit)
    table = (
        np.zeros((coder.n, coder.A))
        if rewards is None
        else as_floats("rewards", rewards, InvalidModel)
    )
    require_finite("rewards", table, InvalidModel)
    if table.shape not in ((coder.n, coder.A), (H, coder.n, coder.A)):
        raise InvalidModel(
            f"rewards has shape {table.shape}, expected ({coder.n}, {coder.A}) or ({H}, {coder.n}, "
            f"{coder.A})."
        )
    bad = np.argwhere(units.range.outside(table))
    if bad.size:
        place = where("rewards", bad[0])
        raise InvalidModel(
            f"{place} is {table[tuple(bad[0])]:g}, outside the declared reward_range ({low:g}, "
            f"{high:g}). Widen it."
        )
    several = start is None
    S = coder.n + 1 + several
    steps = () if table.ndim == 2 else (H + several,)
    r = np.full((*steps, S, coder.A), (0.0 - low) / (high - low))
    r[(slice(several, None),) if steps else ()][..., : coder.n, :] = units.of_a_step(table)
    if several:
        r[..., coder.start, :] = 0.0
    unknown = None
    if rewards is None:
        unknown = np.zeros((S, coder.A), dtype=np.bool_)
        unknown[: coder.n] = True
    s1 = coder.start if start is None else coder.state(start)
    return Problem(
        Rescaled(r),
        s1=s1,
        H=H + several,
        stationary=stationary,
        units=units,
        unknown=unknown,
        support=_structure(coder, several),
    )


class TabularEnv(Env):
    """One of our worlds as a Gymnasium environment. After H steps an episode is truncated: that
    is its time limit.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (gymnasium's own declaration)

    def __init__(self, model: TabularMDP, render_mode: str | None = None) -> None:
        """Make an environment of this world; rewards are paid in the world's own units."""
        self.model = model
        self.observation_space = Discrete(model.S)
        self.action_space = Discrete(model.A)
        self.render_mode = render_mode
        self._s, self._h = int(model.start.argmax()), 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Return to s1, or to a newly drawn first state."""
        super().reset(seed=seed)
        one = self.model.problem.one_start
        self._s, self._h = self.model.s1 if one else draw(self.model.start, self.np_random), 0
        return self._s, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take one step; the dynamics may depend on the number of steps taken."""
        h, s = self._h, self._s
        if not self.action_space.contains(action):
            raise InvalidModel(f"The action is {action!r}, expected one of 0..{self.model.A - 1}.")
        a = int(action)
        if h >= self.model.H:
            raise InvalidModel(
                f"The episode had its {self.model.H} steps. Call reset() before the next one."
            )
        s_next = self.model.draw_next(h, s, a, self.np_random)
        self._s, self._h = s_next, h + 1
        units = self.model.problem.units
        x = float(self.model.mean_reward(h, s, a, s_next))
        if self.model.random_rewards:
            x = float(self.np_random.random() < x)
        return s_next, float(x * units.scale + units.low), False, self._h == self.model.H, {}


def _own(env: TabularEnv, H: int) -> TabularMDP:
    if env.model.H != H:
        raise InvalidModel(
            f"This world has {env.model.H} steps, not {H}. Use horizon={env.model.H}."
        )
    return env.model


def _builder(name: str) -> Any:
    def build(render_mode: str | None = None, **sizes: Size) -> TabularEnv:
        return TabularEnv(world(name, **sizes), render_mode)

    return build


def env_id(name: str) -> str:
    """Return the id under which a family is registered: "river-swim" is RiverSwim-v0."""
    return "".join(part.capitalize() for part in name.split("-")) + "-v0"


for _name in FAMILIES:
    gymnasium.register(id=env_id(_name), entry_point=_builder(_name))


def as_action(space: gymnasium.Space[Any], given: Any) -> Any:
    """Return what a policy gave as an action of this space: a number for Discrete, an array of its
    shape for Box.

    ValueError: it is none. Nothing is clipped.
    """
    action = given
    if isinstance(space, Discrete):
        action = operator.index(np.asarray(given).reshape(()).item())
    elif isinstance(space, Box):
        action = np.asarray(given, dtype=space.dtype).reshape(space.shape)
    if not space.contains(action):
        raise ValueError(f"the policy gave {given!r}, expected an action of {space}")
    return action
