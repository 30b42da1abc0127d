"""From Minari: a dataset with finitely many states and actions becomes a log.

The sizes that Minari states are compared with the data that come back: its arrow and parquet
formats silently lose the steps of long episodes (Farama-Foundation/Minari#351). Reading takes about
2 ms per episode: use Minari to get data, and a Parquet log to work with it.
"""

import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot.base.arrays import AnyArray
from surefoot.base.files import ENTRY, LARGEST, LARGEST_TEXT, opened, strict_json
from surefoot.base.sql import quote_text
from surefoot.errors import InvalidLog, InvalidSetting, MissingExtra
from surefoot.logs.writing import copy_out, require_log_place

if TYPE_CHECKING:
    import duckdb

TABLE = (
    "episode BIGINT, step BIGINT, state BIGINT, action BIGINT, reward DOUBLE, next_state BIGINT, "
    "terminated BOOLEAN, truncated BOOLEAN"
)
CHUNK = 1 << 16  # rows at a time
# the arrays of an episode, and what kinds of numbers each may have
KINDS = {
    "observations": "iu",
    "actions": "iu",
    "rewards": "fiub",
    "terminations": "biu",
    "truncations": "biu",
}
MOST = {"total_episodes": 10**7, "total_steps": 10**10}  # larger datasets would take hours to read


def from_minari(dataset: Any, out: str | Path) -> Path:
    """Write a Minari dataset as a flat log, .parquet or .csv, and return its path.

    `dataset` is the id of a local dataset (nothing is downloaded), or a dataset object. States and
    actions keep the numbers of the environment, episodes those of the dataset. The file is written
    whole or not at all, and only if as many episodes and steps were read as the dataset states.
    """
    target = require_log_place(out)
    with _extra():
        found = _loaded(dataset) if isinstance(dataset, str) else dataset
        try:
            where, size = (
                f"Minari dataset {found.id}",
                Size(int(found.total_episodes), int(found.total_steps)),
            )
            spaces = {"observation": found.observation_space, "action": found.action_space}
        except AttributeError:
            raise InvalidSetting(
                f"dataset is {dataset!r}, expected the id of a local Minari dataset, such as "
                "'taxi/expert-v0', or a dataset object."
            ) from None
        _require_discrete(where, spaces)
        if isinstance(dataset, str):
            _require_plain(where, _folder(dataset) / "main_data.hdf5")
        _write(where, found, size, target)
    return target


@contextmanager
def _extra() -> Iterator[None]:
    """Import Minari; name what to install if it, or a library that its formats need, is missing."""
    try:
        import minari  # type: ignore[import-untyped]  # noqa: F401

        yield
    except ImportError as reason:
        raise MissingExtra(
            f"Minari datasets need the libraries minari and h5py ({reason}). Run: pip install "
            f'"surefoot[minari]".'
        ) from None


def _loaded(dataset_id: str) -> Any:
    """Return the local dataset of this id."""
    import minari

    try:
        if _folder(dataset_id).exists():
            _require_spaces(dataset_id)
        return minari.load_dataset(dataset_id, download=False)
    except FileNotFoundError:
        raise InvalidLog(
            f"There is no local Minari dataset {dataset_id!r}. `minari list local` lists those "
            f"that exist, and `minari download {dataset_id}` downloads it."
        ) from None
    except (ImportError, InvalidLog):
        raise
    except Exception as reason:  # Minari, Gymnasium, h5py and pyarrow raise errors of their own
        raise InvalidLog(
            f"Minari dataset {dataset_id!r} cannot be read: {_brief(reason)}. Is it complete?"
        ) from None


def _brief(reason: Exception) -> str:
    return str(reason)[:400] or type(reason).__name__


def _folder(dataset_id: str) -> Path:
    """Return the folder with the data of a local dataset."""
    from minari.storage import get_dataset_path  # type: ignore[import-untyped]

    return Path(get_dataset_path(dataset_id)) / "data"


