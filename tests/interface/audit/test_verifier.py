"""The verifier of ledgers: it accepts what agents write, and refuses every changed byte and every
false claim.

Ledgers are made by `simulate(..., ledger=)`; the verifier shares no code with it. False claims with
good digests are in test_forgeries.py.
"""

import ast
import copy
import functools
import hashlib
import json
import math
import os
import pty
import random
import re
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import flint
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import surefoot as sf
from surefoot.audit import verifier
from surefoot.bounds.certificate import fingerprint_of

SOURCE = Path(verifier.__file__)
BLOCKS = 0.5  # few plans, far apart


# ---- the file itself


def test_it_needs_nothing_but_the_standard_library():
    text = SOURCE.read_text()
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module).split(".")[0])
    assert imported <= set(sys.stdlib_module_names)
    for word in ("__import__", "importlib", "eval(", "exec(", "pickle"):
        assert word not in text


def run_alone(copied, *arguments):
    command = [sys.executable, "-I", "-S", str(copied), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_copy_runs_on_a_machine_without_surefoot(tmp_path):
    copied = tmp_path / "elsewhere.py"
    copied.write_text(SOURCE.read_text())
    lines = ledger("tiny")
    good, bad, half = tmp_path / "good", tmp_path / "bad", tmp_path / "half"
    good.write_bytes(b"".join(lines))
    bad.write_bytes(b"".join(lines).replace(b'"StepMix"', b'"StepMax"'))
    half.write_bytes(b"".join(lines[:-1]))
    said = run_alone(copied, good)
    assert (said.returncode, said.stderr) == (0, "")
    last = json.loads(lines[-1])["digest"]
    for word in ("StepMix", "KL", "ACCEPTED", "closed", last, f"{len(lines) - 2} plans"):
        assert word in said.stdout
    said = run_alone(copied, half)
    assert said.returncode == 0 and "open: still being written" in said.stdout
    said = run_alone(copied, bad)
    assert (
        said.returncode == 3
        and "REFUSED: record 1: " in said.stdout
        and "ACCEPTED" not in said.stdout
    )
    for arguments in ((), (good, bad)):
        said = run_alone(copied, *arguments)
        assert (said.returncode, said.stdout, said.stderr) == (
            2,
            "",
            "usage: python verifier.py FILE\n",
        )
    for missing in (tmp_path / "nothing", tmp_path):
        said = run_alone(copied, missing)
        assert (said.returncode, said.stdout, said.stderr.count("\n")) == (2, "", 1)
        assert said.stderr.startswith(f"{missing} cannot be read: ")


def test_a_terminal_shows_how_far_it_is(tmp_path):
    """One line that is written again and wiped out at the end; nothing where standard error is
    no terminal.
    """
    path = tmp_path / "ledger"
    path.write_bytes(b"".join(ledger("tiny")))
    controller, terminal = pty.openpty()
    try:
        command = [sys.executable, "-I", "-S", str(SOURCE), str(path)]
        run = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=terminal, text=True, timeout=60, check=False
        )
        shown = os.read(controller, 10_000).decode()
    finally:
        os.close(terminal)
        os.close(controller)
    assert run.returncode == 0 and "ACCEPTED" in run.stdout
    assert re.match(r"\r\d+ plans checked, \d+ % of the file\r", shown)
    assert "\n" not in shown and shown.rpartition("file")[2].strip("\r ") == ""
    assert run_alone(SOURCE, path).stderr == ""  # the control


# ---- worlds and agents


def chain(records):
    """The lines of these records, digests recomputed."""
    lines, before = [], "0" * 64
    for record in records:
        body = {key: value for key, value in record.items() if key != "digest"}
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        before = hashlib.sha256((before + text).encode()).hexdigest()
        lines.append(
            json.dumps({**body, "digest": before}, sort_keys=True, separators=(",", ":")).encode()
            + b"\n"
        )
    return lines


