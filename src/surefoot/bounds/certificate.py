"""Certificate: what was proved about a policy before an agent began, and with which probability
it may be wrong.
"""

from dataclasses import dataclass

import numpy as np

from surefoot.base.arrays import Floats
from surefoot.base.digest import digest
from surefoot.base.validation import freeze, require_delta, require_number
from surefoot.errors import InvalidSetting
from surefoot.model.problem import Problem


@dataclass(frozen=True)
class Certificate:
    """With probability at least 1 - delta the policy with this fingerprint is worth at least
    `value`, in the user's units.
    """

    value: float
    delta: float
    fingerprint: str  # of the policy and the problem: a certificate says nothing about others
    # the same value between 0 and H, to the last bit; None: it follows from `value`
    rescaled: float | None = None
    # which labels the numbers of the policy stand for; None: it does not say
    coding: str | None = None

    def __post_init__(self) -> None:
        value = require_number(
            "value", self.value, "a certified value, in the units of the rewards"
        )
        if not np.isfinite(value):
            raise InvalidSetting(
                f"value is {value:g}, expected a certified value, in the units of the rewards."
            )
        if not isinstance(self.fingerprint, str):
            raise InvalidSetting(
                f"fingerprint is {self.fingerprint!r}, expected the fingerprint of a policy: "
                "learnt.certificate has it."
            )
        freeze(self, value=value, delta=require_delta(self.delta))

    @classmethod
    def of(cls, policy: Floats, problem: Problem, lower: float, delta: float) -> "Certificate":
        """Return the certificate of a policy with this rescaled lower value."""
        found = fingerprint_of(policy, problem)
        return cls(problem.units.to_user(lower), delta, found, lower, problem.origin.coding)


def fingerprint_of(policy: Floats, problem: Problem) -> str:
    """Return a hash that identifies a policy for a problem, to the last bit."""
    pi = np.ascontiguousarray(policy, dtype=np.float64)
    return digest([problem.fingerprint, pi])
