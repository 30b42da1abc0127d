"""Codebook: which label each number of a state or an action stands for. Everything learnt from a
log keeps it.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from surefoot.base.arrays import AnyArray, Ints
from surefoot.base.digest import digest
from surefoot.base.files import read_json, strict_json, write_json
from surefoot.base.validation import FrozenRecord, freeze, require_bool, require_integer, told
from surefoot.errors import InvalidFile, InvalidLog, InvalidSetting
from surefoot.model.names import Names
from surefoot.model.origin import NUMBERS

Label = int | str
MOST_LABELS = 2**20  # tables for more states than this would not fit into memory
ABSORBING_LABEL = "(ended)"  # how the absorbing state is shown: it has no label of its own
UNSEEN_LABEL = "(unseen)"  # how the state is shown that stands for all states without a label
AS_LOGGED = "as logged"  # a declaration: what the log shows is all there is
Declared = Sequence[Label] | int | str | None


@dataclass(frozen=True, init=False)
class Codebook(FrozenRecord):
    """State number i has the label `states[i]`, action number i the label `actions[i]`.

    With `absorbing` there is one more state after them: the absorbing state that episodes stay in
    after an early end. With `unseen` there is another one, the last: it stands for all states that
    have no label, because nobody declared that those of the log are all. `state(label)` returns its
    number for any label that is not in the list. Integers 0, 1, 2, ... are their own numbers. All
    other labels are numbered in sorted order.
    """

    states: tuple[Label, ...]
    actions: tuple[Label, ...]
    absorbing: bool = False
    unseen: bool = False

    def __init__(
        self,
        states: Sequence[Label] | int,
        actions: Sequence[Label] | int,
        absorbing: bool = False,
        *,
        unseen: bool = False,
    ) -> None:
        """Take the labels, or how many there are (0, 1, 2, ...)."""
        freeze(
            self,
            states=_labels("states", states),
            actions=_labels("actions", actions),
            absorbing=require_bool("absorbing", absorbing),
            unseen=require_bool("unseen", unseen),
        )

    @property
    def S(self) -> int:
        """The number of states, the absorbing and the unseen one included."""
        return len(self.states) + self.absorbing + self.unseen

    @property
    def absorbing_state(self) -> int | None:
        """The number of the absorbing state, in which episodes stay after an early end; None if
        there is none.
        """
        return len(self.states) if self.absorbing else None

    @property
    def unseen_state(self) -> int | None:
        """The number of the state that stands for all states without a label; None if all states
        have one.
        """
        return self.S - 1 if self.unseen else None

    @property
    def A(self) -> int:
        """The number of actions."""
        return len(self.actions)

    def state(self, label: Label) -> int:
        """Return the number of the state with this label; of the unseen state, if there is one
        and no such label.
        """
        if self.unseen_state is not None and label not in self.states:
            return self.unseen_state
        return _number("state", label, self.states)

    def action(self, label: Label) -> int:
        """Return the number of the action with this label."""
        return _number("action", label, self.actions)

    def state_label(self, s: int) -> Label:
        """Return the label of state number s."""
        added = {self.absorbing_state: ABSORBING_LABEL, self.unseen_state: UNSEEN_LABEL}
        return added[s] if s in added else self.states[s]

    @property
    def names(self) -> Names:
        """The labels as the names of a problem's states and actions:
        `problem.with_names(*codebook.names)`.
        """
        return Names(tuple(self.state_label(s) for s in range(self.S)), self.actions)

    def as_json(self) -> dict[str, Any]:
        """Return plain lists."""
        ends = {"absorbing": self.absorbing, "unseen": self.unseen}
        return {"states": list(self.states), "actions": list(self.actions), **ends}

    @classmethod
    def from_json(cls, path: str | Path, given: object) -> Self:
        """Read what `as_json` returned; `path` names the file in messages."""
        try:
            assert isinstance(given, dict)
            assert isinstance(given["states"], list)  # not how many there are: a file lists them
            assert isinstance(given["actions"], list)
            return cls(
                given["states"], given["actions"], given["absorbing"], unseen=given["unseen"]
            )
        except (AssertionError, KeyError, TypeError, InvalidSetting):
            raise InvalidFile(f"{path}: its codebook is damaged. Restore a copy.") from None

    def save(self, path: str | Path) -> None:
        """Write the codebook as JSON, with a version and a content hash."""
        write_json(path, "codebook", self.as_json())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote."""
        return cls.from_json(path, read_json(path, "codebook"))

    def __repr__(self) -> str:
        kinds = [
            f"{len(labels)} {name}"
            for name, labels in (("states", self.states), ("actions", self.actions))
        ]
        if self.absorbing:
            kinds.append("and an absorbing state")
        if self.unseen:
            kinds.append("and one for all states that were never seen")
        return f"Codebook({', '.join(kinds)})"


