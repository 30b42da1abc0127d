"""LogCounts: the counts of a log. Every method that learns from a log needs no more than this."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.aliases import alias
from surefoot.base.arrays import AnyArray, Bools, Floats, Ints
from surefoot.base.files import read_arrays, strict_json, write_arrays
from surefoot.base.validation import REWARD_UNITS, FrozenRecord, as_floats, freeze, read_only
from surefoot.errors import InvalidFile, InvalidLog, InvalidModel, InvalidSetting
from surefoot.offline.logs.codebook import Codebook, codebook_from, codebook_text
from surefoot.task.counts import Counts
from surefoot.task.problem import LONGEST, Problem, Units

LARGEST = 2**28  # entries of a dense array (H, S, A, S): 2 GiB
MOST_STEPS = 2**42  # up to so many steps of a log, sums of rewards in units of 2^-20 are exact
TABLES = ("place", "n", "n_fold", "low", "high")


class Rewards(NamedTuple):
    """The rewards of each pair in the log's units: arrays (H, S, A), NaN where the pair was never seen."""

    mean: Floats
    min: Floats
    max: Floats
    n: Ints


class Sums(NamedTuple):
    """The sums of random rewards of each pair (H, S, A), rescaled to [0, 1], in whole multiples of 2^-20."""

    x_sa: Ints
    x_fold: Ints  # at step h over the episodes of fold h only
    rest_of_sum: Ints  # what was rounded off, in multiples of 2^-40


