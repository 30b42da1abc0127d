"""Tables of a model that is given as outcomes: probability, next state and reward, pair by pair."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Floats
from surefoot.errors import InvalidModel
from surefoot.model.rows import NO_VALUES, Rows, offsets, rows_from

MOST_LISTED = 2**15  # numbers of lists that say what no state leads to: each backup reads them
Outcome = tuple[int, int, float, float]  # pair, next state, probability, reward


class Outcomes(NamedTuple):
    """Outcomes with equal next states added up."""

    transitions: Rows
    earned: Floats  # for each entry, probability times reward
    lowest: float
    highest: float
    varied: bool  # do the rewards of some pair differ?

    @classmethod
    def of(cls, outcomes: Iterable[Outcome], S: int, A: int) -> "Outcomes":
        """Add up the outcomes, in the order in which they come. Those without probability are
        left out.
        """
        every = np.array(list(outcomes), dtype=np.float64).reshape(-1, 4)
        bad = np.flatnonzero(~np.isfinite(every[:, 2:]).all(axis=1))
        if bad.size:
            (s, a), (p, reward) = divmod(int(every[bad[0], 0]), A), every[bad[0], 2:]
            raise InvalidModel(
                f"P of state {s}, action {a} has an outcome with probability {p:g} that pays "
                f"{reward:g}, expected finite numbers. Remove NaN and inf at their source."
            )
        lowest, highest = min(float(every[:, 3].min()), 0.0), max(float(every[:, 3].max()), 0.0)
        every = every[every[:, 2] != 0.0]
        pair, place = every[:, 0].astype(np.int64), every[:, 1].astype(np.int64)
        p, reward = every[:, 2], every[:, 3]
        transitions = rows_from(pair, place, p, S, A)
        entry, _ = transitions.find(pair, place)
        earned = np.asarray(
            np.bincount(entry, p * reward, len(transitions.value)), dtype=np.float64
        )
        spread = np.full((2, S * A), -np.inf)
        np.maximum.at(spread[0], pair, reward)
        np.maximum.at(spread[1], pair, -reward)
        return cls(transitions, earned, lowest, highest, bool((spread.sum(axis=0) > 0.0).any()))

    def mean_rewards(self) -> Floats:
        """Return the mean reward (S, A) of each pair."""
        _, S, A = self.transitions.shape
        earned = np.bincount(self.transitions.places, self.earned, S * A)
        return np.asarray(earned, dtype=np.float64).reshape(S, A)


def with_start(rows: Rows, s: int, first: Floats) -> Rows:
    """Return the lists with the probabilities of the first states as those of every action in
    state s, the last one.
    """
    states = np.flatnonzero(first)
    sizes = rows.sizes
    sizes[s * rows.A :] = len(states)
    return rows._replace(
        first=offsets(sizes),
        state=np.concatenate([rows.state, np.tile(states, rows.A)]),
        value=np.concatenate([rows.value, np.tile(first[states], rows.A)]),
    )


def structure(S: int, A: int, absorbing_state: int, start: int | None) -> Rows:
    """Return the support that follows from how a problem is built: the absorbing state is
    permanent, the common start leads to the states before both, and no state leads to the start.

    The last is left out where that would take too many lists: then other states may lead anywhere,
    also to the start, and lower values hold all the same.
    """
    others = [] if start is None or S * A * S > MOST_LISTED else list(range(absorbing_state + 1))
    follow = [others] * S
    follow[absorbing_state] = [absorbing_state]
    if start is not None:
        follow[start] = list(range(absorbing_state))
    sizes = np.repeat([len(states) for states in follow], A)
    each = [np.tile(np.array(states, dtype=np.int64), A) for states in follow]
    return Rows(offsets(sizes), np.concatenate(each), NO_VALUES, S, A)
