"""The text by which settings are recognised in saved files.

A saved run and an account of certified values each hold a digest of the settings that they were made with. What goes
into the digest is spelled out here, from data: it is part of the file formats. `repr` is for people, and may be
reworded. The words below are those of the first files; some fields have other names today (`Relative.max_loss` was
`give`, `Certificate.fingerprint` was `mark`). Floors and values are hashed as bounds use them, rescaled to 0..H.
"""

from surefoot.agents.explorers import Thompson
from surefoot.agents.floors import Below, Relative
from surefoot.agents.replanning import Blocks, EveryEpisode, Growth
from surefoot.agents.returns import Returns
from surefoot.bounds import KL, Bernstein, Certificate
from surefoot.bounds.boxes import BernsteinBox, HoeffdingBox, MaurerPontilBox
from surefoot.task.problem import Problem
from surefoot.task.units import Units

# Our records, by exact type: a user's own subclass may hold more, and speaks for itself.
TEXTS: dict[type, str] = {
    KL: "KL(scale={0.scale!r}, full_support={0.full_support!r})",
    Bernstein: "Bernstein(scale={0.scale!r})",
    BernsteinBox: "BernsteinBox(scale={0.scale!r})",
    HoeffdingBox: "HoeffdingBox(scale={0.scale!r})",
    MaurerPontilBox: "MaurerPontilBox(scale={0.scale!r})",
    Certificate: "Certificate(value={0.rescaled!r}, delta={0.delta!r}, mark={0.fingerprint!r})",
    Relative: "Relative(give={0.max_loss!r})",
    Below: "Below(amount={0.amount!r})",
    Returns: "Returns(share={0.share!r})",
    Thompson: "Thompson(prior={0.prior:g})",
    EveryEpisode: "EveryEpisode()",
    Growth: "{0.identity}",
    Blocks: "{0.identity}",
    Units: "{0.identity}",
}


def text_of(value: object) -> str:
    """The text of a setting; the `repr` of what is not ours, such as a number or a user's own object."""
    kind = type(value)
    if isinstance(value, Problem) and kind.__repr__ is Problem.__repr__:
        return problem_text(value)
    return TEXTS[kind].format(value) if kind in TEXTS else repr(value)


def problem_text(problem: Problem) -> str:
    """Sizes, start, and what kind of knowledge there is; not the numbers, which are hashed on their own."""
    start = "several starts"
    if problem.one_start:
        start = f"s1={problem.s1}"
    elif problem.start is None:
        start = "start unknown"
    parts = [f"S={problem.S}, A={problem.A}, H={problem.H}", start]
    parts.append("stationary" if problem.stationary else "step-dependent")
    if problem.pays_by_next:
        parts.append("rewards by next state")
    if problem.unknown_rows is not None:
        parts.append("rewards unknown")
    if problem.knows_support:
        parts.append("support known")
    if problem.rewards_at_least:
        parts.append("rewards at least as given")
    return f"Problem({', '.join(parts)})"


def floor_text(floor: Relative | Below) -> str:
    """The text of a floor that is measured from the baseline."""
    if isinstance(floor, Below):
        return f"{floor.amount:g} below the baseline"
    return f"{100 * (1 - floor.max_loss):g} % of the baseline"


def setting_text(value: object) -> str:
    """The text of one field of an agent. Of a function, or of what is not ours, the name alone.

    The `repr` of such an object may hold its address, which is another one in every process.
    """
    kind = type(value)
    if kind is Thompson:
        return "surefoot.agents.explorers.Thompson"  # wherever the class may be today
    if kind.__module__.split(".")[0] in ("surefoot", "builtins") and not callable(value):
        return text_of(value)
    return f"{kind.__module__}.{getattr(value, '__qualname__', kind.__qualname__)}"
