"""What production says of a case, held against the twin. Every complaint is a sentence; none: they
agree.

One-sided, without any allowance: no candidate is above its exact lower value; no upper value below
the exact one; rho is in [0, 1] and the mixture of the candidates with that very float, in rational
arithmetic, is at the floor; so is the exact lower value of what is played. Two-sided: values are
within 1e-11 H of the exact ones, beyond four steps within 2.5e-12 H^2. Beyond 10^5 visits of a
pair that grows as their root: a radius is inflated for the rounding of lgamma, by about (S+8)
2^-52 log n, and a radius of order 1/n turns that into root n times as much of the value. Rows of a
baseline that do not quite sum to 1 cost as much as they are off.
"""

import math
from fractions import Fraction

import numpy as np

from .cases import Case, Seen
from .twin import Between, Literal, Sharp, chosen, exact_policy, splices_of

# of the twin's own intervals: nothing smaller can be told apart (rewards of 1e-145)
ROUNDING = Fraction(1, 10**60)
# times H: how far on the safe side of the exact value production may be
CLOSE = Fraction(1, 10**11)
# times H^2: each of H backups takes H 1e-12 off, and so does each average over actions
MARGIN = Fraction(5, 2 * 10**12)
MANY = 10**5  # visits of a pair from which on that grows as their root
# times H: how far above the floor a rho rounded towards safety may leave a mixture
ROUNDED = Fraction(1, 2**48)
NEARLY_EQUAL = Fraction(1, 2**40)  # closer lower values than these are not mixed
Twin = Sharp | Literal


def allowance(case: Case) -> Fraction:
    """How far on the safe side a value may be."""
    task = case.task
    most = int(task.n_sas.sum(axis=-1).max())
    most = most if task.n_start is None else max(most, int(task.n_start.sum()))
    sums = [abs(sum(Fraction(float(x)) for x in row) - 1) for step in case.baseline for row in step]
    grown = Fraction(math.isqrt(max(most, MANY)), math.isqrt(MANY))
    return task.H * (max(CLOSE, MARGIN * task.H) * grown + 4 * task.H * max(sums))


def complaints(case: Case, seen: Seen, twin: Twin | None = None) -> list[str]:
    """All that is wrong with a plan."""
    task, close = case.task, allowance(case)
    twin = case.twin() if twin is None else twin
    pi_b, pi_bar = exact_policy(case.baseline), exact_policy(seen.pi_bar)
    exact = twin.candidates(pi_b, pi_bar, splices_of(case.learner, task.H))
    if len(exact) != len(seen.candidates):
        return [f"there are {len(seen.candidates)} candidates, expected {len(exact)}"]
    found = about_the_optimist(seen, twin, twin.optimist(pi_bar), close)
    if isinstance(twin, Sharp) and twin.events != case.bounds().events(case.problem, task.pooled):
        found.append(f"production counts other balls than the twin's {twin.events}")
    for c, (low, true) in enumerate(zip(map(Fraction, seen.candidates), exact, strict=True)):
        if low > true.lo + ROUNDING:
            found.append(f"candidate {c} is {float(low - true.lo):.3g} above the exact lower value")
        if low < true.hi - close:
            found.append(f"candidate {c} is {float(true.hi - low):.3g} below the exact lower value")
    if not 0 <= seen.rho <= 1:
        found.append(f"rho is {seen.rho}")
    if case.max_loss is None:
        found += about_the_choice(case, seen) + about_the_value(case, seen, twin, exact)
    else:
        found += about_the_share(case, seen, exact, twin.upper(pi_b), close)
    return found + about_the_policy(case, seen)


def about_the_optimist(
    seen: Seen, twin: Twin, optimist: tuple[list, Between], close: Fraction
) -> list[str]:
    """pi_bar is an argmax of the exact Q_up, ties aside; the upper value is one."""
    Q_up, upper = optimist
    found = []
    for h, s in np.ndindex(seen.pi_bar.shape[:2]):
        row = seen.pi_bar[h, s].tolist()
        taken = row.index(max(row))
        if sorted(row) != [0.0] * (len(row) - 1) + [1.0]:
            found.append(f"pi_bar takes no single action in state {s} at step {h}")
        if Q_up[h][s][taken].hi < max(q.lo for q in Q_up[h][s]) - close:
            found.append(f"action {taken} in state {s} at step {h} is not the optimistic policy's")
    if seen.upper < upper.hi - ROUNDING:
        found.append(
            f"upper is {float(upper.hi - Fraction(seen.upper)):.3g} below the exact upper value"
        )
    if seen.upper > upper.lo + close:
        found.append(
            f"upper is {float(Fraction(seen.upper) - upper.lo):.3g} above the exact upper value"
        )
    return found


