"""What can go wrong, by kind. Every message says what was expected, what was found, where, and
what to do; of what others wrote (names, labels, paths) no character moves a cursor or hides others.
"""


def printable(text: str) -> str:
    r"""Return a text with what cannot be printed written out: ESC as \x1b, a line break as \n, a
    mark as \u202e.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """Return the same of a text of several lines: they stay lines."""
    return "\n".join(map(printable, text.split("\n")))


class SurefootError(ValueError):
    """Anything surefoot refuses."""

    def __str__(self) -> str:
        return printable_lines(super().__str__())


class InvalidModel(SurefootError):
    """A world, its rewards or its sizes are not what they claim to be."""


class InvalidPolicy(SurefootError):
    """An array that is not a policy, or not one for this problem."""


class InvalidCounts(SurefootError):
    """Numbers that are not counts, or counts that belong to another problem."""


class PremiseContradicted(InvalidCounts):
    """Counts that contradict what must be true for them to prove anything."""


class InvalidEpisode(SurefootError):
    """An episode of the wrong length, or with states or actions that do not exist."""


class InvalidSetting(SurefootError):
    """A floor, delta, scale or seed outside its range."""


class InvalidLog(SurefootError):
    """A log of episodes that cannot be used as it is."""


class InvalidStudy(SurefootError):
    """A study that cannot be run as it is written, or results that are of another one."""


class MissingExtra(SurefootError):
    """A library that only some need is not installed."""


class InvalidFile(SurefootError):
    """A file that is not what this version of surefoot writes."""


class FloorAboveBaseline(UserWarning):
    """The baseline's true value is below the floor: the premise of the promise is false."""


class SolverTrouble(UserWarning):
    """A linear program that has a solution was not solved. What is played instead is safe, and
    says so.
    """
