"""The commands about logs: parse, call, print."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from surefoot.cli.console import BAD_DATA, CERTIFICATE_FAILED, say
from surefoot.errors import InvalidSetting

logs = typer.Typer(no_args_is_help=True, help="Logs of past episodes: is one usable, and what is in it?")

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

    found = check_log(log, **_how(column, horizon, reward_range, states, actions, memory))
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
    from surefoot.base.files import require_place
    from surefoot.offline import count_log
    from surefoot.offline.logs.checking import sizes

    require_place(out)
    found = count_log(log, seed=seed, **_how(column, horizon, reward_range, states, actions, memory))
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
    from surefoot.simulation import by_name
    from surefoot.simulation.sample_log import sample_log
    from surefoot.worlds.registry import family

    chosen = family(world)
    built = chosen.build()
    assert built.baseline is not None
    path = sample_log(built, built.baseline, episodes, out, seed)
    known, units = by_name.facts(chosen, built), built.problem.units
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
    from surefoot.base.files import require_place
    from surefoot.offline import LogCounts, check_log
    from surefoot.offline.baseline_file import Baseline, floor_from_user, learn_baseline, logged_words, report
    from surefoot.offline.logs.checking import sizes

    require_place(out)
    if len(log) == 1 and log[0].endswith(".npz"):
        given: dict[str, object] = {"--column": column, "--horizon": horizon, "--reward-range": reward_range}
        given |= {"--states": states, "--actions": actions, "--seed": seed or None}
        said = next((name for name, value in given.items() if value), None)
        if said is not None:
            raise InvalidSetting(f"{said} is for logs: {log[0]} was counted without it. Count the log again.")
        counted = LogCounts.load(log[0])
    else:
        checked = check_log(log, seed=seed, **_how(column, horizon, reward_range, states, actions, memory))
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


def show(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A baseline, as `surefoot baseline` writes it.")],
    as_json: Json = False,
) -> None:
    """What a baseline does: the actions of each state and step by their labels, and what is certified of it."""
    from surefoot.offline.baseline_file import load_baseline, rules

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


def _how(
    column: list[str] | None,
    horizon: int | None,
    reward_range: tuple[float, float] | None,
    states: str | None,
    actions: str | None,
    memory: str,
) -> dict[str, Any]:
    """How a log is to be read: the options that `check`, `count` and `baseline` share, as `count_log` takes them."""
    return {
        "columns": _columns(column),
        "horizon": horizon,
        "reward_range": reward_range,
        "states": _labels(states),
        "actions": _labels(actions),
        "memory": memory,
    }


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
