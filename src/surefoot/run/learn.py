"""learn: any agent in any Gymnasium environment with Discrete spaces, through reset and step."""

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from surefoot import kernels
from surefoot.agents.base import Agent, adapted
from surefoot.audit.premises import Contradiction, Premises
from surefoot.audit.watchdog import Alarm, Watchdog, require_watchdog
from surefoot.base.arrays import Floats
from surefoot.base.digest import digest
from surefoot.base.files import require_place
from surefoot.base.progress import ctrl_c, progress_bar
from surefoot.base.validation import require_integer
from surefoot.errors import InvalidEpisode, InvalidModel, InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.model.policy import EpisodicMixture
from surefoot.model.problem import Problem
from surefoot.run.alarms import OnAlarm, require_on_alarm, tell_alarm
from surefoot.run.journal import only_writer
from surefoot.run.kept_ledger import ledger_to_write
from surefoot.run.learner import Learner
from surefoot.run.run import Run, add_episode, run_from
from surefoot.run.saved_state import RunIdentity, State, StateFile, require_file
from surefoot.run.setup import (
    CURVE_POINTS,
    Measured,
    RunSetup,
    check_setup,
    check_setup_without_model,
    new_tally,
)
from surefoot.worlds.env_names import names_of
from surefoot.worlds.environments import Env, EnvOrId, make, require_time
from surefoot.worlds.gymnasium import Coder, true_model
from surefoot.worlds.tabular_mdp import TabularMDP


def learn(
    env: EnvOrId,
    agent: Agent,
    episodes: int,
    seed: int,
    *,
    floor: float | None = None,
    save: str | Path | None = None,
    resume: bool = False,
    counts: Counts | None = None,
    progress: bool | None = None,
    ledger: str | Path | None = None,
    watchdog: Watchdog | None = None,
    on_alarm: OnAlarm | None = None,
) -> Run:
    """Play `episodes` episodes in the environment and keep the same account as `simulate`.

    The agent's problem is the one `from_gymnasium` made of this environment (or of one of our
    worlds). If the environment shows its model, values, violations and regret are exact; else they
    are None and the curve shows observed returns. Episode k draws from (seed, k) alone, the
    environment included (`reset(seed=...)`), so with `save` a run can be interrupted at any time
    and continued with `resume=True`: it ends with the same bits. What the agent draws is drawn by
    nobody else, also where the environment uses the same seed (docs/gymnasium.md). With more
    `episodes` than before, `resume=True` goes on after a run that was finished: with the same
    ledger and the same watch, it ends with the same bits as one that was asked for all of them at
    once. One process at a time goes on with a run: a file that another one is writing is refused.

    `counts` starts the agent warm (they are copied), on the conditions that `Counts.from_log`
    states. Episodes are then numbered on from those they hold, so that no draw comes twice.

    `ledger` is a file for every plan, which `check_ledger` re-derives. The file of a run remembers
    where it is, and how far: with resume=True it is continued, too, also where `ledger` is left
    out.

    A `watchdog` holds every episode's return against the agent's floor. If returns are too low for
    the promise to be true, it raises an alarm: from then on the baseline alone is played. It is a
    warning in the log "surefoot", which says how many episodes follow; `on_alarm(alarm)` is called,
    which may raise an error to end the run (it is saved first); and `run.alarm` says why. Episodes
    are still counted, as the record of what happened: begin again without them.

    Rewards that are observed where the problem knows them are held against its table, at an alpha
    of 0.01 of their own: if the table holds their means, that raises an alarm with at most this
    probability. Single rewards that differ prove nothing; `print(run)` says how many there were.

    A reward outside the declared range, an unknown state, or an episode cut before the horizon ends
    the call with an error; the episode under way is not counted, and its counts are marked, in the
    file, too: nothing is proved from them any more. After another error, of the environment say,
    `resume=True` goes on, because the same episode is played again from the same seeds. An
    environment that does not obey its seed and fails because of what came out selects its data, and
    no promise survives that. After any error `counts` that were given are marked, too: whoever
    gives them to another run leaves out the episode that was broken off.
    """
    require_file(save, resume)
    made = make(env)
    mine = adapted(agent)
    where = EnvironmentMap.of(made, mine.problem)
    seed = require_integer("seed", seed, 0, InvalidSetting)
    if where.world is None:
        setup = check_setup_without_model(mine, episodes, floor)
    else:
        setup = replace(check_setup(where.world, mine, episodes, floor), units=mine.problem.units)
    require_watchdog(watchdog)
    begun = mine.starting_counts(counts, setup.episodes)
    dynamics = None if where.world is None else where.world.dynamics
    # the environment draws the same, whoever plays
    source = f"learn {digest([seed, called(made), where.problem.S, where.problem.A])}"
    identity = RunIdentity(
        mine, called(made), setup.floor, setup.episodes, seed, begun, dynamics, watchdog, source
    )
    file = StateFile(save, identity)
    require_on_alarm(on_alarm)
    # Bins of the curve grow with the episodes that were played, not with those that are asked for:
    # a run may go on.
    tally = new_tally(setup, begun, CURVE_POINTS)
    with only_writer(None if save is None else require_place(save)):
        watch = None if watchdog is None else watchdog.on(agent)
        state = file.begin(State(begun, tally, Premises.of(mine, begun), watch=watch), resume)
        # Another run's ledger is never continued, which would cut it: only the one that the file
        # remembers.
        after = None if state.remembered is None else state.counts.episodes
        state.ledger = ledger_to_write(ledger, state.remembered, agent, after)
        learner = Learner(
            agent,
            seed,
            state.counts,
            absorbing_state=where.absorbing_state,
            ledger=state.ledger,
            watchdog=state.watch,
            premises=state.premises,
        )
        learner.source = source
        try:
            return _play(where, setup, learner, state, file, progress, on_alarm)
        except BaseException:
            if counts is not None:  # an episode that followed them was broken off
                counts.refused += 1
            raise


