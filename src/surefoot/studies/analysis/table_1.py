"""The paper's Table 1 as a measured table: what each algorithm promises, whether it kept it, and its regret."""

from collections.abc import Iterator
from itertools import pairwise

from surefoot.base.validation import VIOLATION_TOLERANCE
from surefoot.rivals.registry import AGENTS
from surefoot.studies.analysis import theorem
from surefoot.studies.analysis.judges import IN_SUM, MIXERS, judges
from surefoot.studies.analysis.theory import cells_by_agent, setting_of
from surefoot.studies.analysis.trials import (
    Found,
    at,
    breaks_promise,
    cells_of,
    common,
    in_one_scenario,
    is_promised,
    judged,
    label_of,
    left_at,
    median,
    more_of,
    number,
    regret_of,
)
from surefoot.studies.run.store import Results


@judges("table-1-constraints")
def _table_1_constraints(results: Results) -> Iterator[Found]:
    """Judge whether each agent promises what Table 1 states, and kept it; count what it does to the other."""
    for agent, cells in cells_by_agent(results, tuple(AGENTS)):
        stated = theorem.TABLE_1.get(agent.agent)
        for cell in cells:
            trials = results.trials[cell.id]
            scope = theorem.CUMULATIVE if agent.agent in IN_SUM else theorem.EPISODIC
            promised = scope if all(map(is_promised, trials)) else theorem.NONE
            numbers = f"{label_of(trials)} promises {promised}"
            if stated is not None:
                numbers += f" (Table 1: {stated.constraint})"
            kept = sum(not breaks_promise(trial, agent) for trial in trials)
            if promised != theorem.NONE:
                numbers += (
                    f" and kept it in {kept} of {len(trials)} runs, off the baseline {at(median(trials, left_at))}"
                )
            below = sum(trial.violations > 0 for trial in trials)
            in_sum = sum(trial.min_cumulative < -VIOLATION_TOLERANCE * trial.episodes for trial in trials)
            knows = ", knows V^b" if trials[0].knows_baseline_value else ""
            numbers += (
                f"{knows}: single episodes below in {below} of {len(trials)} runs, "
                f"the sum in {in_sum}; regret {number(median(trials, regret_of))} of K = {number(trials[0].episodes)}"
            )
            if stated is not None:
                order = theorem.stated_order(agent.agent, setting_of(cell, trials))
                numbers += f", Table 1: {stated.order} = {number(order)} (without constants and logarithms)"
            yield Found(kept == len(trials) and (stated is None or stated.constraint == promised), numbers, trials)


@judges("sums-fall-below")
def _sums_fall_below(results: Results) -> Iterator[Found]:
    """Judge every one of them in every run: it keeps what it promises, and is below in single episodes all the same."""
    for scenario, label, trials in cells_of(results, IN_SUM):
        left = [trial for trial in trials if trial.off_baseline is not None]
        if left:
            below = sum(trial.violations > 0 for trial in left)
            mean = sum(trial.violations for trial in left) / len(left)
            words = f"{label} in {below} of {len(left)} runs, {number(mean)} episodes each on average"
            yield Found(below == len(left), f"{scenario.heading}: {words}", trials)


@judges("table-1-regret")
def _table_1_regret(results: Results) -> Iterator[Found]:
    """Compare neighbours in the order of Table 1's terms, among agents of runs of the same length."""
    ranks = (("budget-exploration",), MIXERS, ("dope",), ("optpess-lp",))
    for less, more in pairwise(ranks):
        for (_, one, mine), (_, other, its) in in_one_scenario(results, less, more):
            if common(mine, its) and mine[0].episodes == its[0].episodes:
                numbers = f"{one} {number(median(mine, regret_of))}, {other} {number(median(its, regret_of))}"
                yield judged(more_of(mine, its, regret_of), numbers, (*mine, *its))
