"""The runner: every missing trial of a study, on the cores of this machine or of a cluster, in any order.

Workers compute; only this process writes, one file per trial as soon as it is finished. So a worker on another machine
needs no access to our disk, and a process that is killed loses the trials that it was running and nothing else.
"""

import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, NamedTuple

from surefoot.agents import AGENTS
from surefoot.errors import InvalidSetting, InvalidStudy, MissingExtra
from surefoot.studies.run.store import Folder, Key, noted_times
from surefoot.studies.run.trial import Trial, build_scenario, checkpoints, run_trial
from surefoot.studies.spec.study import WHEN_IT_PAYS, Cell, Choice

BACKENDS = ("loky", "dask", "configured")  # the last: whatever joblib.parallel_config says where it is called
# Short runs that are timed before a study is run.
PLANNED = (32, 512)  # episodes of the two runs with a plan before each
BETWEEN = (1_000, 20_000)  # and of the two with hardly any
BLOCKS = (100, 5_000)  # and of two with blocks
RARELY: Choice = ("growth", 1000.0)
SLOW = 0.5  # seconds: after a run that took longer, no longer one is timed
AT_MOST = 15.0  # seconds for all timed runs of a study; cells that are left are taken to be like the others

Tell = Callable[["Progress"], None]


class Progress(NamedTuple):
    """How far a run is, and how fast it goes. Each finished trial gives the next one."""

    done: int  # trials of this call that are written
    of: int
    last: str  # the cell of the trial just written; "" at the start
    seconds_left: float | None  # None: nothing to judge by yet
    weight_left: float  # of the trials that are to be run
    weight_since: float = 0.0  # of those that were finished after the first, which may have compiled
    first_at: float | None = None  # when the first was finished

    def after(self, cell: str, weight: float) -> "Progress":
        """Return the progress once another trial, of this weight, is finished."""
        now = time.perf_counter()
        first_at = now if self.first_at is None else self.first_at
        since = 0.0 if self.first_at is None else self.weight_since + weight
        left = max(0.0, self.weight_left - weight)
        seconds_left = left * (now - first_at) / since if since > 0.0 else None
        return Progress(self.done + 1, self.of, cell, seconds_left, left, since, first_at)


class TimedTrial(NamedTuple):
    """What a worker returns."""

    trial: Trial
    seconds: float
    worker: str


def work(cell: Cell, trial: int) -> TimedTrial:
    """Run one trial, timed. Workers call this."""
    started = time.perf_counter()
    made = run_trial(cell, trial)
    return TimedTrial(made, time.perf_counter() - started, str(os.getpid()))


def run_study(
    folder: Folder, jobs: int = -1, backend: str = "loky", address: str = "", tell: Tell | None = None
) -> int:
    """Run what is missing in this folder, and return how many trials were run.

    `jobs` workers (-1: one per core; a cluster has its own). The results do not depend on workers, back end or order.
    """
    check_workers(jobs, backend, address)
    missing = folder.missing()
    cells = {(cell.scenario.id, cell.agent.id): cell for cell in folder.study.cells}
    progress = Progress(0, len(missing), "", None, sum(_weight(cells[key[:2]]) for key in missing))
    if tell is not None:
        tell(progress)
    if not missing:
        return 0
    with ExitStack() as stack:
        for done in stack.enter_context(_finished(cells, missing, jobs, backend, address)):
            key = done.trial.scenario, done.trial.agent, done.trial.trial
            folder.write(done.trial)
            folder.note_time(key, done.seconds, done.worker)
            cell = cells[key[:2]]
            progress = progress.after(cell.id, _weight(cell))
            if tell is not None:
                tell(progress)
    return len(missing)


