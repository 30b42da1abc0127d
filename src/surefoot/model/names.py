"""Names: what the user calls states and actions. They are for people: plans, evidence and
fingerprints ignore them.
"""

import operator
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from surefoot.base.text import shortened
from surefoot.base.validation import told
from surefoot.errors import InvalidModel, printable

Name = int | str
LONGEST = 60  # characters of a name in a sentence


class Names(NamedTuple):
    """The names of states and actions in the order of their numbers; None: they have only
    numbers.
    """

    states: tuple[Name, ...] | None = None
    actions: tuple[Name, ...] | None = None

    def state(self, s: object) -> str:
        """Return a state as it stands in a sentence: 'cart', or its number; what is no number of
        a state, as it is.
        """
        return _quoted(s, self.states)

    def action(self, a: object) -> str:
        """Return an action as it stands in a sentence: 'offer', or its number."""
        return _quoted(a, self.actions)

    def pair(self, s: int, a: int) -> str:
        """Return a pair as it stands in a list: state cart, action offer."""
        return f"state {self.state_name(s)}, action {self.action_name(a)}"

    def state_name(self, s: int) -> str:
        """Return the name of a state, or its number."""
        return str(s) if self.states is None else _shown(self.states[s])

    def action_name(self, a: int) -> str:
        """Return the name of an action, or its number."""
        return str(a) if self.actions is None else _shown(self.actions[a])

    def or_else(self, other: "Names") -> "Names":
        """Return these names, and those of `other` where there are none."""
        return Names(
            *(theirs if mine is None else mine for mine, theirs in zip(self, other, strict=True))
        )


NO_NAMES = Names()


def _quoted(number: object, names: tuple[Name, ...] | None) -> str:
    i = operator.index(number) if isinstance(number, int | np.integer) else -1
    return str(number) if names is None or not 0 <= i < len(names) else repr(_short(names[i]))


def _short(name: Name) -> Name:
    return shortened(name, LONGEST) if isinstance(name, str) else name


def _shown(name: Name) -> str:
    return printable(str(_short(name)))


def checked_names(states: object, actions: object, S: int, A: int) -> Names:
    """Return the names of S states and A actions; refuse those that are too few, too many or not
    distinct.
    """
    return Names(
        _checked("state_names", "state", states, S),
        _checked("action_names", "action", actions, A),
    )


def _checked(argument: str, kind: str, given: object, size: int) -> tuple[Name, ...] | None:
    if given is None:
        return None
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidModel(
            f"{argument} is {told(given)}, expected a list of {size} names, one per {kind}."
        )
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in given)
    if len(names) != size:
        raise InvalidModel(f"{argument} has {len(names)} names, expected {size}, one per {kind}.")
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        if isinstance(name, bool) or not isinstance(name, int | str) or name == "":
            raise InvalidModel(
                f"{argument}[{i}] is {told(name)}, expected a text or a whole number."
            )
        if (first := seen.setdefault(str(name), i)) != i:
            raise InvalidModel(
                f"{argument}[{i}] is {_short(name)!r}, as is {argument}[{first}]: expected each "
                "once."
            )
    return names
