"""No promise without the status of its premise: how well it is known that the baseline is above the
floor stands beside every promise.

Certified by data, asserted by the user, unknown, or none needed. What promises nothing (NOT
CERTIFIED, no floor, a premise that is known to be false) has no such status. Each agent of the
registry is here, with every setting that the status depends on.
"""

import html
import json
import re

import numpy as np
import pytest

import surefoot as sf
from command import surefoot
from surefoot.agents import SpliceAgent
from surefoot.bounds.certificate import fingerprint_of
from surefoot.cli.tables import print_runs, rows

GRADES = ("certified by data", "asserted by the user", "unknown", "none needed")
# a promise that holds only if the baseline is worth what was given
GIVEN = "trusted, given the baseline's value"
WORD = rf"(?:certified|{GIVEN} of \S+,|{GIVEN},)"
PROMISE = re.compile(
    rf"{WORD} at delta = \S+ for [^;]+; baseline (above the floor|within the budget): "
    rf"({'|'.join(GRADES)})"
)
# Where true values are shown: that the premise is true stands first, then what the agent knew of
# it.
BESIDE_TRUTH = re.compile(
    rf"{WORD} at delta = \S+ for [^;]+; baseline (above the floor|within the budget): true in "
    rf"this world, "
    r"(certified by data|given to the agent|unknown to the agent)"
)
BESIDE = {"unknown": "unknown to the agent", "asserted by the user": "given to the agent"}
LINE = re.compile(
    rf"^Baseline (above the floor|within the budget): ({'|'.join(GRADES)})\.$", re.MULTILINE
)
NOTHING = ("NOT CERTIFIED", "no floor promised", "no promise: ", "no promise for this floor")

WORLD = sf.random_mdp(S=5, A=5, H=3, seed=1)
BASELINE = sf.boltzmann(sf.solve(WORLD).Q, eta=10.0)
# 2.59; of it the known rewards alone prove 2.43 (KL)
VALUE = float(sf.policy_value(WORLD, BASELINE)[0, 0])
HIGH, LOW = 2.55, 2.0


def certificate(value):
    return sf.Certificate(value, 0.01, fingerprint_of(BASELINE, WORLD.problem))


def build(kind, floor, **settings):
    return kind(WORLD.problem, BASELINE, floor, **settings)


def given_value(kind, floor, **settings):
    return build(kind, floor, baseline_value=VALUE, episodes=1000, **settings)


def with_costs(kind, budget):
    return build(
        kind, None, cost=np.full((3, 5, 5), 0.5), budget=budget, baseline_cost=1.5, episodes=1000
    )


