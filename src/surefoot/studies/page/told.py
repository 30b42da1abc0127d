"""What the sections of the page share: results with what was made of them, and the mark below a learner's name."""

from typing import Any, NamedTuple

from surefoot.studies.claims import Verdict
from surefoot.studies.page.markup import Html, said
from surefoot.studies.promises import UNCERTIFIED
from surefoot.studies.spec import Study
from surefoot.studies.store import Results


class Told(NamedTuple):
    """A study's results, and what was made of them."""

    anchor: str
    results: Results
    verdicts: list[Verdict]
    rows: list[dict[str, Any]]

    @property
    def study(self) -> Study:
        """What was asked."""
        return self.results.study


def tag(words: str) -> Html:
    """A short mark below a learner's name."""
    bad = " bad" * words.startswith((UNCERTIFIED, "PROMISE BROKEN", "no promise"))
    return Html(f'<small class="tag{bad}">{said(words)}</small>')
