"""simulate: an agent plays in a known world, and an exact account is kept."""

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from surefoot.agents import Agent, Plan
from surefoot.audit.ledger import Ledger, require_floor_agent
from surefoot.base.progress import Report, Stop, ctrl_c, progress_bar
from surefoot.base.validation import require_integer
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.run.loops import Loop, RunContext, loop_for, number_run
from surefoot.run.run import Run, run_from, trace_of
from surefoot.run.setup import Seed, check_checkpoints, check_seed, check_setup
from surefoot.worlds.tabular_mdp import TabularMDP


def simulate(
    world: TabularMDP,
    agent: Agent,
    episodes: int,
    seed: Seed,
    floor: float | None = None,
    counts: Counts | None = None,
    progress: bool | None = None,
    checkpoints: Iterable[int] = (),
    ledger: str | Path | None = None,
) -> Run:
    """Play `episodes` episodes and keep the account.

    `counts` starts the agent warm (they are copied): those of an earlier run, or of a log, on the
    conditions that `Counts.from_log` states. It then draws other numbers than a run that starts
    cold with the same seed.

    `floor` counts violations of another floor than the agent's own (for which there is then no
    promise), or of any floor for an agent without one. Values are exact, not sampled. Whole blocks
    of episodes that share a plan are drawn at once, with the law of `play` but other bits. An agent
    with `replan=0` plans before every episode: the StepMix family in compiled code, others in
    Python; to the same last bit as `play`, episode by episode.

    `checkpoints` are numbers of episodes: what a plan made after so many would say goes into
    `run.trace` (at the end of the block that they are in), and changes nothing in the run. `ledger`
    is a new file for every plan, which `check_ledger` re-derives; plans are then made one by one in
    Python: the same bits, more slowly. Ctrl-C is handled about ten times a second, between
    episodes, and ends the run: what was played is returned, with `run.interrupted`. A second one,
    after the first was handled, is Python's own, and so is one while compiling, before the first
    episode.
    """
    setup = check_setup(world, agent, episodes, floor)
    asked: AbstractContextManager[Ledger | None] = nullcontext()
    if ledger is not None:
        asked = Ledger(ledger, require_floor_agent(setup.agent.as_given))
    with (
        ctrl_c() as stop,
        progress_bar(setup.agent.name, setup.episodes, progress) as report,
        asked as written,
    ):
        checked = check_seed(seed)
        context = RunContext.begin(
            setup, checked, counts, check_checkpoints(checkpoints, setup.episodes), written
        )
        return _run(context, loop_for(setup.agent, ledger), checked, report, stop)


def simulate_many(
    world: TabularMDP,
    agent: Agent,
    episodes: int,
    seeds: Iterable[Seed],
    floor: float | None = None,
    jobs: int = 1,
    counts: Counts | None = None,
    progress: bool | None = None,
) -> list[Run]:
    """`simulate` once per seed, in `jobs` threads (-1: one per core; the compiled loop leaves the
    interpreter free).

    The number of jobs changes nothing but the time: run i depends on seeds[i] alone. After Ctrl-C
    the runs that had begun are returned.
    """
    import joblib

    setup = check_setup(world, agent, episodes, floor)
    if require_integer("jobs", jobs, -1, InvalidSetting) == 0:
        raise InvalidSetting("jobs is 0, expected a number of threads, or -1 for one per core.")
    try:
        checked = [check_seed(seed) for seed in seeds]
    except TypeError:
        raise InvalidSetting(
            f"seeds is {seeds!r}, expected several seeds, such as range(10)."
        ) from None
    done, name = [0] * len(checked), f"{setup.agent.name}, {len(checked)} runs"
    setup.agent.starting_counts(counts, setup.episodes)  # counts that do not fit are refused once
    # Threads, whatever back end a caller has configured: runs share the world's arrays and one
    # handler of Ctrl-C.
    parallel = joblib.Parallel(n_jobs=jobs, require="sharedmem")
    with ctrl_c() as stop, progress_bar(name, setup.episodes * len(checked), progress) as report:

        def one(i: int) -> Run | None:
            def report_one(episodes_done: int) -> None:
                done[i] = episodes_done
                report(sum(done))

            if stop():
                return None
            context = RunContext.begin(setup, checked[i], counts)
            return _run(context, loop_for(setup.agent), checked[i], report_one, stop)

        runs: list[Run | None] = parallel(joblib.delayed(one)(i) for i in range(len(checked)))
    return [run for run in runs if run is not None]


def _run(context: RunContext, loop: Loop, seed: Seed, report: Report, stop: Stop) -> Run:
    """Play by this loop, plan at the checkpoints, and close the account."""
    setup, counts = context.setup, context.counts
    started = time.perf_counter()
    at_checkpoints: list[tuple[int, Plan]] = []
    left = list(reversed(context.checkpoints))
    for done in loop(context):
        report(done)
        if left and left[-1] <= done:
            at_checkpoints.append((done, context.plan_at_checkpoint()))
            while left and left[-1] <= done:
                left.pop()
        if stop():
            break
    number_run(context, seed)
    if context.ledger is not None:
        context.ledger.close(counts.episodes)
    return run_from(
        setup,
        context.tally,
        counts,
        seed=seed,
        seconds=time.perf_counter() - started,
        interrupted=stop(),
        trace=trace_of(at_checkpoints) if context.checkpoints else None,
    )
