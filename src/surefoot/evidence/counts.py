"""Counts: everything a plan may depend on. They are the whole state of an agent: saving them
saves the agent.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

import numpy as np

from surefoot.base.arrays import AnyArray, Ints
from surefoot.base.bets import between
from surefoot.base.digest import digest, one_row
from surefoot.base.files import read_arrays, write_arrays
from surefoot.base.nodes import EPISODE, OUTSIDE, spread
from surefoot.base.validation import REWARD_UNITS, require_bool, require_integer, require_size
from surefoot.errors import InvalidCounts, InvalidEpisode, InvalidFile
from surefoot.evidence.episode import BaselineLabel, Episode, require_indices, rescaled_bare
from surefoot.evidence.tables import CountTables, require_small
from surefoot.model.by_step import IN_A_FILE as STEPS_IN_A_FILE
from surefoot.model.by_step import StepCounts
from surefoot.model.origin import (
    DYNAMICS,
    SUMS,
    Origin,
    Range,
    next_own,
    ranges_from,
    shown,
    still_usable,
    with_range,
    with_ranges,
)
from surefoot.model.problem import Problem, require_problem
from surefoot.model.transitions import Transitions, read_lists
from surefoot.model.units import Units

IN_A_FILE = ("baseline_returns", "returns_of", "account", "account_of")
REQUIRED = ("n_sas", "list_shape", "played", "H", "episodes", "stream")
OPTIONAL = (
    *(
        "s1",
        "n_start",
        "logged",
        "basis",
        "x_sa",
        "z_sa",
        "origin",
        "ranges",
        "refused",
        "alarm",
        "unlike_table",
        "table_watch",
        "return_weights",
        "return_range",
    ),
    "logged_returns",
    *STEPS_IN_A_FILE,
    *IN_A_FILE,
)
PLANNED = tuple(f"planned_{name}" for name in (*REQUIRED, *OPTIONAL))


class Counts(CountTables):
    """How often each next state followed each pair: n_sas (H, S, A, S), or (1, S, A, S) when pooled
    over steps. What was seen is held in lists (`entries`), and n_sas is a copy.

    Beside it is what other certificates read: sums of rewards (x_sa) where rewards are unknown,
    first states (n_start), and the returns of whole baseline episodes: their number, their sum, and
    how they are spread over nodes. Rewards are summed in whole multiples of 2^-20, so no sum
    depends on the order of its parts. An agent that keeps a sum above the floor, not each episode,
    counts in the account what it has played; one that plans by a linear program keeps the basis of
    the last solution.

    Counts say what they are evidence about (`origin`) and which numbered episodes they hold
    (`ranges`). Those of `Counts.zeros(problem)` and `Counts.from_log(problem, ...)` do; those made
    by hand do if they are given `problem=problem`, by which YOU assert that they are of this
    problem, that they hold each episode once, and none was left out because of how it went.
    Unclaimed counts are at most trusted.

    `add` changes these counts in place (they are the state of an agent); all other methods leave
    them unchanged.
    """

    __slots__ = ()

    @classmethod
    def zeros(cls, problem: Problem, pooled: bool = False) -> Self:
        """The counts of no episodes. `pooled` requires a problem that is stationary."""
        require_problem(problem)
        if require_bool("pooled", pooled):
            require_stationary(problem)
        shape = (1 if pooled else problem.H, problem.S, problem.A)
        require_size("The counts", (*shape, 4), InvalidCounts)
        sums = None if problem.unknown_rows is None else np.zeros(shape, dtype=np.int64)
        start = problem.s1 if problem.one_start else None
        none = Transitions.none_yet(shape)
        counts = cls(none, problem.H, start, x_sa=sums, problem=problem)
        counts.pooled = pooled
        counts.keep_steps()
        return counts

    def keep_steps(self) -> None:
        """Keep apart, in place, what is seen at each step: where steps share a row and nothing
        is counted.
        """
        if self.shared and not self.episodes:
            self.steps = StepCounts.zeros(self.H, *self.shape[1:], rewards=self.x_sa is not None)

    @classmethod
    def from_log(cls, problem: Problem, episodes: Iterable[Episode], pooled: bool = False) -> Self:
        """Counts of logged episodes, to start an agent warm. By calling this you assert four
        things:

        - the log is complete: no episode was left out because of how it went;
        - whoever chose the actions used no information about the next state that is not in the
          recorded state;
        - the process is still the one that wrote the log;
        - alpha, support and the coding of states were not chosen by looking at it.

        KL certificates then hold for any baseline, also one made from the same log. The paper's
        bounds do not cover that, so agents with Bernstein refuse these counts. `baseline` of the
        logged episodes is ignored. The rewards of a bare Episode are in the user's units.
        """
        counts = cls.zeros(problem, pooled)
        if problem.unseen_state is not None:
            raise InvalidCounts(
                "The states of this problem were not declared, so the first visits of a log must "
                "be taken off: use count_log(...).counts, or declare the states."
            )
        for episode in episodes:
            if not isinstance(episode, Episode):
                raise InvalidEpisode(
                    f"Expected sf.Episode(states, actions), found {type(episode).__name__}."
                )
            counts.add_unnumbered(episode.unlabelled())
        counts.logged = True
        counts.number_as_log()
        return counts

    def number(self, source: str, first: int, last: int) -> None:
        """Say, in place, that these episodes of this source are held; refuse one that is held
        already.
        """
        self.ranges = with_range(self.ranges, Range(source, first, last))

    def number_as_log(self) -> None:
        """Number the episodes of a log, in place: a digest of all that was counted is their
        source.
        """
        if self.episodes:
            # the same of every view of one log
            seen, played = self.transitions.pooled(), self.played.sum(axis=0)
            source = digest([*map(one_row, seen.entries), one_row(played), self.n_start])
            self.ranges = (Range(f"log {source}", 0, self.episodes - 1),)

    def add(self, episode: Episode, number: tuple[str, int] | None = None) -> Self:
        """Count one episode, in place, and return these counts. One that is refused, for whatever
        reason, is not counted, and marks them (`refused`): without it they are selected, and prove
        nothing any more.

        `number` is its source and its number there, from 0 on. One that is held already is this
        very episode, given again: it is refused without a mark. An episode without a number gets
        the next one of these counts: it is counted as often as it is added, and counts that share
        such episodes, because one is a copy of the other, or both are copies of a third, cannot be
        merged.
        """
        self._require_open()
        try:
            if number is None:
                own = next_own(self.ranges)
            else:
                source, k = number
                k = require_integer("number", k, 0, InvalidEpisode)
                own = Range(str(source), k, k)
            paid, whose = self._read(episode)
        except Exception:
            self.refused += 1
            raise
        return self._count(episode, paid, whose, with_range(self.ranges, own))

    def add_unnumbered(self, episode: Episode) -> Self:
        """Count one episode of a run or a log, in place: those are numbered as a whole, when all
        are counted.
        """
        return self._count(episode, *self._read(episode), self.ranges)

    def _read(self, episode: Episode) -> tuple[Ints | None, BaselineLabel]:
        """Return what an episode paid, in whole multiples of 2^-20, where that is counted, and
        whose returns these counts hold after it; refuse one that does not fit.
        """
        if not isinstance(episode, Episode):
            raise InvalidEpisode(
                f"Expected sf.Episode(states, actions), found {type(episode).__name__}."
            )
        self._require_same_problem(episode)
        self._require_possible(episode)
        whose = BaselineLabel(self.returns_of or "", self.return_range)
        if episode.baseline:
            whose = self._whose(episode)
        paid = self._paid(episode) if self.x_sa is not None or episode.baseline else None
        return paid, whose

    def _count(
        self, episode: Episode, paid: Ints | None, whose: BaselineLabel, ranges: tuple[Range, ...]
    ) -> Self:
        """Count one episode, in place, after which these are the episodes that are held."""
        H, A = episode.actions.size, self.shape[2]
        row, states, actions = self.row(np.arange(H)), episode.states[:-1], episode.actions
        pairs = row, states, actions
        counted = H if self.counts_next(H - 1) else H - 1
        self.transitions.add(
            row[:counted], states[:counted], actions[:counted], episode.states[1 : counted + 1]
        )
        np.add.at(self.played, pairs, 1)
        self.episodes += 1
        self.n_start[episode.states[0]] += 1
        if self.steps is not None:
            self.steps.add(episode.states[:-1] * A + episode.actions, episode.states[1:], paid)
        if paid is not None:
            if self.x_sa is not None and self.z_sa is not None:
                np.add.at(self.x_sa, pairs, paid)
                np.add.at(self.z_sa, pairs, between(paid))
            if episode.baseline:
                label = episode.baseline if isinstance(episode.baseline, str) else ""
                self.return_range = whose.returns
                self.count_return(int(paid.sum()), BaselineLabel.read(label).returns is not None)
        if episode.entry is not None:
            self.account += entered(bool(episode.baseline), episode.entry)
        self.ranges, self.returns_of, self.return_range = (
            ranges,
            whose.fingerprint or None,
            whose.returns,
        )
        return self

    def count_return(self, earned: int, as_evidence: bool = True) -> None:
        """Count, in place, the return of a baseline episode, in 2^-20. As evidence: decided
        before it began.
        """
        self.baseline_returns += np.array([1, earned])
        if as_evidence and self.return_range is not None:
            k, above = spread(earned, *self.return_range)
            self.return_weights[k] += 1 if k == OUTSIDE else EPISODE - above
            if above:
                self.return_weights[k + 1] += above

    def _whose(self, episode: Episode) -> BaselineLabel:
        """Return whose returns these counts hold after this baseline episode; refuse another
        baseline's.

        Only Episode.of works out a return as the agents of a problem do: that of a bare episode is
        unclaimed.
        """
        worked_out = episode.origin is not None and episode.origin.rewards is not None
        stated = BaselineLabel("")
        if worked_out and isinstance(episode.baseline, str):
            stated = BaselineLabel.read(episode.baseline)
        if self.returns_of is None:
            return BaselineLabel("") if self.baseline_returns[0] else stated
        same_range = (
            None in (stated.returns, self.return_range) or stated.returns == self.return_range
        )
        if stated.fingerprint == self.returns_of and same_range:
            return BaselineLabel(self.returns_of, self.return_range or stated.returns)
        found = (
            "was played by another baseline"
            if stated.fingerprint
            else "does not say which baseline played it"
        )
        if stated.fingerprint == self.returns_of:
            found = "says that its returns have another range"
        raise InvalidEpisode(
            f"These counts hold returns of one baseline, and the episode {found}. It was not "
            "counted. Build it with sf.Episode.of(problem, ..., baseline=drawn.baseline), with "
            "drawn = plan.draw(rng, episode=k), and give each baseline counts of its own."
        )

    def _require_possible(self, episode: Episode) -> None:
        """Refuse an episode that does not have the steps, the states or the start of these
        counts.
        """
        _, S, A = self.shape
        H = episode.actions.size
        if self.H != H:
            raise InvalidEpisode(
                f"The episode has {H} steps, these counts have {self.H}. Episodes must be complete."
            )
        for name, values, size in (("states", episode.states, S), ("actions", episode.actions, A)):
            require_indices(name, values, size)
        if self.s1 is not None and episode.states[0] != self.s1:
            raise InvalidEpisode(
                f"states[0] is {episode.states[0]}, expected s1 = {self.s1}. The episode was not "
                "counted: the promise is about episodes that start there."
            )

    def _require_open(self) -> None:
        """Refuse any episode where the first visits are taken off."""
        if self.origin is not None and self.origin.first_visits is not None:
            raise InvalidEpisode(
                "The first visits of these counts are taken off, because the states of their log "
                "were not declared: nothing can be added to them. Declare the states: "
                "count_log(..., states=[...])."
            )

    def _require_same_problem(self, episode: Episode) -> None:
        """Refuse an episode of another problem."""
        if episode.origin is not None and self.origin is not None:
            differ = episode.origin.differing(self.origin)
            if differ:
                found = shown(differ, self.origin, episode.origin)
                raise InvalidEpisode(
                    f"The episode was made for another problem ({found}). It was not counted: use "
                    "sf.Episode.of with the problem of these counts."
                )

    def _paid(self, episode: Episode) -> Ints:
        """The rewards in whole multiples of 2^-20, rounded down."""
        learnt = episode.learnt
        if learnt is None and episode.rewards is None:
            why = (
                "its rewards are unknown"
                if self.x_sa is not None
                else "it was played by the baseline"
            )
            raise InvalidEpisode(
                f"The episode has no rewards, but {why}: build it with sf.Episode.of(problem, "
                "states, actions, rewards). The episode was not counted."
            )
        if learnt is None:
            assert episode.rewards is not None
            learnt = rescaled_bare(
                episode.rewards,
                Units() if self.origin is None else Units(*self.origin.reward_range),
            )
        return np.floor(learnt * REWARD_UNITS).astype(np.int64)

    def merge(self, other: "Counts") -> "Counts":
        """New counts of both. Sound only for complete logs: no episode may be selected by its
        outcome.

        Both must be evidence about the same: another coding, start, range or table of rewards is
        refused, and so is an episode that both hold.
        """
        mismatch = f"{self} and {other} do not belong together."
        if (self.shape, self.pooled, self.H) != (other.shape, other.pooled, other.H):
            raise InvalidCounts(mismatch)
        self.require_unselected()
        other.require_unselected()
        self._require_same_origin(other)
        if (self.x_sa is None) != (other.x_sa is None):
            raise InvalidCounts(f"{mismatch} Only one of them holds sums of rewards.")
        both = self.copy()
        both.ranges = self._ranges_with(other)
        both.transitions.add_entries(other.entries)
        both.played += other.played
        both.episodes += other.episodes
        both.n_start += other.n_start
        whose = [counts.returns_of for counts in (self, other) if counts.baseline_returns[0]]
        accounts = [counts.account_of for counts in (self, other) if counts.account.any()]
        # proved on two events: together at 2 delta
        entries = all(counts.account[1] for counts in (self, other))
        if len(set(whose)) > 1 or len(set(accounts)) > 1 or entries:
            raise InvalidCounts(
                "These counts hold returns of different baselines, or accounts of two agents. Use "
                "forget_returns() on one of them."
            )
        if (
            self.return_weights.any()
            and other.return_weights.any()
            and self.return_range != other.return_range
        ):
            raise InvalidCounts(
                f"The returns of one lie in {self.return_range}, those of the other in "
                f"{other.return_range} (least and span, in 2^-20): they cannot be added. Use "
                "forget_returns() on one of them."
            )
        both.baseline_returns += other.baseline_returns
        both.return_weights += other.return_weights
        both.logged_returns += other.logged_returns
        both.return_range = self.return_range if self.return_weights.any() else other.return_range
        both.account += other.account
        both.returns_of = whose[0] if whose else self.returns_of
        both.account_of = accounts[0] if accounts else self.account_of
        both.basis, both.alarm = None, self.alarm or other.alarm
        both.logged |= other.logged
        # Steps are compared by all that was kept apart, also where that is a part of the episodes.
        kept = [counts.steps for counts in (self, other) if counts.steps is not None]
        both.steps = kept[0].copy() if kept else None
        for more in kept[1:]:
            both.steps = None if both.steps is None else both.steps.merged(more)
        both.playing = self.playing or other.playing
        both.unlike_table += other.unlike_table
        bets = [counts.table_bets for counts in (self, other) if counts.table_bets is not None]
        # capital that is won in turn multiplies
        both.table_bets = np.sum(bets, axis=0) if bets else None
        if both.x_sa is not None and other.x_sa is not None:
            both.x_sa += other.x_sa
        if both.z_sa is not None and other.z_sa is not None:
            both.z_sa += other.z_sa
        held = [counts.origin for counts in (self, other) if counts.episodes] or [self.origin]
        both.origin = held[0]
        for one in held[1:]:
            if one is None or both.origin is None:
                both.origin = None
            else:  # what they differ in, and do not depend on, is unclaimed
                both.origin = both.origin.filled(one).without(*both.origin.differing(one))
        return both

    def _require_same_origin(self, other: "Counts") -> None:
        """Refuse counts that are evidence about something else, in any part that what they hold
        depends on.
        """
        if (
            self.origin is not None
            and other.origin is not None
            and self.episodes
            and other.episodes
        ):
            returns = self.baseline_returns[0] or other.baseline_returns[0]
            needed = (
                *DYNAMICS,
                *(("start",) if returns or (self.n_start.any() and other.n_start.any()) else ()),
            )
            parts = (*needed, *SUMS) if returns or self.x_sa is not None else needed
            differ = other.origin.differing(self.origin, parts) or self.origin.differing(
                other.origin, parts
            )
            if self.origin.first_visits != other.origin.first_visits:
                differ = (*differ, "first_visits")
            if differ:
                raise InvalidCounts(
                    "The other counts are evidence about something else "
                    f"({shown(differ, other.origin, self.origin)}). {still_usable(differ)}"
                )
        for mine, its in ((self, other), (other, self)):
            elsewhere = np.flatnonzero(its.n_start)
            if (
                mine.s1 is not None
                and mine.n_start.any()
                and elsewhere.size
                and (elsewhere != mine.s1).any()
            ):
                raise InvalidCounts(
                    f"Episodes of one start in state {mine.s1}, those of the other elsewhere, too: "
                    f"together they are no sample of first states. {still_usable(('start',))}"
                )

    def _ranges_with(self, other: "Counts") -> tuple[Range, ...]:
        """Return the episodes of both; refuse counts that hold the same."""
        ranges = with_ranges(self.ranges, other.ranges)
        same = self.transitions == other.transitions and np.array_equal(self.played, other.played)
        same = same and np.array_equal(self.n_start, other.n_start)
        if self.x_sa is not None and other.x_sa is not None:
            same = same and np.array_equal(self.x_sa, other.x_sa)
        if self is other or (self.episodes and same):
            raise InvalidCounts(
                "Both hold exactly the same: evidence counts once. If these are two logs that "
                "happen to agree, give the episodes of both to one Counts.from_log(problem, "
                "episodes)."
            )
        return ranges

    def save(self, path: str | Path) -> None:
        """Write as .npz: plain arrays and a line of JSON, nothing that runs when it is read.

        The counts of the plan in force are part of it, so that an agent continues with the same
        plan.
        """
        write_arrays(path, "counts", self.arrays())

    def arrays(self, claims: bool = True) -> dict[str, AnyArray]:
        """The content of these counts as named arrays; without `claims`, not what they are
        evidence about.
        """
        arrays = {
            **self._transitions_in_a_file(),
            "H": np.int64(self.H),
            "episodes": np.int64(self.episodes),
        }
        arrays["played"] = self.played[0] if self.pooled else self.played
        if self.s1 is not None:
            arrays["s1"] = np.int64(self.s1)
        arrays |= {"n_start": self.n_start, "logged": np.bool_(self.logged)}
        arrays["stream"] = np.asarray(self.stream)
        for name in IN_A_FILE:
            value = getattr(self, name)
            if value is not None:
                arrays[name] = np.asarray(value)
        if self.basis is not None:
            arrays["basis"] = self.basis
        if self.x_sa is not None:
            arrays["x_sa"] = self.x_sa[0] if self.pooled else self.x_sa
        if self.z_sa is not None and self.z_sa.any():
            arrays["z_sa"] = self.z_sa[0] if self.pooled else self.z_sa
        arrays |= {} if self.steps is None else self.steps.arrays()
        if self.logged_returns:
            arrays["logged_returns"] = np.int64(self.logged_returns)
        if self.return_range is not None:
            arrays |= {
                "return_weights": self.return_weights,
                "return_range": np.array(self.return_range),
            }
        marks = {"refused": self.refused, "alarm": self.alarm, "unlike_table": self.unlike_table}
        arrays |= {name: np.asarray(mark) for name, mark in marks.items() if mark}
        arrays |= {} if self.table_bets is None else {"table_watch": self.table_bets}
        if claims and self.origin is not None:
            arrays["origin"] = np.asarray(self.origin.as_text)
        if claims and self.ranges:
            arrays["ranges"] = np.asarray(json.dumps(self.ranges))
        if self.planned is not None:
            arrays |= {
                f"planned_{name}": array for name, array in self.planned.arrays(claims).items()
            }
        return {name: np.asarray(array) for name, array in arrays.items()}

    def _transitions_in_a_file(self) -> dict[str, AnyArray]:
        """The transitions, (3, transitions), and their rows, states and actions."""
        _, S, A = self.shape
        return {
            "n_sas": np.stack(self.entries),
            "list_shape": np.array((0 if self.pooled else self.H, S, A)),
        }

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; validated like any other input."""
        return cls.from_arrays(
            path, read_arrays(path, {"counts": REQUIRED}, (*OPTIONAL, *PLANNED))[1]
        )

    @classmethod
    def from_arrays(cls, path: str | Path, arrays: Mapping[str, AnyArray]) -> Self:
        """Build counts from what `arrays` returned."""
        if any(name not in arrays for name in REQUIRED):
            raise InvalidFile(
                f"{path}: its counts are not all there: the file is damaged. Restore a copy."
            )
        kinds = {
            "H": "i",
            "s1": "i",
            "episodes": "i",
            "logged": "b",
            "returns_of": "U",
            "account_of": "U",
            "stream": "U",
        }
        kinds |= {
            "refused": "i",
            "unlike_table": "i",
            "alarm": "U",
            "origin": "U",
            "ranges": "U",
            "logged_returns": "i",
        }
        for name, kind in kinds.items():
            if name in arrays and (arrays[name].ndim != 0 or arrays[name].dtype.kind != kind):
                meaning = "text" if kind == "U" else "one whole number"
                raise InvalidFile(
                    f"{path}: {name} is not {meaning}: the file is damaged. Restore a copy."
                )
        H, s1 = int(arrays["H"]), int(arrays["s1"]) if "s1" in arrays else None
        require_small(path, arrays, H, ["baseline_returns", "account"])
        spans = arrays.get("return_range")
        if spans is not None and (spans.shape != (2,) or spans.dtype.kind != "i"):
            raise InvalidFile(
                f"{path}: return_range is not two whole numbers: the file is damaged. Restore a "
                "copy."
            )
        whose = {name: arrays[name] for name in ("returns_of", "account_of") if name in arrays}
        shape = arrays["list_shape"]
        pooled = bool(shape.shape == (3,) and shape[0] == 0)
        seen = read_lists(arrays["n_sas"], np.maximum(shape, [1, 0, 0]) if pooled else shape)
        counts = cls(
            seen,
            H,
            s1,
            played=arrays["played"],
            episodes=int(arrays["episodes"]),
            x_sa=arrays.get("x_sa"),
            z_sa=arrays.get("z_sa"),
            n_start=arrays.get("n_start"),
            baseline_returns=arrays.get("baseline_returns"),
            logged=bool(arrays.get("logged", False)),
            account=arrays.get("account"),
            basis=arrays.get("basis"),
        )
        counts.pooled, counts.H = pooled, H if pooled else counts.shape[0]
        for name, fingerprint in whose.items():
            setattr(counts, name, str(fingerprint))
        if spans is not None:
            counts.hold_returns(
                arrays.get("return_weights", np.zeros(0)), (int(spans[0]), int(spans[1]))
            )
        counts.logged_returns, counts.alarm = (
            int(arrays.get("logged_returns", 0)),
            str(arrays.get("alarm", "")),
        )
        counts.steps = StepCounts.from_arrays(path, arrays, (counts.H, *counts.shape[1:]))
        counts.stream = str(arrays["stream"])
        counts._read_claims(path, arrays)
        before = {
            name.removeprefix("planned_"): array
            for name, array in arrays.items()
            if name.startswith("planned_")
        }
        if "n_sas" in before:
            counts.planned = cls.from_arrays(path, before)
            if (
                counts.planned.shape != counts.shape
                or (counts.transitions.beyond(counts.planned.transitions).n < 0).any()
            ):
                raise InvalidFile(
                    f"{path}: its plan is of other counts: the file is damaged. Restore a copy."
                )
        if counts.s1 is not None and counts.s1 >= counts.shape[1]:
            raise InvalidFile(
                f"{path}: s1 is {counts.s1}, no state of these counts: the file is damaged."
            )
        return counts

    def _read_claims(self, path: str | Path, arrays: Mapping[str, AnyArray]) -> None:
        """Read what a file says that its counts are evidence about. Where it says nothing they
        are unclaimed.
        """
        try:
            self.refused = require_integer(
                "refused", int(arrays.get("refused", np.int64(0))), 0, InvalidFile
            )
            unlike = int(arrays.get("unlike_table", np.int64(0)))
            self.unlike_table = require_integer("unlike_table", unlike, 0, InvalidFile)
            self.table_bets = arrays.get("table_watch")
            if "origin" in arrays:
                self.origin = Origin.from_text(str(arrays["origin"]))
            self.ranges = ranges_from(str(arrays["ranges"])) if "ranges" in arrays else ()
            if self.numbered > self.episodes:
                raise ValueError("more episodes than are counted")
        except (ValueError, TypeError, InvalidCounts):
            raise InvalidFile(
                f"{path}: what it says of the origin of its counts is damaged. Restore a copy."
            ) from None


def require_stationary(problem: Problem) -> None:
    """Refuse to pool counts over steps unless the problem says that the dynamics do not depend
    on the step.
    """
    if not problem.stationary:
        raise InvalidCounts(
            "Counts pooled over steps need dynamics that are the same at every step; this problem "
            "does not claim so. If they are, use TabularMDP(P, r, H=...) with P of shape (S, A, "
            "S), or Problem(..., stationary=True)."
        )


def entered(baseline: bool, entry: float) -> Ints:
    """Return what one episode adds to an account; values are rounded down."""
    if baseline:
        return np.array([1, 0, 0])
    return np.array([0, 1, int(np.floor(entry * REWARD_UNITS))])
