"""The command: parse, call, print. Exit codes: 0 fine, 1 the data has a problem, 2 usage, 3 a certificate failed."""

import json
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from surefoot.__about__ import __version__
from surefoot.errors import InvalidSetting, SurefootError

FINE, BAD_DATA, USAGE, CERTIFICATE_FAILED, INTERRUPTED = 0, 1, 2, 3, 130

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


logs = typer.Typer(no_args_is_help=True, help="Logs of past episodes: is one usable, and what is in it?")
app.add_typer(logs, name="logs")

Log = Annotated[list[str], typer.Argument(metavar="LOG...", help="Parquet, CSV or JSON: a file, several, or a glob.")]
Column = Annotated[
    list[str] | None, typer.Option("--column", help="What the log calls a column, such as state=segment; repeatable.")
]
Horizon = Annotated[
    int | None, typer.Option(min=1, help="Steps of an episode; those of the longest if left out. Longer ones are cut.")
]
Range = Annotated[
    tuple[float, float] | None,
    typer.Option("--reward-range", help="The lowest and the highest reward that is POSSIBLE; 0 1 if left out."),
]
States = Annotated[
    str | None, typer.Option(help="All states there are: how many (0, 1, 2, ...), or labels with commas between.")
]
Actions = Annotated[str | None, typer.Option(help="All actions there are, likewise.")]
Memory = Annotated[str, typer.Option(help="What may be used before temporary files are.")]
Json = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"surefoot {__version__}")
        raise typer.Exit(FINE)


def say(text: str) -> None:
    """A paragraph, broken between words where the terminal ends."""
    from rich.console import Console

    Console().print(text, highlight=False, markup=False)


