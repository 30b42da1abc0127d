"""A study is data: what may be written in its file, what is refused, and that its cells are what
they say.
"""

import tomllib
from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf
from plain_loop import simulate_plainly
from surefoot.errors import InvalidStudy
from surefoot.logs.methods import METHODS
from surefoot.studies.run.trial import (
    Trial,
    build_scenario,
    check_study_cells,
    child,
    learn_from_log,
    run_trial,
)
from surefoot.studies.spec.library import GROUPS, find_studies, packaged, source
from surefoot.studies.spec.study import TABLES, Study, parse_study, read_study

SMALL = """
name = "small"
title = "A small study"
question = "Does it run?"
trials = 2
episodes = 600
replan = 0.1

[quick]
trials = 1
episodes = 300
replan = 0.01

[[scenarios]]
id = "trap"
world = { name = "trap" }

[[scenarios]]
id = "random"
title = "the paper's world"
world = { name = "random", S = 3, A = 2, H = 2, seed = 1 }
baseline = { eta = 5.0 }
floor = { of_baseline = 0.9 }

[[agents]]
id = "stepmix"
agent = "stepmix"
bounds = "kl"

[[agents]]
id = "bpi"
agent = "bpi-ucbvi"
bounds = "kl"
"""


def small() -> Study:
    return parse_study(tomllib.loads(SMALL), "small.toml")


@pytest.mark.parametrize("name", GROUPS["all"])
def test_packaged_studies_are_read_and_written_back(name):
    study = packaged(name)
    assert study.name == name
    assert parse_study(study.as_table(), "again") == study
    quick = study.made_quick()
    assert replace(parse_study(quick.as_table(), "again"), size="quick") == quick
    assert quick.digest != study.digest or quick.replan == study.replan
    assert parse_study(tomllib.loads(source(name)), name) == study


def test_methods_for_logs_are_those_of_the_command():
    """One list: a method that is added to it can be named in a study's file, and learns there."""
    field = TABLES["scenarios.log"]["method"]
    for name in METHODS:
        assert field.read("log", name) == name
        assert name in field.meaning
    with pytest.raises(InvalidStudy, match="There are: robust, vi-lcb, vi-lcb-first, clone, spibb"):
        field.read("log", "oracle")


@pytest.mark.parametrize("name", GROUPS["all"])
def test_no_packaged_study_scales_a_bonus_and_quick_ones_plan_in_blocks(name):
    study = packaged(name)
    for cell in (*study.cells, *study.made_quick().cells):
        assert cell.agent.scale == 1.0
    for cell in study.made_quick().cells:
        assert cell.replan == 0.01
    if name in GROUPS["paper"]:
        assert {cell.agent.bounds for cell in study.cells} == {"paper"}


def test_the_papers_studies_have_its_sizes():
    online, relative, offline = map(packaged, ("online", "relative-floors", "offline"))
    assert [scenario.heading for scenario in online.scenarios] == [
        f"eta = {eta}, floor = {floor}" for eta in (5, 10) for floor in (2.0, 2.2)
    ]
    assert online.trials == 10
    assert {(cell.episodes, cell.replan) for cell in online.cells} == {(20_000_000, 0.0)}
    assert {scenario.world["seed"] for scenario in online.scenarios} == {1}
    assert {cell.episodes for cell in relative.cells} == {50_000_000}
    assert {scenario.baseline for scenario in relative.scenarios} == {("eta", 20.0)}
    logs = {scenario.log for scenario in offline.scenarios}
    assert {log.behaviour[1] for log in logs} == {10.0, 15.0}
    assert {log.episodes for log in logs} == {5000, 8000}
    assert {log.method for log in logs} == {"vi-lcb", "vi-lcb-first"}
    assert len(logs) == 8
    built = build_scenario(packaged("rivals").scenarios[0], 0.1, 0, 0)
    assert built.world.stationary
    assert sf.solve(built.world).value == pytest.approx(1.6925636810, abs=1e-9)


