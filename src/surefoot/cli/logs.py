"""The commands about logs: parse, call, print."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from surefoot.cli.console import BAD_DATA, CERTIFICATE_FAILED, echo, echo_json, require_new, say, warn
from surefoot.errors import InvalidSetting

logs = typer.Typer(no_args_is_help=True, help="Check, count, write and convert logs of past episodes.")

Log = Annotated[
    list[str],
    typer.Argument(metavar="LOG...", help="Parquet, CSV, TSV or JSON lines: one file, several files, or a glob."),
]
Column = Annotated[
    list[str] | None,
    typer.Option("--column", help="The name of a column in the log, such as state=segment; repeatable."),
]
Horizon = Annotated[
    int | None, typer.Option(min=1, help="The steps of an episode; longer ones are cut. Default: the longest.")
]
Range = Annotated[
    tuple[float, float] | None,
    typer.Option("--reward-range", help="The lowest and the highest POSSIBLE reward. Without it nothing is certified."),
]
States = Annotated[
    str | None,
    typer.Option(
        help="All states that exist: how many (0, 1, 2, ...), labels separated by commas, or as-logged: those in the "
        "log are all. Default: there may be others."
    ),
]
AfterEnd = Annotated[
    float | None, typer.Option(help="What each step after an early end pays. Default: 0, if the range holds it.")
]
Actions = Annotated[str | None, typer.Option(help="All actions that exist: how many, or labels separated by commas.")]
Rewards = Annotated[
    str | None,
    typer.Option(
        help="as-logged: each pair always pays what it paid in the log; as-logged-by-next-state: each transition does. "
        "Default: rewards are unknown."
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        help="The state in which every episode starts, or as-logged: the one first state of the log. Default: the "
        "start is unknown."
    ),
]
Support = Annotated[
    str | None,
    typer.Option(help="as-logged: of the pairs in the log, only the transitions seen are possible. Default: all."),
]
Stationary = Annotated[bool, typer.Option("--stationary", help="Neither dynamics nor rewards depend on the step.")]
Unit = Annotated[str, typer.Option(help="What rewards are counted in, such as EUR, for people.")]
Delimiter = Annotated[
    str | None,
    typer.Option(help="What separates the fields of a CSV: , ; | or tab. Default: a comma; for .tsv a tab."),
]
Memory = Annotated[str, typer.Option(help="The memory that may be used before temporary files are written.")]
Json = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


@logs.command("check")
def logs_check(
    log: Log,
    column: Column = None,
    horizon: Horizon = None,
    reward_range: Range = None,
    states: States = None,
    actions: Actions = None,
    after_end: AfterEnd = None,
    memory: Memory = "256MB",
    delimiter: Delimiter = None,
    as_json: Json = False,
) -> None:
    """Check every episode of a log, and print its size, coverage and errors. Exit code 1: the log is unusable."""
    from surefoot.logs import check_log

    found = check_log(log, **log_options(column, horizon, reward_range, states, actions, after_end, memory, delimiter))
    if as_json:
        echo_json(found.as_json())
    else:
        echo(str(found))
    if not found.usable:
        raise typer.Exit(BAD_DATA)


@logs.command("count")
def logs_count(
    log: Log,
    out: Annotated[Path, typer.Option(help="The file for the counts (.npz).")] = Path("counts.npz"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file for the counts if it exists.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the split into folds.")] = 0,
    column: Column = None,
    horizon: Horizon = None,
    reward_range: Range = None,
    states: States = None,
    actions: Actions = None,
    after_end: AfterEnd = None,
    memory: Memory = "256MB",
    delimiter: Delimiter = None,
    as_json: Json = False,
) -> None:
    """Count how often each next state followed each state and action, and write the counts."""
    from surefoot.cli.tables import print_log
    from surefoot.logs import count_log

    require_new(out, force)
    found = count_log(
        log, seed=seed, **log_options(column, horizon, reward_range, states, actions, after_end, memory, delimiter)
    )
    found.save(out)
    if as_json:
        shape = {"H": found.H, "S": found.S, "A": found.A, "coverage": found.coverage}
        facts = {"rows": found.rows, "episodes": found.episodes, "mean_return": found.mean_return}
        echo_json({**facts, **shape, "notes": found.notes, "counts": str(out)})
    else:
        print_log(found)
        echo(f"Counts: {out}")


@logs.command("example")
def logs_example(
    world: Annotated[str, typer.Argument(help="A world; `surefoot worlds` lists them.")] = "offers",
    out: Annotated[Path, typer.Option(help="The log to write: .parquet or .csv.")] = Path("log.parquet"),
    episodes: Annotated[int, typer.Option(min=1, help="How many episodes to write.")] = 5_000,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the draws.")] = 0,
) -> None:
    """Write an example log: episodes of a world's usual baseline."""
    from surefoot.run import by_name
    from surefoot.run.sample_log import sample_log
    from surefoot.worlds.registry import family

    chosen = family(world)
    built = chosen.build()
    assert built.baseline is not None
    path = sample_log(built, built.baseline, episodes, out, seed)
    known, task = by_name.facts(chosen, built), built.problem
    declared = f"--reward-range {task.units.low:g} {task.units.high:g} --states {task.S} --actions {task.A}"
    declared += f" --start {task.s1}" if task.one_start else ""
    say(
        f"Log: {path}, with {episodes:,} episodes of {chosen.name}, played by its usual baseline. The baseline is "
        f"worth {known.baseline:.6g} per episode; the optimum is {known.optimum:.6g}."
    )
    declared += f" --rewards as-logged{'-by-next-state' if task.pays_by_next else ''}"
    echo(f"Next: surefoot baseline {path} --floor {known.floor:g} {declared}")