def check_workers(jobs: int, backend: str, address: str) -> None:
    """Refuse workers that there cannot be."""
    if jobs == 0 or jobs < -1:
        raise InvalidSetting(f"jobs is {jobs}, expected a number of workers, or -1 for one per core.")
    if backend not in BACKENDS:
        raise InvalidSetting(f"There is no back end {backend!r}. There are: {', '.join(BACKENDS)}.")
    if address and backend != "dask":
        raise InvalidSetting("An address is a Dask scheduler's: give --backend dask, too.")
    if backend == "dask" and find_spec("distributed") is None:
        raise MissingExtra('--backend dask needs Dask: pip install "surefoot[dask]"')


@contextmanager
def _finished(
    cells: dict[tuple[str, str], Cell], keys: list[Key], jobs: int, backend: str, address: str
) -> Iterator[Iterator[TimedTrial]]:
    """Start the workers, and give what they have finished as it comes."""
    import joblib

    n_jobs: int | None
    with ExitStack() as stack:
        if backend == "dask":
            stack.enter_context(_cluster(address, jobs))
            stack.enter_context(joblib.parallel_config(backend="dask"))
            n_jobs = -1
        elif backend == "configured":
            n_jobs = None if jobs == -1 else jobs
        else:
            # One thread per worker in whatever library it calls: two workers on two cores.
            stack.enter_context(joblib.parallel_config(backend="loky", inner_max_num_threads=1))
            n_jobs = min(jobs, len(keys)) if jobs > 0 else jobs
        parallel = joblib.Parallel(
            n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs"
        )
        results = parallel(joblib.delayed(work)(cells[scenario, agent], trial) for scenario, agent, trial in keys)
        try:
            yield _explained(results)
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the command itself says that tasks are given up
                results.close()