@dataclass(frozen=True)
class EnvironmentMap:
    """How an environment's states and steps correspond to those of the agent's problem."""

    env: Env
    problem: Problem
    coder: Coder
    absorbing_state: int | None  # the state after an early end
    start: int | None  # the common start of several first states
    world: TabularMDP | None  # the true model, where the environment shows it

    @classmethod
    def of(cls, env: Env, problem: Problem) -> "EnvironmentMap":
        """Return the map; refuse a problem that was made for another environment."""
        coder = Coder(env)
        extra = problem.S - coder.n
        if coder.A != problem.A or extra not in (0, 1, 2):
            raise InvalidModel(
                f"The agent is for {problem}, the environment has {coder.n} states and {coder.A} "
                "actions. Make the problem with sf.from_gymnasium(env, horizon=...)."
            )
        steps = problem.H - (extra == 2)
        if steps < 1:
            raise InvalidModel(
                f"{problem} has no step left after its common start. Make it with "
                "sf.from_gymnasium."
            )
        require_time(env, steps)
        _require_names(env, problem, coder)
        return cls(
            env,
            problem,
            coder,
            absorbing_state=coder.absorbing_state if extra >= 1 else None,
            start=coder.start if extra == 2 else None,
            world=true_model(env, problem, steps),
        )

    def play(self, learner: Learner, seed: int) -> float:
        """Play one episode up to its last step, without `end`; return what it earned, in the
        environment's units.
        """
        names = self.problem.names
        learner.begin()
        observation, _ = self.env.reset(seed=seed)
        first = self._state(learner, observation)
        if self.start is not None:
            learner.act(self.start)
            learner.observe(first)
        # else the first act says where it starts
        elif self.problem.one_start and first != self.problem.s1:
            started = InvalidEpisode(
                f"The environment started in state {names.state(first)}, the problem says s1 = "
                f"{names.state(self.problem.s1)}. Several first states need a common start: make "
                "the problem with from_gymnasium, without `start`; and where it sees some of them "
                "too rarely, say how likely each is: env.unwrapped.initial_state_distrib = "
                "probabilities, one for each state, before that."
            )
            learner.refuse(started)
        earned = 0.0
        while learner.step < self.problem.H and not learner.over:
            a = learner.act(first) if learner.step == 0 else learner.act()
            h, s = learner.step, learner.state
            observation, reward, terminated, truncated, _ = self.env.step(self.coder.action(a))
            ended = bool(terminated) and not self._ends_by_horizon(h, s, a)
            s_next = self._state(learner, observation)
            learner.observe(s_next, reward, ended, bool(truncated))  # type: ignore[arg-type]
            if self.world is not None and not self.world.can_follow(h, s, a, learner.state):
                impossible = InvalidEpisode(
                    f"Action {names.action(a)} in state {names.state(s)} led to state "
                    f"{names.state(learner.state)}, which the environment's own model says is "
                    "impossible. The episode was not counted; sf.check_world says more."
                )
                learner.refuse(impossible)
            earned += float(reward)
        return earned

    def _state(self, learner: Learner, observation: object) -> int:
        """Return the number of the state that the environment showed; one that it cannot show is
        refused as an outcome is.
        """
        try:
            return self.coder.state(observation)
        except InvalidModel as unknown:
            learner.refuse(unknown)

    def _ends_by_horizon(self, h: int, s: int, a: int) -> bool:
        """Is an end at step h that of the horizon alone? So it is at the last step, where the
        environment shows a model in which this pair never ends an episode.
        """
        if self.world is None or self.absorbing_state is None or h + 1 < self.problem.H:
            return False
        return not self.world.can_follow(h, s, a, self.absorbing_state)


