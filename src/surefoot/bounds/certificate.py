"""Certificate: what was proved about a policy before an agent began, and with which probability it may be wrong."""

import hashlib
from dataclasses import dataclass

import numpy as np

from surefoot.base.aliases import alias
from surefoot.base.arrays import Floats
from surefoot.base.validation import either, freeze, require_delta, require_number
from surefoot.errors import InvalidSetting
from surefoot.task.problem import Problem


@dataclass(frozen=True, init=False)
class Certificate:
    """With probability at least 1 - delta the policy with this fingerprint is worth at least `value`, in the user's
    units."""

    value: float
    delta: float
    fingerprint: str  # of the policy and the problem: a certificate says nothing about others
    rescaled: float | None = None  # the same value between 0 and H, to the last bit; None: it follows from `value`
    coding: str | None = None  # which labels the numbers of the policy stand for; None: an earlier version did not say

    mark = alias("fingerprint")

    def __init__(
        self,
        value: float,
        delta: float,
        fingerprint: str | None = None,
        rescaled: float | None = None,
        coding: str | None = None,
        *,
        mark: str | None = None,
    ) -> None:
        """Check the fields; `mark` is the former name of `fingerprint`."""
        fingerprint = either("fingerprint", fingerprint, "mark", mark)
        value = require_number("value", value, "a certified value, in the units of the rewards")
        if not np.isfinite(value):
            raise InvalidSetting(f"value is {value:g}, expected a certified value, in the units of the rewards.")
        if not isinstance(fingerprint, str):
            raise InvalidSetting(
                f"fingerprint is {fingerprint!r}, expected the fingerprint of a policy: learnt.certificate has it."
            )
        freeze(self, value=value, delta=require_delta(delta), fingerprint=fingerprint)
        freeze(self, rescaled=rescaled, coding=coding)

    @classmethod
    def of(cls, policy: Floats, problem: Problem, lower: float, delta: float) -> "Certificate":
        """Return the certificate of a policy with this rescaled lower value."""
        found = fingerprint_of(policy, problem)
        return cls(problem.units.to_user(lower), delta, found, lower, problem.origin.coding)


def fingerprint_of(policy: Floats, problem: Problem) -> str:
    """Return a hash that identifies a policy for a problem, to the last bit."""
    pi = np.ascontiguousarray(policy, dtype=np.float64)
    return hashlib.sha256(f"{problem.fingerprint} {pi.shape} ".encode() + pi.tobytes()).hexdigest()[:16]