def _require_spaces(dataset_id: str) -> None:
    """Check the spaces before Minari reads them: where they are missing, it makes the environment
    that a dataset names.

    That name may be any function of any module, so making the environment would run code from a
    file.
    """
    path = _folder(dataset_id) / "metadata.json"
    with opened(path, "Minari's metadata") as stream:
        about = strict_json(stream.read(LARGEST_TEXT).decode())
    for space in ("observation_space", "action_space"):
        if not isinstance(about.get(space), str):
            raise InvalidLog(
                f"Minari dataset {dataset_id!r}: its metadata lack the {space}, and the "
                "environment that it names is not run to find it out. Write the dataset again with "
                "its spaces."
            )
        kind = strict_json(about[space]).get("type")
        if kind != "Discrete":
            raise InvalidLog(
                f"Minari dataset {dataset_id!r}: the {space.replace('_', ' ')} is "
                f"{str(kind)[:60]}, expected Discrete(n). Tabular learning needs finitely many "
                "states and actions: encode them as numbers first."
            )
    for name in ("total_episodes", "total_steps"):
        if not isinstance(about.get(name), int) or not 0 <= about[name] <= MOST[name]:
            raise InvalidLog(
                f"Minari dataset {dataset_id!r}: its metadata state that {name} is "
                f"{str(about.get(name))[:40]}, expected a whole number of at most {MOST[name]:,}."
            )


def _require_plain(where: str, path: Path) -> None:
    """Check sizes, and refuse data outside the file: a link or an array of hdf5 may name any
    file of this machine.
    """
    if not path.exists():
        return  # the dataset has another format

    import h5py  # type: ignore[import-untyped]

    size = path.stat().st_size
    takes = Counter[str]()  # bytes of each episode

    def complaint(name: str, link: Any) -> str | None:
        """Say what is wrong with this entry. None: h5py visits the next one."""
        found = file[name] if isinstance(link, h5py.HardLink) else None
        if found is None or (
            isinstance(found, h5py.Dataset) and (found.external or found.is_virtual)
        ):
            return f"{name[:60]!r} is stored outside the file, expected all data in one file"
        if not isinstance(found, h5py.Dataset):
            return None
        entries = max(math.prod(found.shape or ()), math.prod(found.chunks or ()))
        episode = name.partition("/")[0]
        takes[episode] += entries * max(ENTRY, found.dtype.itemsize)
        if takes[episode] > LARGEST:
            most = f"expected at most {LARGEST / 2**30:.3g} GiB for one episode"
            return f"{episode[:60]!r} states that it takes {takes[episode] / 2**30:.3g} GiB, {most}"
        if not _is_whole(found, size):
            return (
                f"{name[:60]!r} states that it has {entries:,} entries, but not all of them "
                f"are "
                "in the file"
            )
        return None

    try:
        with h5py.File(path, "r") as file:
            wrong = file.visititems_links(complaint)
    except Exception as reason:  # h5py raises errors of many kinds
        wrong = _brief(reason)
    if wrong is not None:
        raise InvalidLog(f"{where} cannot be read: {wrong}. Is it complete?")


def _is_whole(array: Any, size: int) -> bool:
    """Return whether all of an array of hdf5 is stored in its file of this size.

    What was never stored is read as zeros. It takes no room in the file, but much memory: 4 kB for
    each chunk, even where a chunk has two entries.
    """
    chunks = [
        math.ceil(n / length)
        for n, length in zip(array.shape or (), array.chunks or (), strict=False)
    ]
    if array.chunks and math.prod(chunks) > array.id.get_num_chunks():
        return False
    compressed = array.id.get_create_plist().get_nfilters() > 0
    return bool(compressed or array.nbytes <= min(array.id.get_storage_size(), size))


