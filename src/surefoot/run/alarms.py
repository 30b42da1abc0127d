"""An alarm is told at once: to people by Python's logging, to programs by a function of the
user's.
"""

import logging
from collections.abc import Callable

from surefoot.audit.premises import Contradiction
from surefoot.audit.watchdog import Alarm
from surefoot.errors import InvalidSetting

OnAlarm = Callable[[Alarm | Contradiction | str], None]


def require_on_alarm(given: object) -> None:
    """Refuse what cannot be called."""
    if given is not None and not callable(given):
        raise InvalidSetting(f"on_alarm is {given!r}, expected a function of the alarm, or None.")


def tell_alarm(
    alarm: Alarm | Contradiction, on_alarm: OnAlarm | None = None, following: int | None = None
) -> None:
    """Say in the log "surefoot" that an alarm was raised, and how many episodes follow; then
    call `on_alarm`.
    """
    tell(alarm.sentence(what_follows(following)), alarm, on_alarm)


def tell_range_alarm(reason: str, on_alarm: OnAlarm | None, following: int) -> None:
    """Do the same for a guard whose declared range is false; `reason` begins with what was
    found.
    """
    found = reason.partition(". ")[0]
    tell(f"The guard raised an ALARM: {found}, and {what_follows(following)}.", reason, on_alarm)


def tell(sentence: str, alarm: Alarm | Contradiction | str, on_alarm: OnAlarm | None) -> None:
    """Write one line. No handler is set up here: Python prints warnings on standard error unless
    told otherwise.
    """
    logging.getLogger("surefoot").warning("%s", sentence)
    if on_alarm is not None:
        on_alarm(alarm)


def what_follows(episodes: int | None) -> str:
    """Say what is played from now on; None: nobody knows how many episodes there will be."""
    if episodes is None:
        return "the baseline alone is played in every episode that follows"
    if episodes == 0:
        return "no episode follows"
    many = "one episode that follows" if episodes == 1 else f"{episodes:,} episodes that follow"
    return f"the baseline alone is played in the {many}"
