"""Agents that choose among splices of a baseline with an explorer: what the StepMix family has
in common.
"""

import math
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from surefoot import kernels
from surefoot.agents.base import check_problem
from surefoot.agents.explanation import PlanEvidence, SpliceGrounds
from surefoot.agents.explorers import Explorer
from surefoot.agents.floors import Below, Relative, user_zero
from surefoot.agents.freezing import frozen
from surefoot.agents.plan import Plan, exit_taken, premise_status, proved, safety
from surefoot.agents.promise import NO_FLOOR, PremiseStatus, Promise
from surefoot.agents.returns import Returns, ReturnsRange, returns_range
from surefoot.agents.settings import AgentByName
from surefoot.base.arrays import Floats, Ints
from surefoot.base.nodes import OUTSIDE
from surefoot.base.validation import REWARD_UNITS, as_floats, require_finite
from surefoot.bounds import KL, Bernstein, Bounds, Certificate
from surefoot.bounds.frequencies import Frequencies
from surefoot.bounds.model import margin
from surefoot.errors import InvalidCounts, InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.model.policy import EpisodicMixture, check_policy, one_hot


class Decision(NamedTuple):
    """What a plan is made of."""

    c: int  # the chosen candidate
    h: int
    rho: float
    reached: bool  # is its lower value at or above the floor?
    L: Floats  # (C,) lower values, boldest first
    floor: float
    U: float  # of a relative floor: an upper bound of the baseline's value
    upper: float
    explorer: Floats  # (H, S, A)
    V_low: Floats  # (H+1, S) of the bolder neighbour
    V_low_b: Floats  # (H+1, S) of the last candidate
    by_model: float  # the last candidate's lower value by the model
    by_returns: float  # and by returns


