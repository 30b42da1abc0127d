"""Random numbers that are nobody else's: under a key that no generator has which a user would make.

A process that answers for itself has random numbers of its own, often from the same seed, or from
the same generator. If an outcome and the coin that it answers come from one number, the evidence
shows a world that is not there, and what it proves is false. How keys are made is part of the
format (docs/gymnasium.md, docs/guard.md): never change it; another construction has another name.
"""

import hashlib
import json

import numpy as np

from surefoot.base.arrays import AnyArray
from surefoot.errors import InvalidSetting

COIN = "surefoot coin 1"


def key_of(text: str) -> AnyArray:
    """Return a key of numpy's Philox4x64-10: the first 128 bits of SHA-256 of this text."""
    digest = hashlib.sha256(text.encode()).digest()
    return np.frombuffer(digest[:16], dtype="<u8").astype(np.uint64)


def coin_generator(rng: object, what: str, number: int) -> np.random.Generator:
    """Return the generator that the coin of one episode is tossed with.

    Its key is made of what the coin is for, of the episode's number there, and of one number of the
    user's generator. So a generator that is made anew for each episode, from one seed, tosses
    another coin for each, and a process that draws the very numbers of `rng` draws nothing that the
    coin depends on as far as anybody could see.
    """
    random = getattr(rng, "random", None)
    if not callable(random):
        raise InvalidSetting(
            f"rng is {rng!r}, expected a generator such as np.random.default_rng(0)."
        )
    text = json.dumps([COIN, what, number, float(random()).hex()])
    return np.random.Generator(np.random.Philox(key=key_of(text)))
