"""When an agent replans: when the episodes have grown by a share. The promise does not depend on
it.

The good event holds for all counts at once and speaks of the world alone, so on it a policy whose
lower value reached the floor when it was planned is above the floor in every later episode,
whatever the moment of the next plan depends on. (The paper's event, too, is about all episodes at
once.) The length of a block is fixed when it is planned, so a simulator may draw it whole, with the
law of the loop that plays episode by episode.
"""

import math

from surefoot.base.validation import require_number
from surefoot.errors import InvalidSetting

SHARE = 0.02  # the default with other bounds than the paper's: measured (docs/scaling.md)


def block_length(share: float, episodes: int) -> int:
    """Return for how many episodes a plan made after so many episodes is in force."""
    return max(1, math.ceil(share * episodes))


def require_replan(replan: object) -> float:
    """Return the share of the episodes so far by which they grow between two plans; refuse what
    is none.
    """
    meaning = (
        "a number from 0 to 1: the share of the episodes so far that a plan is in force, such as "
        "0.02 (0: plan before every episode)"
    )
    share = require_number("replan", replan, meaning)
    if not 0.0 <= share <= 1.0:
        raise InvalidSetting(f"replan is {share:g}, expected {meaning}.")
    return share
