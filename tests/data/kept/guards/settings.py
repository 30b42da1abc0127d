"""What was run for the kept files of guards, in the words of the public interface; `python settings.py` wrote them."""

import json
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import gymnasium
import numpy as np

import surefoot as sf

HERE = Path(__file__).parent
EPISODES, STOPPED = 260, 150
GUARDS = {
    "absolute": sf.Guard(floor=20.0, low=0.0, high=50.0, unit="EUR"),
    "relative": sf.Guard(floor=sf.Relative(0.2), low=0.0, high=50.0, unit="EUR"),
    "below": sf.Guard(floor=sf.Below(8.0), low=0.0, high=50.0, delta=0.1, stages=(0.05, (0.5, 20), 1.0)),
}


class Stopped(Exception):
    """The environment went away."""


class Shop(gymnasium.Env):
    """One step: a customer pays 0, 20 or 50, by the seed and by what is offered. It goes away at reset `stop`."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, stop=None):
        self.left = stop

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Stopped
        return self.np_random.random(1), {}

    def step(self, action):
        paid = self.np_random.choice([0.0, 20.0, 50.0], p=[[0.2, 0.5, 0.3], [0.1, 0.3, 0.6]][action])
        return np.zeros(1), float(paid), True, False, {}


def candidate(observation):
    """It fails now and then."""
    if observation[0] > 0.97:
        raise RuntimeError("no offer")
    return 1


def go_on(folder, stop=None, resume=False, seed=3):
    """The guarded run, in this folder."""
    logged = np.random.default_rng(1).choice([0.0, 20.0, 50.0], 100, p=[0.2, 0.5, 0.3]).tolist()
    return sf.guard_env(
        Shop(stop),
        GUARDS["relative"],
        baseline=lambda o: 0,
        candidate={"offer-2": candidate},
        fingerprints={"offer-2": "sha256:11aa"},
        episodes=EPISODES,
        seed=seed,
        logged=[*logged, None],
        save=folder / "run.npz",
        resume=resume,
        ledger=folder / "run.ledger",
        progress=False,
    )


def state_of(name):
    """A state with two candidates, one of which is withdrawn, and with open tickets."""
    guard, rng = GUARDS[name], np.random.default_rng(7)
    state = guard.begin(logged=[20.0, 50.0, 0.0, None, 20.0] * 20, fingerprint="sha256:00ff", run="kept")
    state = guard.admit(guard.admit(state, "one", "sha256:01"), "two")
    for k in range(300):
        state = guard.withdraw(state, "two", "too slow") if k == 120 else state
        state, ticket = guard.draw(state, guard.plan(state), rng)
        ret = float(rng.choice([0.0, 20.0, 49.9], p=[0.1, 0.3, 0.6]))
        state = guard.settle(state, ticket, ret) if rng.random() < 0.95 else state
    return state


def of_plan(plan):
    """What a plan says, in numbers."""
    return {"share": plan.share, "lower": plan.lower, "compared": plan.compared, "upper": plan.upper}


def of_run(run):
    """What a run came to, in numbers."""
    known = {"played": run.played, "failed": run.failed, "open": [t.number for t in run.state.unsettled()]}
    return {**known, "mean": run.mean_return, **of_plan(run.plan)}


def write():
    """Write all files, and what is expected of them."""
    expected = {"states": {}}
    for name, guard in GUARDS.items():
        guard.save(state_of(name), HERE / f"{name}.npz")
        expected["states"][name] = of_plan(guard.plan(state_of(name)))
    with suppress(Stopped):
        go_on(HERE, STOPPED)
    with tempfile.TemporaryDirectory() as place:
        for file in ("run.npz", "run.ledger"):
            shutil.copy(HERE / file, place)
        expected["run"] = of_run(go_on(Path(place), resume=True))
        expected["ledger"] = sf.check_ledger(Path(place, "run.ledger")).digest
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(write())
