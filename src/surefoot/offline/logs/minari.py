"""Minari in both directions: a dataset with finitely many states and actions becomes a log, a log becomes a dataset.

The sizes that Minari states are compared with the data that come back. Its arrow and parquet formats silently lose the
steps of long episodes (Farama-Foundation/Minari#351), so `to_minari` writes hdf5. Each direction takes about 2 ms per
episode: use Minari to exchange data, and a Parquet log to work with it.
"""

import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot.base.arrays import AnyArray
from surefoot.base.files import ENTRY, LARGEST, LARGEST_TEXT, opened, strict_json
from surefoot.base.sql import quote_text
from surefoot.base.validation import require_integer
from surefoot.errors import InvalidFile, InvalidLog, InvalidSetting, MissingExtra
from surefoot.offline.logs.cells import MEMORY, Paths, readable
from surefoot.offline.logs.checking import audit
from surefoot.offline.logs.reading import OpenLog, open_log
from surefoot.offline.logs.writing import copy_out, require_log_place

if TYPE_CHECKING:
    import duckdb
    from gymnasium.spaces import Discrete

TABLE = (
    "episode BIGINT, step BIGINT, state BIGINT, action BIGINT, reward DOUBLE, next_state BIGINT, "
    "terminated BOOLEAN, truncated BOOLEAN"
)
SORTED = ("episode", "state", "action", "reward", "next_state", "terminated", "truncated")
CHUNK = 1 << 16  # rows at a time
MOST = {"total_episodes": 10**7, "total_steps": 10**10}  # larger datasets would take hours to read
HARMLESS = ("short", "truncated")  # findings that do not matter here: episodes of a dataset may have any length


def from_minari(dataset: Any, out: str | Path) -> Path:
    """Write a Minari dataset as a flat log, .parquet or .csv, and return its path.

    `dataset` is the id of a local dataset (nothing is downloaded), or a dataset object. States and actions keep the
    numbers of the environment, episodes those of the dataset. The file is written whole or not at all, and only if as
    many episodes and steps were read as the dataset states.
    """
    target = require_log_place(out)
    with _extra():
        found = _loaded(dataset) if isinstance(dataset, str) else dataset
        try:
            where, size = f"Minari dataset {found.id}", Size(int(found.total_episodes), int(found.total_steps))
            spaces = {"observation": found.observation_space, "action": found.action_space}
        except AttributeError:
            raise InvalidSetting(
                f"dataset is {dataset!r}, expected the id of a local Minari dataset, such as 'taxi/expert-v0', or a "
                "dataset object."
            ) from None
        _require_discrete(where, spaces)
        if isinstance(dataset, str):
            _require_plain(where, _folder(dataset) / "main_data.hdf5")
        _write(where, found, size, target)
    return target


def to_minari(
    log: Paths,
    dataset_id: str,
    *,
    columns: Mapping[str, str] | None = None,
    states: int | None = None,
    actions: int | None = None,
    description: str | None = None,
    author: str | None = None,
    memory: str = MEMORY,
    threads: int | None = None,
    delimiter: str | None = None,
) -> Path:
    """Write a log as a local Minari dataset (hdf5) for `minari.load_dataset(dataset_id)`, and return its folder.

    - log, columns, memory, threads, delimiter: as in `count_log`. States and actions must be whole numbers.
    - dataset_id: such as "shop/discounts-v0"; no dataset of this name may exist.
    - states, actions: how many there are (0, 1, 2, ...). Default: up to the largest number in the log.

    Minari numbers episodes 0, 1, 2, ... and steps from 0; episodes are in the order of their ids in the log. A log
    whose rows do not fit together is refused. The dataset is written whole or not at all.
    """
    with _extra():
        target = _place(dataset_id)
        with open_log(log, columns, memory, threads, delimiter) as opened:
            _require_whole(opened)
            spaces = _spaces(opened, states, actions)
            about = {"dataset_id": dataset_id}
            about |= {} if description is None else {"description": description}
            _create(opened, target, spaces, about, author)
    return target


@contextmanager
def _extra() -> Iterator[None]:
    """Import Minari; name what to install if it, or a library that its formats need, is missing."""
    try:
        import minari  # type: ignore[import-untyped]  # noqa: F401

        yield
    except ImportError as reason:
        raise MissingExtra(
            f'Minari datasets need the libraries minari and h5py ({reason}). Run: pip install "surefoot[minari]".'
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
            f"There is no local Minari dataset {dataset_id!r}. `minari list local` lists those that exist, and "
            f"`minari download {dataset_id}` downloads it."
        ) from None
    except (ImportError, InvalidLog):
        raise
    except Exception as reason:  # Minari, Gymnasium, h5py and pyarrow raise errors of their own
        raise InvalidLog(f"Minari dataset {dataset_id!r} cannot be read: {_brief(reason)}. Is it complete?") from None


def _brief(reason: Exception) -> str:
    return str(reason)[:400] or type(reason).__name__


