"""Write docs/scaling.md and its figure: plans, episodes and memory against the number of states.

    python tools/scaling_page.py

It measures what `make bench` does (benchmarks/scaling.py), on one core: about ten minutes. Later sections
of the page stay.
"""

import importlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, FIGURE = ROOT / "docs" / "scaling.md", ROOT / "docs" / "figures" / "scaling.svg"
AGENTS = ("EpsMix", "StepMix")


def main() -> None:
    """Measure, draw, write."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    sys.path.insert(0, str(ROOT / "benchmarks"))
    scaling = importlib.import_module("scaling")
    found = [scaling.apart(S) for S in scaling.PAGE_SIZES]
    draw(found)
    slopes = {name: scaling.exponent(found, name) for name in ("sweep", *AGENTS)}
    others = PAGE.read_text().partition("\n## ")  # sections that are written by hand
    PAGE.write_text(page(found, slopes) + "".join(others[1:]))


def draw(found: list[dict]) -> None:
    """Seconds against S, with both axes logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "surefoot"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for name, marker, style in (("sweep", "s", ":"), ("EpsMix", "o", "-"), ("StepMix", "^", "--")):
        label = "one sparse sweep (scipy)" if name == "sweep" else f"a plan of {name}"
        axes.plot([one["S"] for one in found], [one[name] for one in found], marker=marker, ls=style, label=label)
    axes.set(xscale="log", yscale="log", xlabel="number of states", ylabel="seconds, one core")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(FIGURE, metadata={"Date": None})


def page(found: list[dict], slopes: dict[str, float]) -> str:
    """The text around the numbers."""
    lines = [
        "# Many states",
        "",
        "Give transitions as sparse matrices, (S*A, S) with row s*A + a",
        "([your-own-problem.md](your-own-problem.md#many-states)), or an environment of Gymnasium; nothing else",
        "changes. If an episode of your process takes a minute or a day, give the agent `replan=sf.Blocks(0.1)`:",
        "[why](#how-much-of-the-time-is-planning). What it takes:",
        "",
        "Worlds with three successors after each of five actions, H = 20, pooled counts, every pair visited 30",
        "times, a baseline that plays every action, a floor that nothing is proved to reach, `sf.KL()`. A *sweep* is H",
        "backups with scipy's sparse matrix of the true world.",
        "One core (`python tools/scaling_page.py`; `make bench` measures up to 10,000 states).",
        "",
        "![Seconds of a plan against the number of states](figures/scaling.svg)",
        "",
        "| states | a sweep | EpsMix, a plan | in sweeps | StepMix, a plan | in sweeps | an episode of EpsMix, plans "
        "included | memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        cells = [f"{one['S']:,}", seconds(one["sweep"])]
        for name in AGENTS:
            cells += [seconds(one[name]), f"{one[name] / one['sweep']:.0f}"]
        cells += [seconds(one["episode"]) if "episode" in one else "", f"{one['memory']:,.0f} MB"]
        lines.append("| " + " | ".join(cells) + " |")
    grows = ", ".join(f"{name} S^{slope:.2f}" for name, slope in slopes.items())
    in_sweeps = " and ".join(f"{name} S^{slopes[name] - slopes['sweep']:.2f}" for name in AGENTS)
    lines += [
        "",
        f"From 500 states on, time grows like: {grows}; in sweeps, {in_sweeps}.",
        "",
        "Episodes are the first 300 of a simulated run, in which plans are frequent. From 5,000 states on a plan uses",
        "all cores, with the same bits; here it had one.",
        "",
    ]
    return "\n".join(lines)


def seconds(x: float) -> str:
    """Seconds or milliseconds."""
    return f"{1e3 * x:.3g} ms" if x < 1 else f"{x:.3g} s"


if __name__ == "__main__":
    main()