def test_with_several_seeds_every_trial_has_a_world_of_its_own():
    (scenario, *_), (online, *_) = packaged("online-worlds").scenarios, packaged("online").scenarios
    best = [sf.solve(build_scenario(scenario, 0.1, 0, trial).world).value for trial in range(11)]
    assert len(set(best)) == 10  # trial 10 is in the first world again
    assert best[10] == best[0]
    assert best[1] == sf.solve(build_scenario(online, 0.1, 0, 0).world).value  # its seed is 1
    table = packaged("online-worlds").as_table()
    assert parse_study(table, "again") == packaged("online-worlds")
    with pytest.raises(InvalidStudy, match="has world_seeds, but trap has no seed"):
        parse_study(
            {**table, "scenarios": [{**table["scenarios"][0], "world": {"name": "trap"}}]}, "here"
        )
    # the baseline of seed 2 is worth less
    low = {**table["scenarios"][0], "world_seeds": [0, 2], "floor": 2.2}
    with pytest.raises(InvalidStudy, match=r"the floor is 2\.2, but the baseline is worth"):
        check_study_cells(parse_study({**table, "scenarios": [low]}, "here").cells)


def test_a_digest_is_of_what_decides_the_numbers_alone():
    study = small()

    def digest(first=None, agent=None, **changes):
        """With changes of the study, of its first scenario and of its first agent."""
        scenario, *scenarios = study.scenarios
        stepmix, *agents = study.agents
        changes["scenarios"] = (replace(scenario, **(first or {})), *scenarios)
        changes["agents"] = (replace(stepmix, **(agent or {})), *agents)
        return replace(study, **changes).digest

    assert digest() == study.digest
    assert digest(title="another", trials=7, claims=(), figures=("return",)) == study.digest
    assert digest(first={"title": "x"}) == study.digest
    # What a cell says itself and what it has from the study are the same, if they are the same.
    assert digest(first={"episodes": 600}) == study.digest
    others = (
        {"seed": 1},
        {"delta": 0.2},
        {"episodes": 601},
        {"replan": 0.0},
        {"agent": {"scale": 0.5}},
        {"first": {"floor": 0.61}},
        {"first": {"world_seeds": (1, 2)}},
    )
    assert study.digest not in [digest(**other) for other in others]