@logs.command("from-minari")
def logs_from_minari(
    dataset: Annotated[str, typer.Argument(help="A local Minari dataset, such as door/cloned-v0.")],
    out: Annotated[Path, typer.Option(help="The log to write: .parquet or .csv.")] = Path("log.parquet"),
) -> None:
    """Write a Minari dataset with Discrete spaces as a flat log."""
    from surefoot.logs import from_minari

    echo(f"Log: {from_minari(dataset, out)}")


def baseline(
    log: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="A log, several files, a glob, or counts from `logs count`.")
    ],
    floor: Annotated[float | None, typer.Option(help="The floor, in the log's units of return.")] = None,
    method: Annotated[
        str,
        typer.Option(
            help="robust: the highest certified value; vi-lcb: the paper's method (vi-lcb-first: the first index "
            "wins ties); clone; spibb."
        ),
    ] = "robust",
    delta: Annotated[float, typer.Option(help="The largest probability that the certificate fails.")] = 0.05,
    out: Annotated[Path, typer.Option(help="The file for the policy (.npz).")] = Path("baseline.npz"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file for the policy if it exists.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the split into folds.")] = 0,
    rewards: Rewards = None,
    start: Start = None,
    support: Support = None,
    stationary: Stationary = False,
    unit: Unit = "",
    column: Column = None,
    horizon: Horizon = None,
    reward_range: Range = None,
    states: States = None,
    actions: Actions = None,
    after_end: AfterEnd = None,
    memory: Memory = "256MB",
    delimiter: Delimiter = None,
    as_json: Json = False,
) -> None:
    """Learn a policy from a log, and certify its value. Exit code 3: the floor is not certified.

    What you do not declare is unknown, whatever the log happens to show; the report says what each declaration would
    save. A false declaration makes the certificate false.
    """
    from surefoot.cli.tables import print_learnt, print_log
    from surefoot.logs import LogCounts, check_log, log_returns
    from surefoot.logs.baseline_file import Baseline, learn_baseline, report

    require_new(out, force)
    if len(log) == 1 and log[0].endswith(".npz"):
        given: dict[str, object] = {"--column": column, "--horizon": horizon, "--reward-range": reward_range}
        given |= {"--states": states, "--actions": actions, "--seed": seed or None, "--after-end": after_end}
        given |= {"--delimiter": delimiter}
        only_for("logs", f"{log[0]} was counted before, without it", given)
        counted, returns = LogCounts.load(log[0]), None
    else:
        how = log_options(column, horizon, reward_range, states, actions, after_end, memory, delimiter)
        checked = check_log(log, seed=seed, **how)
        if checked.counted is None:
            warn(str(checked))
            raise typer.Exit(BAD_DATA)
        counted = checked.counted
        same = {name: how[name] for name in ("columns", "horizon", "memory", "delimiter")}
        returns = log_returns(log, after_end=after_end or 0.0, **same)
    first = parse_labels(start) if isinstance(counted.codebook.states[0], int) else start
    problem = counted.problem(rewards, start=first, support=support, stationary=stationary, unit=unit)
    if floor is not None:
        problem.level(floor)  # a floor that no episode can return is refused before anything is learnt
    learnt = learn_baseline(counted, problem, delta, method)
    missing = learnt.missing(floor, counted)
    found, explanation = report(counted, learnt, missing, returns), learnt.told(missing, counted.codebook)
    Baseline.of(learnt, counted.codebook).save(out)
    if as_json:
        echo_json({**found, "notes": counted.notes, "explanation": explanation, "policy": str(out)})
    else:
        print_log(counted)
        print_learnt(explanation, found)
        echo(f"Policy: {out}")
    if found["cleared"] is False:
        raise typer.Exit(CERTIFICATE_FAILED)


