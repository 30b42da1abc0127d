"""Premises that data can contradict, beside the floor that a watchdog looks at: each has a test
with its own alpha.

A contradiction is an alarm like a watchdog's: the baseline alone is played from then on.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surefoot.agents.base import CountingAgent
from surefoot.base.arrays import AnyArray
from surefoot.bounds import alike, declared_rewards
from surefoot.bounds.declared_rewards import TableWatch
from surefoot.errors import InvalidFile
from surefoot.evidence.counts import Counts
from surefoot.model.problem import Problem


class Contradiction(NamedTuple):
    """The reason for an alarm: a premise that data contradict."""

    episodes: int  # how many were seen
    alpha: float
    found: str  # a clause
    premise: str  # what is false, a clause
    advice: str

    def __str__(self) -> str:
        return (
            f"ALARM after {self.episodes:,} episodes: {self.premise}. "
            f"{self.found[0].upper()}{self.found[1:]}. If the premise were true, the probability "
            f"of ever seeing so much against it would be at most {self.alpha:g}. Only the baseline "
            f"is played from now on. {self.advice} Start again without these counts."
        )

    def sentence(self, follows: str) -> str:
        """Return one sentence for a log; `follows` is what is played from now on."""
        return (
            f"A premise was contradicted, an ALARM after {self.episodes:,} episodes: "
            f"{self.premise} ({self.found}; alpha = {self.alpha:g}), and {follows}."
        )

    @property
    def label(self) -> str:
        """A short text to print beside a promise."""
        return (
            f"resting on a false premise: {self.premise} (alarm after {self.episodes:,} episodes)"
        )


@dataclass(frozen=True)
class Premises:
    """What was seen of these premises after some episodes."""

    # None: no reward was declared, or no floor is promised that rests on it
    table: TableWatch | None
    episodes: int = 0
    alarm: Contradiction | None = None  # the first one; after it no further episode is looked at

    @classmethod
    def of(cls, agent: CountingAgent, counts: Counts) -> "Premises":
        """Look at what this agent's promise rests on, from where whoever made these counts left
        off.
        """
        table = None if agent.floor is None else TableWatch.on(agent.problem)
        if table is not None and counts.table_bets is not None:
            table = table.restored("these counts", counts.table_bets)
        return cls(table)

    def after(self, D: float | None, counts: Counts, problem: Problem) -> "Premises":
        """Return the state after an episode that paid D more than the table, rescaled, and is among
        these counts. None: nobody said what some step paid.
        """
        if self.alarm is not None:
            return self
        episodes, alarm = self.episodes + 1, None
        table = self.table if self.table is None or D is None else self.table.after(D)
        if table is not None and D and table.contradicted:
            alarm = Contradiction(
                episodes,
                declared_rewards.ALPHA,
                table.found,
                declared_rewards.FALSE_TABLE,
                declared_rewards.advice(problem),
            )
        elif counts.steps is not None and alike.is_due(counts.episodes, counts.steps):
            found = alike.unlike(counts.steps, problem)
            if found is not None:
                alarm = Contradiction(
                    episodes, alike.ALPHA, found.text(problem), alike.FALSE_STEPS, alike.ADVICE
                )
        return Premises(table, episodes, alarm)

    def arrays(self) -> dict[str, AnyArray]:
        """Return the state, as it is stored in a file; what was bet against the table is stored
        with the counts.
        """
        arrays: dict[str, AnyArray] = {"premises": np.asarray(self.episodes)}
        if self.alarm is not None:
            arrays["contradiction"] = np.asarray(json.dumps(self.alarm))
        return arrays

    def restored(self, path: str | Path, arrays: dict[str, AnyArray]) -> "Premises":
        """Return the state that `arrays` stored; the bets of this one are those of the counts."""
        table = self.table
        counted = arrays.get("premises", np.zeros(0))
        if counted.shape != () or counted.dtype.kind != "i" or counted < 0:
            raise InvalidFile(
                f"{path}: premises is not as it was written. The file is damaged: restore a copy."
            )
        if "contradiction" not in arrays:
            return Premises(table, int(counted))
        try:
            episodes, alpha, *texts = json.loads(str(arrays["contradiction"]))
            found, premise, advice = map(str, texts)
            return Premises(
                table,
                int(counted),
                Contradiction(int(episodes), float(alpha), found, premise, advice),
            )
        except (TypeError, ValueError):
            raise InvalidFile(
                f"{path}: contradiction is not as it was written. Restore a copy."
            ) from None