def _folder(dataset_id: str) -> Path:
    """Return the folder with the data of a local dataset."""
    from minari.storage import get_dataset_path  # type: ignore[import-untyped]

    return Path(get_dataset_path(dataset_id)) / "data"


def _require_spaces(dataset_id: str) -> None:
    """Check the spaces before Minari reads them: where they are missing, it makes the environment that a dataset names.

    That name may be any function of any module, so making the environment would run code from a file.
    """
    path = _folder(dataset_id) / "metadata.json"
    with opened(path, "Minari's metadata") as stream:
        about = strict_json(stream.read(LARGEST_TEXT).decode())
    for space in ("observation_space", "action_space"):
        if not isinstance(about.get(space), str):
            raise InvalidLog(
                f"Minari dataset {dataset_id!r}: its metadata lack the {space}, and the environment that it names is "
                "not run to find it out. Write the dataset again with its spaces."
            )
        kind = strict_json(about[space]).get("type")
        if kind != "Discrete":
            raise InvalidLog(
                f"Minari dataset {dataset_id!r}: the {space.replace('_', ' ')} is {str(kind)[:60]}, expected "
                "Discrete(n). Tabular learning needs finitely many states and actions: encode them as numbers first."
            )
    for name in ("total_episodes", "total_steps"):
        if not isinstance(about.get(name), int) or not 0 <= about[name] <= MOST[name]:
            raise InvalidLog(
                f"Minari dataset {dataset_id!r}: its metadata state that {name} is {str(about.get(name))[:40]}, "
                f"expected a whole number of at most {MOST[name]:,}."
            )


