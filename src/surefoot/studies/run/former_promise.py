"""The promise of a trial in the former format of files, which has a sentence and no data.

This is the only place that reads a sentence. It may: the sentences are those of one former version, and never change.
Trials that are written today hold the promise as data (store.py).
"""

import re
from typing import cast, get_args

from surefoot.agents.promise import NO_FLOOR, PremiseStatus, Promise, Scope, stated

CERTIFIED = re.compile(
    r"certified at delta = (?P<delta>\S+) for (?P<scope>[^,;]+)"
    r"(?:, given the baseline's value of (?P<value>\S+), which was told)?; "
    r"baseline above the floor: (?P<premise>certified by data|vouched for|unknown|none needed)"
)
SCALED = re.compile(
    r"NOT CERTIFIED: bonus scaled by (?P<scale>\S+?)(?P<no_floor>, and no floor promised at any scale)?"
)
ANOTHER_FLOOR = re.compile(r"no promise for this floor: the learner keeps (?P<kept>.+)")
FALSE_PREMISE = re.compile(r"no promise: its premise is false, (?P<why>.+)")


def promise_from(sentence: str, scope: Scope) -> Promise:
    """Return the promise that a sentence of the former format states.

    `scope` is that of the agent: the sentence about a scaled bonus does not say it. A sentence that is none of these
    is kept as it is, and proves nothing.
    """
    if sentence == "no floor promised":
        return NO_FLOOR
    if found := CERTIFIED.fullmatch(sentence):
        return _certified(sentence, found)
    if found := SCALED.fullmatch(sentence):
        kept = None if found["no_floor"] else scope
        return Promise("not certified", scope=kept, scale=float(found["scale"]))
    if found := ANOTHER_FLOOR.fullmatch(sentence):
        return Promise("another floor", details=found["kept"])
    if found := FALSE_PREMISE.fullmatch(sentence):
        return Promise("false premise", details=found["why"])
    return stated(sentence)


def _certified(sentence: str, found: re.Match[str]) -> Promise:
    if found["scope"] not in get_args(Scope):
        return stated(sentence)
    premise = "asserted by the user" if found["premise"] == "vouched for" else found["premise"]
    return Promise(
        "certified",
        delta=float(found["delta"]),
        scope=cast(Scope, found["scope"]),
        premise=cast(PremiseStatus, premise),
        knows_baseline_value=found["value"] is not None,
        baseline_value=None if found["value"] is None else float(found["value"]),
    )