MIXERS = (sf.StepMix, sf.EpsMix, sf.StepNoMix)
LP_AGENTS = (sf.DOPE, sf.OptPessLP)
SUMS = (sf.BudgetExploration, sf.ConservativeUCBVI)
DATA, USER, UNKNOWN, NONE = "certified by data", "asserted by the user", "unknown", "none needed"
# Agents, their settings, the status in their promise (None: they promise nothing), and in their
# plan without data.
ROWS = [
    ((*MIXERS, *SUMS), "plain", lambda kind: build(kind, HIGH), UNKNOWN, UNKNOWN),
    ((*MIXERS, *SUMS), "low floor", lambda kind: build(kind, LOW), UNKNOWN, DATA),
    ((*MIXERS, *SUMS), "floor of 0", lambda kind: build(kind, 0.0), NONE, NONE),
    (
        (*MIXERS, *SUMS),
        "scaled",
        lambda kind: build(kind, LOW, bounds=sf.KL(scale=0.1)),
        None,
        None,
    ),
    (MIXERS, "paper", lambda kind: kind.paper(WORLD.problem, BASELINE, LOW), UNKNOWN, UNKNOWN),
    (MIXERS, "relative", lambda kind: build(kind, sf.Relative(0.1)), NONE, NONE),
    (
        MIXERS,
        "certificate",
        lambda kind: build(kind, HIGH, certificate=certificate(2.56)),
        DATA,
        DATA,
    ),
    (
        MIXERS,
        "weak certificate",
        lambda kind: build(kind, HIGH, certificate=certificate(2.5)),
        UNKNOWN,
        UNKNOWN,
    ),
    (LP_AGENTS, "given", lambda kind: given_value(kind, LOW), USER, USER),
    (LP_AGENTS, "floor of 0", lambda kind: given_value(kind, 0.0), NONE, NONE),
    (LP_AGENTS, "costs", lambda kind: with_costs(kind, 2.0), USER, USER),
    (LP_AGENTS, "any cost", lambda kind: with_costs(kind, 3.0), NONE, NONE),
    (LP_AGENTS, "scaled", lambda kind: given_value(kind, LOW, scale=0.5), None, None),
    (
        SUMS,
        "given",
        lambda kind: build(kind, HIGH, baseline_value=VALUE),
        USER,
        USER,
    ),
    ([sf.ConservativeUCBVI], "UCBVI inside", lambda kind: given_value(kind, LOW), USER, USER),
    ([sf.BPIUCBVI, sf.BPIUCBVIMenard], "plain", lambda kind: kind(WORLD.problem), None, None),
    (
        [sf.BPIUCBVI],
        "scaled",
        lambda kind: kind(WORLD.problem, bounds=sf.KL(scale=0.1)),
        None,
        None,
    ),
    ([sf.UCBVI], "plain", lambda kind: kind(WORLD.problem, episodes=1000), None, None),
    ([sf.BPIUCBVIMenard], "scaled", lambda kind: kind(WORLD.problem, scale=0.1), None, None),
]
CASES = [(kind, *row) for kinds, *row in ROWS for kind in kinds]


def graded(text):
    """The status in a promise; None in what promises nothing. Anything else is a promise without
    a premise.
    """
    found = PROMISE.fullmatch(text)
    if found is None:
        assert text.startswith(NOTHING), text
        return None
    return found[2]


def test_a_promise_without_a_grade_is_seen():
    """Control: the words of before, and near misses, are not taken for a graded promise."""
    for words in (
        "certified at delta = 0.1 for every episode's policy",
        "certified at delta = 0.1 for every episode's policy, or the baseline on trust",
        "certified at delta = 0.1 for every episode's policy; baseline above the floor: ",
        "certified at delta = 0.1 for every episode's policy; baseline above the floor: surely",
    ):
        with pytest.raises(AssertionError):
            graded(words)


def test_every_agent_is_here():
    assert {kind for kind, *_ in CASES} == {*sf.AGENTS.values(), sf.UCBVI}


@pytest.mark.parametrize(
    ("kind", "make", "promised", "planned"),
    [(kind, make, promised, planned) for kind, _, make, promised, planned in CASES],
    ids=[f"{kind.__name__}-{name}" for kind, name, *_ in CASES],
)
class TestEveryAgent:
    def test_its_promise_has_a_grade(self, kind, make, promised, planned):
        agent = make(kind)
        assert graded(str(agent.promise)) == promised
        if promised is not None:
            assert agent.premise == promised

    def test_its_run_and_its_row_have_it(self, kind, make, promised, planned, capsys):
        run = sf.simulate(WORLD, make(kind), 3, seed=0)
        assert graded(str(run.promise)) == promised
        assert str(run.promise) in repr(run)
        assert rows([run])[-1]["promise"] == run.promise_in_words
        print_runs([run])
        printed = " ".join(capsys.readouterr().out.split())
        assert f"{run.agent}: {run.promise_in_words}." in printed
        # a table with true values says that the premise is true, too
        if promised not in (None, "none needed"):
            assert BESIDE_TRUTH.search(printed)[2] == BESIDE.get(promised, promised)

    def test_what_rests_on_a_given_value_is_trusted_everywhere(self, kind, make, promised, planned):
        """Promise and run use the same words. Control: the same agents without a value that matters
        are certified, and DOPE and OptPess-LP, whose safety does not rest on it.
        """
        agent = make(kind)
        promise, given = agent.promise, agent.asserted
        rests_on_it = promised == "asserted by the user" and kind not in LP_AGENTS
        assert (promise.trusted, promise.certified) == (
            rests_on_it,
            promised is not None and not rests_on_it,
        )
        assert str(promise).startswith(
            f"{GIVEN} of {given:g}, at delta" if rests_on_it else ("certified", *NOTHING)
        )
        if rests_on_it:
            assert f"{GIVEN} of {given:g}, at delta" in str(sf.simulate(WORLD, agent, 3, seed=0))

    def test_its_plan_says_it_where_it_promises(self, kind, make, promised, planned):
        plan = make(kind).plan(sf.Counts.zeros(WORLD.problem))
        found = LINE.findall(plan.explain())
        assert [premise_status for _, premise_status in found] == (
            [] if planned is None else [planned]
        )
        if plan.safety == "NOT CERTIFIED" and plan.grounds is not None:
            text = plan.explain()
            assert "NOT CERTIFIED" in text
            assert "certified by data" not in text