def show(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A baseline, written by `surefoot baseline`.")],
    as_json: Json = False,
) -> None:
    """Print a baseline: what is certified about it, and the actions of each step and state by their labels."""
    from surefoot.cli.tables import print_baseline
    from surefoot.logs.baseline_file import load_baseline, rules

    found = load_baseline(path)
    table = rules(found)
    if as_json:
        proved = found.certificate
        about = {"method": found.method, "episodes": found.episodes}
        about |= {} if proved is None else {"lower": proved.value, "delta": proved.delta}
        echo_json({**about, "rules": table})
    else:
        print_baseline(found, table)


def log_options(
    column: list[str] | None,
    horizon: int | None,
    reward_range: tuple[float, float] | None,
    states: str | None,
    actions: str | None,
    after_end: float | None,
    memory: str,
    delimiter: str | None,
) -> dict[str, Any]:
    """Return the options that `check`, `count` and `baseline` share, as `count_log` takes them."""
    return {
        "columns": _columns(column),
        "horizon": horizon,
        "reward_range": reward_range,
        "states": parse_labels(states),
        "actions": parse_labels(actions),
        "after_end": after_end,
        "memory": memory,
        "delimiter": delimiter,
    }


def only_for(what: str, source: str, given: Mapping[str, object]) -> None:
    """Refuse an option that says nothing about this source."""
    option = next((name for name, value in given.items() if value is not None), None)
    if option is not None:
        raise InvalidSetting(f"{option} is for {what}: {source}. Leave it out.")


def parse_labels(given: str | None) -> list[str] | list[int] | int | str | None:
    """Read `5`, `new,loyal,lost`, `10,20,30` or `as-logged`."""
    if given is None:
        return None
    if given.strip().isdigit():
        return int(given)
    if given.strip() in ("as-logged", "as logged"):
        return "as logged"
    labels = [label.strip() for label in given.split(",")]
    return [int(label) for label in labels] if all(label.lstrip("-").isdigit() for label in labels) else labels


def _columns(given: list[str] | None) -> dict[str, str]:
    """Read `--column state=segment`, which may be repeated."""
    pairs = [text.partition("=") for text in given or []]
    bad = [name for name, equals, value in pairs if not (name and equals and value)]
    if bad:
        raise InvalidSetting(f"--column is {bad[0]!r}, expected MEANING=NAME, such as state=segment.")
    return {name: value for name, _, value in pairs}
