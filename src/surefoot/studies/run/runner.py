"""The runner: every missing trial of a study, on the cores of this machine or of a cluster, in any
order.

Workers compute; only this process writes, one file per trial as soon as it is finished. So a worker
on another machine needs no access to our disk, and a process that is killed loses the trials that
it was running and nothing else.
"""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

from surefoot.errors import InvalidSetting, InvalidStudy, MissingExtra
from surefoot.studies.run.store import Folder, Key
from surefoot.studies.run.trial import Trial, run_trial

# the last: whatever joblib.parallel_config says where it is called
BACKENDS = ("loky", "dask", "configured")

Tell = Callable[["Progress"], None]


class Progress(NamedTuple):
    """How far a run is."""

    done: int  # trials of this call that are written
    of: int
    last: str  # the cell of the trial just written; "" at the start


def run_study(
    folder: Folder,
    jobs: int = -1,
    backend: str = "loky",
    address: str = "",
    tell: Tell | None = None,
) -> int:
    """Run what is missing in this folder, and return how many trials were run.

    `jobs` workers (-1: one per core; a cluster has its own). The results do not depend on workers,
    back end or order.
    """
    check_workers(jobs, backend, address)
    missing = folder.missing()
    if tell is not None:
        tell(Progress(0, len(missing), ""))
    if not missing:
        return 0
    with _finished(missing, jobs, backend, address) as trials:
        for done, trial in enumerate(trials, 1):
            folder.write(trial)
            if tell is not None:
                tell(Progress(done, len(missing), trial.cell))
    return len(missing)


def check_workers(jobs: int, backend: str, address: str) -> None:
    """Refuse workers that there cannot be."""
    if jobs == 0 or jobs < -1:
        raise InvalidSetting(
            f"jobs is {jobs}, expected a number of workers, or -1 for one per core."
        )
    if backend not in BACKENDS:
        raise InvalidSetting(f"There is no back end {backend!r}. There are: {', '.join(BACKENDS)}.")
    if address and backend != "dask":
        raise InvalidSetting("An address is a Dask scheduler's: give --backend dask, too.")
    if backend == "dask" and find_spec("distributed") is None:
        raise MissingExtra('--backend dask needs Dask: pip install "surefoot[dask]"')


@contextmanager
def _finished(keys: list[Key], jobs: int, backend: str, address: str) -> Iterator[Iterator[Trial]]:
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
        results = parallel(joblib.delayed(run_trial)(*key) for key in keys)
        try:
            yield _explained(results)
        finally:
            with warnings.catch_warnings():
                # the command itself says that tasks are given up
                warnings.simplefilter("ignore", UserWarning)
                results.close()


def _explained(results: Iterator[Any]) -> Iterator[Trial]:
    """Turn the death of a worker into a message that says what to do."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        yield from results
    except Exception as reason:
        # Dask's own error is recognised by its name, because Dask need not be installed.
        if (
            not isinstance(reason, TerminatedWorkerError)
            and type(reason).__name__ != "KilledWorker"
        ):
            raise
        raise InvalidStudy(
            "A worker was killed, for want of memory perhaps. What is finished is kept: go on with "
            "--resume, and fewer --jobs."
        ) from None


@contextmanager
def _cluster(address: str, jobs: int) -> Iterator[None]:
    """Connect to the cluster at this address, or, without one, start worker processes on this
    machine.
    """
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        try:
            where: Any = address
            if not address:
                workers = os.cpu_count() if jobs == -1 else jobs
                # No dashboard: it wants a port of its own, and more libraries.
                local: Any = LocalCluster(  # type: ignore[no-untyped-call]
                    n_workers=workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address=None,
                )
                where = stack.enter_context(local)
            client: Any = Client(where, timeout="10s")  # type: ignore[no-untyped-call]
            stack.enter_context(client)
        except (OSError, TimeoutError, ValueError) as reason:
            raise InvalidSetting(
                f"No Dask scheduler answers at {address!r} ({reason}). Start one with `dask "
                "scheduler`, and workers with `dask worker ADDRESS` where surefoot is installed."
            ) from None
        yield
