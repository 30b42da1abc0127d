"""LogCounts: the counts of a log. Every method that learns from a log needs no more than this."""

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import AnyArray, Floats, Ints
from surefoot.base.files import read_arrays, strict_json, write_arrays
from surefoot.base.validation import LONGEST, REWARD_UNITS, as_array, as_floats, where
from surefoot.errors import InvalidFile, InvalidLog, InvalidModel, InvalidSetting
from surefoot.logs.codebook import (
    AS_LOGGED,
    Codebook,
    Label,
    codebook_from,
    codebook_text,
    coding_of,
)
from surefoot.logs.log_tables import MOST_STEPS, TABLES, LogTables, Sums, fits
from surefoot.model.given_rows import is_sparse, sparse_rows
from surefoot.model.problem import Problem
from surefoot.model.rows import Rows, first_outside
from surefoot.model.units import with_rescaled

CONTRADICTED = 1e-9  # how likely a true table of means may be refused because of the log
BY_NEXT_STATE = "as logged by next state"  # a declaration about rewards
NUMBERS = {  # what a file says in numbers
    "episodes": int,
    "rows": int,
    "seed": int,
    "declared": bool,
    "H": int,
    "last_ends": int,
    "after_end": float,
}


@dataclass(frozen=True, eq=False, repr=False)
class LogCounts(LogTables):
    """The counts of a log, made by `count_log`.

    - counts: how often each next state followed each pair, for the warm start of an agent
    - folds: (H, S, A, S), step h counted in the episodes of fold h only, for VI-LCB
    - rewards: mean, min, max and n of each pair (H, S, A), in the log's units
    - starts: (S,) how often each state was the first
    - codebook: the labels of states and actions
    - problem(): the task that the log describes, to learn in
    """

    def problem(
        self,
        rewards: ArrayLike | str | None = None,
        *,
        start: ArrayLike | Label | None = None,
        support: ArrayLike | str | None = None,
        stationary: bool = False,
        unit: str = "",
    ) -> Problem:
        """Return what an agent may know. What you do not declare here is unknown, whatever the log
        happens to show.

        - rewards: your table (S, A) or (H, S, A) in the log's units and the codebook's order. Or
          "as logged": you assert that each pair always pays what it paid; "as logged by next
          state": that each transition does. A pair that was never seen then counts as the lowest
          reward of the range, so lower values hold and upper values do not (`rewards_at_least`).
        - start: the label of the state in which every episode starts (or its number, where labels
          are text); the probabilities of the first states; or "as logged": you assert that the one
          first state of the log is the only one.
        - support: a mask (S, A, S) or (H, S, A, S) of the transitions that are possible; for many
          states a sparse matrix of scipy (S*A, S), or one for each step. Or "as logged": you assert
          that of the pairs in the log only the transitions seen are possible.
        - stationary: neither dynamics nor rewards depend on the step.
        - unit: what the rewards are counted in, such as "EUR", for people.

        The set of states is declared when the log is counted: `count_log(..., states=)`. If it was
        not, the problem has one more state, `unseen_state`, that every pair may lead to, that is
        never left, and that pays the minimum.
        """
        if not self.declared:
            low, high = float(self.low.min()), float(self.high.max())
            raise InvalidSetting(
                f"Rewards in the log lie in {low:g}..{high:g}. That is what was seen, not what is "
                "possible. Declare which rewards are possible when the log is counted: "
                "count_log(..., reward_range=(low, high)), or --reward-range LOW HIGH. Bounds for "
                "a narrower range prove nothing."
            )
        if stationary and self.H > 1 and self.last_ends and self.absorbing_state is None:
            raise InvalidLog(
                f"{self.last_ends:,} episodes terminated at the last step. If that is the "
                "process's own end, it may come at every step; nothing is paid after it, and 0 is "
                f"not in the range of rewards {self.reward_range}. Declare a range that holds 0, "
                "or after_end=x; or, if the flag only shows the last step, count the log without "
                "the column terminated."
            )
        if self.unseen_state is not None and self.units.low > 0.0 and self.absorbing_state is None:
            raise InvalidSetting(
                "The states were not declared, so an early end may come that the log does not "
                "show, and after it "
                f"nothing is paid. But 0 is below the range of "
                f"{self.units.low:g}..{self.units.high:g}. Declare a "
                'range that holds 0, or the states: count_log(..., states=[...]) or states="as '
                'logged".'
            )
        known = self._rewards(rewards, stationary)
        for state, paid in ((self.absorbing_state, self.zero_reward), (self.unseen_state, 0.0)):
            if state is not None and "r" in known:
                known["r"][..., state, :] = paid
            if state is not None and "unknown" in known:
                known["unknown"][state] = False
        if self.unseen_state is not None:
            known["rewards_at_least"] = True
        # Where the absorbing state pays nothing, `Problem.absorbing_state` finds it.
        said = self.after_end != 0.0 or self.unseen_state is not None or support is not None
        ended = self.absorbing_state if said else None
        made = Problem(
            **with_rescaled(known),
            **self._start(start),
            stationary=stationary,
            H=self.H,
            units=replace(self.units, name=unit),
            support=self._support(support, stationary),
            ended_state=ended,
            unseen_state=self.unseen_state,
        )
        return made.with_coding(coding_of(self.codebook), self.codebook.names)

    def with_all_states(self) -> Self:
        """The same counts for somebody who asserts that the states of the log are all there are."""
        book = self.codebook
        return replace(self, codebook=Codebook(book.states, book.actions, book.absorbing))

    def _rewards(self, rewards: ArrayLike | str | None, stationary: bool) -> dict[str, Any]:
        """Return the rewards as `Problem` takes them."""
        S, A = self.S, self.A
        if rewards is None:
            return {"r": np.zeros((S, A)), "unknown": np.ones((S, A), dtype=np.bool_)}
        if not isinstance(rewards, str):
            return {"r": self._table(rewards)}
        word = _word("rewards", rewards, (AS_LOGGED, BY_NEXT_STATE))
        if word == AS_LOGGED:
            self._require_constant()
            pair, paid, at_least = self._seen(self.place // self.occurring, 1, stationary)
            r = np.zeros((1 if stationary else self.H, self.occurring, A))
            r.reshape(-1)[pair] = paid
            r = self._widened(r, 1)
            return {"r": r[0] if stationary else r, "rewards_at_least": at_least}
        if self.sums is not None:
            raise InvalidLog(
                f"rewards is {rewards!r}, but the same transition paid differently at the same "
                "step: rewards are random. Leave `rewards` out, and they are unknown, or give a "
                "table of their means."
            )
        if stationary and self.last_ends:
            raise InvalidLog(
                f"rewards is {rewards!r}, but {self.last_ends:,} episodes terminated at the last "
                "step: what they were paid there may be for where they came, or for the end. Leave "
                "`rewards` out, and they are unknown; give a table of their means; or, if the flag "
                "only shows the last step, count the log without the column terminated."
            )
        place, paid, at_least = self._seen(self.place, self.occurring, stationary)
        keys, rows = self.keys(place), 1 if stationary else self.H
        if self.absorbing_state is not None:  # it always pays the same, wherever it leads
            own = keys // (A * S) % S != self.absorbing_state
            every = self._from(self.absorbing_state, rows)[:, None] * S + np.arange(
                S if self.zero_reward else 0
            )
            keys = np.append(keys[own], every)
            order, paid = (
                np.argsort(keys),
                np.append(paid[own], np.full(every.size, self.zero_reward)),
            )
            keys, paid = keys[order], paid[order]
        return {"r_next": Rows.of_keys(keys, (rows, S, A), paid), "rewards_at_least": at_least}

    def _from(self, state: int, rows: int) -> Ints:
        """Return the numbers of the lists of a state: one for each row and action."""
        return np.asarray(
            ((np.arange(rows)[:, None] * self.S + state) * self.A + np.arange(self.A)).reshape(-1)
        )

    def _require_constant(self) -> None:
        """Refuse the claim that each pair always pays the same where the log shows that it does
        not.
        """
        paid = self.rewards
        varied = np.argwhere((paid.n > 0) & (paid.min < paid.max))
        if varied.size:
            h, s, a = (int(i) for i in varied[0])
            out = "leave `rewards` out, and they are unknown, or give a table of their means"
            if self.sums is None:
                out = f'declare "{BY_NEXT_STATE}" if they depend on the next state; or {out}'
            raise InvalidLog(
                f"rewards is {AS_LOGGED!r}, but action {self.codebook.actions[a]!r} in state "
                f"{self.codebook.state_label(s)!r} paid from {paid.min[h, s, a]:g} to "
                f"{paid.max[h, s, a]:g} at step {h}. Expected the same at every visit: {out}."
            )

    def _start(self, start: ArrayLike | Label | None) -> dict[str, Any]:
        """Return the start as `Problem` takes it; refuse one that the log contradicts."""
        seen = np.flatnonzero(self.starts)
        if start is None or (isinstance(start, str) and start == "unknown"):
            return {"start": "unknown"}
        if (
            isinstance(start, str)
            and _plain(start) == AS_LOGGED
            and start not in self.codebook.states
        ):
            if len(seen) > 1:
                raise InvalidLog(
                    f"start is {start!r}, but episodes of the log start in {len(seen)} states. "
                    "Leave `start` out, and it is unknown, or give the probabilities of the states."
                )
            return {"s1": int(seen[0])}
        if isinstance(start, str | int | np.integer) and not isinstance(start, bool):
            weights = np.zeros(self.S)
            weights[self._first(start)] = 1.0
        else:
            weights = as_floats("start", start, InvalidModel)
            if weights.shape not in ((len(self.codebook.states),), (self.S,)):
                raise InvalidModel(
                    f"start has shape {weights.shape}, expected the probabilities of the "
                    f"{len(self.codebook.states)} states, in the order of the codebook."
                )
            weights = np.concatenate([weights, np.zeros(self.S - len(weights))])
        wrong = [int(s) for s in seen if weights[s] == 0.0]
        if wrong:
            raise InvalidLog(
                f"By `start` no episode starts in state {self.codebook.state_label(wrong[0])!r}, "
                f"but {self.starts[wrong[0]]:,} episodes of the log do. Correct it, or leave it "
                "out: it is then unknown."
            )
        return (
            {"s1": int(weights.argmax())} if np.count_nonzero(weights) == 1 else {"start": weights}
        )

    def _first(self, start: Label | np.integer[Any]) -> int:
        """Return the number of the state in which every episode starts."""
        states = self.codebook.states
        label = start if isinstance(start, str) else int(start)
        if label in states:
            return states.index(label)
        if isinstance(label, int) and isinstance(states[0], str) and 0 <= label < len(states):
            return label
        some = ", ".join(repr(state) for state in states[:5])
        raise InvalidSetting(
            f"start is {label!r}, expected the label of a state, such as {some}; the probabilities "
            f"of all states; or {AS_LOGGED!r}."
        )

    def _support(self, support: Any, stationary: bool) -> Rows | None:
        """Return the lists of possible next states, in which an added state leads to itself
        alone; None: all are.
        """
        S, A = self.S, self.A
        added = [state for state in (self.absorbing_state, self.unseen_state) if state is not None]
        keys, rows = np.zeros(0, dtype=np.int64), 1
        if support is None and not added:
            return None
        if support is not None:
            place = (
                np.unique(self.place % (self.occurring * A * self.occurring))
                if stationary
                else self.place
            )
            seen, rows = self.keys(place), 1 if stationary else self.H
            keys, rows = (
                (seen, rows) if self._as_logged(support) else self._declared(support, seen, rows)
            )
        for state in added:
            own = self._from(state, rows) * S + state
            keys = np.union1d(keys[keys // (A * S) % S != state], own)
        return Rows.of_keys(keys, (rows, S, A))

    def _as_logged(self, support: Any) -> bool:
        """Is the mask what the log shows? A pair that it does not show may lead anywhere."""
        if not isinstance(support, str):
            return False
        _word("support", support, (AS_LOGGED,))
        if self.codebook.unseen:
            raise InvalidSetting(
                f"support is {support!r}, which says that nothing else can happen, but the states "
                f"were not "
                f'declared. Count the log with states="{AS_LOGGED}", or with a list of all of them.'
            )
        return True

    def _declared(self, support: Any, seen: Ints, seen_rows: int) -> tuple[Ints, int]:
        """Return the keys of the user's mask, and how many steps it is for; refuse one that the log
        contradicts.

        A pair that may lead anywhere has none. Added states, if the mask leaves them out, may
        follow every pair.
        """
        S, A = self.S, self.A
        place, state, size, rows = self._mask(support)
        place = place // (size * A) * S * A + place % (size * A)
        sizes = np.bincount(place, minlength=rows * S * A)
        own = np.arange(len(sizes)) // A % S < size
        none = np.flatnonzero(own & (sizes == 0))
        if none.size and size == S:
            pair = divmod(int(none[0]) % (S * A), A)
            raise InvalidModel(
                f"{where('support', pair)} allows no next state, expected at least one."
            )
        limited = own & (sizes < size)
        others = np.flatnonzero(limited)[:, None] * S + np.arange(size, S)
        keys = np.union1d((place * S + state)[limited[place]], others)
        bad = first_outside(Rows.of_keys(seen, (seen_rows, S, A)), Rows.of_keys(keys, (rows, S, A)))
        if bad is not None:
            h, key = bad[0], int(seen[bad[1]])
            s, a, label = key // (A * S) % S, key // S % A, self.codebook.state_label
            raise InvalidLog(
                f"By `support` action {self.codebook.actions[a]!r} in state {label(s)!r} cannot "
                f"lead to state {label(key % S)!r} (step {h}), but in the log it did. Correct the "
                "mask, or leave it out."
            )
        return keys, rows

    def _mask(self, support: Any) -> tuple[Ints, Ints, int, int]:
        """Return the entries of the user's mask, as list and next state; for how many states it is,
        and how many steps.

        The absorbing state may be left out of it.
        """
        S, A, n = len(self.codebook.states), self.A, self.occurring
        if is_sparse(support):
            table, _ = sparse_rows("support", support, self.H)
            found = (*(() if table.rows == 1 else (table.rows,)), table.S, table.A, table.S)
            place, state = table.places, table.state
        else:
            mask = as_array(
                "support", support, "b", f"True or False for each of ({S}, {A}, {S})", InvalidModel
            )
            found = mask.shape
            place, state = np.nonzero(mask.reshape(-1, mask.shape[-1] if mask.ndim else 1))
        if found not in ((S, A, S), (n, A, n), (self.H, S, A, S), (self.H, n, A, n)):
            raise InvalidModel(
                f"support has shape {found}, expected ({S}, {A}, {S}), or ({self.H}, {S}, {A}, "
                f"{S}) step by step, in the order of the codebook."
            )
        return place, state, found[-1], 1 if len(found) == 3 else self.H

    def _table(self, rewards: ArrayLike) -> Floats:
        """Return the user's table, rescaled. The absorbing and the unseen state may be left out
        of it.
        """
        table = as_floats("rewards", rewards, InvalidModel)
        S, A = len(self.codebook.states), self.A
        fits = table.ndim in (2, 3) and table.shape[:-2] in ((), (self.H,)) and table.shape[-1] == A
        if not (fits and S <= table.shape[-2] <= self.S):
            raise InvalidModel(
                f"rewards has shape {table.shape}, expected (S, A) = ({S}, {A}), or (H, S, A) = "
                f"({self.H}, {S}, {A}), in the order of the codebook."
            )
        bad = np.argwhere(self.units.range.outside(table))
        if bad.size:
            raise InvalidModel(
                f"rewards{bad[0].tolist()} is {table[tuple(bad[0])]:g}, outside the range "
                f"{self.reward_range}. Count the log again with a wider reward_range."
            )
        self._compare(table)
        full = np.zeros((*table.shape[:-2], self.S, A))
        full[..., : table.shape[-2], :] = self.units.of_a_step(table)
        return full

    def _compare(self, table: Floats) -> None:
        """Check that rewards which do not vary in the log are those of the table, and that others
        are on average.

        By Hoeffding's inequality, for all numbers of visits at once, a true table of means is
        refused with probability at most CONTRADICTED.
        """
        paid, S = self.rewards, min(table.shape[-2], len(self.codebook.states))
        given = np.broadcast_to(table[..., :S, :], (self.H, S, self.A))
        n = np.maximum(paid.n[:, :S], 1)
        by_chance = np.sqrt(np.log(2.0 * given.size * n * (n + 1.0) / CONTRADICTED) / (2.0 * n))
        slack = 1e-6 + (0.0 if self.by_pair else by_chance)
        bad = np.argwhere(
            (paid.n[:, :S] > 0) & ~(np.abs(paid.mean[:, :S] - given) <= slack * self.units.scale)
        )
        if bad.size:
            h, s, a = (int(i) for i in bad[0])
            raise InvalidLog(
                f"The table says that action {self.codebook.actions[a]!r} in state "
                f"{self.codebook.state_label(s)!r} pays {given[h, s, a]:g} at step {h}, but the "
                f"log {'always' if self.by_pair else 'on average'} paid {paid.mean[h, s, a]:g} "
                f"({paid.n[h, s, a]:,} times). Is the table in the order of the codebook?"
            )

    def _seen(self, place: Ints, each: int, stationary: bool) -> tuple[Ints, Floats, bool]:
        """Return which places occurred, of `each` for every pair, what they paid, rescaled, and
        whether some place never occurred: it counts as 0, the lowest reward. Those of the absorbing
        state do not matter: it is known.
        """
        S, A, paid = self.occurring, self.A, self.units.of_a_step(self.low)
        size = S * A * each
        places, at = np.unique(place % size if stationary else place, return_inverse=True)
        low, high = np.full(len(places), np.inf), np.full(len(places), -np.inf)
        np.minimum.at(low, at, paid)
        np.maximum.at(high, at, paid)
        differs = np.flatnonzero(low < high)
        if differs.size:
            s, a = divmod(int(places[differs[0]]) // each % (S * A), A)
            raise InvalidLog(
                f"Action {self.codebook.actions[a]!r} in state {self.codebook.state_label(s)!r} "
                "paid differently at different steps: the rewards are not stationary. Leave "
                "stationary out."
            )
        known = 0 if self.absorbing_state is None else 1
        own = (places // each // A % S != self.absorbing_state).sum()
        return places, low, bool(own < (1 if stationary else self.H) * (S - known) * A * each)

    def save(self, path: str | Path) -> None:
        """Write the counts as .npz: plain arrays and JSON, with a version and a content hash."""
        about = {name: getattr(self, name) for name in (*NUMBERS, "reward_range", "notes")}
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
            sums = [arrays[name] for name in Sums._fields] if "x_sa" in arrays else None
            given: dict[str, Any] = {name: kind(about[name]) for name, kind in NUMBERS.items()}
            given |= {name: arrays[name] for name in TABLES}
            found = cls(
                codebook=codebook,
                reward_range=(low, high),
                notes=tuple(map(str, about["notes"])),
                sums=None if sums is None else Sums(*sums),
                **given,
            )
        except (KeyError, TypeError, ValueError):
            raise InvalidFile(
                f"{path}: what it says about the log is damaged. Restore a copy."
            ) from None
        return found._checked(path)

    def _checked(self, path: str | Path) -> Self:
        """Check that the tables fit together: sizes and totals first, because later checks
        allocate by them.
        """
        size, pairs = math.prod(self.shape), (self.H, self.occurring, self.A)
        of_n, of_low = (self.place, self.n, self.n_fold), (self.low, self.high)
        sums = () if self.sums is None else self.sums
        ends = (*self.reward_range, self.reward_range[1] - self.reward_range[0])
        sound = (
            1 <= self.H <= LONGEST
            and fits(self.H, self.S, self.A)
            and self.n.ndim == 1
            and all(table.dtype == np.int64 for table in (*of_n, *sums))
            and all(table.dtype == np.float64 for table in of_low)
            and all(table.shape == self.n.shape for table in (*of_n, *of_low))
            and all(table.shape == pairs and (table >= 0).all() for table in sums)
            and len(self.n) > 0
            and self.n.sum(dtype=np.float64) <= MOST_STEPS
            and self.seed >= 0
            and 0 <= self.last_ends <= self.episodes
            and (np.diff(self.place) > 0).all()
            and 0 <= self.place[0] <= self.place[-1] < size
            and ((self.n_fold >= 0) & (self.n_fold <= self.n) & (self.n >= 1)).all()
            and np.isfinite(of_low).all()
            and (self.low <= self.high).all()
            and np.isfinite(ends).all()
            and ends[0] < ends[1]
            and all(self.units.admits(float(end)) for end in (self.low.min(), self.high.max()))
            and (self.absorbing_state is None or self.units.admits(self.after_end))
            and self.episodes == int(self.starts.sum()) <= self.rows
            and (self.sums is not None or bool((self.low == self.high).all()))
            and all(
                bool((table <= self._by_pair(n) * REWARD_UNITS).all())
                for table, n in zip(
                    sums, (self.n, self.n_fold, self.n, self.n, self.n_fold), strict=False
                )
            )
        )
        if not sound:
            raise InvalidFile(
                f"{path}: its tables do not fit together. The file is damaged: restore a copy."
            )
        return self

    def __repr__(self) -> str:
        sizes = f"H={self.H}, S={self.S}, A={self.A}"
        return (
            f"LogCounts({sizes}, {self.episodes:,} episodes, {self.rows:,} rows, coverage "
            f"{self.coverage:.0%})"
        )


def _plain(given: str) -> str:
    """Write `as-logged` and `as_logged` as `as logged`."""
    return given.replace("-", " ").replace("_", " ").strip().lower()


def _word(name: str, given: str, allowed: tuple[str, ...]) -> str:
    """Return the declaration that was meant."""
    word = _plain(given)
    if word not in allowed:
        some = " or ".join(repr(each) for each in allowed)
        raise InvalidSetting(f"{name} is {given!r}, expected an array, or {some}.")
    return word
