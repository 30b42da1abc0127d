"""`surefoot worlds` and `surefoot try`."""

import json
from dataclasses import replace

import pytest

import surefoot as sf
from command import surefoot
from surefoot.agents import AgentSettings
from surefoot.run.by_name import build_agent


def test_all_worlds_are_listed():
    result = surefoot("worlds")
    assert result.exit_code == 0
    for name in sf.FAMILIES:
        assert name in result.stdout
    table = {row["name"]: row for row in json.loads(surefoot("worlds", "--json").stdout)}
    assert set(table) == set(sf.FAMILIES)
    assert table["trap"]["optimum"] == pytest.approx(0.7)
    assert all(row["floor"] < row["baseline"] < row["optimum"] for row in table.values())


def test_one_world_is_described():
    result = surefoot("worlds", "river-swim")
    assert "Swimming up a river" in result.stdout
    assert "optimum 3.3973" in result.stdout
    assert "S=6, H=20" in result.stdout
    assert json.loads(surefoot("worlds", "river-swim", "--json").stdout)["sizes"] == {
        "S": 6,
        "H": 20,
    }


@pytest.mark.parametrize("name", sf.AGENTS)
def test_bounds_of_its_own_are_said(name):
    """Where --bounds changes nothing, help and table say so. Control: of all the others neither
    does.
    """
    world = sf.world("trap")
    value = sf.policy_value(world, world.baseline)[0, 0]
    settings = AgentSettings(
        world.baseline, 0.6, value, episodes=9, delta=0.1, bounds=sf.KL(), pooled=False
    )
    made = [
        build_agent(name, world.problem, replace(settings, bounds=one))
        for one in (sf.KL(), sf.Bernstein())
    ]
    own = repr(made[0]) == repr(made[1])
    assert own is sf.AGENTS[name].own_bounds
    help_of_bounds = surefoot("try", "--help").stdout.split("--bounds")[1].split("--scale")[0]
    assert (name in help_of_bounds.split()) is own
    shown = surefoot("try", "trap", "--agent", name, "--episodes", "2").stdout
    assert (
        f"{sf.AGENTS[name].name}: bounds of its own; --bounds does not change them." in shown
    ) is own


def test_try_takes_sizes_a_floor_and_a_scale():
    arguments = (
        "try",
        "random",
        "--set",
        "S=3",
        "--set",
        "A=2",
        "--set",
        "stationary=true",
        "--floor",
        "1.0",
    )
    result = surefoot(
        *arguments, "--pooled", "--scale", "0.001", "--episodes", "300", "--seed", "3", "--json"
    )
    table = json.loads(result.stdout)
    assert table["floor"] == 1.0
    world = sf.world("random", S=3, A=2, stationary=True)
    assert table["optimum"] == sf.solve(world).value
    agent = sf.StepMix(world.problem, world.baseline, 1.0, bounds=sf.KL(scale=0.001), pooled=True)
    assert table["rows"][1]["regret"] == sf.simulate(world, agent, 300, seed=3).regret
    assert "NOT CERTIFIED" in table["rows"][1]["promise"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("worlds", "nowhere"), "There is no world 'nowhere'"),
        (("try", "nowhere"), "There is no world 'nowhere'"),
        (("try", "trap", "--agent", "sarsa"), "There is no agent 'sarsa'. There are: stepmix"),
        (("try", "trap", "--bounds", "magic"), "There are no bounds 'magic'. There are: paper, kl"),
        (
            ("try", "trap", "--set", "S=3"),
            "'S=3' is not a size of trap. What can be chosen: nothing",
        ),
        (("try", "random", "--set", "S"), "S has no value. Expected one, such as S=5."),
        (("try", "random", "--set", "S=x"), "S is 'x', expected int such as 5"),
        (("try", "trap", "--floor", "9"), "no policy can reach it"),
        (("try", "trap", "--delta", "2"), "delta is 2"),
        (("try", "trap", "--pooled"), "not the same at every step: leave out --pooled"),
        (("try", "trap", "--out", "x.doc"), "expected one of .png"),
    ],
)
def test_wrong_usage_is_said_in_words(arguments, message):
    result = surefoot(*arguments)
    assert isinstance(result.exception, sf.SurefootError)
    assert message in str(result.exception)