def _require_names(env: Env, problem: Problem, coder: Coder) -> None:
    """Refuse a problem made of a log whose numbers stand for other states or actions than this
    environment's.
    """
    if problem.coding is None:
        return
    here = names_of(env, (coder.n, coder.A), None, None)
    for kind, logged, its in (
        ("states", problem.names.states, here.states),
        ("actions", problem.names.actions, here.actions),
    ):
        if logged is not None and its is not None and logged[: len(its)] != its:
            raise InvalidModel(
                f"The log of this problem numbers its {kind} "
                f"{', '.join(map(str, logged[: len(its)]))}; the environment numbers them "
                f"{', '.join(map(str, its))}. Count the log in the environment's order: "
                f"count_log(..., {kind}=[...])."
            )


def called(env: Env) -> tuple[str, str]:
    """Return what an environment is called: by the registry of Gymnasium, and by its class."""
    return "" if env.spec is None else env.spec.id, type(env.unwrapped).__qualname__


def episode_seed(seed: int, k: int) -> int:
    """Return the environment's seed in episode k: of (seed, k) alone, not the agent's. 62 bits:
    no two are alike.
    """
    # Whatever the environment makes of it, it is no key of run/streams.py: those are 128 bits of a
    # hash of our own.
    return int(
        np.random.SeedSequence(seed, spawn_key=(k, 1)).generate_state(1, np.uint64)[0]
        >> np.uint64(2)
    )


class ExactValues:
    """The exact values of the policies that are played; computed again only when the policy
    changes.
    """

    def __init__(self, setup: RunSetup) -> None:
        """Measure in the true world of this setup."""
        self._setup = setup
        self._last: tuple[Floats | EpisodicMixture, Measured] | None = None

    def of(self, policy: Floats | EpisodicMixture) -> Measured:
        """Measure this policy."""
        if self._last is None or not _same(policy, self._last[0]):
            self._last = policy, self._setup.measure(policy)
        return self._last[1]


def _same(one: Floats | EpisodicMixture, other: Floats | EpisodicMixture) -> bool:
    """Is this the policy that was measured last? A mixture belongs to one plan."""
    if isinstance(one, EpisodicMixture) or isinstance(other, EpisodicMixture):
        return one is other
    return one is other or np.array_equal(one, other)


def _play(
    where: EnvironmentMap,
    setup: RunSetup,
    learner: Learner,
    state: State,
    file: StateFile,
    progress: bool | None,
    on_alarm: OnAlarm | None,
) -> Run:
    """Play, enter and save episode after episode, and close the account."""
    problem, values = where.problem, ExactValues(setup)
    # in the episode that is being entered: told once it is
    raised: list[Alarm | Contradiction] = []

    def tell(alarm: Alarm | Contradiction) -> None:
        if state.complete:
            tell_alarm(alarm, on_alarm, setup.episodes - state.tally.done)
        else:
            raised.append(alarm)

    learner.tell = tell
    known = setup.world is not None
    level = setup.level if known else math.nan
    started = time.perf_counter()
    file.save(state)  # a folder that does not exist is refused now, not after the last episode
    try:
        with ctrl_c() as stop, progress_bar(setup.agent.name, setup.episodes, progress) as report:
            while (done := state.tally.done) < setup.episodes and not stop():
                earned = where.play(learner, episode_seed(learner.seed, learner.episodes))
                plan = learner.plan
                assert plan is not None
                observed = problem.units.from_user(earned)
                state.complete = False
                if done == state.tally.width * len(state.tally.bin_sum):
                    state.tally = kernels.coarser(state.tally)
                add_episode(
                    state.tally,
                    values.of(plan.policy) if known else Measured(observed, observed),
                    plan,
                    level,
                )
                episode = learner.end()
                state.history.add(earned, bool(episode.baseline), plan)
                state.watch, state.premises = learner.watch, learner.premises
                state.earned += earned
                state.complete = True
                report(done + 1)
                while raised:
                    tell(raised.pop())
                file.save_now_and_then(state)
            interrupted = state.tally.done < setup.episodes
        if learner.ledger is not None and not interrupted:  # an interrupted run may be continued
            learner.ledger.close(state.counts.episodes)
    finally:
        # What was refused stays so, in the file, too. Of all else that broke an episode off,
        # whoever goes on with the file plays this very episode again, from the same seeds.
        if not state.counts.refused:
            learner.rewind()
            state.counts.playing = False
        file.save(state)
    return run_from(
        setup,
        state.tally,
        state.counts,
        seed=learner.seed,
        seconds=time.perf_counter() - started,
        interrupted=interrupted,
        mean_return=state.earned / state.tally.done if state.tally.done else None,
        alarm=learner.alarm,
        history=state.history.record(),
    )
