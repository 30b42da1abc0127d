"""Learner: for a process that has its own loop. begin, act, observe, end; counts change only
when an episode ends.
"""

import math
import threading
from collections.abc import Callable
from functools import partial
from typing import NoReturn

import numpy as np

from surefoot.agents.base import Agent, adapted
from surefoot.agents.freezing import frozen
from surefoot.agents.plan import Plan
from surefoot.agents.schedule import PlanInForce, must_replan
from surefoot.audit.ledger import Ledger
from surefoot.audit.premises import Contradiction, Premises
from surefoot.audit.watchdog import Alarm, Watch, Watchdog, begin_watch
from surefoot.base.arrays import Floats
from surefoot.base.digest import digest
from surefoot.base.text import number_text
from surefoot.base.validation import as_number, require_integer, told
from surefoot.bounds.declared_rewards import beyond_table, rounding
from surefoot.errors import InvalidCounts, InvalidEpisode, InvalidSetting, SurefootError
from surefoot.evidence.counts import Counts
from surefoot.evidence.episode import Episode, require_state
from surefoot.evidence.fitting import require_no_alarm
from surefoot.model.origin import Range, with_range
from surefoot.model.policy import check_policy, draw
from surefoot.run.alarms import OnAlarm, require_on_alarm, tell_alarm
from surefoot.run.early_ends import paid_after_end
from surefoot.run.marks import Mark
from surefoot.run.streams import stream_of


