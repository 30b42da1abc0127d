"""Which function judges which claim: `@judges("its-name")` above a function registers it."""

from collections.abc import Callable

from surefoot.rivals.registry import AGENTS
from surefoot.studies.analysis.trials import Judge
from surefoot.studies.spec.claims import CLAIMS

MIXERS = ("stepmix", "epsmix")
IN_SUM = tuple(name for name, agent in AGENTS.items() if agent.in_sum)
JUDGES: dict[str, Judge] = {}  # by the claim's name


def judges(name: str) -> Callable[[Judge], Judge]:
    """Register the function that judges a claim."""

    def register(function: Judge) -> Judge:
        if name not in CLAIMS or name in JUDGES:
            reason = "is judged twice" if name in CLAIMS else "is not in spec/claims.py"
            raise ValueError(f"The claim {name!r} {reason}.")
        JUDGES[name] = function
        return function

    return register
