"""Environments of Gymnasium: by their ids, with their time limits, with observations as one
number (FlatDiscrete).
"""

import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from surefoot.base.validation import require_integer, told
from surefoot.errors import InvalidModel

Env = gymnasium.Env[Any, Any]
EnvOrId = Env | str
MOST = 10**9  # numbers of states; more are of no use to a table
Part = tuple[int, int]  # the lowest value, and how many there are


def make(env: EnvOrId) -> Env:
    """Return the environment itself, or a new one of this id."""
    if isinstance(env, gymnasium.Env):
        return env
    if not isinstance(env, str):
        raise InvalidModel(
            f"Expected a Gymnasium environment or its id, found {type(env).__name__}. In a world "
            "of tables use sf.simulate(world, agent, episodes)."
        )
    try:
        with warnings.catch_warnings():
            # a version that is gone: the error says so
            warnings.simplefilter("ignore", DeprecationWarning)
            return gymnasium.make(env)
    except (gymnasium.error.Error, ModuleNotFoundError) as reason:
        raise InvalidModel(f"Gymnasium cannot make {env!r}: {reason}{_versions(env)}") from None


# Names of one environment that no version of Gymnasium knows together.
RENAMED = {"Taxi": "Taxi-v3 until Gymnasium 1.2, Taxi-v4 since 1.3"}


def _versions(env_id: str) -> str:
    """Say which versions of this environment there are: here, and in other versions of
    Gymnasium.
    """
    name = env_id.rpartition(":")[2].partition("-v")[0]
    here = sorted(
        spec.id
        for spec in gymnasium.registry.values()
        if spec.name == name and spec.namespace is None
    )
    if not here:
        return ""
    renamed = f" It is {RENAMED[name]}." if name in RENAMED else ""
    return f" Gymnasium {gymnasium.__version__} has {', '.join(here)}.{renamed}"


def time_limit(env: Env) -> int | None:
    """Return the number of steps after which the environment cuts an episode, if it does."""
    limits = [env.spec.max_episode_steps] if env.spec is not None else []
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner, gymnasium.wrappers.TimeLimit):
            limits.append(inner._max_episode_steps)
        inner = inner.env
    return min((limit for limit in limits if limit is not None), default=None)


def require_time(env: Env, H: int) -> None:
    """Refuse a time limit below the horizon: it would cut episodes that are counted as complete."""
    shortest = time_limit(env)
    if shortest is not None and shortest < H:
        raise InvalidModel(
            f"The environment cuts episodes after {shortest} steps, before the horizon of {H}. "
            f"Use horizon={shortest} or less, or gymnasium.make(..., max_episode_steps={H})."
        )


class FlatDiscrete(gymnasium.ObservationWrapper[Any, Any, Any]):
    """The environment with its observation as one number: what tabular learning needs.

        # (sum, dealer's card, ace): 32 * 11 * 2 = 704 states
        env = sf.FlatDiscrete(gymnasium.make("Blackjack-v1"))
        env.state((14, 10, 0))  # 328
        env.parts(328)  # (14, 10, 0)

    Observations may be of the spaces Tuple, Dict, MultiDiscrete and MultiBinary, nested or not, of
    Discrete ones. The parts are taken in the order of the space (of a Dict: of its keys), and the
    last one counts fastest, as in `np.ravel_multi_index`. Nothing is lost: each observation has a
    number of its own. Policies of your own are tables over these numbers: `env.state(observation)`
    is the row.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        """Wrap this environment."""
        if not isinstance(env, gymnasium.Env):
            raise InvalidModel(
                f"env is {told(env)}, expected an environment, as gymnasium.make returns it."
            )
        super().__init__(env)
        lows, self._shape = zip(*_sizes(env.observation_space), strict=True)
        self._lows = np.array(lows)
        n = math.prod(self._shape)
        if n > MOST:
            raise InvalidModel(
                f"The observations have {n:.3g} values in all, expected at most {MOST:.0e} for a "
                "table."
            )
        self.n = n
        self.observation_space = Discrete(n)

    def state(self, observation: Any) -> int:
        """Return the number of an observation of the environment inside."""
        values = np.array(list(_values(self.env.observation_space, observation)))
        try:
            return int(np.ravel_multi_index((values - self._lows).tolist(), self._shape))
        except ValueError:
            outside = f"The observation {observation!r} is outside {self.env.observation_space}."
            raise InvalidModel(outside) from None

    def parts(self, state: int) -> tuple[int, ...]:
        """Return the whole numbers that an observation of this state consists of, in the order
        of the space.
        """
        number = require_integer("state", state, 0, InvalidModel)
        if number >= self.n:
            raise InvalidModel(f"state is {number}, expected one of 0..{self.n - 1}.")
        return tuple((np.array(np.unravel_index(number, self._shape)) + self._lows).tolist())

    def observation(self, observation: Any) -> int:
        """Return the number, for Gymnasium."""
        return self.state(observation)


def can_be_flat(space: gymnasium.Space[Any]) -> bool:
    """Return whether `FlatDiscrete` can number the observations of this space."""
    try:
        return len(list(_sizes(space))) > 0
    except InvalidModel:
        return False


def _sizes(space: gymnasium.Space[Any]) -> Iterator[Part]:
    """Yield the parts of a space."""
    if isinstance(space, Discrete):
        yield int(space.start), int(space.n)
    elif isinstance(space, MultiDiscrete):
        yield from zip(np.ravel(space.start).tolist(), np.ravel(space.nvec).tolist(), strict=True)
    elif isinstance(space, MultiBinary):
        yield from [(0, 2)] * int(np.prod(space.shape))
    elif isinstance(space, Tuple | Dict):
        for inner in space.spaces.values() if isinstance(space, Dict) else space.spaces:
            yield from _sizes(inner)
    else:
        raise InvalidModel(
            f"The observation space has a part {space}, expected Discrete, MultiDiscrete, "
            "MultiBinary, or Tuple and Dict of these. Numbers that are not whole must be grouped "
            "into ranges first."
        )


def _values(space: gymnasium.Space[Any], observation: Any) -> Iterator[int]:
    """Yield the values of an observation, part by part."""
    if isinstance(space, Dict):
        if not isinstance(observation, Mapping) or set(observation) != set(space.spaces):
            raise InvalidModel(
                f"The observation is {observation!r}, expected the keys {', '.join(space.spaces)}."
            )
        for key, inner in space.spaces.items():
            yield from _values(inner, observation[key])
    elif isinstance(space, Tuple):
        if len(observation) != len(space.spaces):
            raise InvalidModel(
                f"The observation is {observation!r}, expected {len(space.spaces)} parts."
            )
        for inner, part in zip(space.spaces, observation, strict=True):
            yield from _values(inner, part)
    else:
        array, expected = np.ravel(np.asarray(observation)), len(list(_sizes(space)))
        if array.dtype.kind not in "iub" or len(array) != expected:
            raise InvalidModel(
                f"The observation has a part {observation!r}, expected whole numbers of {space}."
            )
        yield from (int(value) for value in array)