def _require_plain(where: str, path: Path) -> None:
    """Check sizes, and refuse data outside the file: a link or an array of hdf5 may name any file of this machine."""
    if not path.exists():
        return  # the dataset has another format

    import h5py  # type: ignore[import-untyped]

    size = path.stat().st_size
    takes = Counter[str]()  # bytes of each episode

    def complaint(name: str, link: Any) -> str | None:
        """Say what is wrong with this entry. None: h5py visits the next one."""
        found = file[name] if isinstance(link, h5py.HardLink) else None
        if found is None or (isinstance(found, h5py.Dataset) and (found.external or found.is_virtual)):
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
            return f"{name[:60]!r} states that it has {entries:,} entries, but not all of them are in the file"
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

    What was never stored is read as zeros. It takes no room in the file, but much memory: 4 kB for each chunk, even
    where a chunk has two entries.
    """
    chunks = [math.ceil(n / length) for n, length in zip(array.shape or (), array.chunks or (), strict=False)]
    if array.chunks and math.prod(chunks) > array.id.get_num_chunks():
        return False
    compressed = array.id.get_create_plist().get_nfilters() > 0
    return bool(compressed or array.nbytes <= min(array.id.get_storage_size(), size))


def _require_discrete(where: str, spaces: Mapping[str, Any]) -> None:
    from gymnasium.spaces import Discrete

    for name, space in spaces.items():
        if not isinstance(space, Discrete):
            raise InvalidLog(
                f"{where}: the {name} space is {space}, expected Discrete(n). Tabular learning needs finitely many "
                f"states and actions: encode each {name} as one number first."
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
                f"{where}: {found.steps:,} steps of {found.episodes:,} episodes were read, but it states that it has "
                f"{expected.steps:,} steps of {expected.episodes:,} episodes. Minari's arrow and parquet formats lose "
                "the steps of long episodes (Minari#351): get it as hdf5, or restore a copy."
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
            con.register("chunk", {name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
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
    shapes = {"observations": (n + 1,), "actions": (n,), "rewards": (n,), "terminations": (n,), "truncations": (n,)}
    arrays = {name: np.asarray(getattr(episode, name)) for name in shapes}
    for name, array in arrays.items():
        if array.shape != shapes[name] or n == 0:
            raise InvalidLog(
                f"{where}: episode {episode.id} has {n} rewards and {name} of shape {array.shape}, expected at least "
                "one step, one more observation than steps, and one of everything else per step. The dataset is "
                "damaged, or steps were lost (Minari#351): get it as hdf5, or restore a copy."
            )
    kinds = {"observations": "iu", "actions": "iu", "rewards": "fiub", "terminations": "biu", "truncations": "biu"}
    for name, array in arrays.items():
        if array.dtype.kind not in kinds[name]:
            raise InvalidLog(
                f"{where}: the {name} of episode {episode.id} have dtype {array.dtype}, expected whole numbers."
                if kinds[name] == "iu"
                else f"{where}: the {name} of episode {episode.id} have dtype {array.dtype}, expected numbers."
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


def _place(dataset_id: str) -> Path:
    """Return the folder of a dataset that does not exist yet."""
    from minari.dataset.minari_dataset import parse_dataset_id  # type: ignore[import-untyped]
    from minari.storage import get_dataset_path

    try:
        parse_dataset_id(dataset_id)
    except (TypeError, ValueError):
        raise InvalidSetting(
            f"dataset_id is {dataset_id!r}, expected a name with a version, such as 'shop/discounts-v0'."
        ) from None
    target = Path(get_dataset_path(dataset_id))
    if target.exists():
        raise InvalidSetting(
            f"A Minari dataset {dataset_id} exists already, in {target}. Choose another name or version, or delete "
            f"it first: minari delete {dataset_id}."
        )
    return target


def _require_whole(log: OpenLog) -> None:
    """Require integers, and episodes that are chains of steps: a dataset holds each state once."""
    if log.text & {"state", "action"}:
        name = "state" if "state" in log.text else "action"
        raise InvalidLog(
            f"{log.where}: {name} is text, and Minari's Discrete spaces hold whole numbers. Encode it first, with a "
            "codebook (count_log(...).codebook) that you keep beside the dataset."
        )
    errors = [finding.text for finding in audit(log).errors if finding.what not in HARMLESS]
    if errors:
        raise InvalidLog(f"{log.where}: {' '.join(errors)}")


def _spaces(log: OpenLog, states: int | None, actions: int | None) -> tuple["Discrete", "Discrete"]:
    """Return the spaces of states and actions: of the numbers in the log, or of those that are declared."""
    from gymnasium.spaces import Discrete

    ends = log.values(
        {
            "lowest states": "least(min(state), min(next_state))",
            "highest states": "greatest(max(state), max(next_state))",
            "lowest actions": "min(action)",
            "highest actions": "max(action)",
        }
    )
    found = []
    for name, declared in (("states", states), ("actions", actions)):
        low, high = ends[f"lowest {name}"], ends[f"highest {name}"]
        if declared is None:
            start = min(int(low), 0)
            found.append(Discrete(int(high) - start + 1, start=start))
            continue
        n = require_integer(name, declared, 1, InvalidSetting)
        if low < 0 or high >= n:
            raise InvalidLog(
                f"{log.where}: {name} lie in {low}..{high}, but {n} were declared: 0..{n - 1}. Declare all of them, or "
                "leave the declaration out."
            )
        found.append(Discrete(n))
    return found[0], found[1]


def _create(
    log: OpenLog, target: Path, spaces: tuple["Discrete", "Discrete"], about: dict[str, Any], author: str | None
) -> None:
    """Build the dataset in a hidden folder beside it, which Minari does not list, and rename that."""
    import minari
    from minari.dataset.minari_storage import MinariStorage  # type: ignore[import-untyped]
    from minari.namespace import create_namespace, list_local_namespaces  # type: ignore[import-untyped]
    from minari.storage import get_dataset_path

    rows, episodes = log.row("SELECT count(*), count(DISTINCT episode) FROM log")
    hidden = Path(tempfile.mkdtemp(prefix=".surefoot-", dir=get_dataset_path()))
    partial = hidden / target.name
    try:
        partial.mkdir()  # with the usual permissions: only its owner can read a folder made by mkdtemp
        data = partial / "data"
        storage = MinariStorage.new(data, observation_space=spaces[0], action_space=spaces[1], data_format="hdf5")
        about["minari_version"] = minari.__version__
        storage.update_metadata(about if author is None else {**about, "author": {author}})
        storage.update_episodes(_buffers(log))
        written = minari.MinariDataset(data)
        if (written.total_steps, written.total_episodes) != (rows, episodes):
            raise InvalidLog(
                f"Minari wrote {written.total_steps:,} steps of {written.total_episodes:,} episodes, but {log.where} "
                f"has {rows:,} of {episodes:,}. Nothing was kept. Try another version of Minari."
            )
        namespace = written.spec.namespace
        if namespace is not None and namespace not in list_local_namespaces():
            create_namespace(namespace)
        try:
            partial.rename(target)
        except OSError as reason:  # another process made one in the meantime
            raise InvalidFile(f"{target} cannot be written: {reason}.") from None
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def _buffers(log: OpenLog) -> Iterator[Any]:
    """Yield one episode after the other. DuckDB sorts, in bounded memory; a chunk of rows is held at a time."""
    from minari.data_collector import EpisodeBuffer  # type: ignore[import-untyped]

    for _, group in groupby(_sorted_rows(log), key=itemgetter(0)):
        columns = dict(zip(SORTED, zip(*group, strict=True), strict=True))
        yield EpisodeBuffer(
            observations=np.array([*columns["state"], columns["next_state"][-1]], dtype=np.int64),
            actions=np.array(columns["action"], dtype=np.int64),
            rewards=np.array(columns["reward"], dtype=np.float64),
            terminations=np.array(columns["terminated"], dtype=np.bool_),
            truncations=np.array(columns["truncated"], dtype=np.bool_),
            infos={},
        )


def _sorted_rows(log: OpenLog) -> Iterator[tuple[Any, ...]]:
    """Yield the columns SORTED of all rows, by episode and step."""
    with readable(log.where):
        found = log.con.execute(f"SELECT {', '.join(SORTED)} FROM log ORDER BY episode, step")
    while True:
        with readable(log.where):
            rows = found.fetchmany(CHUNK)
        if not rows:
            return
        yield from rows