@dataclass(frozen=True, eq=False, repr=False)
class LogCounts(FrozenRecord):
    """The counts of a log, made by `count_log`.

    - counts: how often each next state followed each pair, for the warm start of an agent
    - folds: (H, S, A, S), step h counted in the episodes of fold h only, for VI-LCB
    - rewards: mean, min, max and n of each pair (H, S, A), in the log's units
    - starts: (S,) how often each state was the first
    - codebook: the labels of states and actions
    - problem(): the task that the log describes, to learn in
    """

    H: int
    codebook: Codebook
    episodes: int
    rows: int
    seed: int
    reward_range: tuple[float, float]  # rewards are rescaled to [0, 1] by it
    declared: bool  # is it the range of all possible rewards, and not only of those that were seen?
    notes: tuple[str, ...]  # what the user of the log should know
    place: Ints  # which transitions occurred: flat indices into (H, S, A, S), ascending
    n: Ints  # how often
    n_fold: Ints  # how often in the episodes of fold h
    low: Floats  # the lowest reward of each transition
    high: Floats
    sums: Sums | None  # None: each transition always paid the same
    last_ends: int = 0  # episodes that terminated at the last step, where there is no absorbing state for them

    @property
    def S(self) -> int:
        """The number of states, the absorbing one included."""
        return self.codebook.S

    @property
    def A(self) -> int:
        """The number of actions."""
        return self.codebook.A

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape (H, S, A, S) of the dense counts."""
        return self.H, self.S, self.A, self.S

    @property
    def units(self) -> Units:
        """The units that rewards were rescaled from, to [0, 1]."""
        return Units(*self.reward_range)

    @property
    def zero_reward(self) -> float:
        """The reward of the absorbing state, rescaled to [0, 1]: it is zero in the user's units."""
        return float(self.units.of_a_step(np.zeros(())))

    nothing = alias("zero_reward")

    @property
    def absorbing_state(self) -> int | None:
        """The number of the absorbing state, in which episodes stay after an early end; None if there is none."""
        return self.S - 1 if self.codebook.absorbing else None

    rest = alias("absorbing_state")

    @property
    def counts(self) -> Counts:
        """The counts of the whole log. Each call makes new ones, because an agent adds to its counts.

        They hold the sums of rewards if the range of rewards is known.
        """
        return self._counts(self.n, "x_sa")

    @property
    def fold_counts(self) -> Counts:
        """The counts of step h in the episodes of fold h only, with the sums of their rewards."""
        return self._counts(self.n_fold, "x_fold")

    @property
    def folds(self) -> Ints:
        """The array (H, S, A, S) of `fold_counts`: step h counted in the episodes of fold h only."""
        return self.fold_counts.n_sas

    def _counts(self, n: Ints, sums: str) -> Counts:
        starts = np.flatnonzero(self.starts)
        s1 = int(starts[0]) if len(starts) == 1 else None
        x_sa = self._sums(n, sums) if self.declared else None
        return Counts(self._dense(n), x_sa=x_sa, n_start=self.starts, s1=s1, logged=True, copy=False)

    def _dense(self, values: Ints) -> Ints:
        full = np.zeros(int(np.prod(self.shape)), dtype=np.int64)
        full[self.place] = values
        return full.reshape(self.shape)

    def _by_pair(self, values: AnyArray, dtype: type = np.int64) -> AnyArray:
        """Return the sums over next states, always added in the same order."""
        total: AnyArray = np.zeros(self.H * self.S * self.A, dtype=dtype)
        np.add.at(total, self.place // self.S, values)
        return total.reshape(self.H, self.S, self.A)

    def _sums(self, n: Ints, name: str) -> Ints:
        if self.sums is not None:
            return np.asarray(getattr(self.sums, name))
        whole = np.floor(self.units.of_a_step(self.low) * REWARD_UNITS).astype(np.int64)  # as agents sum rewards
        return np.asarray(self._by_pair(n * whole))

    @cached_property
    def starts(self) -> Ints:
        """How often each state was the first, (S,)."""
        return read_only(self._by_pair(self.n)[0].sum(axis=-1))

    @cached_property
    def rewards(self) -> Rewards:
        """The mean, min, max and n of each pair."""
        n = self._by_pair(self.n)
        shape = self.H, self.S, self.A
        low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
        np.minimum.at(low.reshape(-1), self.place // self.S, self.low)
        np.maximum.at(high.reshape(-1), self.place // self.S, self.high)
        seen = n > 0
        if self.sums is None:
            total = self._by_pair(self.n * self.low, np.float64)
            mean = total / np.maximum(n, 1)
        else:
            share = (self.sums.x_sa + self.sums.rest_of_sum / REWARD_UNITS) / REWARD_UNITS / np.maximum(n, 1)
            mean = self.units.low + self.units.scale * share
        mean = np.where(low == high, low, mean)
        mean, low, high = (read_only(np.where(seen, values, np.nan)) for values in (mean, low, high))
        return Rewards(mean, low, high, read_only(n))

    @property
    def mean_return(self) -> float:
        """The mean return per episode of the logged policy, in the log's units."""
        paid = self.rewards
        return float(np.where(paid.n > 0, paid.mean * paid.n, 0.0).sum()) / self.episodes

    @property
    def by_pair(self) -> bool:
        """True if every pair, at each step, always paid the same. False if most pairs were seen only once."""
        n = self.rewards.n
        return bool(((n == 0) | (self.rewards.min == self.rewards.max)).all()) and _repeated(n)

    @property
    def by_transition(self) -> bool:
        """True if every transition, at each step, always paid the same. False if most were seen only once."""
        return self.sums is None and _repeated(self.n)

    @property
    def coverage(self) -> float:
        """The share of the pairs (step, state, action) that occur."""
        return self.pairs_seen / self.pairs

    @property
    def pairs_seen(self) -> int:
        """How many pairs (step, state, action) occur, those of the absorbing state apart."""
        return int((self.rewards.n[:, : len(self.codebook.states)] > 0).sum())

    @property
    def pairs(self) -> int:
        """How many pairs (step, state, action) there are. At the first step only first states are possible."""
        H, S, A = self.rewards.n[:, : len(self.codebook.states)].shape
        first = int((self.starts[:S] > 0).sum())
        return int(A * ((H - 1) * S + first))

    def problem(
        self,
        rewards: ArrayLike | None = None,
        *,
        unknown: bool = False,
        stationary: bool = False,
        start: ArrayLike | None = None,
    ) -> Problem:
        """Return what an agent may know: sizes, rewards, start. A report lists what you assert by it as premises.

        - rewards: your table (S, A) or (H, S, A) in the log's units. Without one, the rewards of the log are used if
          each pair (or each transition) always paid the same: then you assert that it always does. A pair that was
          never seen counts as the lowest reward of the range, so lower values hold and upper values do not
          (`rewards_at_least`). Rewards that vary, or of which too few were seen twice, are unknown, and certificates
          treat them so.
        - unknown: treat rewards as unknown although they did not vary.
        - stationary: neither dynamics nor rewards depend on the step.
        - start: the probabilities of the first states. Several first states without them are an unknown start.
        """
        if not self.declared:
            raise InvalidSetting(
                f"Rewards in the log lie in {self.reward_range[0]:g}..{self.reward_range[1]:g}. Declare which rewards "
                "are possible when the log is counted: count_log(..., reward_range=(low, high)), or --reward-range LOW "
                "HIGH. Bounds for a narrower range prove nothing."
            )
        if stationary and self.last_ends:
            raise InvalidLog(
                f"{self.last_ends:,} episodes terminated at the last step, and none before it. Counts pooled over "
                "steps would say that they continue. Leave stationary out, or, if the flag only shows the last step, "
                "count the log without the column terminated."
            )
        units, S, A = self.units, self.S, self.A
        first: dict[str, Any] = {"start": start}
        starts = np.flatnonzero(self.starts)
        if start is None:
            first = {"s1": int(starts[0])} if len(starts) == 1 else {"start": "unknown"}
        known: dict[str, Any] = {"r": np.zeros((self.H, S, A))}
        at_least = False
        if rewards is not None:
            known["r"] = self._table(rewards)
        elif not unknown and self.by_pair:
            known["r"], at_least = self._seen(self.place // S, (S, A), stationary)
        elif not unknown and self.by_transition:
            r_next, at_least = self._seen(self.place, (S, A, S), stationary)
            known = {"r_next": r_next}
        else:
            known = {"r": np.zeros((S, A)), "unknown": np.ones((S, A), dtype=np.bool_)}
        support: Bools | None = None
        if self.absorbing_state is not None:
            if "r" in known:
                known["r"][..., self.absorbing_state, :] = self.zero_reward
            else:
                known["r_next"][..., self.absorbing_state, :, :] = self.zero_reward
            if "unknown" in known:
                known["unknown"][self.absorbing_state] = False
            support = np.ones((S, A, S), dtype=np.bool_)
            support[self.absorbing_state] = False
            support[self.absorbing_state, :, self.absorbing_state] = True
        claims = {"stationary": stationary, "rewards_at_least": at_least}
        return Problem(**known, **first, **claims, H=self.H, units=units, support=support)

    def _table(self, rewards: ArrayLike) -> Floats:
        """Return the user's table, rescaled. The absorbing state may be left out of it."""
        table = as_floats("rewards", rewards, InvalidModel)
        S, A = len(self.codebook.states), self.A
        if table.shape not in ((S, A), (self.S, A), (self.H, S, A), (self.H, self.S, A)):
            raise InvalidModel(
                f"rewards has shape {table.shape}, expected (S, A) = ({S}, {A}), or (H, S, A) = ({self.H}, {S}, {A}), "
                "in the order of the codebook."
            )
        bad = np.argwhere(~((table >= self.units.low) & (table <= self.units.high)))
        if bad.size:
            raise InvalidModel(
                f"rewards{bad[0].tolist()} is {table[tuple(bad[0])]:g}, outside the range {self.reward_range}. Count "
                "the log again with a wider reward_range."
            )
        self._compare(table)
        full = np.zeros((*table.shape[:-2], self.S, A))
        full[..., : table.shape[-2], :] = self.units.of_a_step(table)
        return full

    def _compare(self, table: Floats) -> None:
        """Check that rewards which do not vary in the log are those of the table."""
        if not self.by_pair:
            return
        paid, S = self.rewards, min(table.shape[-2], len(self.codebook.states))
        given = np.broadcast_to(table[..., :S, :], (self.H, S, self.A))
        bad = np.argwhere((paid.n[:, :S] > 0) & ~(np.abs(paid.min[:, :S] - given) <= 1e-6 * self.units.scale))
        if bad.size:
            h, s, a = (int(i) for i in bad[0])
            raise InvalidLog(
                f"The table says that action {self.codebook.actions[a]!r} in state {self.codebook.state_label(s)!r} "
                f"pays {given[h, s, a]:g} at step {h}, but the log always paid {paid.min[h, s, a]:g} "
                f"({paid.n[h, s, a]:,} times). Is the table in the order of the codebook?"
            )

    def _seen(self, place: Ints, shape: tuple[int, ...], stationary: bool) -> tuple[Floats, bool]:
        """Return the rewards (H, *shape), rescaled; 0, the lowest one, where nothing was seen; and whether that occurs.

        Unseen pairs of the absorbing state do not matter: its reward is known.
        """
        size = int(np.prod(shape))
        paid = self.units.of_a_step(self.low)
        if not stationary:
            full = np.full(self.H * size, np.nan)
            full[place] = paid
            return self._filled(full.reshape(self.H, *shape), 1)
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(low, place % size, paid)
        np.maximum.at(high, place % size, paid)
        differs = np.flatnonzero(low < high)
        if differs.size:
            s, a = np.unravel_index(int(differs[0]), shape)[:2]
            raise InvalidLog(
                f"Action {self.codebook.actions[a]!r} in state {self.codebook.state_label(int(s))!r} paid differently "
                "at different steps: the rewards are not stationary. Leave stationary out."
            )
        return self._filled(np.where(np.isfinite(low), low, np.nan).reshape(shape), 0)

    def _filled(self, paid: Floats, states: int) -> tuple[Floats, bool]:
        """Put 0 for NaN, and return whether any NaN is in a state that is not absorbing. `states` is their axis."""
        own = paid if self.absorbing_state is None else np.delete(paid, self.absorbing_state, axis=states)
        return np.nan_to_num(paid, nan=0.0), bool(np.isnan(own).any())

    def save(self, path: str | Path) -> None:
        """Write the counts as .npz: plain arrays and JSON, with a version and a content hash."""
        about = {
            "episodes": self.episodes,
            "rows": self.rows,
            "seed": self.seed,
            "reward_range": self.reward_range,
            "declared": self.declared,
            "notes": self.notes,
            "H": self.H,
            "last_ends": self.last_ends,
        }
        arrays: dict[str, AnyArray] = {name: getattr(self, name) for name in TABLES}
        arrays |= {} if self.sums is None else self.sums._asdict()
        arrays |= {"log": np.array(json.dumps(about)), "codebook": codebook_text(self.codebook)}
        write_arrays(path, "log-counts", arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote."""
        _, arrays = read_arrays(path, {"log-counts": (*TABLES, "log", "codebook")}, Sums._fields)
        codebook = codebook_from(path, arrays)
        try:
            about = strict_json(str(arrays["log"]))
            low, high = (float(x) for x in about["reward_range"])
            sums = Sums(*(arrays[name] for name in Sums._fields)) if "x_sa" in arrays else None
            found = cls(
                H=int(about["H"]),
                codebook=codebook,
                episodes=int(about["episodes"]),
                rows=int(about["rows"]),
                seed=int(about["seed"]),
                reward_range=(low, high),
                declared=bool(about["declared"]),
                notes=tuple(str(note) for note in about["notes"]),
                sums=sums,
                last_ends=int(about["last_ends"]),
                **{name: arrays[name] for name in TABLES},
            )
        except (KeyError, TypeError, ValueError):
            raise InvalidFile(f"{path}: what it says about the log is damaged. Restore a copy.") from None
        return found._checked(path)

    def _checked(self, path: str | Path) -> Self:
        """Check that the tables fit together: sizes and totals first, because later checks allocate by them."""
        size, pairs = math.prod(self.shape), (self.H, self.S, self.A)
        tables = [getattr(self, name) for name in TABLES]
        kinds = [np.int64] * 3 + [np.float64] * 2
        sums = () if self.sums is None else self.sums
        sound = (
            1 <= self.H <= LONGEST
            and size <= LARGEST
            and self.n.ndim == 1
            and all(
                table.dtype == kind and table.shape == (len(self.n),) for table, kind in zip(tables, kinds, strict=True)
            )
            and all(table.dtype == np.int64 and table.shape == pairs and (table >= 0).all() for table in sums)
            and len(self.n) > 0
            and self.n.sum(dtype=np.float64) <= MOST_STEPS
            and self.seed >= 0
            and 0 <= self.last_ends <= self.episodes
            and (np.diff(self.place) > 0).all()
            and 0 <= self.place[0] <= self.place[-1] < size
            and ((self.n_fold >= 0) & (self.n_fold <= self.n) & (self.n >= 1)).all()
            and bool(np.isfinite(self.low).all() and np.isfinite(self.high).all() and (self.low <= self.high).all())
            and -np.inf < self.reward_range[0] < self.reward_range[1] < np.inf
            and self.reward_range[1] - self.reward_range[0] < np.inf
            and all(self.units.admits(float(end)) for end in (self.low.min(), self.high.max()))
            and self.episodes == int(self.starts.sum()) <= self.rows
            and (self.sums is not None or bool((self.low == self.high).all()))
            and all(
                bool((table <= self._by_pair(n) * REWARD_UNITS).all())
                for table, n in zip(sums, (self.n, self.n_fold, self.n), strict=False)
            )
        )
        if not sound:
            raise InvalidFile(f"{path}: its tables do not fit together. The file is damaged: restore a copy.")
        return self

    def __post_init__(self) -> None:
        freeze(self, **{name: getattr(self, name) for name in TABLES})

    def __repr__(self) -> str:
        sizes = f"H={self.H}, S={self.S}, A={self.A}"
        return f"LogCounts({sizes}, {self.episodes:,} episodes, {self.rows:,} rows, coverage {self.coverage:.0%})"


def _repeated(n: Ints) -> bool:
    """Return whether most rows are of places that were seen twice or more: only there can rewards be seen to vary."""
    return 2 * int(n[n > 1].sum()) >= int(n.sum())


def require_size(shape: tuple[int, ...], labels: Mapping[str, int]) -> None:
    """Refuse counts that would not fit into memory."""
    if int(np.prod([int(x) for x in shape], dtype=object)) > LARGEST:
        sizes = ", ".join(f"{name} = {size:,}" for name, size in labels.items())
        raise InvalidLog(
            f"Counts of ({sizes}) would take more than {LARGEST * 8 / 2**30:.0f} GiB. Use coarser states, or a shorter "
            "horizon."
        )
