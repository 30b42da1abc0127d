"""What the paper says, what it leaves open, what is chosen here, and what changes with another choice: one list.

The report shows the rows that concern a study, and docs/reproduction/README.md shows all of them
(tools/reproduction.py).
"""

from dataclasses import dataclass

TITLE = "What the paper says, what it leaves open, what we chose, and what changes with another choice"
SOURCES = (
    "Sections, equations and algorithms are those of the paper's source, by number or label. Of another choice stands "
    "what docs/ measures or what follows by proof; the rest is not measured."
)
HEADINGS = ("topic", "the paper", "our choice", "with another choice")

ONLINE = ("online", "online-worlds")
RIVALS = ("rivals",)
LOGS = ("offline", "offline-violations")
DRAFTS = ("relative-floors", "episodes-per-step", "step-no-mix", "offline-violations")
ONE_WORLD = ("online", "offline", *DRAFTS)  # the paper's first world, drawn with seed 1
EPSMIX = (*ONLINE, *RIVALS, *LOGS)
PAPER = (*ONLINE, "offline", *RIVALS, *DRAFTS)


@dataclass(frozen=True)
class PaperChoice:
    """A point that the paper leaves open or contradicts itself in, a sentence or two for each column."""

    topic: str
    paper: str  # what it says, and where
    chosen: str
    otherwise: str  # what is known to change with another choice
    studies: tuple[str, ...]  # the studies that it concerns, by name

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The row of the table, below HEADINGS."""
        return self.topic, self.paper, self.chosen, self.otherwise


CHOICES = (
    PaperChoice(
        "number of episodes K",
        "Section 7 gives no K, and its pictures are not in the source.",
        "20 million; rivals 5 million, relative-floors 50 million, offline-violations 1 million.",
        "With 10 million, StepMix with eta = 5 and floor 2.2 ends on the baseline (online: it leaves at 10.8 "
        "million); with 20 million, OptPess-LP leaves the baseline at 6.8 to 8.4 million in three worlds "
        "(rivals-tables).",
        PAPER,
    ),
    PaperChoice(
        "delta",
        "Eq. constraint: any delta in (0, 1); Section 7 gives none.",
        "0.1 for each run of each agent.",
        "It enters through log(1/delta) alone: 0.01 adds 2.3 to beta, which is 93.6 at a million visits (S = A = 5, "
        "H = 3); moments are not measured.",
        PAPER,
    ),
    PaperChoice(
        "draw of the world",
        "Section 7.1: rewards uniform on [0, 1], each row of P uniform on the simplex; not how a world with V^b above "
        "the floor was found.",
        "The first world is random_mdp(5, 5, 3, seed=1): V* = 2.672, V^b = 2.441 (eta 5) and 2.593 (eta 10), above "
        "both floors.",
        "In world 0 V^b is 2.233 and 2.419; in world 3 V^b of eta 5 is 2.181, below the floor of 2.2, and a study of "
        "it is refused (sharp-tables).",
        ONE_WORLD,
    ),
    PaperChoice(
        "seeds",
        "None are given.",
        "The study's seed is 0, and trial i draws from child i of it.",
        "Over ten trials of online, the first episode off the baseline differs by 0.13 % at most, the first optimistic "
        "one by 0.9 %; in rivals by 2 % (DOPE).",
        PAPER,
    ),
    PaperChoice(
        "number of worlds",
        "Section 7.1: one synthetic environment, ten trials; not whether each trial draws a world of its own.",
        "One world with ten trials; online-worlds has ten worlds with one trial each.",
        "Moments differ from world to world: in three worlds of rivals-tables DOPE leaves at 0.27 to 0.35 million, and "
        "in one of them EpsMix leaves after StepMix (2.78 and 2.41 million).",
        PAPER,
    ),
    PaperChoice(
        "start state",
        "Section 3: a fixed s_1; Section 7 does not say which.",
        "State 0.",
        "All states are drawn alike, so another start state is another draw of the world.",
        PAPER,
    ),
    PaperChoice(
        "constants and scale of the bonus",
        "Eq. q prints 3, 14 H^2 and 22 H^2; Section 7 does not say whether its runs have them.",
        "As printed, scale 1.",
        "No proof covers a smaller scale: such runs are labelled NOT CERTIFIED, and none is measured here; KL "
        "certificates keep the promise and leave the baseline thousands of times sooner (study sharp).",
        PAPER,
    ),
    PaperChoice(
        "ties of the optimistic argmax",
        "Algorithms 1 and 4: argmax of Q_up, without a rule for ties.",
        "The first index.",
        "The bounds hold under any rule; pairs with few visits all have Q_up = H, so the rule decides what BPI-UCBVI "
        "plays at first: not measured.",
        PAPER,
    ),
    PaperChoice(
        "BPI-UCBVI",
        "Section 7.1 cites Menard et al. (2021), and states neither its delta nor its constants.",
        "The optimistic policy of EpsMix with delta' = delta/4, without a stopping rule; Menard et al. have "
        "log(3SAH/delta) in the thresholds and another lower value.",
        "In Menard's form (bpi-ucbvi-menard) 5 million episodes have 509,788 violations instead of 614,479 "
        "(rivals-tables).",
        (*ONLINE, "offline"),
    ),
    PaperChoice(
        "faster convergence",
        'Section 7.1: EpsMix "exhibits slightly faster convergence"; not by which measure.',
        "Both are judged: as worded, by regret and the first optimistic episode; in our reading, off the baseline.",
        "By the first optimistic episode EpsMix is sooner in three of four scenarios, by regret in one of four "
        "(docs/reproduction, online).",
        ONLINE,
    ),
    PaperChoice(
        "better throughout",
        'Section 7.1: a better baseline "leads to better learning performance throughout the learning process"; not by '
        "which measure.",
        "Both are judged: as worded, by the mean return in every hundredth of the episodes; in our reading, off the "
        "baseline and by regret.",
        "By the return the better one is lower in 42 to 69 hundredths, by 0.004 at most and above 2.66, with V* = "
        "2.672; by the regret so far it is ahead throughout (docs/reproduction, online).",
        ONLINE,
    ),
    PaperChoice(
        "what counts as a violation of EpsMix",
        "Eq. constraint is on the policy of episode k; Section 5 says that the policy that the coin selects may be "
        "below the floor.",
        "The coin-averaged value is held against the floor.",
        "Held against the policy that the coin selects, EpsMix would be below in every episode that plays an "
        "optimistic policy whose value is below the floor: not measured.",
        EPSMIX,
    ),
    PaperChoice(
        "EpsMix's evaluation of the baseline",
        "Algorithm 4 reads Q at pi_b(s), as of a deterministic policy; Section 7.1 has a stochastic baseline.",
        "The mean of Q under pi_b(.|s), as in Algorithm 3.",
        "Q at one drawn action bounds the value of another policy.",
        EPSMIX,
    ),
    PaperChoice(
        "estimate of P after one visit",
        "Eq. p uses counts if n > 1; the table of Appendix B says n >= 1, Algorithm 4 n > 0.",
        "n >= 1.",
        "Nothing: at n = 1 the bonus exceeds H, so Q_up = H and Q_low = 0 either way.",
        PAPER,
    ),
    PaperChoice(
        "V_low of a candidate",
        "Eq. Xd averages Q_up; Eq. lcbV and Algorithm 3 average Q_low.",
        "Q_low.",
        "The form of Eq. Xd is no lower bound: a test shows that it breaks the floor (ALGORITHMS.md).",
        PAPER,
    ),
    PaperChoice(
        "next value in Q_up of a candidate",
        "Eq. ucbQ has the value with index h, Eq. Xb that with index h0.",
        "Index h0: each candidate is evaluated with its own values.",
        "With index h it is not the recursion of any one candidate, and the proof does not cover it.",
        PAPER,
    ),
    PaperChoice(
        "argument of beta",
        "The theorems of Appendices C and D set beta with K; Eq. ucbQ and Appendix B with n.",
        "n, the visits of the pair: K need not be known.",
        "beta(K) is larger (108.6 for K = 20 million, 93.6 at a million visits), so agents would leave the baseline "
        "later: not measured.",
        PAPER,
    ),
    PaperChoice(
        "delta inside beta",
        "Lemma stepgood needs its event on P_hat at delta/3; Eq. ucbQ has beta at delta' = delta/(3(H+1)).",
        "delta', as in the equation.",
        "delta/3 would be valid too, and makes beta smaller by log 4 = 1.4 of 93.6: not measured.",
        PAPER,
    ),
    PaperChoice(
        "lower value equal to the floor",
        "Algorithms 1 and 4: at or above the floor; the proof in Appendix C: above it, for h0 = 0.",
        "At or above.",
        "Nothing, unless the two are equal to the last bit.",
        PAPER,
    ),
    PaperChoice(
        "floor of the comparison",
        "Section 7.2 gives no gamma.",
        "V^b - 0.2 = 1.366.",
        "On the baseline the counts do not depend on the floor, so StepMix and EpsMix leave later under a higher one; "
        "other floors are not measured.",
        RIVALS,
    ),
    PaperChoice(
        "world of the comparison",
        "Section 7.2: S = 4, A = 2, H = 3, the same P and r at every step, drawn as in Section 7.1.",
        "random_mdp(4, 2, 3, seed=0, stationary=True): V* = 1.693, V^b = 1.566 (eta 5).",
        "In worlds 1 and 2 DOPE also leaves first and ends with more regret, and OptPess-LP stays (rivals-tables).",
        RIVALS,
    ),
    PaperChoice(
        "what rivals are told",
        "Section 7.2 maps the floor to a budget, and does not say that DOPE and OptPess-LP need V^b; Section 3: "
        "StepMix does not need it.",
        "DOPE and OptPess-LP are given V^b exactly, and tables say so.",
        "Without it they are not defined: V^b - floor is inside their bonus; their certificates do not rest on it "
        "(docs/rivals.md).",
        RIVALS,
    ),
    PaperChoice(
        "pooled counts",
        "Eq. p counts each step by itself; Section 7.2 does not say what is done in a world that is the same at every "
        "step.",
        "StepMix and EpsMix count each step by itself, and both are shown with pooled counts beside; DOPE and "
        "OptPess-LP pool.",
        "Pooled, StepMix leaves at 0.91 million instead of 1.69 million, with a regret of 114,964 instead of 216,217.",
        RIVALS,
    ),
    PaperChoice(
        "when DOPE and OptPess-LP replan",
        "Section 7.2 says nothing; as published they solve a linear program before every episode.",
        "When the visits of some pair have grown by 3 % (growth 1.03); all others plan before every episode.",
        "A policy that is certified once stays certified; moments with a plan before every episode are not measured.",
        RIVALS,
    ),
    PaperChoice(
        "logarithm of DOPE",
        "The paper prints no constants of DOPE; the published code has log(6 S^2 H K/delta), without A.",
        "log(2 S^2 A H K/delta), which covers every entry of P at all times.",
        "With A = 2 the code's is larger by 0.41 of 23.0; with A > 3 its union does not cover all entries; moments are "
        "not measured.",
        RIVALS,
    ),
    PaperChoice(
        "K_0 of DOPE",
        "Not mentioned; the published code begins with S^2 A H^3/(V^b - floor)^2 episodes on the baseline.",
        "None: while the linear program is infeasible, the baseline is played.",
        "Nothing here: that is 21,600 episodes, and the linear program is infeasible for 0.32 million.",
        RIVALS,
    ),
    PaperChoice(
        "logarithm of OptPess-LP",
        "The paper prints no constants of OptPess-LP; published code has log(32 S^2 H K/delta) or log(S^3 H K/delta).",
        "log(32 S^2 A H K/delta), and no term for unknown rewards.",
        "The code's are smaller by 0.69 and by 2.8 of 25.8; moments with them are not measured.",
        RIVALS,
    ),
    PaperChoice(
        "constant c of VI-LCB",
        "Lemma offlinegood: there is a finite constant c; no value.",
        "c = 1.",
        "Hoeffding's inequality proves the lower value for every c >= 0.71, a smaller one is NOT CERTIFIED; the "
        "trajectories that Corollary off asks for grow as c^2; other values are not measured.",
        LOGS,
    ),
    PaperChoice(
        "ties of VI-LCB",
        "Algorithm 5: argmax of Q_hat, without a rule for ties.",
        "Both are shown. The default takes the most visited of the best actions, then the first index: it learns more.",
        "With the first index (vi-lcb-first), 40 logs of 5,000 and 8,000 episodes give baselines of 2.577 and 2.661 "
        "(eta 10), with the most visited action 2.661 and 2.663 (docs/logs-tables.md); the certificate is the same.",
        LOGS,
    ),
    PaperChoice(
        "folds of VI-LCB",
        "Algorithm 5 divides the log at random into H sets of n/H episodes.",
        "Each episode goes to a fold by a hash of its number and a seed: nearly, not exactly, n/H each.",
        "The certificate holds given the visits, whatever the sizes; returns with exact sizes are not measured.",
        LOGS,
    ),
    PaperChoice(
        "log of a trial",
        "Section 7.1 does not say whether the ten trials share one log.",
        "Every trial draws its own log, and all agents of a trial have the same.",
        "With 5,000 episodes (eta 10) the learnt baseline is worth 2.645 to 2.672 over ten logs (logs-tables).",
        LOGS,
    ),
    PaperChoice(
        "delta with a log",
        "Algorithm 5 has iota = log(HSA/delta); Corollary off and the proof of Theorem offstep_appx have delta/2 for "
        "the log and delta/2 for the agent.",
        "Half of delta each.",
        "With the whole delta for both, the promise would hold with probability 1 - 2 delta only.",
        LOGS,
    ),
    PaperChoice(
        "number of trajectories",
        "Corollary off asks for 16 c^2 iota'^2 H^5 SA/(V^mu - floor)^2, here 34 million (eta 10, delta 0.1), 67 "
        "million with the 32 that its proof needs; Section 7.1 has 5,000 and 8,000.",
        "5,000 and 8,000: the learnt baseline is trusted, not certified, until data prove it.",
        "VI-LCB's certificate is 1.33 to 1.68 with so many, the floor is 2.2; a KL certificate of the same logs clears "
        "it in 10 of 10 (logs-tables).",
        ("offline",),
    ),
    PaperChoice(
        "figures of the drafts",
        "Commented out in the source of Section 7: floors (1 - alpha) V^b, episodes at each h0, StepNoMix, violations "
        "against trajectories, of a linear variant (StepMix-LSVI) with k = 20, without K and delta.",
        "The tabular algorithms in the first world, k read as eta.",
        "The linear variant is not in the paper, and is not measured.",
        DRAFTS,
    ),
)


def choices_for(study: str) -> tuple[PaperChoice, ...]:
    """Return the rows that concern the study of this name."""
    return tuple(choice for choice in CHOICES if study in choice.studies)
