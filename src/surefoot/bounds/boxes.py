"""Boxes around the estimated transition probabilities: |P(s'|s,a) - P_hat(s'|s,a)| <= b(s,a,s') for
every entry.

DOPE and OptPess-LP plan with these boxes. Each box holds, with probability at least 1 - delta, for
all entries and all numbers of visits that K episodes can bring: S^2 A entries times H K (steps
times visits; or, pooled, the visits of all steps).
"""

import math
from dataclasses import dataclass

import numpy as np

from surefoot.base.arrays import Floats
from surefoot.base.validation import freeze, require_number
from surefoot.bounds.model import Model
from surefoot.errors import InvalidSetting
from surefoot.model.problem import Problem


@dataclass(frozen=True)
class Box:
    """Base class of boxes: `scale` multiplies the logarithm. Any scale other than 1 is NOT
    CERTIFIED.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_scale(self, self.scale)

    @property
    def certified(self) -> bool:
        """Is this a proved box? A user's subclass may compute anything, so it is not certified."""
        return type(self) in (BernsteinBox, HoeffdingBox, MaurerPontilBox) and self.scale == 1.0

    def b(self, model: Model, K: int) -> Floats:
        """Return the half widths (H, S, A, S)."""
        raise NotImplementedError


def entries(problem: Problem, K: int) -> float:
    """Return S^2 A H K: the number of events in the union bound."""
    return float(problem.S) ** 2 * problem.A * problem.H * K


def later(H: int) -> Floats:
    """Return H - h for the steps h = 1..H, shape (H, 1, 1): how much may still be earned, or
    cost, after step h.
    """
    return np.arange(H - 1, -1, -1, dtype=np.float64)[:, None, None]


def check_scale(record: object, scale: object) -> None:
    """Set the scale: a finite number that is not negative; 1 is the proved one."""
    value = require_number("scale", scale, "a finite number >= 0; 1 is the proved one")
    if not 0.0 <= value < math.inf:
        raise InvalidSetting(
            f"scale is {value:g}, expected a finite number >= 0; 1 is the proved one."
        )
    freeze(record, scale=value)


@dataclass(frozen=True)
class BernsteinBox(Box):
    """DOPE's own box (Bura et al. 2022): b = 2 sqrt(P_hat (1 - P_hat) L/n) + 14 L/(3n), at most 1,
    n at least 1.

    L = log(2 S^2 A H K/delta). The published code leaves A out; then the union does not cover all
    entries. Any scale other than 1 is NOT CERTIFIED.
    """

    def b(self, model: Model, K: int) -> Floats:
        """Return the half widths (H, S, A, S)."""
        L = self.scale * math.log(2.0 * entries(model.problem, K) / model.delta_prime)
        n = np.maximum(model.n_sa, 1)[..., None]
        P_hat = model.P_hat
        return np.minimum(2.0 * np.sqrt(P_hat * (1.0 - P_hat) * L / n) + 14.0 * L / (3.0 * n), 1.0)

    def across(self, H: int) -> Floats:
        """Return H: times sum b, it bounds how much a value differs between two models of the
        box, for each step.
        """
        return np.full((H, 1, 1), float(H))


@dataclass(frozen=True)
class HoeffdingBox(Box):
    """OptPess-LP's own (Liu et al. 2021): b = sqrt(Z/n) for every next state, n at least 1.

    Z = log(32 S^2 A H K/delta), which is more than the proof needs. Any scale other than 1 is NOT
    CERTIFIED.
    """

    def b(self, model: Model, K: int) -> Floats:
        """Return the half widths (H, S, A, S)."""
        Z = self.scale * math.log(32.0 * entries(model.problem, K) / model.delta_prime)
        beta = np.sqrt(Z / np.maximum(model.n_sa, 1))
        return np.broadcast_to(beta[..., None], model.P_hat.shape)

    def from_centre(self, H: int) -> Floats:
        """Return H: times sum b = S beta, it bounds how much a value differs between P_hat and a
        model of the box.
        """
        return np.full((H, 1, 1), float(H))


@dataclass(frozen=True)
class MaurerPontilBox(Box):
    """A sharper box, for both DOPE and OptPess-LP: b = sqrt(2 P_hat (1 - P_hat) L/(n-1)) + 7 L/(3
    (n-1)).

    L = log(3 S^2 A H K/delta): Bernstein's inequality on either side, and one for the empirical
    variance (Maurer and Pontil 2009). b = 1 below two visits. Values differ by what can come AFTER
    a step, H - h, and not by H; from the centre of the box by half of that. Same promise. Any scale
    other than 1 is NOT CERTIFIED.
    """

    def b(self, model: Model, K: int) -> Floats:
        """Return the half widths (H, S, A, S)."""
        L = self.scale * math.log(3.0 * entries(model.problem, K) / model.delta_prime)
        n = np.maximum(model.n_sa - 1, 1)[..., None]
        P_hat = model.P_hat
        b = np.sqrt(2.0 * P_hat * (1.0 - P_hat) * L / n) + 7.0 * L / (3.0 * n)
        return np.minimum(
            np.where(model.n_sa[..., None] >= 2, b, math.inf if L > 0.0 else 0.0), 1.0
        )

    def across(self, H: int) -> Floats:
        """Return H - h: what can come after a step."""
        return later(H)

    def from_centre(self, H: int) -> Floats:
        """Return (H - h)/2: half of what can come after a step."""
        return later(H) / 2.0