def coded(name: str, seen: AnyArray, declared: Declared) -> tuple[tuple[Label, ...], Ints]:
    """Return the labels of a column's values, and the number of each value. `declared` are all
    labels that exist.

    Without them, or with "as logged", integers are their own numbers where they are >= 0 and at
    least half of 0..max occurs; other labels are numbered in sorted order.
    """
    found, inverse = np.unique(seen, return_inverse=True)
    values: list[Label] = found.tolist()
    if declared is None or (isinstance(declared, str) and declared == AS_LOGGED):
        labels: tuple[Label, ...] = tuple(values)
        top = values[-1]
        if (
            isinstance(values[0], int)
            and isinstance(top, int)
            and values[0] >= 0
            and top < 2 * len(values)
        ):
            labels = tuple(range(top + 1))
    else:
        labels = _labels(f"{name}s", declared)
    place = {label: i for i, label in enumerate(labels)}
    unknown = [value for value in values if value not in place]
    if unknown:
        raise InvalidLog(
            f"The log has {len(unknown)} {name}s that were not declared, such as "
            f"{told(unknown[0])}; declared are {len(labels)}: {_shown(labels)}. Declare them, or "
            "leave the declaration out."
        )
    numbers = np.array([place[value] for value in values], dtype=np.int64)
    return labels, numbers[inverse.reshape(-1)]


def _shown(labels: Sequence[Label]) -> str:
    some = ", ".join(told(label) for label in labels[:5])
    return f"{some}, ..." if len(labels) > 5 else some


def _labels(name: str, given: Sequence[Label] | int | str) -> tuple[Label, ...]:
    """Check the labels: all are whole numbers or all are text, and each occurs once."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        if require_integer(name, given, 1, InvalidSetting) > MOST_LABELS:
            raise InvalidSetting(
                f"{name} is {told(given)}, expected at most {MOST_LABELS:,}. Use coarser ones."
            )
        return tuple(range(int(given)))
    if isinstance(given, str | bytes | bool | np.integer) or not isinstance(given, Iterable):
        raise InvalidSetting(
            f"{name} is {told(given)}, expected a list of labels, or how many there are, or "
            f"{AS_LOGGED!r}: those of the log are all."
        )
    labels = tuple(label.item() if isinstance(label, np.generic) else label for label in given)
    kinds = {type(label) for label in labels}
    if len(kinds) != 1 or not kinds <= {int, str} or len(set(labels)) != len(labels):
        raise InvalidSetting(
            f"{name} are {_shown(labels) or 'none'}, expected at least one label, all whole "
            "numbers or all text, and each of them once."
        )
    return labels


def _number(kind: str, label: Label, labels: tuple[Label, ...]) -> int:
    try:
        return labels.index(label)
    except ValueError:
        raise InvalidSetting(
            f"There is no {kind} {label!r}. Expected one of {_shown(labels)}."
        ) from None


def codebook_text(codebook: Codebook) -> AnyArray:
    """Return the codebook as it is stored in an .npz file."""
    return np.array(json.dumps(codebook.as_json()))


def codebook_from(path: str | Path, arrays: dict[str, AnyArray]) -> Codebook:
    """Read what `codebook_text` wrote under the name `codebook`."""
    try:
        given = strict_json(str(arrays["codebook"]))
    except (KeyError, ValueError):
        raise InvalidFile(f"{path}: its codebook is damaged. Restore a copy.") from None
    return Codebook.from_json(path, given)


def coding_of(book: Codebook) -> str:
    """Return a short text by which evidence under other labels is recognised."""
    if all(labels == tuple(range(len(labels))) for labels in (book.states, book.actions)):
        added = [
            name
            for name, there in (("absorbing", book.absorbing), ("unseen", book.unseen))
            if there
        ]
        return " and ".join([NUMBERS, *added])
    return f"codebook {digest(book.as_json())}"
