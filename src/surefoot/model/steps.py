"""Steps as people count them: from 1, without one that only draws the first state. Arrays and
files count from 0.
"""

from surefoot.model.problem import Problem


def added_steps(problem: Problem) -> int:
    """Return how many steps come before the first real one: 1 where several first states have a
    common start, else 0.

    The units say so: an added step pays nothing.
    """
    return problem.H - problem.units.steps if problem.units.steps else 0


def common_start(problem: Problem) -> int | None:
    """Return the state that was added before several first states; None: there is none."""
    return problem.s1 if added_steps(problem) else None


def step_name(problem: Problem, h: int) -> str:
    """Return what people call step h = 0..H-1: step 1 of 3."""
    added = added_steps(problem)
    return (
        "the draw of the first state"
        if h < added
        else f"step {h + 1 - added} of {problem.H - added}"
    )