def _require_discrete(where: str, spaces: Mapping[str, Any]) -> None:
    from gymnasium.spaces import Discrete

    for name, space in spaces.items():
        if not isinstance(space, Discrete):
            raise InvalidLog(
                f"{where}: the {name} space is {space}, expected Discrete(n). Tabular learning "
                f"needs finitely many states and actions: encode each {name} as one number first."
            )


def _write(where: str, dataset: Any, expected: "Size", target: Path) -> None:
    """Write the episodes to a file, if all of them could be read."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="surefoot-") as spill, duckdb.connect() as con:
        con.execute(f"SET temp_directory = {quote_text(spill)}")
        con.execute("SET enable_progress_bar = false")
        con.execute(f"CREATE TABLE log ({TABLE})")
        found = _fill(con, where, dataset)
        if found != expected:
            raise InvalidLog(
                f"{where}: {found.steps:,} steps of {found.episodes:,} episodes were read, but it "
                f"states that it has {expected.steps:,} steps of {expected.episodes:,} episodes. "
                "Minari's arrow and parquet formats lose the steps of long episodes (Minari#351): "
                "get it as hdf5, or restore a copy."
            )
        if not found.steps:
            raise InvalidLog(f"{where} is empty: it has no steps.")
        copy_out(con, target)


class Size(NamedTuple):
    """The size of a dataset."""

    episodes: int
    steps: int


def _fill(con: "duckdb.DuckDBPyConnection", where: str, dataset: Any) -> Size:
    """Insert all steps into the table `log`; return how many episodes and steps there were."""
    episodes = steps = held = 0
    parts: list[dict[str, AnyArray]] = []

    def flush() -> None:
        if parts:
            con.register(
                "chunk", {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            )
            con.execute("INSERT INTO log SELECT * FROM chunk")
            con.unregister("chunk")
            parts.clear()

    for episode in _episodes(where, dataset):
        parts.append(_rows(where, episode))
        length = len(parts[-1]["step"])
        episodes, steps, held = episodes + 1, steps + length, held + length
        if held >= CHUNK:
            flush()
            held = 0
    flush()
    return Size(episodes, steps)


def _episodes(where: str, dataset: Any) -> Iterator[Any]:
    """Yield the episodes of a dataset, and turn the errors of its reader into ours."""
    found = iter(dataset.iterate_episodes())
    while True:
        try:
            episode = next(found)
        except StopIteration:
            return
        except Exception as reason:  # Minari, h5py and pyarrow raise errors of their own
            raise InvalidLog(f"{where} cannot be read: {_brief(reason)}. Is it complete?") from None
        yield episode


def _rows(where: str, episode: Any) -> dict[str, AnyArray]:
    """Return one episode as columns, in the order of the table."""
    rewards = np.asarray(episode.rewards)
    n = rewards.size
    arrays = {name: np.asarray(getattr(episode, name)) for name in KINDS}
    for name, array in arrays.items():
        if array.shape != (n + (name == "observations"),) or n == 0:
            raise InvalidLog(
                f"{where}: episode {episode.id} has {n} rewards and {name} of shape {array.shape}, "
                "expected at least one step, one more observation than steps, and one of "
                "everything else per step. The dataset is damaged, or steps were lost "
                "(Minari#351): get it as hdf5, or restore a copy."
            )
        if array.dtype.kind not in KINDS[name]:
            raise InvalidLog(
                f"{where}: the {name} of episode {episode.id} have dtype {array.dtype}, expected "
                f"{'whole numbers' if KINDS[name] == 'iu' else 'numbers'}."
            )
    states = arrays["observations"].astype(np.int64)
    return {
        "episode": np.full(n, int(episode.id), dtype=np.int64),
        "step": np.arange(n, dtype=np.int64),
        "state": states[:-1],
        "action": arrays["actions"].astype(np.int64),
        "reward": rewards.astype(np.float64),
        "next_state": states[1:],
        "terminated": arrays["terminations"].astype(np.bool_),
        "truncated": arrays["truncations"].astype(np.bool_),
    }