def about_the_choice(case: Case, seen: Seen) -> list[str]:
    """h and rho are what the candidates say, exactly: the boldest at the floor, mixed down to
    it.
    """
    found = []
    L, floor, rho, H = (
        [Fraction(x) for x in seen.candidates],
        Fraction(case.floor),
        Fraction(seen.rho),
        case.task.H,
    )
    c = chosen(L, floor)
    h = H if c is None else splices_of(case.learner, H)[c]
    if seen.h != h:
        found.append(f"h is {seen.h}, but the boldest candidate at the floor has {h}")
    if c is None or c == 0 or case.learner == "StepNoMix":
        if rho != (1 if c == 0 else 0):
            found.append(f"rho is {seen.rho} where nothing is mixed")
        return found
    above = (1 - rho) * L[c] + rho * L[c - 1] - floor
    if above < 0:
        found.append(f"rho {seen.rho} takes the mixture {float(-above):.3g} below the floor")
    if L[c] - L[c - 1] > NEARLY_EQUAL and above > ROUNDED * H:
        found.append(f"rho {seen.rho} leaves the mixture {float(above):.3g} above the floor")
    return found


def about_the_value(case: Case, seen: Seen, twin: Twin, exact: list[Between]) -> list[str]:
    """The exact lower value of what is played is at the floor, if that is certified, and not below
    plan.lower.

    A step mixture is evaluated as the policy it is where the bounds hold for any policy; a coin,
    and the paper's mixtures, are worth (1-rho) L(h) + rho L(h-1).
    """
    found = []
    rho, floor = Fraction(seen.rho), Fraction(case.floor)
    c = splices_of(case.learner, case.task.H).index(seen.h)
    value = (1 - rho) * exact[c].lo + rho * exact[c - 1].lo if c else exact[0].lo
    if seen.policy is not None and isinstance(twin, Sharp) and 0 < rho < 1:
        value = twin.lower(exact_policy(seen.policy)).lo
    if chosen([Fraction(x) for x in seen.candidates], floor) is not None and value < floor:
        found.append(
            f"the exact lower value of what is played is {float(floor - value):.3g} below the floor"
        )
    if seen.lower > value + ROUNDING:
        found.append(
            f"plan.lower is {float(Fraction(seen.lower) - value):.3g} above the exact lower value"
        )
    return found


def about_the_share(
    case: Case, seen: Seen, exact: list[Between], U: Between, close: Fraction
) -> list[str]:
    """A relative floor: a candidate is played if L >= (1-a) U with U >= V^b; pi_b may be mixed with
    something worth at least x by up to rho = a U / (U - x). Both fall short of the exact by no more
    than values do.
    """
    found = []
    give, rho = Fraction(case.max_loss), Fraction(seen.rho)
    splices = splices_of(case.learner, case.task.H)
    c, last = splices.index(seen.h), len(splices) - 1
    if any(low.lo >= (1 - give) * U.hi + 2 * close for low in exact[: min(c, last)]):
        found.append(f"h is {seen.h}, but a bolder candidate is worth the share")
    if c == 0:
        value, least = exact[0].lo, (1 - give) * U.hi
    else:
        safe = U if c == last else exact[c]
        value, least = (
            (1 - rho) * (safe.hi if c == last else safe.lo) + rho * exact[c - 1].lo,
            (1 - give) * U.hi,
        )
        worth = safe.lo - exact[c - 1].hi > NEARLY_EQUAL + 2 * close
        if case.learner != "StepNoMix" and worth and rho < 1 and value > least + 4 * close:
            found.append(
                f"rho {seen.rho} leaves the mixture {float(value - least):.3g} above the share"
            )
    proved = (1 - rho) * exact[c].lo + rho * exact[c - 1].lo if c else value
    if seen.lower > proved + ROUNDING:
        found.append(
            f"plan.lower is {float(Fraction(seen.lower) - proved):.3g} above the exact lower value"
        )
    if value < least:
        found.append(
            f"what is played is {float(least - value):.3g} below the share of the baseline"
        )
    return found


def about_the_policy(case: Case, seen: Seen) -> list[str]:
    """The policy is (1-rho) pi^{h} + rho pi^{h-1}, to the last bit where the two agree; the exit
    has its name.
    """
    found = []
    H, rho = case.task.H, Fraction(seen.rho)
    if seen.source != (
        "optimistic" if seen.h == 0 else "baseline" if seen.h == H and rho == 0 else "mixture"
    ):
        found.append(f"source is {seen.source!r} with h = {seen.h} and rho = {seen.rho}")
    if seen.policy is None:
        return found
    safe, bold = (
        np.concatenate([case.baseline[:h0], seen.pi_bar[h0:]])
        for h0 in (seen.h, max(seen.h - 1, 0))
    )
    for place in np.ndindex(seen.policy.shape):
        x, y, p = (Fraction(float(pi[place])) for pi in (safe, bold, seen.policy))
        if abs(p - ((1 - rho) * x + rho * y)) > (Fraction(1, 2**52) if x != y else 0):
            found.append(
                f"the policy has {float(p)} at {place}, not the mixture of {float(x)} and "
                f"{float(y)}"
            )
    return found