# ---- what data add


def test_data_certify_the_baseline(counts_of):
    """By the model: unknown before, certified by data after."""
    counts = counts_of(WORLD, BASELINE, 10**5, seed=0)
    for kind in MIXERS:
        agent = build(kind, HIGH)
        before, after = agent.plan(sf.Counts.zeros(WORLD.problem)), agent.plan(counts)
        assert LINE.search(before.explain())[2] == "unknown"
        assert LINE.search(after.explain())[2] == "certified by data"
        assert max(after.grounds.by_model, after.grounds.by_returns) >= HIGH
        # A bonus scaled by hand proves nothing, with any data.
        scaled = build(kind, HIGH, bounds=sf.KL(scale=0.5)).plan(counts)
        assert LINE.search(scaled.explain()) is None
        assert scaled.grounds.premise == "unknown"


def test_returns_certify_it():
    """One coin a step is too little for the model; 400 whole baseline episodes are enough for
    their returns.
    """
    lake = sf.from_gymnasium("FrozenLake-v1", horizon=50).with_support()
    baseline = 0.8 * sf.solve(lake).policy + 0.2 / lake.A
    agent = sf.EpsMix(lake.problem, baseline, floor=0.13, delta=0.1, pooled=True)
    run = sf.simulate(lake, agent, episodes=400, seed=0)
    plan = agent.plan(run.counts)
    assert plan.grounds.by_model < 0.13 <= plan.grounds.by_returns
    assert LINE.search(plan.explain())[2] == "certified by data"


def test_a_rival_proves_its_baseline_while_it_plays_it():
    """OptPess-LP plays the baseline until it is proved with some slack. From no visits to many:
    asserted, then certified by data, though it is still the baseline that is played; of other
    policies the baseline's cost is not computed.
    """
    world = sf.TabularMDP(np.ones((1, 2, 1)), np.array([[0.9, 0.91]]), H=2)
    baseline = np.full((2, 1, 2), 0.5)
    agent = sf.OptPessLP(world.problem, baseline, 1.7, baseline_value=1.81, episodes=10**9)
    seen = {}
    for n in np.geomspace(1, 10**8, 60).astype(np.int64):
        plan = agent.plan(sf.Counts(np.full((2, 1, 2, 1), n), problem=world.problem))
        seen[plan.source, plan.safety] = LINE.search(plan.explain())[2]
    assert seen == {
        ("baseline", "trusted"): "asserted by the user",
        ("baseline", "certified"): "certified by data",
        ("optimistic", "certified"): "asserted by the user",
    }


# ---- premises known to be false, other floors


