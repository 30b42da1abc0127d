"""Re-derives every plan of a ledger: `python verifier.py FILE`. The format, and what is checked: docs/ledger.md.
It shares no code with what writes ledgers. The mathematics: docs/certificates.md (KL balls); Li et al. 2023, Eq. q,
ucbQ, lcbQ (Bernstein). A lower bound computed here is at most the exact one and within 1e-15 of it: of what was summed
in 60 digits a HAIR is taken off. Upper bounds are lower bounds of negated values (sign = -1). What a ledger claims is
held against such bounds, or compared exactly, in fractions. Whatever is not as expected is refused."""
import hashlib, json, math, sys
from collections import Counter, namedtuple
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

LONGEST, MOST_WORK, UNIT = 2**26, 10**9, Fraction(1, 2**20)  # bytes of a record; steps of a proof; unit of reward sums
DIGITS, ZERO, HALF, HAIR = Context(60, ROUND_FLOOR, MIN_EMIN, MAX_EMAX), Decimal(0), Decimal("0.5"), Decimal("1e-33")
FIELDS = {"ledger": 27, "plan": 21, "end": 4, "relative": 2, "returns": 5, "spending": 4}  # else 3; each is read below
# by_certificate: an earlier one, not proved here; vouched: asserted by the user; trusted: the baseline, without a proof
Verdict = namedtuple("Verdict", "plans certified by_certificate vouched trusted not_certified closed digest promise "
                     "refusals")
KINDS, NAMES = Verdict._fields[1:6], ("certified", "by certificate", "asserted by the user", "trusted", "NOT CERTIFIED")

def require(holds: Any, reason: str) -> None:
    """Refuse the record unless this holds."""
    if not holds:
        raise ValueError(reason)
def read(line: bytes, before: str) -> Any:
    """The record of a line that is canonical, and whose digest follows the digest `before`."""
    require(len(line) <= LONGEST and line.endswith(b"\n") and line.isascii(), "the line is cut off, or no text")
    record = json.loads(line.decode("ascii"))
    rest = {key: x for key, x in record.items() if key != "digest"}
    body, full = (json.dumps(x, sort_keys=True, separators=(",", ":")).encode() for x in (rest, record))
    fits = record["digest"] == hashlib.sha256(before.encode() + body).hexdigest()
    require(fits and full + b"\n" == line, "the digest does not fit, or the line is not canonical")
    return plain(record, record["kind"])

def plain(x: Any, name: str) -> Any:
    """Records with their fields as attributes, floats from hexadecimal, whole numbers; texts, true, false and null."""
    if type(x) is dict:
        require(len(x) == FIELDS.get(name, 3) - (x.get("family") == "Bernstein"), f"{name}: number of fields")
        return SimpleNamespace(**{key: plain(y, key) for key, y in x.items()})
    if type(x) is list:
        return [plain(y, name) for y in x]
    if type(x) is str and x.lstrip("-").startswith("0x"):
        y, most = float.fromhex(x), 1e300 if name in ("low", "high") else 1e9  # units may be of any size
        require(y.hex() == x and abs(y) <= most, f"{name}: not canonical, or too large")
        return y
    require(x is None or type(x) in (bool, str) or (type(x) is int and 0 <= x < 2**62), f"{name}: found {x!r:.20}")
    return x
@lru_cache(2**14)
def log_gamma(z: Decimal) -> Decimal:
    """ln Gamma(z) - ln(2 pi)/2 (it cancels in log m): Gamma(z) = Gamma(z + m) / (z .. (z + m - 1)), then Stirling's
    series, B_2k / (2k (2k-1) z^(2k-1)), which misses by less than the first term left out: 1e-38 where z >= 300."""
    product, c = Decimal(1), [Decimal(691) / x for x in (8292, -248760, 870660, -1160880, 820908, -360360, 107796)]
    while 0 < z < 300:
        product, z = product * z, z + 1
    return (z - HALF) * z.ln() - z + sum((c[k] / z ** (2 * k + 1) for k in range(7)), ZERO) - product.ln()

