"""The claims that a study may name: each a sentence and who says it. How each is judged:
analysis/claims.py.

To add one, add it here and write the function that judges it, with `@judges("its-name")` above: in
analysis/claims.py, or in theory.py (the theorems, Table 1). Python refuses to import claims.py
while a claim has no function, or a function no claim.
"""

from typing import NamedTuple

PAPER, DRAFT, OURS = "the paper", "a draft of the paper", "ours"
SOURCES = {PAPER: "Claims of the paper", DRAFT: "Claims of its drafts", OURS: "Claims of ours"}


class Claim(NamedTuple):
    """What is claimed, and by whom."""

    sentence: str
    source: str


CLAIMS = {
    "promise": Claim("Agents that promise the floor keep it in every episode", OURS),
    "paper-promise": Claim("StepMix and EpsMix keep the floor in every episode", PAPER),
    "optimist-violates": Claim("BPI-UCBVI, which has no floor, falls below it", PAPER),
    "flat-then-rise": Claim(
        "StepMix and EpsMix stay on the baseline at first, then rise to the optimum", PAPER
    ),
    "epsmix-faster": Claim(
        "EpsMix converges slightly faster than StepMix: less regret, optimistic sooner", PAPER
    ),
    "epsmix-sooner": Claim("EpsMix leaves the baseline slightly sooner than StepMix", OURS),
    "higher-floor-delays": Claim(
        "A higher floor delays both: later off the baseline, more regret", PAPER
    ),
    "better-baseline-throughout": Claim(
        "A better baseline leads to better performance throughout: in no hundredth of the episodes "
        "a lower return",
        PAPER,
    ),
    "better-baseline-helps": Claim("A better baseline helps: sooner off it, less regret", OURS),
    "dope-leaves-first": Claim("DOPE leaves the baseline first", PAPER),
    "dope-regrets-more": Claim("DOPE ends with more regret than StepMix and EpsMix", PAPER),
    "optpess-stays": Claim("OptPess-LP stays on the baseline throughout", PAPER),
    "more-trajectories-help": Claim(
        "More offline trajectories give a better baseline, and the optimum sooner", PAPER
    ),
    "log-is-enough": Claim(
        "A baseline learnt from the log is no worse than the policy that wrote it", OURS
    ),
    "tighter-floor-delays": Claim(
        "A smaller alpha, a tighter floor, delays StepMix: later off the baseline, more regret",
        DRAFT,
    ),
    "finite-mixtures": Claim(
        "The episodes that StepMix spends at h0 > 0 grow at most like log^2(K+1), as Lemma finite "
        "allows",
        DRAFT,
    ),
    "mixing-leaves-sooner": Claim(
        "StepNoMix stays on the baseline for more episodes than StepMix", DRAFT
    ),
    "fewer-violations-with-more-data": Claim(
        "The more offline trajectories, the fewer runs are below the floor", DRAFT
    ),
    "sharp-leaves-sooner": Claim(
        "With KL certificates the same agent leaves the baseline sooner, under the same promise",
        OURS,
    ),
    "regret-bound": Claim(
        "The regret is at most the bound of Theorems step and episodic, with its constants", PAPER
    ),
    "regret-root-k": Claim(
        "What StepMix and EpsMix add to their regret after the first optimistic episode grows at "
        "most like sqrt(K)",
        OURS,
    ),
    "additive-constant": Claim(
        "Compared with BPI-UCBVI, conservative exploration only leads to an additive constant in "
        "the regret",
        PAPER,
    ),
    "waiting-bound": Claim(
        "The episodes that are not optimistic are at most as many as Lemma finite allows, with its "
        "constants",
        PAPER,
    ),
    "waiting-in-kappa": Claim(
        "The episodes that are not optimistic grow at most like 1/kappa^2", OURS
    ),
    "waiting-between": Claim(
        "Where kappa is at least Delta_0, they do grow, by an exponent between 1 (S/kappa) and 2 "
        "(1/kappa^2)",
        OURS,
    ),
    "waiting-saturates": Claim(
        "Where kappa is at most Delta_0 / 2, they stop growing: the optimistic policy is certified "
        "first",
        OURS,
    ),
    "waiting-in-sizes": Claim(
        "The episodes that are not optimistic grow at most like H^3, S^2 and A, logarithms divided "
        "out",
        OURS,
    ),
    "gamma-zero": Claim(
        "With floor 0 the algorithm reduces to an optimistic one, and the additive term becomes "
        "zero",
        PAPER,
    ),
    "table-1-constraints": Claim(
        "Every algorithm promises and keeps what Table 1 states for it", PAPER
    ),
    "sums-fall-below": Claim(
        "Every algorithm that keeps the floor in the sum alone is below it in single episodes of "
        "every run",
        OURS,
    ),
    "table-1-regret": Claim(
        "Regrets are in the order of Table 1: Budget-Exploration, StepMix and EpsMix, DOPE, "
        "OptPess-LP",
        OURS,
    ),
}
