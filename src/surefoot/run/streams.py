"""The random numbers of live episodes: of (seed, episode, step) alone, under a key that nothing
else has (`base/coins.py`).
"""

from typing import Any

import numpy as np

from surefoot.base.coins import key_of
from surefoot.errors import InvalidCounts
from surefoot.evidence.counts import Counts
from surefoot.evidence.tables import STREAM

# the step at which a number is drawn; the action of step h: FIRST_ACTION + h
PLANNING, COIN, FIRST_ACTION = 0, 1, 2


class CounterStream:
    """numpy's Philox4x64-10 under a key of our own, with the counter (block, step, episode, 0).

    A generator is for one purpose: use it before the next one is asked for. Every step has 2^64
    blocks to itself, so how many numbers were drawn before, in which order, and by which process
    changes nothing.
    """

    def __init__(self, seed: int) -> None:
        """Make the key: the first 128 bits of SHA-256 of the stream's name and the seed, both as
        text.
        """
        self._key = key_of(f"{STREAM}, seed {seed:x}")
        self._bits = np.random.Philox(key=self._key)
        self._rng = np.random.Generator(self._bits)
        # To set the state of a generator takes a tenth of the time that a new one does.
        self._counter = [0, 0, 0, 0]  # plain numbers: they are set faster than those of an array
        words: dict[str, Any] = {"counter": self._counter, "key": self._key.tolist()}
        self._start: Any = {**self._bits.state, "state": words, "buffer": [0, 0, 0, 0]}
        self._episode = 0

    def at(self, episode: int, step: int) -> np.random.Generator:
        """Return the generator of this step, at its first number. It is the same object every
        time.
        """
        self._counter[1] = step
        self._counter[2] = episode
        self._bits.state = self._start
        return self._rng

    def begin(self, episode: int) -> None:
        """Let the coin and the actions be those of this episode."""
        self._episode = episode

    def planning(self, episode: int) -> np.random.Generator:
        """Return what an explorer draws from before this episode. It may keep it: the object is
        a new one.
        """
        counter = np.array([0, PLANNING, episode, 0], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(counter=counter, key=self._key))

    def coin(self) -> np.random.Generator:
        """Return what the coin of this episode is tossed with."""
        return self.at(self._episode, COIN)

    def action(self, h: int) -> np.random.Generator:
        """Return what the action of step h is drawn from."""
        return self.at(self._episode, FIRST_ACTION + h)


def stream_of(counts: Counts, seed: int) -> CounterStream:
    """Return the stream with which a learner goes on from these counts, which remember its name."""
    if counts.stream != STREAM:
        raise InvalidCounts(
            f"These counts belong to a learner that draws from {counts.stream!r}, expected "
            f"{STREAM!r}. Are they of a later version? Update surefoot to go on with them."
        )
    return CounterStream(seed)