class Learner:
    """A thin shell around an agent and its counts.

        learner = Learner(agent, seed=0)
        learner.begin()                          # plans; the policy is frozen for this episode
        a = learner.act(state)                   # at each step
        learner.observe(next_state, reward)
        learner.end()                            # counts the episode

    Every step draws from a generator of its own, made of (seed, episode, step) alone, and the
    counts remember those of the plan in force, so a learner that continues from saved counts and
    the number of episodes acts as if it had never stopped. The process may use the same seed: no
    generator that numpy makes of it draws these numbers. One episode is under way at a time:
    processes that run side by side need a learner each.

    Every episode that was begun is counted, or leaves its mark (`counts.refused`), and nothing is
    proved from counts with a mark: nobody knows why an episode was dropped, and where it was
    because of what came out of it, only good outcomes are left. An outcome that is refused marks
    the counts until the right one is given. What a crash leaves are counts that were saved before
    the episode: whoever goes on from them says that it had nothing to do with what came out.
    """

    def __init__(
        self,
        agent: Agent,
        seed: int,
        counts: Counts | None = None,
        episodes: int | None = None,
        absorbing_state: int | None = None,
        ledger: Ledger | None = None,
        watchdog: Watchdog | Watch | None = None,
        *,
        after_end: float | None = None,
        on_alarm: OnAlarm | None = None,
        premises: Premises | None = None,
    ) -> None:
        """With saved `counts` it continues after the episodes they hold, unless `episodes` says
        otherwise.

        `absorbing_state` is where an episode stays after `terminated`; left out, it is the
        problem's own, if it has one. What is paid there is what the problem says; where it does not
        know, nothing, or `after_end` at each step, in the user's units: needed where 0 is not a
        possible reward. In a `ledger` every plan is written before it is played.

        Where the problem has an unseen state (of a log whose states were not declared), an episode
        that gets there stays there to its last step, whatever is observed afterwards: what is
        proved is proved for that.

        A `watchdog` looks at the return of every episode that ends; and where the problem knows
        rewards, those that are observed are held against its table, at an alpha of 0.01 of their
        own. After an alarm of either (`alarm`) the baseline alone is played, permanently; episodes
        are still counted, as the record of what happened. The alarm is a warning in the log
        "surefoot", and `on_alarm(alarm)` is called once the episode is counted (or, where the state
        that was given had raised it before, at the first `begin`). `save_learner` keeps counts,
        watch, ledger and `premises`, what was seen of the table, in one.
        """
        self.agent = agent
        self._agent = adapted(agent)
        problem = self._agent.problem
        self.seed = require_integer("seed", seed, 0, InvalidSetting)
        self.counts = Counts.zeros(problem, self._agent.pooled) if counts is None else counts
        self._agent.take_over(self.counts)
        self._returns_of = self.counts.returns_of
        self.source = f"live {digest([self.seed, self._agent.fingerprint, problem.fingerprint])}"
        played = self.counts.episodes if episodes is None else episodes
        self.episodes = require_integer("episodes", played, 0, InvalidSetting)
        given = absorbing_state
        self.ends = given, after_end  # what was said about early ends
        if (
            given is not None
            and require_integer("absorbing_state", given, 0, InvalidSetting) >= problem.S
        ):
            raise InvalidSetting(
                f"absorbing_state is {given}, expected a state in 0..{problem.S - 1}."
            )
        self.absorbing_state: int | None = problem.absorbing_state if given is None else given
        self.after_end = paid_after_end(problem, self.absorbing_state, after_end)
        # may be left, for all that is known
        self._ends_only = given is not None and not problem.never_left(given)
        self.ledger = ledger
        self.watch = None if watchdog is None else begin_watch(watchdog, agent)
        if premises is not None and not isinstance(premises, Premises):
            raise InvalidSetting(
                f"premises is {told(premises)}, expected those of a learner, or None."
            )
        self.premises = Premises.of(self._agent, self.counts) if premises is None else premises
        if self.alarm is None:
            require_no_alarm(self.counts)
        if self._agent.plays_baseline:
            self.counts.keep_steps()
        elif not self.counts.episodes:
            self.counts.steps = None  # nothing is promised that would rest on it
        self._mark_alarm()
        require_on_alarm(on_alarm)
        self.tell: Callable[[Alarm | Contradiction], None] = partial(tell_alarm, on_alarm=on_alarm)
        self._told = False  # was it told that there is an alarm?
        self.plan: Plan | None = None
        self._states: list[int] = []
        self._actions: list[int] = []
        self._rewards: list[float] = []
        self._baseline: bool | str = False
        self._pi: Floats | None = None
        self._computed_from: Counts | None = None  # the counts that the plan was computed from
        self._in_force: PlanInForce | None = None
        # of the plan in force, and as they were checked
        self._policies: list[tuple[Floats, Floats]] = []
        self._stream = stream_of(self.counts, self.seed)
        self._over = False
        # rewards observed in this episode that were not those that the problem knows
        self._unlike_table = 0
        # what they are more in all, rescaled; None: some were not told
        self._beyond_table: float | None = 0.0
        self._lock = threading.RLock()
        self._mark = Mark(self.counts, self._lock)

    def __repr__(self) -> str:
        alarm = "ALARM, only the baseline is played: " if self.counts.alarm else ""
        under_way = f", step {self.step} of one more" if self._pi is not None else ""
        differ = self.counts.unlike_table
        unlike = f", {differ:,} rewards observed were not those of the table" if differ else ""
        return (
            f"Learner({alarm}{self.agent!r}, seed={self.seed}, {self.episodes} episodes "
            f"played{under_way}{unlike})"
        )

    @property
    def alarm(self) -> Alarm | Contradiction | None:
        """Why the baseline alone is played: the alarm that was raised first; None while there is
        none.
        """
        if self.premises.alarm is not None:
            return self.premises.alarm
        return None if self.watch is None else self.watch.alarm

    @property
    def under_way(self) -> bool:
        """Has an episode begun that is not counted yet?"""
        return self._pi is not None

    @property
    def step(self) -> int:
        """The number of steps observed in this episode."""
        return max(0, len(self._states) - 1)

    @property
    def state(self) -> int:
        """The state observed last."""
        return self._states[-1]

    def begin(self) -> Plan:
        """Replan if it is time to, toss the coin if there is one, start in s1 (or where the
        first `act` says).
        """
        with self._lock:
            self._tell_alarm()
            return self._begin()

    def _begin(self) -> Plan:
        """Begin, while no other thread does anything: two that begin together would mix what
        they saw.
        """
        if self._pi is not None:
            raise InvalidEpisode(
                "An episode is under way. Call end() when it is complete; rewind() to play it "
                "again, from the same seed; or abandon() to drop it, which marks the counts: "
                "nothing is proved from them any more."
            )
        problem = self._agent.problem
        if self._returns_of is not None and self.counts.returns_of != self._returns_of:
            raise InvalidCounts(
                "These counts now belong to another learner, with another baseline, which has "
                "taken them over. Give each learner counts of its own. Nothing was played."
            )
        self._mark.require_none()
        # refused before it is played
        with_range(self.counts.ranges, Range(self.source, self.episodes, self.episodes))
        self._stream.begin(self.episodes)
        self.plan = self._frozen_plan() if self.counts.alarm else self._next_plan()
        if self.ledger is not None:
            self.ledger.write(self.plan)
        drawn = self.plan.toss(self._stream.coin())
        self._pi, self._baseline = self._checked(drawn.policy), self._agent.whose(drawn.baseline)
        self._states, self._actions, self._rewards = [], [], []
        self._unlike_table, self._beyond_table = 0, 0.0
        if problem.one_start:
            self._states.append(problem.s1)
        self._over = False
        self._mark.begin(not problem.one_start)
        return self.plan

    def _checked(self, policy: Floats) -> Floats:
        """Return a policy of the plan in force, checked once for all its episodes: with many states
        that takes longer than these. A copy: whatever becomes of the array, what was checked is
        played.
        """
        for given, checked in self._policies:
            if given is policy:
                return checked
        self._policies.append((policy, check_policy(np.array(policy), self._agent.problem)))
        return self._policies[-1][1]

    def _plan_from(self, counts: Counts, rng: np.random.Generator) -> Plan:
        """Return the agent's plan from these counts, of which no policy was checked yet."""
        # first: wherever planning is interrupted, the last plan is not taken for this one
        self.plan = None
        self._policies, self._computed_from, self._in_force = [], self.counts.planned, None
        return self._agent.next_plan(counts, rng)

    def _next_plan(self) -> Plan:
        """Return the plan in force, computed again if it is only remembered by its counts; or a
        new one.
        """
        counts, agent = self.counts, self._agent
        if counts.planned is None:
            return self._replan()
        # What an explorer drew then came from the stream of that episode: of this very one, after
        # `abandon`.
        planned_at = self.episodes - (counts.episodes - counts.planned.episodes)
        if planned_at < 0:  # before this learner's first episode: its streams do not reach back
            return self._replan()
        plan = self.plan if self._computed_from is counts.planned else None
        if plan is None:
            if must_replan(agent, counts.planned, counts):
                return self._replan()  # the plan in force need not be computed again
            plan = self._plan_from(counts.planned, self._stream.planning(planned_at))
        if planned_at == self.episodes:
            return plan
        if self._in_force is None or self._in_force.plan is not plan:
            # Found once: with many states that takes longer than an episode.
            self._in_force = PlanInForce.remembered(agent, plan, counts.planned)
        in_force = self._in_force.next(counts)
        return self._replan() if in_force is None else in_force.plan

    def _frozen_plan(self) -> Plan:
        """Return the baseline alone. Its grounds are the plan that would have been made at the
        alarm.
        """
        if self.plan is not None and self.plan.frozen:
            return self.plan
        then = (self.counts if self.counts.planned is None else self.counts.planned).copy()
        # As it was before: what contradicts a premise is known, and was looked at.
        then.alarm, then.steps, then.table_bets = "", None, None
        return frozen(
            self._plan_from(then, np.random.default_rng(0)), self._agent, self.counts.alarm
        )

    def _mark_alarm(self) -> None:
        """Mark the counts where there is an alarm: whoever plans from them is told, and plays
        the baseline.
        """
        if self.alarm is not None and not self.counts.alarm:
            self.counts.planned = self.counts.copy()
            self.counts.alarm = str(self.alarm)

    def _replan(self) -> Plan:
        """Return a plan from these counts, which remember it."""
        self.counts.planned = self.counts.copy()
        plan = self._plan_from(self.counts, self._stream.planning(self.episodes))
        self.counts.basis = plan.basis
        return plan

    def act(self, state: int | None = None) -> int:
        """Return the action in this state. If given, the state must be the one that was observed
        last.
        """
        with self._mark:
            return self._act(state)

    def _act(self, state: int | None) -> int:
        """Draw the action."""
        if self._pi is None:
            raise InvalidEpisode("No episode is under way. Call begin() first.")
        if len(self._actions) != self.step:
            raise InvalidEpisode(
                "The last action's outcome is missing. Call observe(next_state) before the next "
                "act()."
            )
        if self.step >= self._agent.problem.H:
            raise InvalidEpisode(f"The episode had its {self._agent.problem.H} steps. Call end().")
        if self._over:
            raise InvalidEpisode("The process has ended this episode. Call end().")
        if not self._states:
            self._states.append(self._first(state))
        s = self._states[-1]
        if state is not None and state != s and not self._unseen:
            named = self._agent.problem.names.state
            called = f"act() was called in state {named(state)}"
            self._mark.refuse_others(self.step)
            raise InvalidEpisode(f"{called}, but the last state observed is {named(s)}.")
        self._mark.play()
        return self._draw(self._pi)

    def _first(self, state: object) -> int:
        """Return the state that an episode starts in, where the problem does not say which."""
        if state is None:
            raise InvalidEpisode(
                "Episodes start in several states: say where this one does with act(state)."
            )
        self._mark.tell(-1, state)
        s = require_state(state, self._agent.problem.S, "The first state")
        start = self._agent.problem.start
        if start is not None and start[s] == 0.0:
            first = f"The first state is {self._agent.problem.names.state(s)}"
            raise InvalidEpisode(
                f"{first}, which the problem says is impossible. Nothing was counted."
            )
        self._mark.require_as_before(0, (s,))
        return s

    def _draw(self, pi: Floats) -> int:
        """Draw an action of this policy in the last state."""
        a = draw(pi[self.step, self._states[-1]], self._stream.action(self.step))
        self._actions.append(a)
        return a

    def observe(
        self,
        next_state: int,
        reward: float | None = None,
        terminated: bool = False,
        truncated: bool = False,
    ) -> None:
        """Take the outcome. `terminated` ends the episode; `truncated` before the last step is
        refused.

        A reward that the problem knows is no evidence of a value. One that is another is counted in
        `counts.unlike_table`, which `repr` and `explain` show, and is held against the table.
        (Where the table holds means of random rewards, most are others.)

        A refused outcome marks the counts. The mark is taken off when what was left out is told;
        but not where another reward, state or end takes the place of the one that was told with
        the refused outcome: that changes the data.
        """
        with self._mark:
            self._observe(next_state, reward, terminated, truncated)

    def _observe(
        self, next_state: int, reward: float | None, terminated: bool, truncated: bool
    ) -> None:
        """Take the outcome."""
        if self._pi is None or len(self._actions) != self.step + 1:
            raise InvalidEpisode("There is no action to observe the outcome of. Call act() first.")
        problem = self._agent.problem
        self._mark.tell(self.step, self._actions[-1], reward, next_state, terminated, truncated)
        last = self.step + 1 == problem.H
        s = require_state(next_state, problem.S, "The next state")
        s = self.state if self._unseen else s
        if self._ends_only and s == self.absorbing_state and not terminated:
            raise InvalidEpisode(
                f"The process came to state {problem.names.state(s)} without an end, but this "
                "learner keeps ended episodes there: counts would mix both. Nothing was counted. "
                "Give ended episodes a state of their own; or, if this state is never left, say "
                "so: Problem(..., support=, ended_state=)."
            )
        if not terminated and not problem.allows(self.step, self.state, self._actions[-1], s):
            raise InvalidEpisode(
                f"Action {problem.names.action(self._actions[-1])} in state "
                f"{problem.names.state(self.state)} led to state {problem.names.state(s)}, which "
                "the problem's support says is impossible. Nothing was counted. The premise is "
                "false: correct the mask, or leave it out."
            )
        paid = self._paid(reward)
        if (
            terminated
            and not last
            and self._ends_in == problem.unseen_state is not None
            and problem.units.low > 0.0
        ):
            raise InvalidEpisode(
                "The episode ended early, after which nothing is paid, but 0 is below the declared "
                "range, and the states were not declared. Nothing was counted. Declare a range "
                "that holds 0, or the states."
            )
        if truncated and not (terminated or last):
            raise InvalidEpisode(
                f"The episode was cut after {self.step + 1} of {problem.H} steps. A cut episode is "
                "not a finished one: raise the time limit to the horizon, or shorten the horizon."
            )
        if terminated and self._ends_in is None and not last:
            raise InvalidEpisode(
                f"The episode ended after {self.step + 1} of {problem.H} steps, and this problem "
                "has no absorbing state. Make it with from_gymnasium or of a log with early ends, "
                "or give Learner(..., absorbing_state=state)."
            )
        following = self._ends_in if terminated and self._ends_in is not None else s
        self._mark.require_as_before(self.step + 1, (self._actions[-1], paid, following))
        self._hold_against_table(None if reward is None else paid, following)
        self._over = self._over or terminated
        self._rewards.append(paid)
        self._states.append(following)

    def _paid(self, reward: float | None) -> float:
        """Return the reward of the pair just played; the lowest one where it is not told, and
        known.
        """
        units, unknown = self._agent.problem.units, self._reward_unknown()
        if reward is None:
            if unknown:
                raise InvalidEpisode(
                    "This problem's rewards are unknown: call observe(next_state, reward)."
                )
            return units.low
        meaning = f"a number in the declared range ({units.low:g}, {units.high:g})"
        is_float = isinstance(reward, float | np.floating)  # NaN and infinity, too
        paid = (
            float(reward) if is_float else as_number("The reward", reward, meaning, InvalidEpisode)
        )
        if not units.admits(paid):
            if unknown:
                self._mark.refuse_others(self.step)
            raise InvalidEpisode(
                f"The reward is {number_text(paid)}, outside the declared range ({units.low:g}, "
                f"{units.high:g}). Nothing was counted. Bounds for a narrower range prove nothing, "
                "and counts that lack an episode because of its reward prove nothing either: begin "
                "with new counts and a wider range."
            )
        return paid

    @property
    def _unseen(self) -> bool:
        """Is this episode in the unseen state?"""
        return bool(self._states) and self.state == self._agent.problem.unseen_state

    @property
    def _ends_in(self) -> int | None:
        """Where an episode stays that ends now. Where no state is known for it, an early end is one
        more thing that was never seen.
        """
        unseen = self._agent.problem.unseen_state
        return unseen if self._unseen or self.absorbing_state is None else self.absorbing_state

    def _reward_unknown(self) -> bool:
        """Is the reward of the pair just played unknown?"""
        return bool(self._agent.problem.reward_unknown(self.step, self.state, self._actions[-1]))

    def _hold_against_table(self, reward: float | None, s_next: int) -> None:
        """Enter by how much this reward is more than the problem knows; where that is a lower
        bound, more is fine.
        """
        problem = self._agent.problem
        if self._reward_unknown() or self._unseen:
            return
        if reward is None or self._beyond_table is None:
            self._beyond_table = None
            return
        beyond = beyond_table(problem, self.step, self.state, self._actions[-1], s_next, reward)
        if abs(beyond) > rounding(problem):  # else it is rounding, for which the bets leave room
            self._beyond_table += beyond
            self._unlike_table += beyond < 0.0 or not problem.rewards_at_least

    @property
    def over(self) -> bool:
        """Has the process ended this episode before its last step? The other steps are in the
        absorbing state.
        """
        return self._over

    def end(self) -> Episode:
        """Count the episode. After `terminated` the remaining steps are in the absorbing state."""
        with self._lock:
            with self._mark:
                episode = self._end()
            self._tell_alarm()
            return episode

    def _tell_alarm(self) -> None:
        """Tell of an alarm, once. Whatever comes of that, the episode is counted."""
        if self.alarm is not None and not self._told:
            self._told = True
            self.tell(self.alarm)

    def _end(self) -> Episode:
        """Count the episode."""
        if self._pi is None:
            raise InvalidEpisode("No episode is under way. Call begin() first.")
        problem = self._agent.problem
        while self._over and self._ends_in is not None and self.step < problem.H:
            self._draw(self._pi)
            self._states.append(self.state)
            self._rewards.append(self.after_end)
        if self.step != problem.H:
            raise InvalidEpisode(
                f"The episode has {self.step} of {problem.H} steps. Complete it, or abandon() it. "
                "Nothing was counted."
            )
        episode = Episode.of(
            problem,
            self._states,
            self._actions,
            None if problem.unknown_rows is None else self._rewards,
            self._baseline,
            self.plan.entry if self.plan is not None else None,
        ).require_sound()
        watch = self.watch
        if watch is not None:
            assert episode.learnt is not None
            watch = watch.after_rescaled(math.fsum(episode.learnt))
        self._pi = None  # first, so that nothing can make it count twice
        self.counts.add(episode, number=(self.source, self.episodes))
        self.counts.unlike_table += self._unlike_table
        self._mark.counted()
        self.episodes += 1
        if not self.counts.alarm:
            self.premises = self.premises.after(self._beyond_table, self.counts, problem)
            self.counts.table_bets = (
                None if self.premises.table is None else self.premises.table.state
            )
        self.watch = watch
        self._mark_alarm()
        return episode

    def abandon(self) -> None:
        """Drop the episode under way; what was counted and the episode's number stay as they were.

        Before the first `act` nobody can know what comes out, unless episodes start in several
        states, and nothing else is changed. After it the counts are marked: an episode was dropped,
        and nobody goes on from them.
        """
        with self._lock:
            self._mark.abandon()
            self._pi = None

    def refuse(self, why: SurefootError) -> NoReturn:
        """Refuse what came out of the episode under way for a reason that the learner cannot see:
        the counts are marked.
        """
        with self._mark:
            self._mark.play()
            self._mark.refuse_others(self.step)
            raise why

    def rewind(self) -> None:
        """Forget that this episode began: for a process that will play it again, from the same
        seed.

        It is then not dropped. As long as this learner is there, it checks that the same comes out,
        as far as the episode was seen; where something else does, or another learner takes these
        counts, they are marked.
        """
        with self._lock:
            steps = zip(self._actions, self._rewards, self._states[1:], strict=False)
            self._mark.rewind([*((s,) for s in self._states[:1]), *steps])
            self._pi = None