@lru_cache(2**16)
def radius(n_i: tuple[Any, ...], size: int, alpha: Decimal, share: Decimal) -> Decimal:
    """eps, or a hair more: n eps = share + sum n_i log(n_i/n) - log m(n_1 .. n_size), with share = log(1/delta_0)."""
    n, terms = Decimal(sum(n_i)), [share, log_gamma(sum(n_i) + size * alpha), -log_gamma(size * alpha)]
    for count in map(Decimal, n_i):
        terms += [count * (count / n).ln(), log_gamma(alpha), -log_gamma(count + alpha)]
    return (sum(terms, ZERO) + sum(map(abs, terms), Decimal(1)) * HAIR) / n

def worst_mean(n_i: dict[int, Any], V: dict[int, Decimal], alpha: Decimal | None, share: Decimal) -> Decimal:
    """At most min {p V : KL(p_hat, p) <= eps}: V of all that is possible, of which i was seen n_i times.

    Weak duality: nu + exp(-eps) prod (V_i - nu)^{n_i/n} is a lower bound for EVERY nu = least - t, t >= 0; so is least.
    The best t has log(sum p w) - sum p log w = eps, w = t/(t+d), d = V - least: Newton in u = log t, in floats."""
    n, least, alpha = sum(n_i.values()), min(V.values()), alpha or Decimal(1) / len(V)
    most = max((V[i] for i in n_i), default=least) - least
    if most <= HAIR or (eps := radius(tuple(n_i.values()), len(V), alpha, share)) > 100:
        return least
    pd, u, longest = [(float(m / n), float(V[i] - least)) for i, m in n_i.items()], math.log(most / eps.sqrt()), 3.0
    while longest > 1e-4 and math.log(most) - 42 < u < 20:  # every t is valid, and one far out is good enough
        pw = [(p, 1 / (1 + d * math.exp(-u))) for p, d in pd]
        a, b = math.fsum(p * w for p, w in pw), math.fsum(p * w * w for p, w in pw)
        gap = math.log(a) - math.fsum(p * math.log(w) for p, w in pw)
        step = math.log(gap / float(eps)) * gap * a / (b - a * a) if min(gap, b - a * a) > 1e-15 else -3.0
        u += max(min(step, longest), -longest)
        longest = min(0.95 * longest, 10 * abs(step))
    t = Decimal(math.exp(u))
    product = Decimal(math.prod((V[i] - least + t) ** m for i, m in n_i.items()))
    return Decimal(max(least, least - t + (product.ln() / n - eps).exp() - (t + most) * HAIR))

def coin(n: int, x: Fraction, share: Decimal, sign: int) -> Decimal:
    """At most sign times the mean of n draws in [0, 1] with sum x <= n: a coin with fractional counts, alpha = 1/2."""
    sides = {side: Decimal(m.numerator) / m.denominator for side, m in enumerate((n - x, x)) if m}
    return worst_mean(sides, {0: ZERO, 1: Decimal(sign)}, HALF, share)

