"""Origin: what evidence is about. Counts and episodes carry it; adding, merging, planning and
going on compare it.
"""

import json
import math
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

from surefoot.base.files import strict_json
from surefoot.errors import InvalidCounts

OWN = "counts"  # the source of episodes that were added without a number, with a token of its own
TAKEN_OFF = "taken off"  # the first visit of each next state: see bounds/undeclared.py
# the coding of a problem that names no labels; of a log, where labels are their own numbers
NUMBERS = "numbers"
UNKNOWN = "unknown"  # a start, or rewards, of which nothing is declared
DYNAMICS = ("sizes", "horizon", "coding", "world")  # what transitions depend on
SUMS = ("units", "rewards")  # what sums of rewards depend on beside


@dataclass(frozen=True)
class Origin:
    """What evidence is about, part by part: short texts and digests. A part that is None is
    unclaimed.

    `asserted` is True where the user says so of counts that were made by hand; else it was written
    down while episodes were counted.
    """

    sizes: str | None = None  # how many states and actions
    horizon: str | None = None  # how many steps
    coding: str | None = None  # which label each number stands for
    start: str | None = None  # the first state, or a digest of its distribution
    units: str | None = None  # the range of a reward
    rewards: str | None = None  # which rewards are known, and with which table
    world: str | None = None  # the dynamics of a simulated world
    first_visits: str | None = None  # TAKEN_OFF in counts of a log whose states were not declared
    asserted: bool = False

    @property
    def parts(self) -> dict[str, str | None]:
        """Every part by its name."""
        return {name: value for name, value in vars(self).items() if name != "asserted"}

    def differing(self, other: "Origin", parts: Iterable[str] | None = None) -> tuple[str, ...]:
        """Return in which of these parts evidence of this origin differs from the other: of all, by
        default.

        What either leaves unclaimed does not differ. First states that nothing was known of serve a
        known start, which does not read them; those of a known start are no sample of an unknown
        one.
        """
        if self is other or self == other:
            return ()
        mine, its = self.parts, other.parts
        return tuple(
            name
            for name in (mine if parts is None else parts)
            if mine[name] != its[name]
            and mine[name] is not None
            and its[name] is not None
            and not (name == "start" and mine[name] == UNKNOWN)
            and not (name == "coding" and _both_numbers(str(mine[name]), str(its[name])))
        )

    def filled(self, other: "Origin") -> "Origin":
        """Return these parts, and the other's where they are unclaimed (or where a start is
        known to it alone).
        """
        more = {name: value for name, value in other.parts.items() if self.parts[name] is None}
        if self.start == UNKNOWN and other.start is not None:
            more["start"] = other.start
        joined = Origin(**{**self.parts, **more}, asserted=self.asserted or other.asserted)
        return self if joined == self else joined

    def without(self, *parts: str) -> "Origin":
        """Return the origin with these parts unclaimed."""
        return Origin(
            **{name: None if name in parts else value for name, value in self.parts.items()},
            asserted=self.asserted,
        )

    @property
    def reward_range(self) -> tuple[float, float]:
        """The range of a reward; [0, 1] where it is unclaimed."""
        if self.units is None:
            return 0.0, 1.0
        low, high = strict_json(self.units)
        return float(low), float(high)

    @property
    def as_text(self) -> str:
        """All of it as a line of JSON."""
        claimed = {name: value for name, value in self.parts.items() if value is not None}
        return json.dumps({**claimed, "asserted": self.asserted})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Build it from such a line; ValueError or TypeError where that is damaged."""
        given = strict_json(text)
        if not isinstance(given, dict) or not isinstance(given.get("asserted"), bool):
            raise ValueError("not an origin")
        if not all(isinstance(value, str) for name, value in given.items() if name != "asserted"):
            raise ValueError("not an origin")
        origin = cls(**given)
        low, high = origin.reward_range
        if not -math.inf < low < high < math.inf:
            raise ValueError("not a range of rewards")
        return origin


def _both_numbers(one: str, other: str) -> bool:
    """Are labels their own numbers in both? A problem made by hand does not say which of its
    states a log adds.
    """
    return NUMBERS in (one, other) and one.startswith(NUMBERS) and other.startswith(NUMBERS)


def shown(parts: Iterable[str], here: Origin, there: Origin) -> str:
    """Return how parts differ, in words: those of the counts, and those of what they are held
    against.
    """
    mine, its = here.parts, there.parts
    return "; ".join(
        f"{name}: {mine[name]} in these counts, {its[name]} expected" for name in parts
    )


class Range(NamedTuple):
    """Episodes of one source, by their numbers: the first and the last that are held."""

    source: str
    first: int
    last: int


def with_range(held: tuple[Range, ...], more: Range) -> tuple[Range, ...]:
    """Return the ranges with one more; refuse an episode that is held already."""
    source, first, last = more
    apart = []
    for one in held:
        if one.source != source or one.last + 1 < first or last + 1 < one.first:
            apart.append(one)
            continue
        if one.first <= last and first <= one.last:
            twice = max(one.first, more.first), min(one.last, more.last)
            raise InvalidCounts(
                f"Episodes {twice[0]} to {twice[1]} of one source ({source}) are in these counts "
                f"already. Nothing was added: evidence counts once. {_instead(source)}"
            )
        first, last = min(first, one.first), max(last, one.last)
    return (*apart, Range(source, first, last))


def _instead(source: str) -> str:
    """Return what to do instead of counting episodes of this source again."""
    if source.startswith("log "):
        return "Count each episode of a log once: give files that belong together to one count_log."
    if source.startswith(OWN):
        return (
            "Let each worker begin with Counts.zeros(problem), and merge what each of them has "
            "added."
        )
    return "Repeat a run with another seed."


def next_own(held: tuple[Range, ...]) -> Range:
    """Return the number of an episode that came without one: the next of the counts' own, which
    copies share.

    A source of their own begins with their first such episode. Copies that go on are never merged
    with each other, so it does no harm that both give the same number to the next.
    """
    mine = [one for one in held if one.source.startswith(OWN)]
    source, _, last = mine[-1] if mine else (f"{OWN} {secrets.token_hex(8)}", 0, -1)
    return Range(source, last + 1, last + 1)


def with_ranges(held: tuple[Range, ...], more: Iterable[Range]) -> tuple[Range, ...]:
    """Return the ranges of both; refuse an episode that is in both."""
    for one in more:
        held = with_range(held, one)
    return held


def ranges_from(text: str) -> tuple[Range, ...]:
    """Build ranges from a line of JSON; ValueError or TypeError where that is damaged."""
    found = [Range(*one) for one in strict_json(text)]
    for source, first, last in found:
        if (
            not isinstance(source, str)
            or type(first) is not int
            or type(last) is not int
            or not 0 <= first <= last
        ):
            raise ValueError("not ranges of episodes")
    return with_ranges((), found)


def still_usable(differ: tuple[str, ...], unlabelled: bool = False) -> str:
    """Return what is still usable where these parts differ, and how. `unlabelled`: one of both
    names no labels.
    """
    if unlabelled and differ[0] == "coding":
        return (
            "A problem that was made by hand does not say which label each number stands for. Use "
            "log.problem(...); or put its states and actions into the order of log.codebook, and "
            "say so: problem.with_coding(log.origin.coding)."
        )
    if any(part in DYNAMICS for part in differ):
        return "Nothing of them is usable here: begin with new counts."
    kept = "counts.forget_rewards()" if any(part in SUMS for part in differ) else "counts"
    kept += ".forget_start()" if "start" in differ else ""
    only = (
        " for a problem that knows all its rewards (else begin with new counts)"
        if "rewards()" in kept
        else ""
    )
    return f"What was seen of the dynamics stays usable{only}: {kept}."
