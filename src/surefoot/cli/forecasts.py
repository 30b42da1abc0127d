"""The command `forecast`: for a world, for a log or counts of one's own, for an environment.
Parse, call, print.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

import typer

from surefoot.cli.console import echo, echo_json
from surefoot.cli.options import Declarations, Delta, Json, LogOptions, Sizes, grouped, refuse
from surefoot.errors import InvalidSetting

if TYPE_CHECKING:
    from surefoot.base.arrays import Floats
    from surefoot.evidence.counts import Counts
    from surefoot.model.problem import Problem
    from surefoot.worlds.environments import EnvOrId
    from surefoot.worlds.tabular_mdp import TabularMDP

COUNTS = ("log-counts", "counts", "learner", "learning")  # kinds of .npz files that hold counts


class Grounds(NamedTuple):
    """What a forecast is made from, and what it is called."""

    called: str
    problem: "Problem"
    baseline: "Floats"
    world: "TabularMDP | None" = None
    counts: "Counts | None" = None
    floor: float | None = None  # the world's own


@grouped
def forecast(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[WORLD|LOG|COUNTS|ENVIRONMENT]",
            help="A world; a log (Parquet, CSV or JSON); counts (.npz: of `logs count`, of a "
            "learner or of a run); or a Gymnasium environment: its id, or MODULE:CLASS of one "
            "that is not registered (the module's code is run). Default: a random world of "
            "the sizes given by --set.",
        ),
    ] = None,
    *,
    agent: Annotated[
        str, typer.Option(help="The agent: stepmix, epsmix or step-no-mix.")
    ] = "stepmix",
    floor: Annotated[
        float | None,
        typer.Option(help="The floor, in the units of the rewards. Default: the world's own."),
    ] = None,
    kappa: Annotated[
        float | None,
        typer.Option(
            help="Instead of a floor: the distance from the floor up to the baseline, in units of "
            "return."
        ),
    ] = None,
    delta: Delta = 0.05,
    pooled: Annotated[
        bool, typer.Option(help="Pool counts over steps (where all steps are alike).")
    ] = False,
    returns: Annotated[
        bool, typer.Option(help="Use the returns of baseline episodes as evidence, too.")
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(help="A picture: waiting time against the floor and against delta."),
    ] = None,
    size: Sizes = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="A policy file, of `surefoot baseline` or `save_policy`. Default: the world's "
            "own; what the log played; in an environment, actions drawn uniformly."
        ),
    ] = None,
    declared: Declarations,
    options: LogOptions,
    as_json: Json = False,
) -> None:
    """Estimate after how many episodes an agent leaves its baseline, by three methods.

    They are sharp certificates, the paper's bounds, and the paper's own lemma. Of a log the
    frequencies are taken for the world, and the forecast is for an agent that goes on from it. It
    proves nothing.
    """
    from dataclasses import asdict

    from surefoot.run.by_name import forecast_agent
    from surefoot.run.forecast import forecast as forecast_of
    from surefoot.run.forecast import waiting_times
    from surefoot.show.figures import plot_waiting
    from surefoot.worlds.registry import FAMILIES

    if source is None or source in FAMILIES:
        for group in (options, declared):
            group.refuse_for("logs and environments", f"{source or 'random'} is a world")
        grounds = _world(source or "random", size, baseline)
    else:
        file = _is_file(source)
        if size is not None:
            refuse("set", "worlds", f"{source} is {'a file' if file else 'an environment'}")
        grounds = (_counted if file else _environment)(source, options, declared, baseline, pooled)
    level, guess = _level(grounds, floor, kappa)
    built = forecast_agent(grounds.problem, grounds.baseline, agent, level, delta, pooled, returns)
    found = forecast_of(built, world=grounds.world, counts=grounds.counts, kappa=guess)
    if out is not None:
        if guess is not None:
            raise InvalidSetting(
                "A picture needs a model or counts: leave --out out, or give a log."
            )
        plot_waiting(waiting_times(built, world=grounds.world, counts=grounds.counts), out)
    if as_json:
        echo_json({"world": grounds.called, **asdict(found)})
    else:
        echo(f"{grounds.called}: {found}")


def _is_file(source: str) -> bool:
    """Is this a log or a file of counts, or meant to be one?"""
    from surefoot.logs.cells import ENDINGS

    endings = (".npz", *(ending for some in ENDINGS.values() for ending in some))
    return source.lower().endswith(endings) or Path(source).exists()


def _world(name: str, size: list[str] | None, baseline: Path | None) -> Grounds:
    """Return a world by its name, with its usual baseline or another one."""
    from surefoot.run import by_name
    from surefoot.worlds.registry import world as build_world

    built = build_world(name, **by_name.parse_sizes(name, size or []))
    assert built.baseline is not None
    policy = built.baseline if baseline is None else _policy(baseline, built.problem)
    return Grounds(built.name, built.problem, policy, built, floor=built.suggested_floor)


def _counted(
    source: str, options: LogOptions, declared: Declarations, baseline: Path | None, pooled: bool
) -> Grounds:
    """Return what a log, or counts that were saved, suggest."""
    from surefoot.base.files import read_arrays
    from surefoot.evidence.counts import Counts
    from surefoot.logs import LogCounts, count_log
    from surefoot.logs.baseline_file import all_counts, load_baseline
    from surefoot.logs.methods.robust import cloned

    kind = ""
    if source.endswith(".npz"):
        kind, arrays = read_arrays(source, dict.fromkeys(COUNTS, ()))
        why = f"{source} holds counts"
        options.refuse_for("logs", why)
        if kind != "log-counts":
            declared.refuse_for("logs", why)
    if kind in ("", "log-counts"):
        log = LogCounts.load(source) if kind else count_log(source, **options.as_arguments())
        problem = declared.of(log)
        # steps that are not alike are refused, also where they are not pooled
        counts = all_counts(log, problem)
        counts = counts if pooled else log.counts
        policy = cloned(log.counts, problem) if baseline is None else _policy(baseline, problem)
        return Grounds(source, problem, policy, counts=counts)
    if baseline is None:
        raise InvalidSetting(
            f"{source} holds counts, and does not say what they are of. Give --baseline FILE, "
            "written by `surefoot baseline`, which has the problem with it."
        )
    made = load_baseline(baseline)
    mine = {
        name.removeprefix("counts_"): array
        for name, array in arrays.items()
        if name.startswith("counts_")
    }
    counts = Counts.load(source) if kind == "counts" else Counts.from_arrays(source, mine)
    counts.adopt(made.problem)
    return Grounds(source, made.problem, made.policy, counts=counts)


def _environment(
    source: str, options: LogOptions, declared: Declarations, baseline: Path | None, _pooled: bool
) -> Grounds:
    """Return what a Gymnasium environment shows: its model, or only its sizes."""
    from surefoot.errors import InvalidModel
    from surefoot.model.policy import uniform
    from surefoot.worlds.gymnasium import from_gymnasium
    from surefoot.worlds.tabular_mdp import TabularMDP

    for group in (options, declared):
        group.refuse_for(
            "logs",
            f"{source} is an environment",
            but=("horizon", "reward_range", "stationary", "unit"),
        )
    horizon = options.horizon
    if horizon is None:
        raise InvalidSetting(
            f"{source} is no world of ours (`surefoot worlds` lists them) and no file. If it is a "
            "Gymnasium environment, give the steps of an episode: --horizon."
        )
    env: EnvOrId = _own_environment(source) if ":" in source else source
    try:
        made = from_gymnasium(
            env,
            horizon=horizon,
            reward_range=options.reward_range,
            stationary=declared.stationary,
            unit=declared.unit,
        )
    except InvalidModel as refusal:
        hint = "In this command: --reward-range LOWEST HIGHEST, --horizon, --stationary."
        raise InvalidSetting(f"{refusal} {hint}") from None
    world = made if isinstance(made, TabularMDP) else None
    problem = made.problem if isinstance(made, TabularMDP) else made
    policy = (
        uniform(problem.H, problem.S, problem.A) if baseline is None else _policy(baseline, problem)
    )
    return Grounds(source, problem, policy, world)


def _own_environment(source: str) -> "EnvOrId":
    """Return the environment that MODULE:CLASS names; an id of Gymnasium, MODULE:ID, is returned
    as it is.
    """
    import sys
    from importlib import import_module

    module, _, name = source.partition(":")
    expected = (
        "Expected MODULE:CLASS, such as shop:Shop for the class Shop in shop.py of this folder."
    )
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` does: a file in this folder is a module
    try:
        imported = import_module(module)
    except Exception as reason:
        why = f"{type(reason).__name__}: {reason}"
        raise InvalidSetting(
            f"{source} names the module {module}, which cannot be imported ({why}). {expected}"
        ) from None
    finally:
        sys.path.pop(0)
    made = getattr(imported, name, None)
    if made is None:
        return source
    try:
        return cast("EnvOrId", made())
    except Exception as reason:
        why = f"{type(reason).__name__}: {reason}"
        raise InvalidSetting(
            f"{source} cannot be called without arguments ({why}). {expected}"
        ) from None


def _policy(path: Path, problem: "Problem") -> "Floats":
    """Return the policy in a file, for this problem."""
    from surefoot.errors import InvalidFile
    from surefoot.model.policy import EpisodicMixture, check_policy, load_policy

    policy = load_policy(path)
    if isinstance(policy, EpisodicMixture):
        raise InvalidFile(f"{path} holds a coin between two policies, expected one policy.")
    return check_policy(policy, problem, f"policy in {path}")


def _level(
    grounds: Grounds, floor: float | None, kappa: float | None
) -> tuple[float, float | None]:
    """Return the floor, and kappa where nothing but a guess is known of the process."""
    from surefoot.run.forecast import baseline_in

    if floor is not None and kappa is not None:
        raise InvalidSetting(
            "Give either --floor or --kappa: the floor is the baseline's value minus kappa."
        )
    if kappa is not None and kappa <= 0.0:
        raise InvalidSetting(
            f"kappa is {kappa:g}, expected how far the baseline is above the floor, > 0."
        )
    modelled = grounds.world is not None or grounds.counts is not None
    if kappa is not None:
        if not modelled:
            return grounds.problem.lowest, kappa
        below = (
            baseline_in(
                grounds.problem, grounds.baseline, world=grounds.world, counts=grounds.counts
            )
            - kappa
        )
        grounds.problem.level(below, "baseline - kappa")
        return below, None
    if not modelled:
        raise InvalidSetting(
            f"{grounds.called} shows no model: nobody knows what a baseline is worth there. Give "
            "--kappa, a guess of how far it is above the floor."
        )
    level = grounds.floor if floor is None else floor
    if level is None:
        raise InvalidSetting("Give --floor, in the units of the rewards, or --kappa.")
    return level, None
