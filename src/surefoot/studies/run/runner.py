"""The runner: every missing trial of a study, on the cores of this machine or of a cluster, in any order.

Workers compute; only this process writes, one file a trial as soon as it is there. So a worker on another machine needs
no disk of ours, and whoever is killed at any moment loses the trials in hand and nothing else.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

from surefoot.errors import InvalidSetting, InvalidStudy, MissingExtra
from surefoot.studies.run.store import Folder, Key
from surefoot.studies.run.trial import Trial, check_study_cells, run_trial
from surefoot.studies.spec.study import Cell

BACKENDS = ("loky", "dask", "configured")  # the last: whatever joblib.parallel_config says where it is called

Tell = Callable[["Progress"], None]


class Progress(NamedTuple):
    """How far a run is."""

    done: int  # trials of this call that are written
    of: int
    seconds_left: float | None  # None: nothing to judge by yet
    last: str  # the cell of the trial just written; "" at the start


class Done(NamedTuple):
    """What a worker gives back."""

    trial: Trial
    seconds: float
    worker: str


def work(cell: Cell, trial: int) -> Done:
    """One trial, timed. What workers run."""
    started = time.perf_counter()
    made = run_trial(cell, trial)
    return Done(made, time.perf_counter() - started, str(os.getpid()))


def run_study(
    folder: Folder, jobs: int = -1, backend: str = "loky", address: str = "", tell: Tell | None = None
) -> int:
    """Run what is missing in this folder; how many trials were run.

    `jobs` workers (-1: one a core; a cluster has its own). The results do not depend on workers, back end or order.
    """
    check_workers(jobs, backend, address)
    missing = folder.missing()
    say = tell or (lambda progress: None)
    say(Progress(0, len(missing), None, ""))
    if not missing:
        return 0
    check_study_cells(folder.study.cells)
    cells = {(cell.scenario.id, cell.agent.id): cell for cell in folder.study.cells}
    pace = Pace([_weight(cells[key[:2]]) for key in missing])
    with ExitStack() as stack:
        for n, done in enumerate(stack.enter_context(_finished(cells, missing, jobs, backend, address)), 1):
            trial = done.trial
            folder.write(trial)
            folder.note_time((trial.panel, trial.learner, trial.trial), done.seconds, done.worker)
            pace.finished(_weight(cells[trial.panel, trial.learner]))
            say(Progress(n, len(missing), pace.left(), trial.cell))
    return len(missing)


def check_workers(jobs: int, backend: str, address: str) -> None:
    """Can there be such workers?"""
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
) -> Iterator[Iterator[Done]]:
    """What workers have finished, as it comes."""
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
            # One thread a worker in whatever library it calls: two workers on two cores.
            stack.enter_context(joblib.parallel_config(backend="loky", inner_max_num_threads=1))
            n_jobs = min(jobs, len(keys)) if jobs > 0 else jobs
        parallel = joblib.Parallel(
            n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs"
        )
        results = parallel(joblib.delayed(work)(cells[scenario, learner], trial) for scenario, learner, trial in keys)
        try:
            yield _heard(results)
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that tasks in hand are given up is said by the command
                results.close()


def _heard(results: Iterator[Any]) -> Iterator[Done]:
    """A worker that died is said in a sentence."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        yield from results
    except Exception as reason:
        # Dask's own is known by name, because Dask need not be there.
        if not isinstance(reason, TerminatedWorkerError) and type(reason).__name__ != "KilledWorker":
            raise
        raise InvalidStudy(
            "A worker was killed, for want of memory perhaps. What is finished is kept: go on with --resume, and fewer "
            "--jobs."
        ) from None


@contextmanager
def _cluster(address: str, jobs: int) -> Iterator[None]:
    """The cluster at this address, or, without one, worker processes on this machine."""
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
    """About how long its trials take, beside others: planning every episode takes some forty times as long."""
    return cell.episodes * (1.0 if cell.replan == "every episode" else 0.03)


class Pace:
    """How fast it goes, and how long it will take."""

    def __init__(self, weights: list[float]) -> None:
        """All that is to be done."""
        self._left = sum(weights)
        self._since = 0.0  # what was done since the first was finished, which compiled, perhaps
        self._first: float | None = None

    def finished(self, weight: float) -> None:
        """One more."""
        self._left -= weight
        if self._first is None:
            self._first = time.perf_counter()
        else:
            self._since += weight

    def left(self) -> float | None:
        """Seconds, if it goes on as so far; None as long as nobody can know."""
        if self._first is None or self._since <= 0.0:
            return None
        return max(0.0, self._left) * (time.perf_counter() - self._first) / self._since