class _Book:  # the first record, and what was counted so far
    def __init__(self, f: Any) -> None:  # check what all plans have in common, and how delta is spent
        H, P, self.f, self.EpsMix, self.KL = f.H, f.S * f.A, f, f.learner == "EpsMix", f.bounds.family == "KL"
        known = f.kind == "ledger" and f.format == 1 and f.learner in ("StepMix", "EpsMix", "StepNoMix") and f.software
        fits = (2 if self.EpsMix else H + 1) * H * P * f.S <= MOST_WORK and (f.stationary or not f.pooled)
        require(known and fits and {type(x) for x in (f.pooled, f.stationary, f.warm, f.logged)} == {bool}, "odd sizes")
        self.rows, self.ends = 1 if f.pooled else H, [0, H] if self.EpsMix else [*range(H + 1)]  # h0 of the candidates
        f.baseline, masks = self._policy(f.baseline), [f.support or [[range(f.S)] * P], f.unknown_rewards or [[0] * P]]
        good = all(len(x) in (1, self.rows) and {len(row) for row in x} == {P} for x in masks)
        good = good and all(p and {*p} <= {*range(f.S)} for row in masks[0] for p in row)  # states; and 0 or 1:
        require(good and {x for row in masks[1] for x in row} <= {0, 1}, "support or unknown_rewards: not as expected")
        f.support, f.unknown_rewards = ([x[h % len(x)] for h in range(self.rows)] for x in masks)  # one row is for all
        good = f.start is None or (len(f.start) == f.S and min(f.start) >= 0 and abs(math.fsum(f.start) - 1) <= 1e-9)
        require(good and all(0 <= x <= 1 for row in f.rewards for x in row), "start or rewards: not in 0..1")
        self.first, unknown = [s for s in range(f.S) if not f.start or f.start[s] > 0], sum(map(sum, f.unknown_rewards))
        self.n: dict[tuple[int, int], Counter[int]] = {}  # visits: (row, pair) -> next state -> how many
        self.x, self.starts, self.record, self.plans = Counter[tuple[int, int]](), Counter[int](), [0, 0], 0
        self.total, self.earned, self.home, self.frozen = 0, 0, True, False  # of the plan before: was it the baseline?
        delta, part = Fraction(f.delta), Fraction(f.returns.share if f.returns else 0)
        prime, self.alpha = (1 - part) * delta, Decimal(f.bounds.alpha) if self.KL and f.bounds.alpha != "1/S" else None
        events = max(1, sum(len(p) > 1 for row in f.support for p in row) + unknown + (f.start is None))
        if not self.KL:
            known = f.bounds.family == "Bernstein" and len(self.first) == 1
            require(known and not (f.rewards_by_next or unknown or f.logged), "not proved by the paper's bounds")
            events, prime = P * H, prime / (4 if self.EpsMix else 3 * (H + 1))
        spent = {"model": (1 - part) * delta, "returns": part * delta, "delta_prime": prime}
        near = all(abs(Fraction(getattr(f.spending, key)) - x) <= x / 2**40 for key, x in spent.items())
        require(near and 0 < prime <= delta < 1 and self.alpha != 0 and events <= f.spending.events, "spending, alpha")
        shares = (prime / Fraction(f.spending.events), part * delta or prime)
        self.share, self.share_R = (Decimal(x.denominator).ln() - Decimal(x.numerator).ln() for x in shares)
        scale, self.k = Fraction(f.units.high) - Fraction(f.units.low), range(2 if f.relative or not self.KL else 1)
        self.zero = zero = f.units.steps * Fraction(f.units.low) / scale  # a value v is scale (v + zero) to the user
        near = not (r := f.relative) or (0 <= zero >= 2**40 * abs(Fraction(r.offset) - zero) and 0 < r.give < 1)
        require(near and scale > 0 and f.units.steps in (0, H-1, H) and (not f.relative) != (f.floor is None), "units")
        floor = f"{1 - r.give:g} of the baseline" if r else f"{float(scale * (zero + Fraction(f.floor))):.6g}"
        good = not (c := f.certificate) or (c.mark and 0 < c.delta < 1 - f.delta and 0 <= c.value <= H)
        require(good and not (f.relative and (c or f.vouched is not None)), "certificate or vouched: not as expected")
        risk = f.delta + (c.delta if c else 0)
        self.promise = f"Claimed by {f.learner}, {f.bounds.family}: {floor} or more in expectation, at delta = {risk:g}"
        self.range = Fraction(0), Fraction(0), Fraction(H)  # of returns: what rounding takes off, lowest, span
        if f.returns:
            lost, low, span = (Fraction(x) for x in (f.returns.rounding, f.returns.lowest, f.returns.span))
            least, most = (self._extreme(best, end, lambda r: r // UNIT * UNIT) for best, end in ((min, 0), (max, 1)))
            good, self.range = span >= 0 and lost >= self._extreme(max, UNIT, lambda r: r % UNIT), (lost, low, span)
            require(good and (f.returns.declared or low <= least <= most <= low + span), "returns: too narrow a range")
    def _policy(self, x: Any) -> Any:  # probabilities (H, S, A), or actions (H, S) as such
        f, x = self.f, [[[float(a == y) for a in range(self.f.A)] if type(y) is int else y for y in row] for row in x]
        good = all(len(p) == f.A and min(p) >= 0 and abs(math.fsum(p) - 1) <= 1e-12 for row in x for p in row)
        require(good and len(x) == f.H and {len(row) for row in x} == {f.S}, "a policy is not one of probabilities")
        return x
    def _paid(self, h: int, pair: int, j: int) -> float:  # the reward of a transition, 0 if unknown; one row is for all
        x = (table := self.f.rewards_by_next or self.f.rewards)[h % len(table)][pair]
        x = x[j] if self.f.rewards_by_next else x
        require(len(table) in (1, self.f.H) and 0 <= x <= 1, "rewards: not in 0..1, or neither one row nor H")
        return 0.0 if self.f.unknown_rewards[h % self.rows][pair] else float(x)
    def _extreme(self, best: Any, unknown: Any, worth: Any) -> Any:  # sum of the worth of rewards, under the baseline
        f, V = self.f, [Fraction(0)] * self.f.S
        for h in reversed(range(f.H)):
            gains = [[V[j] + (unknown if f.unknown_rewards[h % self.rows][i] else worth(Fraction(self._paid(h, i, j))))
                      for j in states] for i, states in enumerate(f.support[h % self.rows])]
            V = [best(x for a, p in enumerate(w) if p for x in gains[s * f.A + a]) for s, w in enumerate(f.baseline[h])]
        return best(V[s] for s in self.first)
    def _count(self, p: Any) -> None:
        """Add what is new. Counts only grow, and those of a learner that began with nothing flow from step to step."""
        f, flow = self.f, Counter({(0, s): more for s, more in p.starts})
        good = all(type(x) is int for entry in (*p.visits, *p.starts, *p.rewards, p.baseline_returns) for x in entry)
        require(good and p.kind == "plan" and p.number == self.plans, "no whole numbers, or not the next plan")
        for row, pair, s, more in p.visits:
            require(s in f.support[row][pair], "visits: an impossible transition")
            self.n.setdefault((row, pair), Counter())[s] += more
            flow[row, pair // f.A] -= more
            self.earned += more * max(Fraction(self._paid(h, pair, s)) // UNIT for h in range(row, f.H, self.rows))
            flow[row + 1 - f.pooled, s] += more  # pooled: who arrives may have been at the last step
        self.starts.update(dict(p.starts))
        self.x.update({(row, pair): more for row, pair, more in p.rewards})
        self.earned += sum(more for _, _, more in p.rewards)
        before, self.total = self.total, sum(n.total() for n in self.n.values())
        more = (self.total - before) // f.H  # episodes since the plan before
        even = all(x == 0 or (f.pooled and x > 0) for (h, _), x in flow.items() if h < self.rows)
        good = self.starts.keys() <= {*self.first} and (f.warm or (even and self.starts.total() * f.H == self.total))
        require(good, "visits or starts: they do not flow from step to step")
        (n, x), (_, low, span), (n_now, x_now) = self.record, self.range, p.baseline_returns
        good = (n_now - n) * low <= (x_now - x) * UNIT <= (n_now - n) * (low + span) and n <= n_now <= p.episodes
        own = x_now <= self.earned and n_now - n <= more and (self.EpsMix or n_now - n == more * self.home)
        require(good and (f.warm or own) and self.total // f.H == p.episodes, "baseline_returns or episodes")
        self.record, self.plans = [n_now, x_now], self.plans + 1
    def _Q(self, h: int, pair: int, V: Any) -> list[Decimal]:
        """Bounds [lower, -upper] of Q_h(s,a), from those of V_{h+1}: worst means over a ball, or the paper's."""
        f, H, row = self.f, self.f.H, h % self.rows
        n_j, bounds = self.n.get((row, pair), Counter()), []
        if not self.KL:
            n, r, log_n = max(n_j.total(), 1), Decimal(self._paid(h, pair, 0)), Decimal(8 * (n_j.total() + 1)).ln() + 1
            low, up = (sum((m * V[j][k] for j, m in n_j.items()), ZERO) / n for k in (0, 1))  # up is -p_hat V_up
            variance = sum((m * (V[j][1] - up) ** 2 for j, m in n_j.items()), ZERO) / n
            bonus, beta = 3 * (variance * (self.share + log_n) / n).sqrt(), H * H * (self.share + f.S * log_n) / n
            Q_low = r - bonus - 22 * beta + 2 * (up + low) / H + low
            Q_up = r + bonus + 14 * beta - (up + low) / H - up
            return [max(ZERO, Q_low - H * HAIR), max(Decimal(-H), -Q_up - H * HAIR)]
        for k, sign in zip(self.k, (1, -1), strict=False):
            W = {j: V[j][k] + sign * Decimal(self._paid(h, pair, j)) for j in f.support[row][pair]}
            bounds.append(worst_mean(n_j, W, self.alpha, self.share))
            if f.unknown_rewards[row][pair]:  # an upper mean lacks what rounding took off
                mean = coin(n_j.total(), self.x[row, pair] * UNIT, self.share, sign) - (sign < 0) * Decimal(2) ** -20
                bounds[k] += max(mean, Decimal(min(sign, 0)))
        return bounds
    def _mean(self, w: Any) -> list[Decimal]:  # at most the weighted mean of each bound, at least the smallest
        total, room = sum(Decimal(p) for p, _ in w), self.f.H * HAIR
        return [max(min(x[k] for _, x in w), sum(Decimal(p) * x[k] for p, x in w) / total - room) for k in self.k]
    def _back(self, h: int, rule: Any, V: Any, own: bool = False) -> Any:
        """V_h(s) = sum_a pi(a|s) Q_h(s,a). The paper's own explorer is an argmax of Q_up, ties within 1e-12 H."""
        new = {}
        for s in self.first if h == 0 else range(self.f.S):
            Q = [(p, self._Q(h, s * self.f.A + a, V)) for a, p in enumerate(rule[s]) if p > 0 or own]
            short = max(x[-1] for p, x in Q if p > 0) - min(x[-1] for _, x in Q)
            require(not own or short <= self.f.H * Decimal("1e-12"), "explorer: not the paper's optimistic policy")
            new[s] = self._mean([(p, x) for p, x in Q if p > 0])
        return new
    def _evaluate(self, policy: Any, V: Any) -> list[Decimal]:
        """Bounds [lower, -upper] of a policy, averaged over the start; V holds those of what follows its last step."""
        for h in reversed(range(len(policy))):
            V = self._back(h, policy[h], V)
        if self.f.start:
            return self._mean([(self.f.start[s], V[s]) for s in self.first])
        return [worst_mean(self.starts, {s: x[k] for s, x in V.items()}, self.alpha, self.share) for k in self.k]
    def judge(self, p: Any) -> str:
        """What kind of plan this is, after every claim in it was re-derived."""
        if p.kind == "end":
            require(p.plans == self.plans and p.episodes * self.f.H >= self.total, "plans or episodes: not those here")
            return "closed"
        self._count(p)
        f, L, i, rho = self.f, [*map(Fraction, p.candidates)], self.ends.index(p.h), Fraction(p.rho)
        home, explorer, played = p.h == f.H and rho == 0, self._policy(p.explorer), p.policy and self._policy(p.policy)
        require(0 <= rho <= 1 and (f.relative or p.floor == f.floor) and (not played) == self.EpsMix, "floor or policy")
        require((p.upper is None) == (not f.relative) and (p.frozen is True or p.frozen is self.frozen), "frozen")
        for h, rows in enumerate(zip(played or [], f.baseline, explorer, strict=False)):
            w = rho if h == p.h - 1 else int(h >= p.h)  # the weight of the explorer at this step
            for x, b, e in (entry for rules in zip(*rows, strict=True) for entry in zip(*rules, strict=True)):
                require(abs(Fraction(x) - (1 - w) * Fraction(b) - w * Fraction(e)) <= 1e-15, "policy: not the mixture")
        reached = [h for h, x in zip(self.ends, L, strict=True) if x >= p.floor or (f.relative and h == f.H)]
        chosen = home if p.frozen or not reached else p.h == reached[0] and (i > 0 or rho == 1)
        chosen, self.home, self.frozen = chosen and (f.learner != "StepNoMix" or rho == (i == 0)), home, p.frozen
        require(chosen and p.source == ("baseline" if home else "mixture" if i else "optimistic"), "h, rho or source")
        require(p.safety == "NOT CERTIFIED" or f.bounds.scale == 1, "safety: NOT CERTIFIED was expected")
        if p.safety not in ("certified", "trusted"):
            return "not_certified"
        tails = [{s: [ZERO, ZERO] for s in range(f.S)}]
        for h in reversed(range(f.H)):
            tails.insert(0, self._back(h, explorer[h], tails[0], not self.KL))
        exact = [self._evaluate(f.baseline[:h0], tails[h0]) for h0 in self.ends]
        (n, x), (lost, low, span), word = self.record, self.range, 2 if f.returns and f.returns.declared else 0
        means = [span * Fraction(coin(n, (x * UNIT - n * low) / (span or 1), self.share_R, sign)) for sign in (1, -1)]
        R = [means[0] + low, means[1] - low - lost] if f.returns and n else [None, None]
        good = all(x <= y[0] for x, y in zip([*L[:-1], p.by_model], exact, strict=True))
        require(good and (p.by_returns is None or p.by_returns <= R[0]), "candidates, by_model, by_returns: not proved")
        lows = [(0, exact[-1][0]), (word, R[0]), (1, f.certificate and f.certificate.value), (2, f.vouched)]
        base = [max(Fraction(x) for k, x in lows if x is not None and k <= kind) for kind in range(3)]  # as in KINDS
        proved, firm = max(Fraction(x) for k, x in lows[:3] if x is not None and (k < 2 or p.safety == "trusted")), True
        require(L[-1] <= base[2], "candidates: the baseline's is not proved")
        if f.relative:
            U, give, ups = Fraction(p.upper), Fraction(f.relative.give), [(0, exact[-1][1]), (word, R[1])]
            firm, good = (max(Fraction(x) for k, x in ups if x is not None and k <= kind) >= -U for kind in (0, 2))
            require(good and p.floor >= (1 - give) * U - give * self.zero, "upper or floor: too low")
            base = [U] * 3  # docs/certificates.md, relative floors: what is safe with U in its place is safe with V^b
        worth = [(1 - rho) * x[i] + rho * x[max(i - 1, 0)] for x in ([*L[:-1], y] for y in (*base, proved))]
        kind = next((kind for kind, x in zip(KINDS, worth[:3], strict=False) if x >= p.floor), "")
        if self.KL and played and (kind != "certified" or p.lower > worth[3]):  # the mixed policy itself
            direct = Fraction(self._evaluate(played, tails[-1])[0])
            kind, worth[3] = "certified" if direct >= p.floor else kind, max(direct, worth[3])
        kind = "certified" if f.relative and home else "vouched" if kind and not firm else kind
        good = kind in KINDS[:2] if p.safety == "certified" else kind != "" or home
        require(good and p.lower <= worth[3], f"safety or lower: {p.safety} is not proved")
        return kind if p.safety == "certified" else "trusted" if home else "vouched"

def verify(lines: Any) -> Verdict:
    """Re-derive a ledger, line by line, up to the first record that does not hold: refusals has its number, and why."""
    kinds, book, refusals, digest = Counter[str](), None, list[tuple[int, str]](), "0" * 64
    with localcontext(DIGITS):
        try:
            for line in lines:
                record = read(line, digest)
                require(not kinds["closed"], "there is more after the last record")
                if book is None:
                    book = _Book(record)
                else:
                    kinds[book.judge(record)] += 1
                digest = record.digest
            require(book, "the file is empty")
        except Exception as reason:  # whatever it is, this is not a record that holds
            refusals.append((1 + (book is not None) + kinds.total(), str(reason) or repr(reason)))
    closed, promise = bool(kinds.pop("closed", 0)), book.promise if book else "No promise was read"
    return Verdict._make([kinds.total(), *(kinds[kind] for kind in KINDS), closed, digest, promise, refusals])

def main(argv: list[str]) -> int:
    """Print the verdict. Return 0 if every plan holds, 3 if not, 2 if no file can be read."""
    try:
        with open(argv[0] if len(argv) == 1 else "", "rb") as stream:
            v = verify(iter(lambda: stream.readline(LONGEST + 1), b""))
    except OSError as reason:
        return sys.stderr.write(f"usage: python verifier.py FILE ({reason})\n") and 2
    counts = ", ".join(f"{n} {name}" for name, n in zip(NAMES, v[1:6], strict=True) if n)
    result = "consistent, NOT CERTIFIED" if v.not_certified else "ACCEPTED" if v.closed else "ACCEPTED so far"
    result = "REFUSED: record {}: {}".format(*v.refusals[0]) if v.refusals else result
    end = "closed" if v.closed else "open: still being written, or cut off"
    sys.stdout.write(f"{v.promise}\n{v.plans} plans: {counts or 'none'}\n{end}, last digest {v.digest}\n{result}\n")
    return 3 if v.refusals or v.not_certified else 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