class SpliceAgent(AgentByName):
    """An agent that chooses among splices of its baseline with an explorer; by default that is the
    optimistic policy.

    Its whole configuration is the properties below, so one kernel plans for all of them and one
    fused loop plays them.
    """

    spliced: ClassVar[bool] = True  # are the splices between explorer and baseline candidates, too?
    mixes: ClassVar[bool] = True  # is the chosen candidate mixed with its bolder neighbour?
    by_coin: ClassVar[bool] = False  # by a coin for the whole episode, and not at one step?
    bounds: Bounds
    explorer: Explorer | None = None
    returns: Returns | None = None
    certificate: Certificate | None = None

    @property
    def h0(self) -> Ints:
        """The steps at which the candidates are spliced, ascending: pi_b up to h0, then the
        explorer's policy.
        """
        H = self.problem.H
        if self.spliced:
            return np.arange(H + 1)
        return np.array([0] if self.floor is None else [0, H])

    @property
    def parts(self) -> int:
        """Into how many events the paper divides delta: delta' = delta / (3(H+1)), without
        splices delta / 4.
        """
        return 3 * (self.problem.H + 1) if self.spliced else 4

    @cached_property
    def rule(self) -> "kernels.Rule":
        """The rule by which a plan follows from the candidates' lower values. Without a floor
        any is enough.
        """
        if self.floor is None:
            return kernels.Rule(-np.inf, self.mixes, self.by_coin)
        if isinstance(self.floor, Relative):
            max_loss, offset = self.floor.max_loss, user_zero(self.problem)
            return kernels.Rule(0.0, self.mixes, self.by_coin, max_loss, offset)
        if isinstance(self.floor, Below):
            amount = self.floor.rescaled(self.problem)
            return kernels.Rule(0.0, self.mixes, self.by_coin, 0.0, 0.0, amount)
        return kernels.Rule(self.level, self.mixes, self.by_coin)

    @property
    def replan_share(self) -> float:
        """By which share the episodes grow between two plans; with the paper's bounds 0, if
        nothing was said.
        """
        as_the_paper = self.replan is None and isinstance(self.bounds, Bernstein)
        return 0.0 if as_the_paper else super().replan_share

    @property
    def proved_before(self) -> float:
        """What a certificate proves that the baseline is worth at least, rescaled; -inf where
        there is none.
        """
        return (
            -np.inf
            if self.certificate is None or self.certificate.rescaled is None
            else self.certificate.rescaled
        )

    @property
    def delta_in_all(self) -> float:
        """How likely the promise may fail: delta, and the delta of the baseline's certificate."""
        return self.delta + (0.0 if self.certificate is None else self.certificate.delta)

    @property
    def delta_model(self) -> float:
        """The part of delta for dynamics, rewards and start; the rest is for returns."""
        return self.delta * (1.0 - (self.returns.share if self.returns is not None else 0.0))

    @property
    def delta_prime(self) -> float:
        """The share of delta inside beta and beta*; all of the model's with KL."""
        return self.bounds.share_of(self.delta_model, self.parts)

    @property
    def promise(self) -> Promise:
        """What is promised, beside every number that this agent produces."""
        scope = None if self.rule.floor == -np.inf else self.floor_scope
        if not self.bounds.certified:
            return Promise("not certified", scope=scope, scale=self.bounds.scale)
        if scope is None:
            return NO_FLOOR
        return Promise("certified", self.delta_in_all, scope, self.premise)

    @property
    def premise(self) -> PremiseStatus:
        """How well the premise is known before any data: by a certificate, or not at all."""
        return premise_status(self.rule.floor, self.proved_before)

    @property
    def plans_itself(self) -> bool:
        """Is `plan` the method below, which the fused loop knows, and not a subclass's own?"""
        return type(self).plan is SpliceAgent.plan

    def row_sum_error(self, explorer_policy: Floats | None) -> float:
        """Return by how much rows of the baseline, an explorer's policy and the known start miss
        1, at most.
        """
        start = np.ones(1) if self.problem.start is None else self.problem.start
        rows = (
            [self.pi_b, start] if explorer_policy is None else [self.pi_b, start, explorer_policy]
        )
        return max(float(np.abs(row.sum(axis=-1) - 1.0).max()) for row in rows)

    def check_counts(self, counts: Counts) -> None:
        """Refuse counts that do not fit, or that the proof does not cover."""
        super().check_counts(counts)
        if counts.logged and isinstance(self.bounds, Bernstein):
            raise InvalidCounts(
                "These counts hold logged episodes, which the paper's bounds do not cover: their "
                "proof needs a baseline that was fixed before the data. Use bounds=sf.KL()."
            )
        if self.returns is None or not counts.return_weights.any():
            return
        other = counts.origin is not None and counts.origin.differing(
            self.problem.origin, ("units",)
        )
        if other or counts.returns_of not in (None, self.fingerprint):
            raise InvalidCounts(
                "These counts hold returns of another baseline, or summed by other rewards: they "
                "prove nothing here. Use counts.forget_returns(): what was seen of the dynamics "
                "stays. (Policies are compared bit by bit: one that is computed again may differ "
                "in its last bits. Keep it with sf.save_policy.)"
            )
        possible, units = self.possible_returns, self.problem.units
        low, high = units.to_user(possible.lowest), units.to_user(possible.highest)
        if counts.return_weights[OUTSIDE]:
            raise InvalidCounts(
                f"{counts.return_weights[OUTSIDE]:,} returns of the baseline are outside the range "
                f"({low:.6g}, {high:.6g}) that is possible by what the problem says. The premise "
                "is false: begin with new counts, and correct it."
            )
        if counts.return_range != self.return_range:
            raise InvalidCounts(
                "The returns in these counts were counted in another range than this agent's "
                f"({low:.6g}, {high:.6g}). Give it the same problem, or use "
                "counts.forget_returns(): what was seen of the dynamics stays."
            )

    def doubts(self, counts: Counts) -> bool:
        """Does a plan rest on counts of which nobody says what they are evidence about? A floor
        of 0 needs none.
        """
        return not counts.claimed and (self.rule.floor > 0.0 or self.rule.max_loss >= 0.0)

    def with_logged_returns(self, counts: Counts, returns: ArrayLike) -> Counts:
        """New counts, in which the returns of a log are evidence of the baseline's value, too.

        `counts` are those of the log, `returns` what each of its episodes was paid, in the user's
        units (`sf.log_returns`). By calling this YOU assert that this baseline played every episode
        of the log, and that it was fixed before anybody looked at the log: a policy that was learnt
        from it, or chosen for its returns, is not covered. `plan.explain()` lists that among the
        premises.
        """
        if self.returns is None:
            raise InvalidSetting(
                "Returns are no evidence for this agent. Give it returns=sf.Returns()."
            )
        self.check_counts(counts)
        paid = as_floats("returns", returns, InvalidCounts)
        require_finite("returns", paid, InvalidCounts)
        if not counts.logged or paid.shape != (counts.episodes,) or counts.baseline_returns[0]:
            raise InvalidCounts(
                f"Found {paid.size:,} returns, and counts of {counts.episodes:,} episodes of which "
                f"{counts.baseline_returns[0]:,} have a return. Expected the counts of a log "
                "alone, and one return for each of its episodes: leaving some out would select the "
                "data."
            )
        self._require_log_of_baseline(counts, paid)
        kept = counts.copy_for(self.problem)
        self.claim(kept)
        low, width = self.possible_returns[:2]
        for x in paid.tolist():
            level = self.problem.units.from_user(x) * REWARD_UNITS
            earned = round(level) if abs(level - round(level)) < 1e-6 else math.floor(level)
            # The range is of sums of rewards that are rounded down one by one: H of them lose up to
            # 2^-20 each.
            above = low + width < earned <= low + width + self.problem.H
            kept.count_return(low + width if above else earned)
        kept.logged_returns = len(paid)
        self.check_counts(kept)
        return kept

    def _require_log_of_baseline(self, counts: Counts, paid: Floats) -> None:
        """Refuse returns that are not those of the counts, and a log with actions that the baseline
        never plays.

        Known rewards may be means: then what was paid differs from them by chance, by more than
        allowed here with probability 1e-9 (Hoeffding).
        """
        never = self.pi_b == 0.0
        never = never.all(axis=0, keepdims=True) if counts.pooled else never
        bad = np.argwhere(never & (counts.played > 0))
        if bad.size:
            _, s, a = bad[0]
            names = self.problem.names
            raise InvalidCounts(
                f"The log holds action {names.action(a)} in state {names.state(s)}, which this "
                "baseline never plays there: somebody else wrote it. Its returns prove nothing of "
                "this baseline."
            )
        problem = self.problem
        if counts.shared and (len(problem.r_rows) > 1 or problem.pays_by_next):
            # shared rows do not say at which step a pair was played, nor what followed the last
            # step
            return
        earned, chance = 0.0, 0
        for row, there in enumerate(Frequencies.of(counts.transitions)):
            known = ~problem.unknown_at(row)
            earned += float(there.paid(problem, counts, row).sum())
            chance += int(counts.played[row][known].sum())
        total = float(sum(problem.units.from_user(x) for x in paid.tolist()))
        rounding = int(counts.played.sum()) / REWARD_UNITS + 1e-9 * len(paid)
        if abs(total - earned) > rounding + math.sqrt(0.5 * chance * math.log(2e9)):
            found, expected = (problem.units.to_user(x / len(paid)) for x in (total, earned))
            raise InvalidCounts(
                f"The returns have a mean of {found:.6g}, but what was counted of the same "
                f"episodes was paid {expected:.6g} on average. Give log_returns the horizon= and "
                "after_end= that count_log was given."
            )

    def explored(self, counts: Counts, rng: np.random.Generator | None) -> Floats | None:
        """Return the explorer's policy; None for the optimistic policy, which the planner finds
        itself.
        """
        if self.explorer is None:
            return None
        if rng is None:
            raise InvalidSetting(
                "An explorer draws at random: call plan(counts, rng) with a numpy Generator."
            )
        return check_policy(
            self.explorer(counts.copy(), rng), self.problem, "the explorer's policy"
        )

    @cached_property
    def possible_returns(self) -> ReturnsRange:
        """The range of the return of one baseline episode; where returns are not evidence,
        nothing.
        """
        if self.returns is None:
            return ReturnsRange(0, 0, 0.0)
        return returns_range(self.problem, self.pi_b)

    @property
    def return_range(self) -> tuple[int, int] | None:
        """The least return of a baseline episode and the span, in 2^-20; None: returns are not
        evidence.
        """
        return None if self.returns is None else self.possible_returns[:2]

    @property
    def log_inverse_share(self) -> float:
        """log(1 / the share of delta for returns), times the scale of the bounds."""
        return (
            np.inf
            if self.returns is None
            else -float(np.log(self.delta * self.returns.share)) * self.bounds.scale
        )

    def evidence(self, counts: Counts, explorer_policy: Floats | None = None) -> PlanEvidence:
        """Return what the kernels read: balls or estimates, start, returns. They share the
        counts' arrays.
        """
        problem, bounds = self.problem, self.bounds
        log_union = float(np.log(bounds.events(problem, counts.pooled) / self.delta_prime))
        full_support = isinstance(bounds, KL) and bounds.full_support
        rounding = margin(problem.H, self.row_sum_error(explorer_policy))
        return PlanEvidence(
            bounds.evidence(
                problem, counts, self.delta_prime, rounding, uppers=self.rule.max_loss >= 0.0
            ),
            kernels.start_from(
                problem.start,
                counts.n_start,
                log_union,
                full_support,
                bounds.scale,
                rounding,
                0.0 if isinstance(bounds, KL) else rounding,
            ),
            kernels.BaselineReturns(
                seen=kernels.seen_returns_from(
                    counts.baseline_returns,
                    counts.return_weights,
                    # of nobody: no evidence
                    None if counts.returns_of is None else self.return_range,
                ),
                portfolio=kernels.portfolio_from(),
                rounding=self.possible_returns.rounding,
                upper=self.rule.max_loss >= 0.0,
                log_inverse=self.log_inverse_share,
                margin=rounding,
                before=self.proved_before,
            ),
        )

    def plan_inputs(self, counts: Counts) -> "kernels.PlanInputs":
        """Return all that the fused loop plans from. It shares the counts' arrays."""
        known = self.evidence(counts)
        return kernels.PlanInputs(
            evidence=known.model,
            h0=self.h0,
            splices=kernels.empty_splices(self.slots(known), self.pi_b),
            start=known.start,
            returns=known.returns,
            rule=self.rule,
        )

    def slots(self, known: PlanEvidence) -> Ints:
        """Return the candidates that have values of their own."""
        return kernels.slots_of(known.model, self.h0, self.problem.H, self.problem.S)

    def decide(self, known: PlanEvidence, explorer_policy: Floats | None = None) -> "Decision":
        """Bound the candidates and choose: the kernels' part of a plan. `explorer_policy` is an
        explorer's policy.
        """
        evidence, start, returns = known.model, known.start, known.returns
        rule, H = self.rule, self.problem.H
        splices = kernels.empty_splices(self.slots(known), self.pi_b, explorer_policy)
        kernels.refresh_all(evidence)
        kernels.refresh_start(start)
        L = np.zeros(len(self.h0))
        floor = kernels.bound_on_cores(evidence, splices, start, returns, rule, L)
        c, rho, reached = kernels.choose(L, floor, rule.mixes)
        h = int(self.h0[c])
        top = splices
        if explorer_policy is not None:  # the explorer's splices say nothing about the best policy
            top = kernels.empty_splices(np.zeros(1, dtype=np.int64), self.pi_b)
            kernels.bound_splices(evidence, top, np.zeros(0, dtype=np.int64), 0, self.problem.S)
        explorer = (
            one_hot(splices.pi_bar, self.problem.A)
            if explorer_policy is None
            else np.array(explorer_policy)
        )  # writable, as the loop's
        by_model = max(kernels.start_bound(start, splices.V_low[0, -1], 1.0) - start.final, 0.0)
        by_returns = kernels.returns_bounds(returns)[0]
        U = float(L[-1])
        if len(L) > 1:
            L[-1] = max(by_model, by_returns, returns.before)
        # rounded up, as lower values are down
        up = start.final - kernels.start_bound(start, top.V_up[0, 0], -1.0)
        bolder = max(c - 1, 0)
        tail = int(self.h0[bolder])  # from there on it is pi_bar, whose values are in slot 0
        return Decision(
            c=c,
            h=h,
            rho=rho,
            reached=reached,
            L=L,
            floor=floor,
            U=U,
            upper=float(H) if self.problem.rewards_at_least else min(up, float(H)),
            explorer=explorer,
            V_low=np.concatenate(
                [splices.V_low[:tail, min(bolder, len(splices.h0) - 2)], splices.V_low[tail:, 0]]
            ),
            V_low_b=splices.V_low[:, -1].copy(),
            by_model=by_model,
            by_returns=by_returns,
        )

    def policy_of(self, decision: "Decision") -> Floats | EpisodicMixture:
        """Return what was decided, as a policy."""
        if self.rule.by_coin:
            return EpisodicMixture(self.pi_b, decision.explorer, decision.rho)
        policy = np.zeros_like(decision.explorer)
        kernels.mix_splices(self.pi_b, decision.explorer, decision.h, decision.rho, policy)
        return policy

    def plan(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """The policy of the next episode. Depends on the counts (and what an explorer draws) and
        on nothing else.
        """
        self.check_counts(counts)
        kept = counts.copy()
        explorer_policy = self.explored(counts, rng)
        decision = self.decide(self.evidence(kept, explorer_policy), explorer_policy)
        c, L = decision.c, decision.L
        lower = proved(L, c, decision.rho, decision.floor, self.rule.max_loss >= 0.0)
        plan = Plan(
            policy=self.policy_of(decision),
            source=exit_taken(decision.h, decision.rho, self.problem.H),
            h=decision.h,
            rho=decision.rho,
            lower=lower,
            upper=decision.upper,
            candidates=L,
            safety=safety(
                self.bounds.certified, self.rule.floor, decision.reached, self.doubts(kept)
            ),
            label=str(self.label),
            grounds=SpliceGrounds(
                agent=self,
                counts=kept,
                floor=decision.floor,
                lower=lower,
                L=L,
                by_model=decision.by_model,
                by_returns=decision.by_returns,
                h_bolder=int(self.h0[max(c - 1, 0)]),
                V_low=decision.V_low,
                explorer=decision.explorer,
                U=decision.U,
            ),
        )
        plan = self.with_user_units(plan)
        return frozen(plan, self, counts.alarm) if counts.alarm else plan


def check_settings(problem: object, bounds: object, pooled: object, replan: object) -> None:
    """Check what the constructor of an agent with KL or the paper's bounds is given."""
    known = check_problem(problem, pooled, replan)
    if type(bounds) not in (Bernstein, KL):
        raise InvalidSetting(
            f"bounds is {bounds!r}, expected sf.KL() or sf.Bernstein(), and not a subclass."
        )
    assert isinstance(bounds, Bernstein | KL)
    bounds.require(known)
