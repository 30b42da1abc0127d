"""The fold that an episode belongs to: integer arithmetic on (seed, episode id), the same on every
engine.

With M = 2^31 - 1 and three numbers k1, k2, k3 < 2^30 drawn from the seed (k1 and k2 odd):

    u    = (id & M) k1 + ((id >> 31) & M) k2 + k3          < 2^63: no engine overflows
    v    = (u xor (u >> 30)) & M                           31 bits
    fold = (v H) >> 31                                     in 0..H-1

There is no division, no remainder and no float, because engines differ in those. An id that is text
is first turned into a number of 52 bits: the first eight bytes of its MD5 digest, read with the
last byte first, without the 12 lowest bits. (DuckDB has a function for this, so text costs little
more than a number, and nothing is held in memory.) The split depends on nothing that happened in an
episode, which is all that VI-LCB needs.
"""

from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Ints
from surefoot.base.validation import require_integer
from surefoot.errors import InvalidSetting

MASK = 2**31 - 1
# the hexadecimal digits of a digest that make the number of a text id
PLACES = (14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2)


class Keys(NamedTuple):
    """The multipliers of one seed."""

    k1: int
    k2: int
    k3: int


def keys_of(seed: int) -> Keys:
    """Draw the multipliers with numpy's SeedSequence, whose output is stable between versions."""
    given = require_integer("seed", seed, 0, InvalidSetting)
    words = np.random.SeedSequence(given).generate_state(3) & (2**30 - 1)
    return Keys(int(words[0]) | 1, int(words[1]) | 1, int(words[2]))


def mixed(ids: Ints, keys: Keys) -> Ints:
    """Return v of each id."""
    u = (ids & MASK) * keys.k1 + ((ids >> 31) & MASK) * keys.k2 + keys.k3
    return np.asarray((u ^ (u >> 30)) & MASK)


def folds_of(ids: Ints, seed: int, H: int) -> Ints:
    """Return the fold of each episode id (int64)."""
    return np.asarray((mixed(np.asarray(ids, dtype=np.int64), keys_of(seed)) * H) >> 31)


def mixed_in_sql(keys: Keys, low: int, high: int) -> str:
    """Return v as an SQL expression of the column `id` with values in low..high. Terms that are
    0 are left out.
    """
    small = low >= 0 and high <= MASK
    u = f"id * {keys.k1} + {keys.k3}"
    if not small:
        u = f"(id & {MASK}) * {keys.k1} + ((id >> 31) & {MASK}) * {keys.k2} + {keys.k3}"
    return f"(xor({u}, ({u}) >> 30) & {MASK})"