@functools.cache
def settings_of(name):
    """(world, agent, episodes) of a case, by its name: agent, then what is special."""
    short, *words = name.split()
    kind = {"step": sf.StepMix, "eps": sf.EpsMix, "nomix": sf.StepNoMix}[short]
    rng = np.random.default_rng(7)
    H, S, A = 3, 3, 2
    still = () if "pooled" in words else (H,)
    # the second action tempts an optimist, and disappoints
    usual = np.array([[0.1, 0.3, 0.6], [0.8, 0.1, 0.1]])
    P = 0.9 * usual + 0.1 * rng.dirichlet(np.ones(S), size=(*still, S, A))
    r = np.broadcast_to([[0.2, 0.2], [0.2, 0.2], [0.9, 0.9]], (*still, S, A)) + 0.02 * rng.random(
        (*still, S, A)
    )
    if "mask" in words:
        P[..., 0, 0, :], P[..., 1, 1, :] = [0.0, 1.0, 0.0], [0.0, 0.25, 0.75]
    known = {"H": H} if "pooled" in words else {}
    known |= {"start": [0.5, 0.3, 0.2]} if "starts" in words else {}
    rewards = (
        {"r_next": 0.8 * r[..., None] + 0.2 * rng.random((*still, S, A, S))}
        if "next" in words
        else {"r": r}
    )
    known |= {"units": sf.Units(0.1, 4.2)} if "units" in words else {}
    world = sf.TabularMDP(
        P, **{name: sf.Rescaled(table) for name, table in rewards.items()}, **known
    )
    scale = world.problem.units.scale
    world = world.with_support() if "mask" in words else world
    baseline = np.broadcast_to([0.96875, 0.03125], (H, S, A))
    value = float(sf.policy_value(world, baseline)[0] @ np.asarray(world.problem.start))
    problem = world.problem.forget(rewards="unknown" in words, start="nostart" in words)
    bounds = sf.Bernstein() if "paper" in words else sf.KL(full_support="supports" not in words)
    more = {
        "pooled": "pooled" in words,
        "bounds": bounds,
        "delta": 0.2,
        "replan": BLOCKS,
        "returns": None,
    }
    floor, episodes = value - 0.25 * scale, 3000
    if "paper" in words:
        floor, episodes = value - 0.5, 20_000_000
    if "unknown" in words:
        floor, episodes = value - 0.9, 40_000
    if "relative" in words:
        floor = sf.Relative(0.12)
    if "below" in words:
        floor = sf.Below(0.25 * scale)
    if "returns" in words:
        more["returns"] = sf.Returns()
    if "certificate" in words:
        more["certificate"] = sf.Certificate(value - 0.02, 0.01, fingerprint_of(baseline, problem))
    if "thompson" in words:
        more["explorer"] = sf.Thompson(problem)
    if "scaled" in words:
        more["bounds"] = sf.KL(scale=0.5)
    return world, kind(problem, baseline, floor, **more), episodes


TINY = "tiny"


