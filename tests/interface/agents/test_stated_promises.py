"""What a user's own agent says of itself: NOT CERTIFIED is never lost."""

import pytest

import surefoot as sf
from surefoot.agents.promise import stated

WORDS = "NOT CERTIFIED: by hand"


class Plain:
    """An agent of a user's own, which states its promise as a text."""

    def __init__(self, world, floor, promise):
        self.problem, self.floor, self.pooled, self.promise = world.problem, floor, False, promise
        self.baseline = world.baseline

    def plan(self, counts):
        return sf.Plan.plain(self.baseline)


@pytest.fixture(scope="module")
def trap():
    return sf.world("trap")


@pytest.mark.parametrize("floor", [None, 0.3])
def test_a_stated_label_is_kept_whatever_floor_is_counted_against(trap, floor):
    run = sf.simulate(trap, Plain(trap, 0.6, WORDS), 3, seed=0, floor=floor)
    assert (str(run.promise), run.promise.kind) == (WORDS, "not certified")


def test_control_other_words_are_only_words(trap):
    run = sf.simulate(trap, Plain(trap, 0.6, "certified by me"), 3, seed=0)
    assert (run.promise.kind, run.promise.certified) == ("stated", False)
    run = sf.simulate(trap, Plain(trap, 0.6, "certified by me"), 3, seed=0, floor=0.3)
    assert run.promise.kind == "another floor"


def test_a_stated_label_is_noted_and_survives_an_alarm_and_a_false_premise(trap):
    assert any(WORDS in str(finding) for finding in sf.check_agent(Plain(trap, 0.6, WORDS)))
    promise = stated(WORDS)
    assert promise.with_false_premise("why") == promise.for_another_floor("1") == promise
    assert str(promise.after_alarm("not supported")).startswith("NOT CERTIFIED")
    assert promise.why_uncertified == WORDS
