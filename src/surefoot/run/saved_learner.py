"""A learner in one file, whole or not at all: counts, watch, what it saw of premises, and its
place in its ledger.
"""

from pathlib import Path

import numpy as np

from surefoot.agents.base import Agent, adapted
from surefoot.audit.premises import Premises
from surefoot.audit.watchdog import Watchdog
from surefoot.base.files import read_arrays, write_arrays
from surefoot.errors import InvalidCounts, InvalidEpisode, InvalidFile, InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.run.alarms import OnAlarm
from surefoot.run.kept_ledger import ledger_arrays, ledger_to_write, remembered
from surefoot.run.learner import Learner
from surefoot.run.saved_state import RunIdentity, counts_arrays, counts_from

KIND = "learner"
NUMBERS = ("episodes", "absorbing_state")  # the last: -1, none was given
NEEDED = ("learner_of", "seed", "numbers", "after_end", "counts_n_sas")


def save_learner(learner: Learner, path: str | Path) -> None:
    """Write all that a learner has to remember between two episodes; `load_learner` goes on from
    it.

    The file is written whole or not at all, and what it says of the ledger is on disk before: after
    a crash at any moment the last file that was written, and the ledger, go on together.
    """
    if not isinstance(learner, Learner):
        raise InvalidSetting(
            "Expected a learner, as sf.Learner(agent, seed) makes it, found "
            f"{type(learner).__name__}."
        )
    if learner.under_way:
        raise InvalidEpisode(
            "An episode is under way: nothing was saved. Call end() or abandon() first."
        )
    given, after_end = learner.ends
    watchdog = None if learner.watch is None else Watchdog(learner.watch.bet.alpha)
    numbers = [learner.episodes, -1 if given is None else given]
    about = {
        "learner_of": _identity(learner.agent, learner.seed, watchdog).fingerprint,
        "seed": f"{learner.seed:x}",
        "numbers": np.array(numbers, dtype=np.int64),
        "after_end": np.float64(np.nan if after_end is None else after_end),
    }
    watch = {} if learner.watch is None else learner.watch.arrays()
    kept = ledger_arrays(learner.ledger, path)
    seen = {**counts_arrays(learner.counts), **watch, **learner.premises.arrays()}
    write_arrays(path, KIND, {**seen, **kept, **about})


def load_learner(
    path: str | Path,
    agent: Agent,
    *,
    ledger: str | Path | None = None,
    on_alarm: OnAlarm | None = None,
) -> Learner:
    """Return the learner that `save_learner` wrote, with the same seed, counts, watch and ledger:
    it acts as if it had never stopped.

    The agent must be the one that it had. Plans that were written to the ledger after the file are
    removed: they are made again. `ledger` says where the ledger is now, if it was moved without the
    file; `on_alarm` is as in `Learner`.
    """
    _, arrays = read_arrays(path, {KIND: NEEDED})
    damaged = f"{path}: its content is not as it was written: the file is damaged. Restore a copy."
    numbers, after_end = arrays["numbers"], arrays["after_end"]
    shapes = (numbers.shape, numbers.dtype.kind, after_end.shape, after_end.dtype.kind)
    if shapes != ((len(NUMBERS),), "i", (), "f") or numbers[0] < 0:
        raise InvalidFile(damaged)
    watchdog = None
    try:
        seed = int(str(arrays["seed"]), 16)
        if "watch_about" in arrays:
            watchdog = Watchdog(arrays["watch_about"].tolist()[0])
    except (ValueError, IndexError, TypeError):
        raise InvalidFile(damaged) from None
    if str(arrays["learner_of"]) != _identity(agent, seed, watchdog).fingerprint:
        raise InvalidFile(
            f"{path} belongs to another learner: the agent, its problem, floor, delta or settings "
            "differ. Give the agent that it was saved with."
        )
    episodes, given = numbers.tolist()
    try:
        counts = counts_from(path, arrays)
    except InvalidCounts as reason:
        raise InvalidFile(f"{damaged} ({reason})") from None
    watch = None
    if watchdog is not None:
        watch = watchdog.on(agent).restored(path, arrays)
    known = remembered(path, arrays)
    written = ledger_to_write(ledger, known, agent, counts.episodes)
    return Learner(
        agent,
        seed,
        counts,
        episodes,
        None if given < 0 else given,
        written,
        watch,
        after_end=None if np.isnan(after_end) else float(after_end),
        on_alarm=on_alarm,
        premises=Premises.of(adapted(agent), counts).restored(path, arrays),
    )


def _identity(agent: Agent, seed: int, watchdog: Watchdog | None) -> RunIdentity:
    """Return all that decides how a learner goes on, its counts aside."""
    mine = adapted(agent)
    none = Counts.zeros(mine.problem, mine.pooled)
    return RunIdentity(mine, ("", "Learner"), None, 0, seed, none, None, watchdog)
