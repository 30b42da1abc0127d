"""The families of worlds by name."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from surefoot.base.validation import require_size
from surefoot.errors import InvalidModel, InvalidSetting
from surefoot.worlds.families import chains, constrained_worlds, large, stories, synthetic, traps
from surefoot.worlds.tabular_mdp import TabularMDP

Size = int | float | bool


@dataclass(frozen=True)
class Family:
    """A function of sizes and seed that builds a world."""

    name: str
    build: Callable[..., TabularMDP]

    @property
    def summary(self) -> str:
        """The first line of its description."""
        return inspect.getdoc(self.build).splitlines()[0]  # type: ignore[union-attr]  # every family has one: a test

    @property
    def story(self) -> str:
        """The description with its picture."""
        return inspect.getdoc(self.build) or ""

    @property
    def sizes(self) -> dict[str, Size]:
        """The arguments that can be chosen, with their defaults."""
        return {
            name: parameter.default
            for name, parameter in inspect.signature(self.build).parameters.items()
        }


_BUILDERS: dict[str, Callable[..., TabularMDP]] = {
    "random": synthetic.random,
    "random-sparse": synthetic.random_sparse,
    "trap": traps.trap,
    "trap-near-tie": traps.trap_near_tie,
    "trap-long": traps.trap_long,
    "trap-pit": traps.trap_pit,
    "river-swim": chains.river_swim,
    "deep-sea": chains.deep_sea,
    "inventory": constrained_worlds.inventory,
    "media-buffer": constrained_worlds.media_buffer,
    "three-rooms": constrained_worlds.three_rooms,
    "queue": stories.queue,
    "dosing": stories.dosing,
    "offers": stories.offers,
    "grid-traps": large.grid_traps,
    "call-centre": large.call_centre,
}
FAMILIES = {name: Family(name, build) for name, build in _BUILDERS.items()}


def family(name: str) -> Family:
    """Return the family of this name; spaces and underscores are read as hyphens."""
    if not isinstance(name, str):
        raise InvalidSetting(
            f"The name of a world is text, found {name!r}. There are: {', '.join(FAMILIES)}."
        )
    found = FAMILIES.get(name.strip().lower().replace(" ", "-").replace("_", "-"))
    if found is None:
        raise InvalidSetting(f"There is no world {name!r}. There are: {', '.join(FAMILIES)}.")
    return found


def world(name: str, **sizes: Size) -> TabularMDP:
    """Return a world by name, for example world("inventory") or world("random", S=5, A=5, H=3,
    seed=1).

    The sizes are those of the family's function; `surefoot worlds NAME` lists them.
    """
    chosen = family(name)
    unknown = sizes.keys() - chosen.sizes.keys()
    if unknown:
        can = ", ".join(f"{size}={default}" for size, default in chosen.sizes.items()) or "nothing"
        raise InvalidSetting(
            f"World {chosen.name!r} has no {', '.join(sorted(unknown))}. What can be chosen: {can}."
        )
    _require_memory(chosen, sizes)
    return chosen.build(**sizes)


def _require_memory(chosen: Family, sizes: Mapping[str, Size]) -> None:
    """Refuse sizes that are too large before a family makes any array. The family itself refuses
    other wrong sizes.
    """
    all_sizes = {**chosen.sizes, **sizes}
    whole = {name: size for name, size in all_sizes.items() if isinstance(size, int)}
    S = max(whole.get("S", 6), whole.get("N", 1), whole.get("places", 1))
    H, A = max(whole.get("H", 1), whole.get("N", 1)), whole.get("A", 3)
    by_step = chosen.name in ("random", "random-sparse") and not all_sizes.get("stationary", False)
    require_size("P", (H if by_step else 1, S, A, S), InvalidModel)
    require_size("The policy", (H, S, A), InvalidModel)