def test_what_promises_nothing_has_no_grade():
    with pytest.warns(sf.FloorAboveBaseline):
        run = sf.simulate(WORLD, build(sf.StepMix, 2.7), 3, seed=0)
    assert graded(str(run.promise)) is None
    assert str(run.promise).startswith("no promise: its premise is false")
    other = sf.simulate(WORLD, build(sf.StepMix, LOW), 3, seed=0, floor=1.0)
    assert graded(str(other.promise)) is None


# ---- the command, the report


def promises_in(text):
    """Everything that looks like a promise in what was printed or written."""
    plain = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())
    starts = [found.start() for found in re.finditer(rf"{WORD} at delta = ", plain)]
    return [plain[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]


def said(*arguments):
    result = surefoot(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_try_prints_it():
    names = [name for name in sf.AGENTS if not name.startswith("bpi-ucbvi")]
    agents = [word for name in names for word in ("--agent", name)]
    table = json.loads(said("try", "trap", *agents, "--episodes", 60, "--json"))
    found = {row["agent"]: row["promise"] for row in table["rows"]}
    assert set(found) == {
        "baseline alone",
        sf.BPIUCBVI.name,
        *(sf.AGENTS[name].name for name in names),
    }
    printed = promises_in(said("try", "trap", *agents, "--episodes", 60))
    assert {BESIDE_TRUTH.match(words)[0] for words in printed} == {
        found[sf.AGENTS[name].name] for name in names
    }
    given = [name for name in names if found[sf.AGENTS[name].name].startswith(GIVEN)]
    assert given == ["conservative-ucbvi"]


def test_demo_prints_it_and_writes_it_on_the_figure(tmp_path):
    short = ("--episodes", 20, "--paper-episodes", 20, "--out", tmp_path / "f.svg")
    printed = promises_in(said("demo", *short))
    assert len(printed) == 4  # StepMix and EpsMix, by two families of bounds
    assert all(BESIDE_TRUTH.match(words)[2] == "unknown to the agent" for words in printed)
    drawn = promises_of_svg((tmp_path / "f.svg").read_text())
    assert "baseline above the floor: true in this world, unknown to the agent" in drawn
    assert "above the floor: unknown" not in drawn  # below a baseline that is drawn above the floor


def promises_of_svg(text):
    """The words of a figure: matplotlib writes them as comments beside their outlines."""
    return " ".join(re.findall(r"<!-- (.*?) -->", text)) + " ".join(
        re.findall(r"<text[^>]*>(.*?)</text>", text)
    )


STUDY = """
name = "grades"
title = "Grades"
question = "Does every promise have one?"
trials = 1
episodes = 200
figures = []
replan = 0.1

[[scenarios]]
id = "trap"
world = { name = "trap" }

[[agents]]
id = "stepmix"
agent = "stepmix"
bounds = "kl"

[[agents]]
id = "dope"
agent = "dope"
bounds = "paper"

[[agents]]
id = "scaled"
agent = "epsmix"
bounds = "kl"
scale = 0.5
"""


def test_the_report_of_a_study_has_it(tmp_path):
    (tmp_path / "grades.toml").write_text(STUDY)
    said("run", tmp_path / "grades.toml", "--out", tmp_path / "out", "--jobs", 1)
    printed = promises_in(said("results", tmp_path / "out"))
    written = promises_in((tmp_path / "out" / "report.html").read_text())
    for promises in (printed, written):
        assert {BESIDE_TRUTH.match(words)[2] for words in promises} == set(BESIDE.values())
    assert "NOT CERTIFIED" in (tmp_path / "out" / "report.html").read_text()


def test_learn_says_it_too():
    """Where no model is shown, the label is the agent's own."""
    lake = sf.from_gymnasium("FrozenLake-v1", horizon=50)
    baseline = 0.8 * sf.solve(lake).policy + 0.2 / lake.A
    agent = sf.EpsMix(lake.problem, baseline, floor=0.13, pooled=True)
    assert isinstance(agent, SpliceAgent)
    run = sf.learn("FrozenLake-v1", agent, episodes=3, seed=0)
    assert graded(str(run.promise)) == "unknown"
