"""What an environment calls its states and actions, and how its problem calls those that were
added.
"""

from typing import Any, TypeVar

from surefoot.model.names import NO_NAMES, Name, Names, checked_names
from surefoot.model.problem import Problem
from surefoot.worlds.tabular_mdp import TabularMDP

ADDED = ("(ended)", "(start)")  # the absorbing state, and the common start of several first states
Task = TypeVar("Task", TabularMDP, Problem)


def names_of(env: Any, sizes: tuple[int, int], states: object, actions: object) -> Names:
    """Return the names of the environment's own states and actions: those given, or else those
    that it has.
    """
    if states is None:
        states = _attribute(env, "state_names")
    if actions is None:
        actions = _attribute(env, "action_names")
    meanings = _attribute(env, "get_action_meanings")
    if actions is None and callable(meanings):
        actions = meanings()
    return checked_names(states, actions, *sizes)


def named(task: Task, names: Names) -> Task:
    """Return the task with these names, and with names of its own for the states that were
    added.
    """
    if names == NO_NAMES:
        return task
    return task.with_names(_with_added(names.states, task.S), names.actions)


def _with_added(own: tuple[Name, ...] | None, S: int) -> tuple[Name, ...] | None:
    return None if own is None else (*own, *ADDED[: S - len(own)])


def _attribute(env: Any, name: str) -> Any:
    """Return an attribute of the environment or of one of its wrappers; None if there is none."""
    try:
        return env.get_wrapper_attr(name)
    except AttributeError:
        return None
