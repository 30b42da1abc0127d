"""An episode that was begun is counted, or leaves its mark in the counts: nothing is proved from
them any more.

Nobody knows why an episode was dropped. Where it was because of what came out of it, only good
outcomes are left, and what they prove is false. For the same reason what was told of an outcome
stands: after a refusal, what was left out may be told; another reward, state or end in place of
the one that was told changes the data.
"""

import math
import threading

import numpy as np

from surefoot.errors import InvalidCounts, InvalidEpisode
from surefoot.evidence.counts import Counts

# a first state; or an action, what it was paid, and the next state, as far as they are known
Seen = tuple[float, ...]
NOTHING: Seen = (math.nan,)  # nothing that is observed is equal to it
# of a step: the action, the reward, the next state, and whether the episode ended or was cut; of
# what comes before step 0, the first state; None: it was not told
Told = tuple[float | None, ...]


class Mark:
    """The mark of the episode under way, and the one way in for what comes out of it, for one
    thread at a time:

        with mark:
            ...  # take an outcome

    Whatever is raised inside refuses it, and marks the counts, until the right one is given: no
    refusal can be written without its mark. (A generator with `contextmanager` would make each step
    of a learner a tenth slower.)
    """

    __slots__ = (
        "_before",
        "_counts",
        "_lock",
        "_marked",
        "_open",
        "_played",
        "_refused_at",
        "_refused_before",
        "_rewound",
        "_several_starts",
        "_told",
    )

    def __init__(self, counts: Counts, lock: threading.RLock) -> None:
        """Mark these counts; no episode is under way."""
        self._counts, self._lock = counts, lock
        self._open = self._played = self._marked = self._several_starts = False
        # the step of which something else was told than before
        self._refused_at: int | None = None
        self._before: list[Seen] = []  # what was seen of this very episode before it was rewound
        self._rewound = False  # was something of it seen, and is it still to be played again?
        self._told: dict[int, Told] = {}  # by steps of this very episode, also after `rewind`

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._open and self._refused_at is None:
            self._take_off()  # this may be the right outcome, after one that was refused
        self._refused_before = self._counts.refused

    def __exit__(self, kind: object, error: object, where: object) -> None:
        if kind is not None and self._counts.refused == self._refused_before:
            self._put_on()
        self._lock.release()

    def require_none(self) -> None:
        """Refuse to begin an episode where one is missing in the counts, also one that a learner
        left under way.
        """
        if self._counts.playing and not self._rewound:
            self._counts.playing, self._counts.refused = False, self._counts.refused + 1
            raise InvalidCounts(
                "Another learner began an episode with these counts and did not end it. It is "
                "missing in them, whatever came out of it: they are marked, and prove nothing any "
                "more. Go on with that learner, or with counts that were saved before the episode."
            )
        self._counts.require_unselected()

    def begin(self, several_starts: bool) -> None:
        """Have an episode under way. As long as nothing of it was played, nobody knows what comes
        out; but where it may start in several states, the first one came out.
        """
        self._open, self._played, self._marked, self._refused_at = True, False, False, None
        self._several_starts = several_starts
        if several_starts:
            self.play()

    def play(self) -> None:
        """Know that something was seen, or an action was given: from now on somebody may know
        what comes out.
        """
        self._played = self._counts.playing = True

    def refuse_others(self, step: int) -> None:
        """Keep the mark, whatever is given in place of what is refused at this step."""
        self._refused_at = step

    def tell(self, step: int, *told: object) -> None:
        """Hold fast what was told of a step: where that is refused, nothing else may take its
        place. Before step 0 a first state is told.
        """
        now = tuple(map(_as_told, told))
        before = self._told.setdefault(step, now)
        if before is now:
            return
        if all(old is None or old == new for old, new in zip(before, now, strict=True)):
            self._told[step] = now
        else:
            self.refuse_others(step)
            self._put_on()

    def require_as_before(self, i: int, now: Seen) -> None:
        """Refuse another outcome than the one that was seen before this very episode was
        rewound.
        """
        if i < len(self._before) and now[: len(self._before[i])] != self._before[i]:
            self.refuse_others(i - 1)
            raise InvalidEpisode(
                f"This episode was rewound, to be played again, but after {i} steps it is another "
                "one now. To play again until something else comes out selects the data: begin "
                "with new counts. What is rewound must come out the same way, from the same seed."
            )

    def counted(self) -> None:
        """Know that the episode was counted."""
        self._before, self._rewound = [], False
        self._told.clear()
        self._close()

    def abandon(self) -> None:
        """Drop the episode. If it was played, the mark stays."""
        if self._open and (self._played or self._rewound):
            self._put_on()
        self._rewound &= not self._open
        self._told.clear()
        self._close()

    def rewind(self, seen: list[Seen]) -> None:
        """Drop the episode, of which this was seen, without a mark: this learner will play it
        again, and no other.
        """
        if self._open:
            known = seen
            if self._refused_at is not None:
                known = [*seen[: self._refused_at + 1], NOTHING]
            self._before = max(self._before, known, key=len)
            self._rewound |= self._several_starts or len(known) > 1
            self._take_off()
        self._close()

    def _close(self) -> None:
        """Have no episode under way."""
        if self._open:
            self._open = False
            if self._played:  # else it is another learner's
                self._counts.playing = self._rewound

    def _put_on(self) -> None:
        """Mark the counts, once in an episode."""
        if self._open:
            self._counts.refused += not self._marked
            self._marked = True

    def _take_off(self) -> None:
        self._counts.refused -= self._marked
        self._marked = False


def _as_told(told: object) -> float | None:
    """Return the number that was told, also where it was said as a text, as a truth value or in an
    array; None: there is none. What cannot be read is no number that another one is equal to.
    """
    alone = told.item() if isinstance(told, np.ndarray) and told.size == 1 else told
    try:
        return None if alone is None else float(alone)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan
