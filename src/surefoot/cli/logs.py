"""The commands about logs: parse, call, print."""

from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli.console import (
    BAD_DATA,
    CERTIFICATE_FAILED,
    echo,
    echo_json,
    require_new,
    say,
    warn,
)
from surefoot.cli.options import Declarations, Json, LogOptions, grouped, refuse

logs = typer.Typer(
    no_args_is_help=True, help="Check, count, write and convert logs of past episodes."
)

Log = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG...",
        help="Parquet, CSV, TSV or JSON lines: one file, several files, or a glob.",
    ),
]


@logs.command("check")
@grouped
def logs_check(
    log: Log,
    options: LogOptions,
    as_json: Json = False,
) -> None:
    """Check every episode of a log, and print its size, coverage and errors. Exit code 1: the
    log is unusable.
    """
    from surefoot.logs import check_log

    found = check_log(log, **options.as_arguments())
    if as_json:
        echo_json(found.as_json())
    else:
        echo(str(found))
    if not found.usable:
        raise typer.Exit(BAD_DATA)


@logs.command("count")
@grouped
def logs_count(
    log: Log,
    *,
    out: Annotated[Path, typer.Option(help="The file for the counts (.npz).")] = Path("counts.npz"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file for the counts if it exists.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the split into folds.")] = 0,
    options: LogOptions,
    as_json: Json = False,
) -> None:
    """Count how often each next state followed each state and action, and write the counts."""
    from surefoot.cli.tables import print_log
    from surefoot.logs import count_log

    require_new(out, force)
    found = count_log(log, seed=seed, **options.as_arguments())
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
    out: Annotated[Path, typer.Option(help="The log to write: .parquet or .csv.")] = Path(
        "log.parquet"
    ),
    episodes: Annotated[int, typer.Option(min=1, help="How many episodes to write.")] = 5_000,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the draws.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace the log if it exists.")] = False,
) -> None:
    """Write an example log: episodes of a world's usual baseline."""
    from surefoot.run import by_name
    from surefoot.run.sample_log import sample_log
    from surefoot.worlds.registry import family

    require_new(out, force)
    chosen = family(world)
    built = chosen.build()
    assert built.baseline is not None
    path = sample_log(built, built.baseline, episodes, out, seed)
    known, task = by_name.facts(chosen, built), built.problem
    declared = (
        f"--reward-range {task.units.low:g} {task.units.high:g} --states {task.S} "
        f"--actions "
        f"{task.A}"
    )
    declared += f" --start {task.s1}" if task.one_start else ""
    say(
        f"Log: {path}, with {episodes:,} episodes of {chosen.name}, played by its usual baseline. "
        f"The baseline is worth {known.baseline:.6g} per episode; the optimum is "
        f"{known.optimum:.6g}."
    )
    declared += f" --rewards as-logged{'-by-next-state' if task.pays_by_next else ''}"
    echo(f"Next: surefoot baseline {path} --floor {known.floor:g} {declared}")


@logs.command("from-minari")
def logs_from_minari(
    dataset: Annotated[str, typer.Argument(help="A local Minari dataset, such as door/cloned-v0.")],
    out: Annotated[Path, typer.Option(help="The log to write: .parquet or .csv.")] = Path(
        "log.parquet"
    ),
) -> None:
    """Write a Minari dataset with Discrete spaces as a flat log."""
    from surefoot.logs import from_minari

    echo(f"Log: {from_minari(dataset, out)}")


@grouped
def baseline(
    log: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG...", help="A log, several files, a glob, or counts from `logs count`."
        ),
    ],
    *,
    floor: Annotated[
        float | None, typer.Option(help="The floor, in the log's units of return.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="robust: the highest certified value; vi-lcb: the paper's method (vi-lcb-first: "
            "the first index wins ties); clone; spibb."
        ),
    ] = "robust",
    delta: Annotated[
        float, typer.Option(help="The largest probability that the certificate fails.")
    ] = 0.05,
    out: Annotated[Path, typer.Option(help="The file for the policy (.npz).")] = Path(
        "baseline.npz"
    ),
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file for the policy if it exists.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the split into folds.")] = 0,
    declared: Declarations,
    options: LogOptions,
    as_json: Json = False,
) -> None:
    """Learn a policy from a log, and certify its value. Exit code 3: the floor is not certified.

    What you do not declare is unknown, whatever the log happens to show; the report says what each
    declaration would save. A false declaration makes the certificate false.
    """
    from surefoot.cli.tables import print_learnt, print_log
    from surefoot.logs import LogCounts, check_log, log_returns
    from surefoot.logs.baseline_file import Baseline, learn_baseline, report

    require_new(out, force)
    if len(log) == 1 and log[0].endswith(".npz"):
        why = f"{log[0]} was counted before, without it"
        options.refuse_for("logs", why)
        if seed:
            refuse("seed", "logs", why)
        counted, returns = LogCounts.load(log[0]), None
    else:
        how = options.as_arguments()
        checked = check_log(log, seed=seed, **how)
        if checked.counted is None:
            warn(str(checked))
            raise typer.Exit(BAD_DATA)
        counted = checked.counted
        same = {name: how[name] for name in ("columns", "horizon", "memory", "delimiter")}
        returns = log_returns(log, after_end=options.after_end or 0.0, **same)
    problem = declared.of(counted)
    if floor is not None:
        # a floor that no episode can return is refused before anything is learnt
        problem.level(floor)
    learnt = learn_baseline(counted, problem, delta, method)
    missing = learnt.missing(floor, counted)
    found, explanation = (
        report(counted, learnt, missing, returns),
        learnt.told(missing, counted.codebook),
    )
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
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A baseline, written by `surefoot baseline`.")
    ],
    as_json: Json = False,
) -> None:
    """Print a baseline: what is certified about it, and the actions of each step and state by
    their labels.
    """
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