def _explained(results: Iterator[Any]) -> Iterator[TimedTrial]:
    """Turn the death of a worker into a message that says what to do."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        yield from results
    except Exception as reason:
        # Dask's own error is recognised by its name, because Dask need not be installed.
        if not isinstance(reason, TerminatedWorkerError) and type(reason).__name__ != "KilledWorker":
            raise
        raise InvalidStudy(
            "A worker was killed, for want of memory perhaps. What is finished is kept: go on with --resume, and fewer "
            "--jobs."
        ) from None


@contextmanager
def _cluster(address: str, jobs: int) -> Iterator[None]:
    """Connect to the cluster at this address, or, without one, start worker processes on this machine."""
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        try:
            where: Any = address
            if not address:
                workers = os.cpu_count() if jobs == -1 else jobs
                # No dashboard: it wants a port of its own, and more libraries.
                local: Any = LocalCluster(  # type: ignore[no-untyped-call]
                    n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
                )
                where = stack.enter_context(local)
            client: Any = Client(where, timeout="10s")  # type: ignore[no-untyped-call]
            stack.enter_context(client)
        except (OSError, TimeoutError, ValueError) as reason:
            raise InvalidSetting(
                f"No Dask scheduler answers at {address!r} ({reason}). Start one with `dask scheduler`, and workers "
                "with `dask worker ADDRESS` where surefoot is installed."
            ) from None
        yield


def _weight(cell: Cell) -> float:
    """Return about how long a trial takes, relative to others: replanning every episode takes some 30 times as long."""
    return cell.episodes * (1.0 if cell.replan == "every episode" else 0.03)


# ---- how long it will take


class Estimate(NamedTuple):
    """What is to be run, and about how long that takes one trial after the other.

    It is measured: of cells that were run before, by the times that were noted; of others by short runs, which are
    trials with fewer episodes. Two of them, with a plan before every episode, show what a plan takes; two with hardly
    any plans show what an episode takes between plans; the rule of replanning says how many plans there will be. (For
    `growth` that is a bound: a plan for each time that some pair's visits grow by the factor.) Time is that of the
    processor: other work on the machine makes it longer.
    """

    trials: int
    seconds: float


def estimate(folder: Folder) -> Estimate:
    """Estimate how long the missing trials of a folder take, on one worker."""
    cells = {(cell.scenario.id, cell.agent.id): cell for cell in folder.study.cells}
    left = [(scenario, agent) for scenario, agent, _ in folder.missing()]
    noted: dict[tuple[str, str], list[float]] = {}
    for (scenario, agent, _), seconds in noted_times(folder.path).items():
        noted.setdefault((scenario, agent), []).append(seconds)
    each = {key: sum(times) / len(times) for key, times in noted.items()}
    started, of_plan = time.perf_counter(), 0.0
    for key in dict.fromkeys(key for key in left if key not in each):
        if time.perf_counter() - started < AT_MOST:
            each[key] = seconds_of(cells[key])
            of_plan = max(of_plan, each[key] / plans_of(cells[key]))
        else:
            each[key] = of_plan * plans_of(cells[key])
    return Estimate(len(left), sum(each[key] for key in left))


def seconds_of(cell: Cell) -> float:
    """Return about how long one trial of this cell takes."""
    plans, between = plans_of(cell), 0.0
    if rule_of(cell)[0] == "blocks":
        # Whole blocks are drawn at once: what a plan takes, with its block.
        few, many = (replace(cell, episodes=min(size, cell.episodes)) for size in BLOCKS)
        rate, constant = _rate(cell, BLOCKS)
        planned = rate * (many.episodes - few.episodes) / max(1.0, plans_of(many) - plans_of(few))
    else:
        planned, constant = _rate(replace(cell, replan="every episode"), PLANNED)
    if cell.replan[0] == "growth":
        between = _rate(replace(cell, replan=RARELY), BETWEEN)[0]
    return constant + planned * plans + between * cell.episodes + _recording(cell)


def _recording(cell: Cell) -> float:
    """Return what the certificates take that are recorded at checkpoints."""
    few = min(PLANNED[0], cell.episodes)
    at = checkpoints(few)
    with_them, without = _timed(cell, few, at), _timed(cell, few)
    return max(0.0, with_them - without) / len(at) * len(checkpoints(cell.episodes))


def rule_of(cell: Cell) -> Choice:
    """Return when its agent replans, about: by default in blocks, and with the paper's bounds before every episode."""
    if cell.replan != WHEN_IT_PAYS:
        return cell.replan
    paper = cell.agent.bounds == "paper" and not AGENTS[cell.agent.agent].own_bounds
    return "every episode" if paper else ("blocks", 0.1)


def plans_of(cell: Cell) -> float:
    """Return how many plans a trial makes by its rule of replanning: about, or at most."""
    K, choice = cell.episodes, rule_of(cell)
    if isinstance(choice, str):
        return K
    kind, value = choice
    if kind == "blocks":
        return min(K, 1.0 / value + math.log(max(1.0, K * value)) / math.log1p(value))
    problem = build_scenario(cell.scenario, cell.delta, cell.seed, 0).world.problem
    rows = 1 if cell.agent.pooled and problem.stationary else problem.H
    return min(K, rows * problem.S * problem.A * math.log(max(2, K)) / math.log(value))


def _rate(cell: Cell, sizes: tuple[int, int]) -> tuple[float, float]:
    """Return seconds per episode, and those that a trial takes however short it is."""
    few, many = (min(size, cell.episodes) for size in sizes)
    _timed(cell, 1)  # it may compile
    first = _timed(cell, few)
    if first > SLOW or many <= few:
        return first / few, 0.0
    rate = max(0.0, _timed(cell, many) - first) / (many - few)
    return rate, max(0.0, first - rate * few)


def _timed(cell: Cell, episodes: int, recorded: Sequence[int] = (1,)) -> float:
    """Return how long a trial of so many episodes takes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the study itself will warn
        started = time.process_time()
        run_trial(replace(cell, episodes=episodes), 0, recorded)
        return time.process_time() - started


def workers_of(jobs: int, backend: str, address: str) -> int | None:
    """Return how many trials run at a time; None: a cluster, or what joblib was told, decides."""
    if backend == "configured" or address:
        return None
    return (os.cpu_count() or 1) if jobs == -1 else jobs


def about(seconds: float) -> str:
    """Write a time as people say it."""
    if seconds < 10:
        return "a few seconds"
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
