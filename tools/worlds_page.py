"""Write docs/worlds.md from the registry: `make docs`. A test compares the page with what this
would write.
"""

from pathlib import Path

import surefoot as sf
from surefoot.run.by_name import all_facts
from surefoot.worlds.gymnasium import env_id
from surefoot.worlds.registry import family

FIRST = 1000
HEAD = """# Worlds

On dense random worlds a careless agent looks safe: rewards are known and mistakes heal in one step.
These worlds are where a wrong guess hurts. Each is a function of its sizes and seed, with a usual
baseline and a floor below it.

```python
import surefoot as sf

world = sf.world("river-swim", S=6, H=20)
assert abs(sf.solve(world).value - 3.3972639592) < 1e-8
agent = sf.StepMix(world.problem, world.baseline, world.suggested_floor)
run = sf.simulate(world, agent, episodes=100, seed=0)
assert run.violations == 0
```

`surefoot worlds` lists them, `surefoot worlds NAME` describes one, `surefoot try NAME` runs an
agent there. Behind the Gymnasium interface each is
`gymnasium.make("surefoot.worlds.gymnasium:RiverSwim-v0")`.

Values are expected returns at the default sizes, in the world's own units. The last columns are the
share of the first 1,000 episodes in which the always-optimistic agent (BPI-UCBVI, seed 0, delta
0.05) plays a policy that is worth less than the floor: with the paper's bounds and with KL
certificates. With the paper's bounds nothing is learnt in that time: all upper bounds are still H,
ties go to the first action, and so the share is all or nothing.

| world | id | S | A | H | optimum | baseline | floor | below, paper | below, KL |
|---|---|---|---|---|---|---|---|---|---|
"""


def optimist(name: str, bounds: sf.Bernstein | sf.KL) -> str:
    """The share of the first episodes in which the always-optimistic agent is below the floor."""
    world = sf.world(name)
    run = sf.simulate(
        world, sf.BPIUCBVI(world.problem, bounds=bounds), FIRST, seed=0, floor=world.suggested_floor
    )
    return f"{100 * (run.violations or 0) / FIRST:.1f} %"


def page() -> str:
    """The page as text."""
    text = HEAD
    for row in all_facts():
        values = f"{row.optimum:.6f} | {row.baseline:.6f} | {row.floor:.6f}"
        sizes = f"{row.S} | {row.A} | {row.H}"
        below = " | ".join(optimist(row.name, bounds) for bounds in (sf.Bernstein(), sf.KL()))
        text += (
            f"| [{row.name}](#{row.name}) | `{env_id(row.name)}` | {sizes} | {values} | {below} |\n"
        )
    for name in sf.FAMILIES:
        chosen = family(name)
        sizes = (
            ", ".join(f"`{size}={default}`" for size, default in chosen.sizes.items()) or "nothing"
        )
        text += f"\n## {name}\n\n```text\n{chosen.story}\n```\n\nCan be chosen: {sizes}.\n"
    return text


if __name__ == "__main__":
    (Path(__file__).parents[1] / "docs" / "worlds.md").write_text(page())
