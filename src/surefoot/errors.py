"""What can go wrong, by kind. Every message says what was expected, what was found, where, and
what to do.
"""


class SurefootError(ValueError):
    """Anything surefoot refuses."""


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