@functools.cache
def ledger(name):
    """The lines of a ledger, as a tuple."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        if name.startswith("warm "):
            world, agent, episodes = settings_of(name.removeprefix("warm "))
            counts = sf.simulate(world, agent, 200, seed=5).counts
            sf.simulate(world, agent, episodes, seed=1, counts=counts, ledger=path)
        elif name == TINY:
            world = sf.TabularMDP(
                np.full((1, 2, 2, 2), 0.5), np.array([[[0.5, 0.75], [0.25, 1.0]]])
            )
            baseline = np.array([[[0.5, 0.5], [0.5, 0.5]]])
            agent = sf.StepMix(world.problem, baseline, 0.6, delta=0.1, replan=BLOCKS)
            sf.simulate(world, agent, 2, seed=0, ledger=path)
        else:
            world, agent, episodes = settings_of(name)
            sf.simulate(world, agent, episodes, seed=1, ledger=path)
        return tuple(path.read_bytes().splitlines(keepends=True))


@functools.cache
def verdict_of(name):
    """What the verifier says of this ledger as it was written."""
    return verifier.verify(ledger(name))


CASES = """
step | eps | nomix | step pooled | eps pooled | nomix pooled | nomix mask
step mask | step mask pooled returns | step next | eps next mask returns | step starts | eps nostart
step unknown | eps unknown nostart pooled | step unknown pooled returns | step returns | eps returns
step relative | eps relative | nomix relative | step relative returns
eps relative unknown nostart pooled | step relative units | step units
step certificate | eps certificate | nomix certificate | step thompson | eps thompson
step paper | eps paper pooled | nomix paper | step paper relative pooled | eps paper returns
eps relative returns | eps relative unknown returns
step below returns | eps below units | eps below returns unknown
step supports | step supports unknown
eps supports mask pooled | eps supports unknown nostart pooled | nomix supports relative
warm step | warm step returns | warm eps returns | warm eps relative returns
warm eps unknown nostart pooled
"""
CASES = [
    " ".join(case.split())
    for line in CASES.splitlines()
    for case in line.split("|")
    if case.strip()
]


def words_of(lines, key):
    return {record[key] for record in map(json.loads, lines) if record["kind"] == "plan"}


@pytest.mark.parametrize("case", CASES)
def test_every_plan_of_a_run_is_accepted(case):
    lines, verdict = ledger(case), verdict_of(case)
    assert verdict.refusals == []
    assert verdict.closed and verdict.plans == len(lines) - 2 > 5
    assert verdict.digest == json.loads(lines[-1])["digest"]
    assert sum(verdict[1:5]) == verdict.plans and verdict.not_certified == 0
    said = [json.loads(line)["safety"] for line in lines[1:-1]]
    assert verdict.certified + verdict.by_certificate == said.count("certified")
    assert verdict.trusted == said.count("trusted")
    if "certificate" not in case:
        assert verdict.by_certificate == 0


def test_the_cases_contain_what_they_are_for():
    """Were all plans the baseline on trust, the test above would show little."""
    sources = {case: words_of(ledger(case), "source") for case in CASES}
    assert sum("mixture" in found for found in sources.values()) > len(CASES) / 2
    assert sum("optimistic" in found for found in sources.values()) > len(CASES) / 2
    assert verdict_of("step certificate").by_certificate > 0


def test_a_scaled_bonus_is_consistent_but_not_certified(tmp_path, capsys):
    lines = ledger("step scaled")
    verdict = verifier.verify(lines)
    assert (verdict.refusals, verdict.not_certified) == ([], verdict.plans)
    path = tmp_path / "scaled"
    path.write_bytes(b"".join(lines))
    assert verifier.main([str(path)]) == 3
    said = capsys.readouterr().out
    assert "NOT CERTIFIED" in said and "ACCEPTED" not in said


@pytest.mark.full
def test_a_larger_world_by_growth():
    """S = 5, A = 5, H = 3, planned by growth: a plan takes well under 0.3 s."""
    import tempfile
    import time

    world = sf.random_mdp(S=5, A=5, H=3, seed=1)
    baseline = sf.boltzmann(sf.solve(world).Q, eta=10.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        sf.simulate(
            world, sf.StepMix(world.problem, baseline, 2.5, delta=0.1), 1000, seed=0, ledger=path
        )
        before = time.process_time()
        with path.open("rb") as stream:
            verdict = verifier.verify(stream)
    assert verdict.refusals == [] and verdict.plans > 50
    assert (time.process_time() - before) / verdict.plans < 0.3


# ---- bytes


def refused(lines):
    return bool(verifier.verify(lines).refusals)


def test_every_changed_byte_is_found():
    """At each position of a ledger one other byte; the control: the ledger itself is accepted."""
    lines = ledger(TINY)
    assert not refused(lines)
    whole = b"".join(lines)
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 + at % 127
        assert refused(bytes(changed).splitlines(keepends=True)), at


def test_every_cut_inside_a_record_is_found():
    """Between records a cut leaves a ledger that is still being written, and says so."""
    lines = ledger(TINY)
    for number, line in enumerate(lines):
        for at in range(1, len(line)):
            verdict = verifier.verify([*lines[:number], line[:at]])
            assert verdict.refusals[0][0] == number + 1
        if number:
            verdict = verifier.verify(lines[:number])
            assert not verdict.refusals and not verdict.closed
    assert refused([])


def test_lines_in_another_order_are_found():
    lines = ledger(TINY)
    for at in range(len(lines)):
        assert refused([*lines[:at], lines[at], *lines[at:]])
        assert refused([*lines[: at + 1], b"\n", *lines[at + 1 :]])
        if at + 1 < len(lines):
            assert refused([*lines[:at], *lines[at + 1 :]])
            assert refused([*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]])


# ---- what records claim. What is refused when they claim more: test_forgeries.py


def records_of(case):
    return [json.loads(line) for line in ledger(case)]


def exact_mean(head, plan):
    """(1 - rho) L(h) + rho L(h-1) of what a record claims, with what evidence says of the
    baseline in its place.
    """
    by_evidence = [plan[key] for key in ("by_model", "by_returns") if plan[key] is not None]
    L = [Fraction(float.fromhex(x)) for x in plan["candidates"][:-1]]
    L.append(max(Fraction(float.fromhex(x)) for x in by_evidence))
    at = len(L) - 1 if plan["h"] == head["H"] else plan["h"]
    rho = Fraction(float.fromhex(plan["rho"]))
    return (1 - rho) * L[at] + rho * L[at - 1]


@pytest.mark.parametrize("case", [case for case in CASES if "relative" in case.split()])
def test_a_mixture_claims_no_more_than_the_exact_mean(case):
    """Floats round about every second of these means up; the ledger claims it rounded down, by
    no more than 1e-15.
    """
    head, *plans, _ = records_of(case)
    mixed = [plan for plan in plans if plan["source"] == "mixture"]
    assert mixed or case.startswith("nomix")
    for plan in mixed:
        assert 0 <= exact_mean(head, plan) - Fraction(float.fromhex(plan["lower"])) < 1e-15


# ---- an earlier certificate


def test_what_leans_on_an_earlier_certificate_is_counted_apart():
    """Accepted, but not as proved by this ledger."""
    verdict = verdict_of("step certificate")
    assert not verdict.refusals
    assert verdict.by_certificate > 0
    assert "0.21" in verdict.promise  # both shares of delta


def test_what_was_searched_before_never_loosens_a_bound():
    """A ball that many values were searched in, beside fresh ones. A control: a search that
    begins far out.
    """
    rng, share = np.random.default_rng(3), Decimal(12)
    seen = {3: 1143, 0: 3, 4: 3, 1: 11}

    def ball(u):
        return verifier.Ball(seen, 5, True, share, u)

    with localcontext(verifier.DIGITS):
        kept, loose = ball({}), 0
        for _ in range(400):
            d = 10.0 ** rng.uniform(-12.0, 0.0, 5) * (rng.random(5) < 0.6)
            V = verifier.Spread({i: Decimal(float(x)) for i, x in enumerate(d)})
            fresh, near = verifier.worst_mean(ball({}), V), Decimal("1e-12") * max(V.d.values())
            assert abs(verifier.worst_mean(kept, V) - fresh) <= near
            loose += verifier.worst_mean(ball({0: -56.0}), V) < fresh - near
        assert loose > 50


# ---- the mathematics, against balls of 60 digits (python-flint)


def test_radius_and_worst_mean_are_on_the_safe_side_and_close():
    """Two outcomes: the worst mean solves KL(p_hat, p) = eps, found by bisection in balls.

    Control: with a share of delta that is 0.7 % too large it is above.
    """
    flint.ctx.dps = 60
    arb = flint.arb
    share = Decimal("7.3")

    def lgamma(x):
        return arb(x).lgamma()

    coin = verifier.Spread({0: Decimal(0), 1: Decimal(1)})
    with localcontext(verifier.DIGITS):
        for n, k in (
            (1, 1),
            (2, 1),
            (40, 3),
            (1000, 999),
            (10**6, 10**5),
            (10**9, 7 * 10**8),
            (10**12, 10**12),
        ):
            seen = {i: count for i, count in enumerate((n - k, k)) if count}
            eps = arb("7.3") - lgamma("1.0") + lgamma(n + arb("1.0"))
            for count in seen.values():
                eps += count * (arb(count) / n).log() + lgamma("0.5") - lgamma(count + arb("0.5"))
            eps /= n
            over = (
                arb(str(verifier.log_factor([*map(Decimal, seen.values())], 2, True, share) / n))
                - eps
            )
            assert over >= 0 and over < 1e-20
            found = arb(str(verifier.worst_mean(verifier.Ball(seen, 2, True, share, {}), coin)))
            low, high, p_hat = arb(0), arb(k) / n, arb(k) / n
            for _ in range(150):
                p = ((low + high) / 2).mid()
                divergence = p_hat * (p_hat / p).log()
                divergence += 0 if k == n else (1 - p_hat) * ((1 - p_hat) / (1 - p)).log()
                low, high = (p, high) if divergence > eps else (low, p)
            assert found <= high and high - found < 1e-14
            bolder = verifier.Ball(seen, 2, True, share * Decimal("0.999"), {})
            assert arb(str(verifier.worst_mean(bolder, coin))) > high


def test_the_radius_with_unknown_supports_is_on_the_safe_side_and_close():
    """Up to 100,000 possible states, 1 to 10^9 visits: log m by the sum over k in balls of 60
    digits. What is left out makes the radius larger, by log(size) at most where all that was seen
    was seen once. Control: w_k left out.
    """
    flint.ctx.dps = 60
    arb, share = flint.arb, Decimal("7.3")

    def exact(n_i, size, weighted=True):
        n, d, half = sum(n_i), len(n_i), arb("0.5")
        logs = []
        for k in range(d, min(size, 2000) + 1):
            sets = arb(math.perm(k, d)).log() - arb(math.perm(size, d)).log()
            w = -arb(size if k == size else k * (k + 1)).log() if weighted else arb(0)
            logs.append(w + sets + (k * half).lgamma() - (n + k * half).lgamma())
        most = max(logs, key=float)
        log_m = most + sum(((x - most).exp() for x in logs), arb(0)).log()
        log_m += sum(((count + half).lgamma() - half.lgamma() for count in n_i), arb(0))
        return arb("7.3") + sum((count * (arb(count) / n).log() for count in n_i), arb(0)) - log_m

    with localcontext(verifier.DIGITS):
        for n_i, size in (
            ((1,), 1),
            ((1,), 2),
            ((5, 2), 2),
            ((5, 2), 3),
            ((1, 1, 1), 40),
            ((600, 300, 100), 10),
            ((600, 300, 100), 100_000),
            ((10**9, 7), 60),
            ((1,) * 20, 30),
            ((3,) * 30, 60),
            ((1,) * 60, 300),
        ):
            found = arb(str(verifier.log_factor([*map(Decimal, n_i)], size, False, share)))
            over = found - exact(n_i, size)
            assert over >= 0 and over < 1e-14
            assert size == 1 or found > exact(n_i, size, weighted=False) + 0.01
        once = arb(str(verifier.log_factor([Decimal(1)] * 50, 2000, False, share))) - exact(
            (1,) * 50, 2000
        )
        assert once > 0 and once < math.log(2000)


def test_the_quick_logarithm_is_one():
    """Within 1e-27, from 1e-9 to 1e30. Control: the logarithm of two digits, from which it
    starts, is not.
    """
    flint.ctx.dps = 60
    rng, far = random.Random(2), 0
    with localcontext(verifier.DIGITS):
        for _ in range(2000):
            x = Decimal(10 ** rng.uniform(-9, 30))
            exact = flint.arb(str(x)).log()
            assert abs(flint.arb(str(verifier.log(x))) - exact) < 1e-27
            far += bool(abs(flint.arb(str(verifier.log(verifier.SHORT.plus(x)))) - exact) > 1e-4)
    assert far > 1500


def dual(n_i, V, share, t):
    """nu + exp(-eps) prod (V_i - nu)^{n_i/n} with nu = least - t, in balls of 60 digits."""
    arb = flint.arb
    values = {i: arb(str(x)) for i, x in V.items()}
    n, size, alpha, least, t = (
        sum(n_i.values()),
        len(V),
        arb("0.5"),
        arb(str(min(V.values()))),
        arb(t),
    )
    n_eps = arb(str(share)) - (size * alpha).lgamma() + (n + size * alpha).lgamma()
    exponent = arb(0)
    for i, count in n_i.items():
        n_eps += count * (arb(count) / n).log() + alpha.lgamma() - (count + alpha).lgamma()
        exponent += count * (values[i] - least + t).log()
    return least - t + ((exponent - n_eps) / n).exp()


def random_balls(number):
    """Counts of 1 to 10^9, many alike, of 1 to 7 states; values of every spread."""
    rng = random.Random(5)
    for _ in range(number):
        size = rng.randint(2, 7)
        n_i = {
            i: int(10 ** rng.uniform(0, rng.choice((1, 3, 9))))
            for i in range(size)
            if rng.random() < 0.7
        }
        draws = [
            rng.choice((0.0, 1.0, rng.random(), 8 * rng.random(), 1e-9 * rng.random()))
            for _ in range(size)
        ]
        yield n_i or {0: 1}, dict(enumerate(map(Decimal, draws))), Decimal(rng.uniform(1, 20))


def test_the_quick_worst_mean_is_at_most_the_exact_one():
    """Thousands of balls: at most the bound of 60 digits with the same t, and close to the best of
    them.

    Control: what floats guess, without what is taken off before it is proved, is often above.
    """
    flint.ctx.dps = 60
    proved, too_much = 0, 0
    with localcontext(verifier.DIGITS):
        for n_i, V, share in random_balls(2000):
            spread = verifier.Spread(V)
            quick = verifier.worst_mean(verifier.Ball(n_i, len(V), True, share, {}), spread)
            if quick == spread.least:
                continue
            proved += 1
            ball = verifier.Ball(n_i, len(V), True, share, {})
            d = [spread.floats[i] for i in n_i]
            most = max(d)
            t, guess = verifier.best_gain(ball, d, most, 0)
            exact = dual(n_i, V, share, t)
            assert flint.arb(str(quick)) <= exact
            for other in (0.99 * t, 1.01 * t):
                assert dual(n_i, V, share, other) - flint.arb(str(quick)) <= 1e-13 * most
            too_much += bool(flint.arb(str(spread.least + Decimal(guess))) > exact)
    assert proved > 1000 and too_much > 100


def printed(head, n_j, r, V):
    """Q_low and -Q_up as Li et al. print them, in floats."""
    H, S, n = head.H, head.S, max(n_j.total(), 1)
    log_n = math.log(8 * (n_j.total() + 1)) + 1
    once, all_states = float(head.log_share) + log_n, float(head.log_share) + S * log_n
    low, up = (
        sum(m * sign * float(V[j][k]) for j, m in n_j.items()) / n for k, sign in ((0, 1), (1, -1))
    )
    variance = sum(m * (-float(V[j][1]) - up) ** 2 for j, m in n_j.items()) / n
    bonus = 3 * math.sqrt(variance * once / n)
    Q_up = r + bonus + 14 * H * H * all_states / n + (up - low) / H + up
    Q_low = r - bonus - 22 * H * H * all_states / n - 2 * (up - low) / H + low
    return max(0.0, Q_low), -min(float(H), Q_up)


def test_the_papers_bounds_are_those_that_are_printed():
    """At every plan of a ledger, where they say something and where they do not.

    Control: with another reward they differ wherever they say something.
    """
    first, *plans = (verifier.read_record(line, before) for line, before in chained("step paper"))
    differ = silent = 0
    with localcontext(verifier.DIGITS):
        book = verifier.Book(first)
        for plan in plans[:-1]:
            book.judge(plan)
            head, values = book.head, verifier.PaperValues(book.evidence)
            V = {s: (Decimal(s) / 4, Decimal(-s) / 2 - 1) for s in range(head.S)}
            for h in range(head.H):
                for pair in range(head.pairs):
                    n_j, r = book.evidence.visits[h, pair], head.reward(h, pair, 0)
                    found = [float(x) for x in values.Q(h, pair, V)]
                    assert found == pytest.approx(printed(head, n_j, r, V), abs=1e-12)
                    silent += found == [0.0, -head.H]
                    differ += found != pytest.approx(printed(head, n_j, r + 0.01, V), abs=1e-12)
    assert silent > 100 and differ > 100, (silent, differ)


def chained(name):
    """Each line of a ledger, and the digest before it."""
    lines = ledger(name)
    return zip(lines, ["0" * 64, *(json.loads(line)["digest"] for line in lines)], strict=False)


# ---- hostile files

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["0x1.0p+0", "0x0.0p+0", "0x1p3000", "nan", "inf", "-0x1.0p+3", "1/S", "0x1.8p+1"]
    ),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)
QUIET = settings(
    max_examples=150, deadline=5000, derandomize=True, suppress_health_check=list(HealthCheck)
)


def places(x, at=()):
    """Every place in nested lists and dictionaries."""
    yield at
    inner = x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, list) else ()
    for key, y in inner:
        yield from places(y, (*at, key))


@QUIET
@given(data=st.data())
def test_no_structure_brings_it_down(data):
    """Any value anywhere, digests recomputed: a verdict, in time, and no exception."""
    records = copy.deepcopy(
        [*records_of(data.draw(st.sampled_from(["tiny", "step", "eps relative returns"])))][:4]
    )
    number = data.draw(st.integers(0, len(records) - 1))
    *way, last = data.draw(st.sampled_from([at for at in places(records[number]) if at]))
    place = functools.reduce(lambda x, key: x[key], way, records[number])
    place[last] = data.draw(JSON)
    try:
        lines = chain(records)
    except ValueError:  # not to be written as JSON
        return
    verdict = verifier.verify(lines)
    assert verdict.refusals or verdict.plans + verdict.closed + 1 == len(records)


@QUIET
@given(data=st.data())
def test_no_bytes_bring_it_down(data):
    known = st.sampled_from(ledger(TINY))
    lines = data.draw(
        st.lists(st.binary(max_size=60) | known | JSON.map(repr).map(str.encode), max_size=5)
    )
    verdict = verifier.verify(lines)
    assert verdict.refusals or tuple(lines) == ledger(TINY)[: len(lines)]


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000 + b"\n",
        b'{"a":' * 100_000 + b"\n",
        b"9" * 100_000 + b"\n",
        b'{"digest":1e999}\n',
        b'{"digest":NaN}\n',
        b"\xff\xfe{\x00}\x00\n",
        b"null\n",
        b"",
        b"\n",
        b" " * (2**26 + 1),
    ],
    ids=[
        "lists",
        "records",
        "digits",
        "infinite",
        "nan",
        "utf-16",
        "null",
        "nothing",
        "newline",
        "long",
    ],
)
def test_strange_lines_are_refused(line):
    assert verifier.verify([line]).refusals[0][0] == 1


def test_huge_counts_end(tmp_path):
    """Counts up to 2^62 - 1, and sums beyond their visits: the series must not run for ever."""
    for case, key, value in (("step", "visits", 2**61), ("step unknown", "rewards", 2**61)):
        records = copy.deepcopy(records_of(case))
        entries = next(record[key] for record in records[2:-1] if record[key])
        entries[0][-1] = value
        records[0]["warm"] = True
        assert verifier.verify(chain(records)).refusals


@pytest.mark.parametrize("scale", [1e-9, 1e-12, 1e-15])
@pytest.mark.parametrize("kind", [sf.StepMix, sf.EpsMix])
def test_an_honest_ledger_of_tiny_rewards_is_accepted(kind, scale, tmp_path):
    """Without data a candidate is a sum of rewards, exactly. In 60 digits such floats were
    rounded down.
    """
    rng = np.random.default_rng(0)
    world = sf.TabularMDP(rng.dirichlet(np.ones(2), size=(1, 2, 2)), scale * rng.random((1, 2, 2)))
    agent = kind(
        world.problem, sf.uniform(1, 2, 2), sf.Below(0.1 * scale), delta=0.2, replan=BLOCKS
    )
    sf.simulate(world, agent, 5, seed=0, ledger=tmp_path / "ledger", progress=False)
    assert sf.check_ledger(tmp_path / "ledger").refusals == []
