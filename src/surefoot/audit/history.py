"""History: what was observed in a live run, in groups of equally many episodes, however long the
run is.
"""

from dataclasses import dataclass, field

import numpy as np

from surefoot.agents.plan import SOURCES, Plan
from surefoot.base.arrays import AnyArray, Bools, Floats, Ints
from surefoot.base.validation import FrozenRecord, freeze

MOST = 1024  # groups; where they are used up, neighbours are put together
# The columns of what is kept of each group, by the names that users see: whole numbers, after which
# come episodes per exit, and real ones.
WHOLE_NAMES = ("episodes", "baseline_episodes", "certified")
REAL_NAMES = ("mean", "squares", "low", "high", "baseline_mean", "baseline_squares", "lower")
EPISODES, BY_BASELINE, CERTIFIED = range(3)
MEAN, SQUARES, LOW, HIGH, BASELINE_MEAN, BASELINE_SQUARES, LOWER = range(7)
BY_SOURCE = len(WHOLE_NAMES)
WHOLE, REAL = BY_SOURCE + len(SOURCES), len(REAL_NAMES)
SAVED = ("history_at", "history_whole", "history_real")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class History(FrozenRecord):
    """What was observed in a live run, one number for each group of consecutive episodes, in the
    user's units.

    All groups but the last are of equally many episodes.
    """

    episode: Ints  # the first episode of each group
    episodes: Ints  # how many are in it
    mean: Floats  # mean observed return
    squares: Floats  # sum of the squared differences from it
    low: Floats  # the lowest return
    high: Floats  # the highest one
    baseline_episodes: Ints  # how many of them the baseline alone played
    baseline_mean: Floats  # their mean return; nan where there are none
    baseline_squares: Floats
    lower: Floats  # the smallest lower value of their plans; nan: none of them had one
    certified: Ints  # how many of them had a plan that is certified
    sources: Ints  # (groups, 3) episodes per exit: baseline, mixture, optimistic

    def __init__(self, first: int, width: int, whole: Ints, real: Floats) -> None:
        """Make a record of the groups that were kept."""
        numbers = real.copy()
        numbers[whole[:, BY_BASELINE] == 0, BASELINE_MEAN] = np.nan
        freeze(
            self,
            episode=first + width * np.arange(len(whole)),
            sources=whole[:, BY_SOURCE:].copy(),
            **dict(zip(WHOLE_NAMES, whole.T.copy(), strict=False)),
            **dict(zip(REAL_NAMES, numbers.T.copy(), strict=True)),
        )

    def __len__(self) -> int:
        return len(self.episode)