@app.callback()
def surefoot(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Learn online in a running process without ever falling below a floor."""


@app.command()
def demo(
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws; the world stays the same.")] = 0,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes with sharp certificates.")] = 20_000,
    paper_episodes: Annotated[int, typer.Option(min=1, help="Episodes with the paper's bounds.")] = 100_000_000,
    scale: Annotated[float, typer.Option(help="Of the paper's bonus. Other than 1: NOT CERTIFIED.")] = 1.0,
    out: Annotated[Path, typer.Option(help="Where the figure goes: .png, .svg or .pdf.")] = Path("surefoot-demo.png"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False,
) -> None:
    """A first look: StepMix, EpsMix and BPI-UCBVI with sharp certificates and with the paper's bounds, side by side."""
    from surefoot import demo as first_look
    from surefoot.figures import plot_sides, require_target
    from surefoot.tables import print_runs, rows

    require_target(out)
    sides = list(first_look.demo(seed, episodes, paper_episodes, scale))
    if not sides:
        typer.echo("Interrupted before the first episode.", err=True)
        raise typer.Exit(INTERRUPTED)
    first = sides[0].runs[0]
    facts = {"floor": first.floor, "baseline": first.baseline, "optimum": first.optimum}
    if as_json:
        about = {"setting": first_look.SETTING, "delta": first_look.DELTA, "seed": seed, "figure": str(out)}
        table = [{"bounds": side.title, **row} for side in sides for row in rows(side.runs)]
        typer.echo(json.dumps({**about, **facts, "rows": table}, indent=2))
    else:
        say(f"{first_look.SETTING}. {first_look.STORY}")
        typer.echo(", ".join(f"{name} {value:.4f}" for name, value in facts.items()) + "; returns lie in 0..8.")
        for side in sides:
            typer.echo(f"\n{side.title}, {side.runs[0].episodes:,} episodes")
            print_runs(side.runs)
    plot_sides(sides, out, title=first_look.SETTING)
    if not as_json:
        typer.echo(f"Figure: {out}")
    if sides[-1].runs[-1].interrupted:
        typer.echo("Interrupted: what had not begun was left out.", err=True)
        raise typer.Exit(INTERRUPTED)


@app.command()
def worlds(
    name: Annotated[str | None, typer.Argument(help="A world to describe.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """The worlds there are, with their optimum, usual baseline and floor; or the story of one."""
    from dataclasses import asdict

    from surefoot import trying
    from surefoot.envs.registry import family
    from surefoot.tables import print_worlds

    if name is None:
        table = trying.all_facts()
        if as_json:
            typer.echo(json.dumps([asdict(row) for row in table], indent=2))
        else:
            print_worlds(table)
        return
    chosen = family(name)
    row = trying.facts(chosen, chosen.build())
    if as_json:
        typer.echo(json.dumps({**asdict(row), "story": chosen.story, "sizes": chosen.sizes}, indent=2))
        return
    typer.echo(f"{chosen.name}\n\n{chosen.story}\n")
    typer.echo(f"S = {row.S}, A = {row.A}, H = {row.H}; returns lie in {row.lowest:g}..{row.highest:g}.")
    typer.echo(f"floor {row.floor:.4f}, baseline {row.baseline:.4f}, optimum {row.optimum:.4f}")
    sizes = ", ".join(f"{size}={default}" for size, default in chosen.sizes.items())
    typer.echo(f"Can be chosen: {sizes or 'nothing'}")


@app.command("try")
def try_(
    name: Annotated[str, typer.Argument(help="A world; `surefoot worlds` lists them.")],
    agent: Annotated[list[str] | None, typer.Option(help="A learner; may be given several times.")] = None,
    floor: Annotated[float | None, typer.Option(help="The floor, in the world's units; its own if left out.")] = None,
    delta: Annotated[float, typer.Option(help="How likely the promise may fail.")] = 0.05,
    bounds: Annotated[
        str,
        typer.Option(
            help="kl: sharp certificates (DOPE and OptPess-LP: the Maurer-Pontil box); paper: constants as printed."
        ),
    ] = "kl",
    scale: Annotated[float, typer.Option(help="Scale of the bonus or radius. Anything but 1 is NOT CERTIFIED.")] = 1.0,
    pooled: Annotated[bool, typer.Option(help="Pool counts over steps (stationary worlds).")] = False,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes each learner plays.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    size: Annotated[
        list[str] | None, typer.Option("--set", help="A size of the world, such as S=8; repeatable.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Also draw a figure: .png, .svg or .pdf.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Run learners in one of the worlds, beside the always-optimistic one, and print the table of `demo`."""
    from surefoot import trying
    from surefoot.envs.registry import world as build_world
    from surefoot.figures import plot_returns, require_target
    from surefoot.tables import print_runs, rows

    if out is not None:
        require_target(out)
    world = build_world(name, **trying.parse_sizes(name, size or []))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        family = trying.build_bounds(bounds, scale)
        runs = trying.try_agents(world, agent or ["stepmix"], floor, delta, family, pooled, episodes, seed)
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        typer.echo(f"surefoot: {text}", err=True)
    values = trying.values_of(world, runs)
    if as_json:
        about = {"world": world.name, "delta": delta, "seed": seed}
        typer.echo(json.dumps({**about, **values, "rows": rows(runs)}, indent=2))
    else:
        lowest, highest = world.in_user_units(0.0), world.in_user_units(float(world.H))
        sizes = f"S = {world.S}, A = {world.A}, H = {world.H}"
        typer.echo(f"{world.name}: {sizes}; returns lie in {lowest:g}..{highest:g}.")
        typer.echo(", ".join(f"{name} {value:.4f}" for name, value in values.items() if value is not None) + "\n")
        print_runs(runs)
    if out is not None:
        plot_returns(runs, out, title=world.name)
    if runs[-1].interrupted:
        raise typer.Exit(INTERRUPTED)


@app.command()
def forecast(
    name: Annotated[
        str | None, typer.Argument(help="A world; left out: a random world of the sizes given by --set.")
    ] = None,
    agent: Annotated[str, typer.Option(help="The learner.")] = "stepmix",
    floor: Annotated[float | None, typer.Option(help="The floor, in the world's units; its own if left out.")] = None,
    kappa: Annotated[
        float | None, typer.Option(help="Instead of a floor: how far the baseline is above it, in units of return.")
    ] = None,
    delta: Annotated[float, typer.Option(help="How likely the promise may fail.")] = 0.05,
    pooled: Annotated[bool, typer.Option(help="Pool counts over steps (stationary worlds).")] = False,
    returns: Annotated[bool, typer.Option(help="Count returns of baseline episodes as evidence.")] = False,
    size: Annotated[
        list[str] | None, typer.Option("--set", help="A size of the world, such as S=8; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """About how many episodes until a learner leaves its baseline: with sharp certificates, with the paper's bounds,
    and by the paper's own lemma."""
    from dataclasses import asdict

    from surefoot import trying
    from surefoot.envs.registry import world as build_world

    chosen = name or "random"
    world = build_world(chosen, **trying.parse_sizes(chosen, size or []))
    found = trying.forecast_in(world, agent, floor, kappa, delta, pooled, returns)
    typer.echo(json.dumps({"world": world.name, **asdict(found)}, indent=2) if as_json else f"{world.name}: {found}")


@logs.command("check")
def logs_check(
    log: Log,
    column: Column = None,
    horizon: Horizon = None,
    reward_range: Range = None,
    states: States = None,
    actions: Actions = None,
    memory: Memory = "256MB",
    as_json: Json = False,
) -> None:
    """Look at every episode: rows, sizes, coverage, gaps, broken chains, duplicates, ends. Exit code 1: unusable."""
    from surefoot.offline import check_log

    found = check_log(
        log,
        columns=_columns(column),
        horizon=horizon,
        reward_range=reward_range,
        states=_labels(states),
        actions=_labels(actions),
        memory=memory,
    )
    typer.echo(json.dumps(found.as_json(), indent=2) if as_json else str(found))
    if not found.usable:
        raise typer.Exit(BAD_DATA)


@logs.command("count")
def logs_count(
    log: Log,
    out: Annotated[Path, typer.Option(help="Where the counts go (.npz).")] = Path("counts.npz"),
    seed: Annotated[int, typer.Option(min=0, help="Of the split into folds.")] = 0,
    column: Column = None,
    horizon: Horizon = None,
    reward_range: Range = None,
    states: States = None,
    actions: Actions = None,
    memory: Memory = "256MB",
    as_json: Json = False,
) -> None:
    """Count how often each next state followed each state and action, and write the counts."""
    from surefoot.files import require_place
    from surefoot.offline import count_log
    from surefoot.offline.checking import sizes

    require_place(out)
    found = count_log(
        log,
        seed=seed,
        columns=_columns(column),
        horizon=horizon,
        reward_range=reward_range,
        states=_labels(states),
        actions=_labels(actions),
        memory=memory,
    )
    found.save(out)
    if as_json:
        shape = {"H": found.H, "S": found.S, "A": found.A, "coverage": found.coverage}
        facts = {"rows": found.rows, "episodes": found.episodes, "mean_return": found.mean_return}
        typer.echo(json.dumps({**facts, **shape, "notes": found.notes, "counts": str(out)}, indent=2))
        return
    typer.echo(f"{found.rows:,} rows, {found.episodes:,} episodes: {sizes(found)}")
    for note in found.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"Counts: {out}")


@logs.command("example")
def logs_example(
    world: Annotated[str, typer.Argument(help="A world; `surefoot worlds` lists them.")] = "offers",
    out: Annotated[Path, typer.Option(help="The log to write: .parquet or .csv.")] = Path("log.parquet"),
    episodes: Annotated[int, typer.Option(min=1, help="Episodes of the world's usual baseline.")] = 5_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
) -> None:
    """Write a log to try things out with: episodes of a world's usual baseline."""
    from surefoot import trying
    from surefoot.envs.registry import family
    from surefoot.sampling import sample_log

    chosen = family(world)
    built = chosen.build()
    assert built.baseline is not None
    path = sample_log(built, built.baseline, episodes, out, seed)
    known, units = trying.facts(chosen, built), built.problem.units
    declared = "" if (units.low, units.high) == (0.0, 1.0) else f" --reward-range {units.low:g} {units.high:g}"
    say(
        f"Log: {path}, {episodes:,} episodes of {chosen.name}. They were played by its usual baseline, which is worth "
        f"{known.baseline:.6g}; the optimum is {known.optimum:.6g}."
    )
    typer.echo(f"Next: surefoot baseline {path} --floor {known.floor:g}{declared}")


@logs.command("from-minari")
def logs_from_minari(
    dataset: Annotated[str, typer.Argument(help="A Minari dataset on this machine, such as door/cloned-v0.")],
    out: Annotated[Path, typer.Option(help="The log to write: .parquet or .csv.")] = Path("log.parquet"),
) -> None:
    """Write a Minari dataset with Discrete spaces as a flat log."""
    from surefoot.offline import from_minari

    typer.echo(f"Log: {from_minari(dataset, out)}")


@logs.command("to-minari")
def logs_to_minari(
    log: Log,
    dataset: Annotated[str, typer.Option(help="The name of the new dataset, such as mine/offers-v0.")],
    column: Column = None,
) -> None:
    """Write a log with integer states and actions as a local Minari dataset (hdf5)."""
    from surefoot.offline import to_minari

    to_minari(log, dataset, columns=_columns(column))
    typer.echo(f"Minari dataset: {dataset}")


@app.command()
def baseline(
    log: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="A log, several files, a glob, or counts from `logs count`.")
    ],
    floor: Annotated[float | None, typer.Option(help="The floor, in the log's units of return.")] = None,
    method: Annotated[
        str, typer.Option(help="robust: certified to be worth most; vi-lcb: the paper's; clone; spibb.")
    ] = "robust",
    delta: Annotated[float, typer.Option(help="How likely the certificate may fail.")] = 0.05,
    out: Annotated[Path, typer.Option(help="Where the policy goes (.npz).")] = Path("baseline.npz"),
    seed: Annotated[int, typer.Option(min=0, help="Of the split into folds.")] = 0,
    stationary: Annotated[bool, typer.Option(help="Neither dynamics nor rewards depend on the step.")] = False,
    unknown_rewards: Annotated[
        bool, typer.Option(help="Certify rewards as unknown even where they never vary.")
    ] = False,
    column: Column = None,
    horizon: Horizon = None,
    reward_range: Range = None,
    states: States = None,
    actions: Actions = None,
    memory: Memory = "256MB",
    as_json: Json = False,
) -> None:
    """From a log to a policy and what it is certified to be worth. Exit code 3: the floor is not certified."""
    from surefoot.baselines import Baseline, floor_from_user, learn_baseline, logged_words, report
    from surefoot.files import require_place
    from surefoot.offline import LogCounts, check_log
    from surefoot.offline.checking import sizes

    require_place(out)
    columns = _columns(column)
    if len(log) == 1 and log[0].endswith(".npz"):
        given: dict[str, object] = {"--column": column, "--horizon": horizon, "--reward-range": reward_range}
        given |= {"--states": states, "--actions": actions, "--seed": seed or None}
        said = next((name for name, value in given.items() if value), None)
        if said is not None:
            raise InvalidSetting(f"{said} is for logs: {log[0]} was counted without it. Count the log again.")
        counted = LogCounts.load(log[0])
    else:
        checked = check_log(
            log,
            columns=columns,
            horizon=horizon,
            reward_range=reward_range,
            states=_labels(states),
            actions=_labels(actions),
            memory=memory,
            seed=seed,
        )
        if checked.counted is None:
            typer.echo(str(checked), err=True)
            raise typer.Exit(BAD_DATA)
        counted = checked.counted
    problem = counted.problem(unknown=unknown_rewards, stationary=stationary)
    level = None if floor is None else floor_from_user(problem, floor)
    learnt = learn_baseline(counted, problem, delta, method)
    found = report(counted, learnt, level)
    Baseline.of(learnt, counted.codebook).save(out)
    if as_json:
        words = {"notes": counted.notes, "explanation": learnt.explain(level, counted.codebook), "policy": str(out)}
        typer.echo(json.dumps({**found, **words}, indent=2))
    else:
        typer.echo(f"{counted.rows:,} rows, {counted.episodes:,} episodes: {sizes(counted)}")
        for note in counted.notes:
            typer.echo(f"note: {note}")
        say(learnt.explain(level, counted.codebook))
        say(logged_words(found))
        typer.echo("Taken on trust, checked by nobody:")
        for line in found["premises"]:
            say(f"  {line}")
        typer.echo(f"Policy: {out}")
    if found["cleared"] is False:
        raise typer.Exit(CERTIFICATE_FAILED)


@app.command()
def show(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A baseline, as `surefoot baseline` writes it.")],
    as_json: Json = False,
) -> None:
    """What a baseline does: the actions of each state and step by their labels, and what is certified of it."""
    from surefoot.baselines import load_baseline, rules

    found = load_baseline(path)
    table = rules(found)
    if as_json:
        proved = found.certificate
        about = {"method": found.method, "episodes": found.episodes}
        about |= {} if proved is None else {"lower": found.problem.in_user_units(proved.value), "delta": proved.delta}
        typer.echo(json.dumps({**about, "rules": table}, indent=2))
        return
    say(found.words)
    for rule in table:
        actions = ", ".join(f"{label} {share:.1%}" for label, share in rule["actions"].items())
        typer.echo(f"step {rule['step']}, state {rule['state']}: {actions}")


def _labels(given: str | None) -> list[str] | list[int] | int | None:
    """`5`, or `new,loyal,lost`, or `10,20,30`."""
    if given is None:
        return None
    if given.strip().isdigit():
        return int(given)
    labels = [label.strip() for label in given.split(",")]
    return [int(label) for label in labels] if all(label.lstrip("-").isdigit() for label in labels) else labels


def _columns(given: list[str] | None) -> dict[str, str]:
    """`--column state=segment`, several times."""
    pairs = [text.partition("=") for text in given or []]
    bad = [name for name, equals, value in pairs if not (name and equals and value)]
    if bad:
        raise InvalidSetting(f"--column {bad[0]}: expected MEANING=NAME, such as state=segment.")
    return {name: value for name, _, value in pairs}


def main() -> None:
    """Run the command; what surefoot refuses is one sentence on standard error, not a traceback."""
    try:
        app()
    except SurefootError as refusal:
        typer.echo(f"surefoot: {type(refusal).__name__}: {refusal}", err=True)
        sys.exit(USAGE if isinstance(refusal, InvalidSetting) else BAD_DATA)
