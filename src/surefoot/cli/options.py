"""Options that several commands share: each group is written once, and a command takes it as one
parameter.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surefoot.errors import InvalidSetting

if TYPE_CHECKING:
    from surefoot.logs.log_counts import LogCounts
    from surefoot.model.problem import Problem

Delimiter = Annotated[
    str | None,
    typer.Option(
        help="What separates the fields of a CSV: , ; | or tab. Default: a comma; for .tsv a tab."
    ),
]
Delta = Annotated[float, typer.Option(help="The largest probability that the promise fails.")]
Json = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
Sizes = Annotated[
    list[str] | None, typer.Option("--set", help="A size of the world, such as S=8; repeatable.")
]


def grouped(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters that are dataclasses are given as options: one for each
    of their fields.
    """
    single: list[inspect.Parameter] = []
    groups: dict[str, type[Group]] = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        kind = parameter.annotation
        if inspect.isclass(kind) and issubclass(kind, Group):
            groups[parameter.name] = kind
            single += inspect.signature(kind, eval_str=True).parameters.values()
        else:
            single.append(parameter)

    @wraps(function)
    def command(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        function(**given)

    options = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in single]
    vars(command)["__signature__"] = inspect.Signature(options)
    return command


@dataclass(frozen=True)
class Group:
    """Base class of groups of options."""

    def refuse_for(self, what: str, why: str, *, but: tuple[str, ...] = ()) -> None:
        """Refuse an option of this group that was given, but for some: it says nothing about
        this source.
        """
        for field in fields(self):
            if field.name not in but and getattr(self, field.name) != field.default:
                refuse(field.name, what, why)


def refuse(name: str, what: str, why: str) -> None:
    """Refuse an option that says nothing about this source."""
    raise InvalidSetting(f"--{name.replace('_', '-')} is for {what}: {why}. Leave it out.")


@dataclass(frozen=True)
class LogOptions(Group):
    """How a log is read."""

    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column", help="The name of a column in the log, such as state=segment; repeatable."
        ),
    ] = None
    horizon: Annotated[
        int | None,
        typer.Option(
            min=1, help="The steps of an episode; longer ones are cut. Default: the longest."
        ),
    ] = None
    reward_range: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help="The lowest and the highest POSSIBLE reward. Without it nothing is certified."
        ),
    ] = None
    states: Annotated[
        str | None,
        typer.Option(
            help="All states that exist: how many (0, 1, 2, ...), labels separated by commas, or "
            "as-logged: those in the log are all. Default: there may be others."
        ),
    ] = None
    actions: Annotated[
        str | None,
        typer.Option(help="All actions that exist: how many, or labels separated by commas."),
    ] = None
    after_end: Annotated[
        float | None,
        typer.Option(
            help="What each step after an early end pays. Default: 0, if the range holds it."
        ),
    ] = None
    memory: Annotated[
        str, typer.Option(help="The memory that may be used before temporary files are written.")
    ] = "256MB"
    delimiter: Delimiter = None

    def as_arguments(self) -> dict[str, Any]:
        """Return them as `count_log` takes them."""
        given = {
            **vars(self),
            "states": parse_labels(self.states),
            "actions": parse_labels(self.actions),
        }
        del given["column"]
        return given | {"columns": self.columns}

    @property
    def columns(self) -> dict[str, str]:
        """The names of columns by their meanings: `--column state=segment`."""
        pairs = [text.partition("=") for text in self.column or []]
        bad = [name for name, equals, value in pairs if not (name and equals and value)]
        if bad:
            raise InvalidSetting(
                f"--column is {bad[0]!r}, expected MEANING=NAME, such as state=segment."
            )
        return {name: value for name, _, value in pairs}


@dataclass(frozen=True)
class Declarations(Group):
    """What is declared about the process, whatever a log shows."""

    rewards: Annotated[
        str | None,
        typer.Option(
            help="as-logged: each pair always pays what it paid in the log; "
            "as-logged-by-next-state: each transition does. Default: rewards are unknown."
        ),
    ] = None
    start: Annotated[
        str | None,
        typer.Option(
            help="The state in which every episode starts, or as-logged: the one first state of "
            "the log. Default: the start is unknown."
        ),
    ] = None
    support: Annotated[
        str | None,
        typer.Option(
            help="as-logged: of the pairs in the log, only the transitions seen are possible. "
            "Default: all."
        ),
    ] = None
    stationary: Annotated[
        bool, typer.Option("--stationary", help="Neither dynamics nor rewards depend on the step.")
    ] = False
    unit: Annotated[
        str, typer.Option(help="What rewards are counted in, such as EUR, for people.")
    ] = ""

    def of(self, counted: "LogCounts") -> "Problem":
        """Return what an agent may know of a log that was counted."""
        numbered = isinstance(counted.codebook.states[0], int)
        start = parse_labels(self.start) if numbered else self.start
        return counted.problem(**{**vars(self), "start": start})


def parse_labels(given: str | None) -> list[str] | list[int] | int | str | None:
    """Read `5`, `new,loyal,lost`, `10,20,30` or `as-logged`."""
    if given is None:
        return None
    if is_number(given):
        return int(given)
    if given.strip() in ("as-logged", "as logged"):
        return "as logged"
    labels = [label.strip() for label in given.split(",")]
    return [int(label) for label in labels] if all(map(is_number, labels)) else labels


def is_number(label: str) -> bool:
    """Is this a whole number of at most 18 digits? All else is text, as it is in a log."""
    return re.fullmatch(r"-?[0-9]{1,18}", label.strip()) is not None