BAD = {
    "a misspelt field": ("trials = 2", "trails = 2", "no field 'trails'. Did you mean 'trials'?"),
    "a field of nobody": ("trials = 2", "trials = 2\ncolour = 1", "no field 'colour'"),
    "a misspelt field of a scenario": (
        'title = "the paper',
        'titel = "the paper',
        "scenarios[1] has no field 'titel'",
    ),
    "a size that the world does not have": ("S = 3,", "Z = 3,", "no field 'Z'"),
    "an unknown world": ('name = "trap" }', 'name = "trapp" }', "There is no world 'trapp'"),
    "a world without a name": ('{ name = "trap" }', '"trap"', "expected a table such as"),
    "an unknown learner": ('agent = "stepmix"', 'agent = "stepmax"', "Did you mean 'stepmix'?"),
    "unknown bounds": ('bounds = "kl"', 'bounds = "tight"', "bounds is 'tight'"),
    "no bounds": ('agent = "stepmix"\nbounds = "kl"', 'agent = "stepmix"', "lacks bounds"),
    "no trials": ("trials = 2", "trials = 0", "trials is 0, expected a whole number, at least 1"),
    "half a trial": ("trials = 2", "trials = 1.5", "trials is 1.5"),
    "trials in words": ("trials = 2", 'trials = "two"', "trials is 'two'"),
    "true trials": ("trials = 2", "trials = true", "trials is True"),
    "delta of one": ("trials = 2", "trials = 2\ndelta = 1", "delta is 1"),
    "a floor in words": (
        "floor = { of_baseline = 0.9 }",
        'floor = "high"',
        "or a number in the world's units",
    ),
    "a floor of more than the baseline": (
        "{ of_baseline = 0.9 }",
        "{ of_baseline = 1.1 }",
        "strictly between 0 and 1",
    ),
    "two ids alike": ('id = "random"', 'id = "Trap"', "two scenarios have the id 'trap'"),
    "an id that leaves its folder": ('id = "random"', 'id = "../x"', "expected at most 60 of a-z"),
    "a log and a baseline": (
        "floor = { of_b",
        "log = { episodes = 5 }\nfloor = { of_b",
        "has a log and a baseline",
    ),
    "no episodes": ("episodes = 600\nreplan", "replan", "does not say how many episodes"),
    "an unknown claim": (
        "trials = 2",
        'trials = 2\nclaims = ["promises"]',
        "Did you mean 'promise'?",
    ),
    "an unknown figure": ("trials = 2", 'trials = 2\nfigures = ["pie"]', "figures[0] is 'pie'"),
    "no list": ("trials = 2", 'trials = 2\nfigures = "return"', "expected a list"),
    "a share below 0": (
        "replan = 0.1",
        "replan = -0.1",
        "replan is -0.1, expected a share from 0 to 1",
    ),
    "a share above 1": (
        "replan = 0.1",
        "replan = 1.1",
        "replan is 1.1, expected a share from 0 to 1",
    ),
    "a share in words": (
        "replan = 0.1",
        'replan = "often"',
        "replan is 'often', expected a number",
    ),
    "a scale of nothing": ('agent = "stepmix"', 'agent = "stepmix"\nscale = 0', "scale is 0"),
    "a scale of inf": ('agent = "stepmix"', 'agent = "stepmix"\nscale = inf', "scale is inf"),
    "pooled perhaps": (
        'agent = "stepmix"',
        'agent = "stepmix"\npooled = "maybe"',
        "pooled is 'maybe'",
    ),
    "a label that legends leave out": (
        'agent = "stepmix"',
        'agent = "stepmix"\nlabel = "_x"',
        "the first of them not '_'",
    ),
    "a number of thousands of digits": ("trials = 2", f"trials = {'9' * 5000}", "is not TOML"),
    "a number of hundreds of digits": (
        "{ of_baseline = 0.9 }",
        "9" * 400,
        "expected a number of at most 1e+15",
    ),
    "trials without end": ("trials = 2", "trials = 1e300", "at most 100,000"),
    "a log without end": (
        "baseline = { eta = 5.0 }\nfloor = { of_baseline = 0.9 }",
        "floor = 0.8\nlog = { episodes = 1e12 }",
        "at most 10,000,000",
    ),
    "no TOML": ('title = "A small', "title = A small", "is not TOML"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_in_a_file_is_said(case, tmp_path):
    before, after, words = BAD[case]
    assert before in SMALL
    path = tmp_path / "my.toml"
    path.write_text(SMALL.replace(before, after, 1))
    with pytest.raises(InvalidStudy) as refusal:
        read_study(path)
    assert words in str(refusal.value)
    assert "my.toml" in str(refusal.value)


def test_files_that_are_none_are_said(tmp_path):
    with pytest.raises(InvalidStudy, match="does not exist"):
        find_studies(str(tmp_path / "none.toml"))
    with pytest.raises(InvalidStudy, match=r"There is no study 'onlin'\. There are: online"):
        find_studies("onlin")
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidStudy, match="is not TOML"):
        read_study(tmp_path / "b.toml")
    with pytest.raises(InvalidStudy, match="cannot be read"):
        read_study(tmp_path)
    (tmp_path / "c.toml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(InvalidStudy, match="more than 1,000,000 bytes"):
        read_study(tmp_path / "c.toml")


def test_every_field_has_a_meaning_and_is_a_field_of_the_record():
    for table, fields in TABLES.items():
        assert fields, table
        for name, field in fields.items():
            assert len(field.meaning) > 5, (table, name)


def test_places_that_cannot_be_are_said():
    study = small()
    high = replace(study.scenarios[0], floor=0.69)
    with pytest.raises(
        InvalidStudy, match=r"Scenario 'trap': the floor is 0\.69, but the baseline is worth 0\.685"
    ):
        build_scenario(high, 0.1, 0, 0)
    log = parse_study(
        tomllib.loads(
            SMALL.replace("baseline = { eta = 5.0 }", "").replace(
                "{ of_baseline = 0.9 }", "1.9\nlog = { episodes = 5 }"
            )
        ),
        "x",
    ).scenarios[1]
    with pytest.raises(InvalidStudy, match="the policy that writes the log is worth"):
        build_scenario(log, 0.1, 0, 0)
    with pytest.raises(InvalidStudy, match="no policy can reach it"):
        build_scenario(replace(study.scenarios[0], floor=5.0), 0.1, 0, 0)


def test_a_trial_is_the_run_of_its_seed():
    """By hand: the same world, baseline, floor and learner, and child (i, 1) of the study's
    seed.
    """
    cell = small().cells[2]
    trial = run_trial(cell, 1)
    world = sf.world("random", S=3, A=2, H=2, seed=1)
    baseline = sf.boltzmann(sf.solve(world).Q, 5.0)
    worth = float(sf.policy_value(world, baseline)[0, world.s1])
    agent = sf.StepMix(world.problem, baseline, 0.9 * worth, delta=0.1, bounds=sf.KL(), replan=0.1)
    run = sf.simulate(world, agent, 600, np.random.SeedSequence(0, spawn_key=(1, 1)))
    assert trial.cell == "random/stepmix"
    assert (trial.violations, trial.off_baseline, trial.first_optimistic) == (
        run.violations,
        run.off_baseline,
        run.first_optimistic,
    )
    assert trial.regret == run.regret
    assert trial.baseline == worth
    assert np.array_equal(trial.curve_mean, run.curve.mean)
    assert np.array_equal(trial.curve_by_h, run.curve.by_h)
    assert trial.curve_sources.sum() == 600
    assert np.array_equal(trial.n_sa, run.counts.n_sa)
    assert trial.promise.certified
    assert not run_trial(small().cells[3], 0).promise.certified  # no floor, no promise


def test_trials_meet_the_same_chances_in_every_cell_and_different_ones_each():
    cells = small().cells
    first = [run_trial(cell, 0) for cell in cells[:2]]
    # Both begin with what the same stream deals them: the second run differs by what it plays, not
    # by its seed.
    assert child(0, 3, 1).generate_state(4).tolist() == child(0, 3, 1).generate_state(4).tolist()
    streams = {
        tuple(child(0, i, purpose).generate_state(4)) for i in range(50) for purpose in (0, 1)
    }
    assert len(streams) == 100
    assert first[0].curve_episodes.sum() == first[1].curve_episodes.sum()
    again = run_trial(replace(cells[0], study="other"), 0)
    assert np.array_equal(again.curve_mean, first[0].curve_mean)
    assert not np.array_equal(run_trial(cells[0], 1).n_sa, first[0].n_sa)


def test_units_are_the_worlds_own():
    offers = replace(small().scenarios[0], id="offers", world={"name": "offers"})
    study = replace(small(), scenarios=(offers,), episodes=50)
    trial = run_trial(study.cells[0], 0)
    world = sf.world("offers")
    assert trial.floor == world.suggested_floor
    assert trial.optimum == pytest.approx(sf.solve(world).value)
    assert trial.floor < trial.baseline < trial.optimum
    assert trial.curve_mean[0] == pytest.approx(trial.baseline)
    assert trial.regret == pytest.approx(50 * (trial.optimum - trial.mean_value))


@pytest.mark.parametrize("method", METHODS)
def test_a_baseline_is_learnt_from_a_log_of_the_trials_own(method):
    text = SMALL.replace(
        "baseline = { eta = 5.0 }",
        f'log = {{ episodes = 4000, behaviour = {{ eta = 5.0 }}, method = "{method}" }}',
    )
    scenario = parse_study(
        tomllib.loads(text.replace("{ of_baseline = 0.9 }", "0.8")), "x"
    ).scenarios[1]
    places = [build_scenario(scenario, 0.1, 0, trial) for trial in (0, 0, 1)]
    assert np.array_equal(places[0].baseline, places[1].baseline)
    assert places[0].log_lower == places[1].log_lower != places[2].log_lower
    assert places[0].delta == 0.05  # half is spent on the log
    assert places[0].log_lower <= sf.policy_value(places[0].world, places[0].baseline)[0, 0]
    assert places[0].certificate is not None
    behaviour = sf.boltzmann(sf.solve(places[0].world).Q, 5.0)
    learnt = learn_from_log(
        places[0].world, behaviour, scenario.log, 0.05, np.random.SeedSequence(0, spawn_key=(0, 0))
    )
    assert np.array_equal(learnt.policy, places[0].baseline)


def test_checkpoints_change_nothing_and_say_what_a_plan_would():
    """The run with checkpoints is the run without, to the bit, in every driver; the trace is
    what a plan then says.
    """
    world = sf.world("trap")
    for replan in (0.0, 0.05):
        agent = sf.StepMix(world.problem, world.baseline, 0.6, replan=replan)
        plain, marked = (
            sf.simulate(world, agent, 300, 5),
            sf.simulate(world, agent, 300, 5, checkpoints=(1, 100, 300)),
        )
        assert np.array_equal(plain.counts.n_sas, marked.counts.n_sas)
        assert np.array_equal(plain.curve.mean, marked.curve.mean)
        assert plain.trace is None
        assert marked.trace.episode[-1] == 300
        last = agent.plan(marked.counts)
        assert (marked.trace.lower[-1], marked.trace.h[-1]) == (last.lower, last.h)
        assert np.array_equal(marked.trace.candidates[-1], last.candidates)
        if replan == 0.0:
            assert list(marked.trace.episode) == [1, 100, 300]
            after = simulate_plainly(world, agent, 300, 5, checkpoints=(1, 100, 300)).trace
            assert np.array_equal(after.candidates, marked.trace.candidates)
    thompson = sf.StepMix(world.problem, world.baseline, 0.6, explorer=sf.Thompson(world.problem))
    with_looks = sf.simulate(world, thompson, 90, 5, checkpoints=(30, 60))
    assert np.array_equal(with_looks.counts.n_sas, sf.simulate(world, thompson, 90, 5).counts.n_sas)
    for bad in ((0,), (301,), (1.5,), 7):
        with pytest.raises(sf.InvalidSetting, match="checkpoint"):
            sf.simulate(world, agent, 300, 5, checkpoints=bad)


def test_curves_say_who_played_when():
    world = sf.world("trap")
    agent = sf.StepMix(world.problem, world.baseline, 0.6)
    for simulate in (sf.simulate, simulate_plainly):
        run = simulate(world, agent, 1000, 1)
        assert run.off_baseline is not None
        assert run.curve.sources.sum(axis=0).tolist() == list(run.sources.values())
        assert run.curve.by_h.sum(axis=0).tolist() == run.by_h.tolist()
        assert (run.curve.sources.sum(axis=1) == run.curve.episodes).all()
        before = run.curve.episode + run.curve.episodes <= run.off_baseline
        assert (run.curve.sources[before, 1:] == 0).all()
    blocks = sf.simulate(world, replace(agent, replan=0.01), 1000, 1)
    assert blocks.curve.sources.sum(axis=0).tolist() == list(blocks.sources.values())
    assert blocks.curve.by_h.sum(axis=0).tolist() == blocks.by_h.tolist()


def test_a_trial_is_read_only():
    trial = run_trial(small().cells[0], 0)
    assert isinstance(trial, Trial)
    with pytest.raises(ValueError, match="read-only"):
        trial.curve_mean[0] = 1.0