@dataclass
class Groups:
    """The history of a run so far. Whole numbers and real ones are kept apart, one row for each
    group.
    """

    first: int = 0  # the episode of the run with which it begins
    width: int = 1  # episodes of a group
    done: int = 0  # episodes since the first
    whole: Ints = field(default_factory=lambda: np.zeros((MOST, WHOLE), dtype=np.int64))
    real: Floats = field(default_factory=lambda: np.zeros((MOST, REAL)))

    @property
    def used(self) -> int:
        """How many groups there are, the last one perhaps not complete."""
        return -(-self.done // self.width)

    def add(self, ret: float, by_baseline: bool, plan: Plan) -> None:
        """Add an episode with this return, in the user's units."""
        k = self.done // self.width
        if k == MOST:
            self._put_together()
            k //= 2
        whole, real = self.whole[k], self.real[k]
        if whole[EPISODES] == 0:
            real[LOW], real[HIGH], real[LOWER] = ret, ret, np.nan
        whole[EPISODES] += 1
        _add(real, MEAN, ret, int(whole[EPISODES]))
        real[LOW], real[HIGH] = min(real[LOW], ret), max(real[HIGH], ret)
        if by_baseline:
            whole[BY_BASELINE] += 1
            _add(real, BASELINE_MEAN, ret, int(whole[BY_BASELINE]))
        whole[BY_SOURCE + SOURCES.index(plan.source)] += 1
        if proves(plan):
            real[LOWER] = np.fmin(real[LOWER], plan.lower)
            whole[CERTIFIED] += plan.certified
        self.done += 1

    def _put_together(self) -> None:
        """Make each group of two neighbours."""
        whole, real = self.whole.copy(), self.real.copy()
        self.whole[:], self.real[:] = 0, 0.0
        half = MOST // 2
        one, other = slice(0, None, 2), slice(1, None, 2)
        self.whole[:half] = whole[one] + whole[other]
        for n, mean in ((EPISODES, MEAN), (BY_BASELINE, BASELINE_MEAN)):
            self.real[:half, mean : mean + 2] = np.column_stack(
                pooled(
                    whole[one, n],
                    whole[other, n],
                    real[one, mean : mean + 2],
                    real[other, mean : mean + 2],
                )
            )
        self.real[:half, LOW] = np.minimum(real[one, LOW], real[other, LOW])
        self.real[:half, HIGH] = np.maximum(real[one, HIGH], real[other, HIGH])
        self.real[:half, LOWER] = np.fmin(real[one, LOWER], real[other, LOWER])
        self.width *= 2

    def record(self) -> History:
        """Return the history as it is now."""
        return History(self.first, self.width, self.whole[: self.used], self.real[: self.used])

    def arrays(self) -> dict[str, AnyArray]:
        """Return what is saved."""
        at = np.array([self.first, self.width, self.done], dtype=np.int64)
        return dict(zip(SAVED, (at, self.whole[: self.used], self.real[: self.used]), strict=True))

    @classmethod
    def from_arrays(cls, arrays: dict[str, AnyArray], done: int) -> "Groups":
        """Return the history in a file of a run of so many episodes. ValueError: it is not as it
        was written.
        """
        at, whole, real = (arrays.get(name, np.zeros(0)) for name in SAVED)
        if (
            at.shape != (3,)
            or at.dtype != np.int64
            or whole.dtype != np.int64
            or real.dtype != np.float64
        ):
            raise ValueError("it has other shapes")
        first, width, kept = map(int, at)
        if not (
            0 <= first <= done and width >= 1 and width & (width - 1) == 0 and first + kept == done
        ):
            raise ValueError("it is not of as many episodes")
        made = cls(first, width, kept)
        if made.used > MOST or whole.shape != (made.used, WHOLE) or real.shape != (made.used, REAL):
            raise ValueError("it has other shapes")
        if not (
            _possible(whole, width, kept)
            and np.isfinite(real[:, :LOWER]).all()
            and not np.isinf(real).any()
        ):
            raise ValueError("its numbers are impossible")
        made.whole[: made.used], made.real[: made.used] = whole, real
        return made


def proves(plan: Plan) -> bool:
    """Does the plan say what its policy is worth at least, by bounds that are proved? After an
    alarm nothing is.
    """
    return np.isfinite(plan.lower) and not plan.frozen and plan.safety != "NOT CERTIFIED"


def _add(real: Floats, mean: int, x: float, n: int) -> None:
    """Welford's step: the mean, and the sum of squares beside it, after the n-th number."""
    before = float(real[mean])
    after = before + (x - before) / n
    real[mean] = after
    real[mean + 1] += (x - before) * (x - after)


def pooled(n: Ints, m: Ints, one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Return means and sums of squares of two groups of n and m numbers together (Chan, Golub
    and LeVeque 1983).
    """
    both = np.maximum(n + m, 1)
    gap = other[..., 0] - one[..., 0]
    mean = np.where(
        n == 0, other[..., 0], np.where(m == 0, one[..., 0], one[..., 0] + gap * (m / both))
    )
    apart = np.where((n == 0) | (m == 0), 0.0, gap * gap * (n * (m / both)))
    return mean, one[..., 1] + other[..., 1] + apart


def _possible(whole: Ints, width: int, done: int) -> bool:
    """Can these be the whole numbers of so many episodes?"""
    n = whole[:, EPISODES]
    expected: Bools = n == np.minimum(width, done - width * np.arange(len(n)))
    parts = whole[:, BY_SOURCE:].sum(axis=1) == n
    inside = (whole >= 0).all() and (whole[:, :BY_SOURCE] <= n[:, None]).all()
    return bool(expected.all() and parts.all() and inside)
