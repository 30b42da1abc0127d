"""Measure how soon a guard adopts a better candidate, and withdraws a worse one: `python
tools/guard_tables.py [RUNS]`.

The setting: delta 0.05, a baseline worth 0.70, an absolute floor of 0.65 or a relative one of 7.1
%, no stages. Figures are medians; runs that do not get there count as the longest.
"""

import sys
from statistics import median

import surefoot as sf

COIN, BETA = sf.Outcomes.coin, sf.Outcomes.beta
EPISODES = 20_000
TARGETS = {  # kind of returns, floor, logged returns: episodes to full adoption at most
    ("0/1", 0.65, 0): 2600,
    ("0/1", 0.65, 2000): 1150,
    ("sd 0.15", 0.65, 0): 500,
    ("sd 0.15", 0.65, 2000): 230,
    ("0/1", sf.Relative(0.071), 0): 950,
    ("sd 0.15", sf.Relative(0.071), 0): 215,
}


def law(kind: str, mean: float) -> sf.Outcomes:
    """A distribution of returns of this mean."""
    return COIN(mean) if kind == "0/1" else BETA(mean, 0.15)


def adoption(kind: str, floor: float | sf.Relative, logged: int, runs: int) -> list[int]:
    """In each run the first episode that is the candidate's for certain."""
    guard = sf.Guard(floor=floor, low=0.0, high=1.0, stages=())
    found = (
        sf.simulate_guard(guard, law(kind, 0.70), law(kind, 0.78), EPISODES, seed, logged=logged)
        for seed in range(runs)
    )
    return [
        EPISODES if run.adopted["candidate"] is None else run.adopted["candidate"] for run in found
    ]


def withdrawal(value: float, logged: int, runs: int) -> list[int]:
    """In each run how many episodes a candidate had before it was withdrawn."""
    guard = sf.Guard(floor=0.65, low=0.0, high=1.0, stages=())
    found = (
        sf.simulate_guard(guard, COIN(0.70), COIN(value), EPISODES, seed, logged=logged)
        for seed in range(runs)
    )
    return [
        EPISODES if run.withdrawn["candidate"] is None else run.withdrawn["candidate"][1]
        for run in found
    ]


def main() -> None:
    """Print every figure beside its target, and how long a million episodes take."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    print(f"Medians of {runs} runs.")
    for (kind, floor, logged), target in TARGETS.items():
        found = sorted(adoption(kind, floor, logged, runs))
        spread = f"quarters {found[runs // 4]:,} to {found[3 * runs // 4]:,}"
        print(
            f"{kind}, floor {floor}, {logged:,} logged: {median(found):,.0f} (at most {target:,}); "
            f"{spread}"
        )
    for logged in (2000, 0):
        found = withdrawal(0.40, logged, runs)
        print(
            f"withdrawn, worth 0.40, {logged:,} logged: after {median(found):,.0f} of its episodes "
            "(at most 30)"
        )
    guard = sf.Guard(floor=0.65, low=0.0, high=1.0)
    for name, late in (
        ("all returns at once", {}),
        ("late and lost", {"delays": [300, 10], "lost": 0.01}),
    ):
        run = sf.simulate_guard(guard, COIN(0.70, **late), COIN(0.78, **late), 10**6, 0)
        print(f"a million episodes, {name}: {run.seconds:.1f} s, {run.violations} below the floor")


if __name__ == "__main__":
    main()
