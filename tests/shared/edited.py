"""Counts that somebody changed: evidence that was never seen."""

from surefoot.model.transitions import Transitions


def edit(counts, change):
    """Let `change` work on the table n_sas of these counts, in place; return the counts."""
    table = counts.n_sas.copy()
    change(table)
    counts.transitions = Transitions.of_table(table)
    return counts
