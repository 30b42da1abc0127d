"""Certificate: what was proved of a policy before a learner began, and how likely that is wrong."""

import hashlib
from dataclasses import dataclass

import numpy as np

from surefoot.base.aliases import alias
from surefoot.base.arrays import Floats
from surefoot.base.validation import freeze, require_delta, require_number
from surefoot.errors import InvalidSetting
from surefoot.task.problem import Problem


@dataclass(frozen=True)
class Certificate:
    """With probability at least 1 - delta the policy with this fingerprint is worth at least `value` (0..H)."""

    value: float
    delta: float
    fingerprint: str  # of the policy and the problem: a certificate says nothing of others

    mark = alias("fingerprint")

    def __post_init__(self) -> None:
        value = require_number("value", self.value, "a certified value, at least 0")
        if not 0.0 <= value < np.inf:
            raise InvalidSetting(f"value is {value:g}, expected a certified value, at least 0.")
        if not isinstance(self.fingerprint, str):
            raise InvalidSetting(
                f"fingerprint is {self.fingerprint!r}, expected the fingerprint of a policy: learnt.certificate has it."
            )
        freeze(self, value=value, delta=require_delta(self.delta))


def fingerprint_of(policy: Floats, problem: Problem) -> str:
    """By this a policy for a problem is known again, to the last bit."""
    pi = np.ascontiguousarray(policy, dtype=np.float64)
    return hashlib.sha256(f"{problem.fingerprint} {pi.shape} ".encode() + pi.tobytes()).hexdigest()[:16]
