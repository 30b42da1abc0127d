"""Minari there and back: the same counts; a dataset that lost steps is refused; nothing is left half-written."""

import json
import sys

import duckdb
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import surefoot as sf
from surefoot.offline import from_minari, to_minari

ID = "shop/discounts-v0"
WRITER = duckdb.connect()  # one for all: to connect takes longer than to write


@pytest.fixture(autouse=True)
def datasets(tmp_path, monkeypatch):
    """Minari's folder, for this test alone."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


def episodes(n=40, H=4, first=0, seed=0, ends=True):
    """Rows (episode, step, state, action, reward, next_state, terminated, truncated) with early ends among them."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(n):
        s = 0
        for h in range(H):
            a, s_next, ended = int(rng.integers(2)), int(rng.integers(3)), bool(ends and rng.random() < 0.2)
            rows.append((episode, h + first, s, a, float(rng.random()), s_next, ended, not ended and h == H - 1))
            if ended:
                break
            s = s_next
    return rows


def write(path, rows, names="episode, step, state, action, reward, next_state, terminated, truncated"):
    table = {
        name.strip(): np.array(column) for name, column in zip(names.split(","), zip(*rows, strict=True), strict=True)
    }
    WRITER.register("given", table)
    WRITER.execute(f"COPY given TO '{path}'")
    return path


def rows_of(path):
    return WRITER.sql(f"SELECT * FROM '{path}' ORDER BY episode, step").fetchall()


def assert_same(one, other):
    assert one.counts == other.counts
    np.testing.assert_array_equal(one.folds, other.folds)
    np.testing.assert_array_equal(one.rewards, other.rewards)
    np.testing.assert_array_equal(one.starts, other.starts)
    assert (one.H, one.episodes, one.rows) == (other.H, other.episodes, other.rows)
    assert one.absorbing_state == other.absorbing_state


def create(
    dataset_id=ID, observations=(0, 1, 2), observation_space=None, data_format="hdf5", dtype=np.int64, lengths=(2,)
):
    """A dataset made by Minari itself."""
    import minari
    from minari.data_collector import EpisodeBuffer

    buffers = [
        EpisodeBuffer(
            observations=np.resize(np.array(observations, dtype=dtype), n + 1),
            actions=np.resize([1, 0], n),
            rewards=np.resize([0.5, 1.0], n),
            terminations=np.arange(n) == n - 1,
            truncations=np.zeros(n, dtype=bool),
            infos={},
        )
        for n in lengths
    ]
    with pytest.warns(UserWarning):  # that no author was named, and so on
        return minari.create_dataset_from_buffers(
            dataset_id,
            buffers,
            observation_space=observation_space or Discrete(3),
            action_space=Discrete(2),
            data_format=data_format,
        )


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("ends", [True, False])
def test_there_and_back_nothing_changes(tmp_path, ending, ends):
    log, back = write(tmp_path / "log.parquet", episodes(ends=ends)), tmp_path / f"back.{ending}"
    to_minari(log, ID)
    assert from_minari(ID, back) == back
    assert rows_of(back) == rows_of(log)
    before = sf.count_log(log, states=3, actions=2)
    assert_same(before, sf.count_log(back, states=3, actions=2))
    assert (before.absorbing_state is not None) == ends
    other = write(tmp_path / "other.parquet", episodes(ends=ends, seed=1))  # the control: equality is not vacuous
    assert sf.count_log(other, states=3, actions=2).counts != before.counts
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["minari", "log.parquet", back.name, "other.parquet"])


def test_steps_from_1_text_ids_and_other_names(tmp_path):
    rows = [(f"visit {e:03d}", h, *rest) for e, h, *rest in episodes(first=1)]
    log = write(tmp_path / "log.csv", rows, "visit,t,segment,offer,reward,next_state,terminated,truncated")
    names = {"episode": "visit", "step": "t", "state": "segment", "action": "offer"}
    to_minari(log, ID, columns=names)
    from_minari(ID, tmp_path / "back.parquet")
    assert rows_of(tmp_path / "back.parquet") == [(int(e[-3:]), h - 1, *rest) for e, h, *rest in rows]
    assert sf.count_log(log, columns=names).counts == sf.count_log(tmp_path / "back.parquet").counts


def test_minari_reads_what_we_write(tmp_path, datasets):
    import minari

    rows = [(0, 0, -1, 0, 2.5, 7, False, False), (0, 1, 7, 1, -3.0, 7, True, False)]
    folder = to_minari(write(tmp_path / "log.csv", rows), ID, description="two steps", author="A. Nobody")
    assert folder == datasets / "shop" / "discounts-v0"
    found = minari.load_dataset(ID)
    assert list(minari.list_local_datasets()) == [ID]
    assert (found.total_steps, found.total_episodes) == (2, 1)
    assert found.observation_space == Discrete(9, start=-1)
    assert found.action_space == Discrete(2)
    assert found.storage.metadata["author"] == {"A. Nobody"}
    episode = found[0]
    assert "total_steps=2" in repr(episode)
    np.testing.assert_array_equal(episode.observations, [-1, 7, 7])
    np.testing.assert_array_equal(episode.actions, [0, 1])
    np.testing.assert_array_equal(episode.rewards, [2.5, -3.0])
    np.testing.assert_array_equal(episode.terminations, [False, True])
    assert sorted(p.name for p in datasets.iterdir()) == ["shop"]


def test_declared_sizes(tmp_path):
    import minari

    log = write(tmp_path / "log.parquet", episodes())
    to_minari(log, ID, states=10, actions=4)
    assert minari.load_dataset(ID).observation_space == Discrete(10)
    with pytest.raises(sf.InvalidLog, match=r"states lie in 0\.\.2, but 2 were declared: 0\.\.1"):
        to_minari(log, "shop/other-v0", states=2)
    with pytest.raises(sf.InvalidSetting, match="actions is 0, expected an integer >= 1"):
        to_minari(log, "shop/other-v0", actions=0)


def test_a_dataset_of_minaris_own_and_a_part_of_it(tmp_path):
    made = create(lengths=(2, 3, 1))
    from_minari(made, tmp_path / "all.csv")
    assert [row[:2] for row in rows_of(tmp_path / "all.csv")] == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 0)]
    assert rows_of(tmp_path / "all.csv")[1] == (0, 1, 1, 0, 1.0, 2, True, False)
    from_minari(made.filter_episodes(lambda episode: len(episode) > 1), tmp_path / "part.csv")
    assert rows_of(tmp_path / "part.csv") == rows_of(tmp_path / "all.csv")[:5]


def test_the_start_of_a_discrete_space_is_kept(tmp_path):
    made = create(observations=(5, 6, 7), observation_space=Discrete(3, start=5))
    from_minari(made, tmp_path / "log.csv")
    assert [row[2] for row in rows_of(tmp_path / "log.csv")] == [5, 6]
    assert sf.count_log(tmp_path / "log.csv").codebook.states == (5, 6, 7)


@pytest.mark.parametrize("claim", [{"total_steps": 9}, {"total_episodes": 1}])
def test_steps_that_do_not_come_back_are_missed(tmp_path, datasets, claim):
    create(lengths=(2, 3))
    metadata = datasets / ID / "data" / "metadata.json"
    honest = json.loads(metadata.read_text())
    metadata.write_text(json.dumps({**honest, **claim}))
    (tmp_path / "log.csv").write_text("what was there")
    with pytest.raises(sf.InvalidLog, match=r"steps of \d episodes were read, but it states that it has .*Minari#351"):
        from_minari(ID, tmp_path / "log.csv")
    assert (tmp_path / "log.csv").read_text() == "what was there"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.csv", "minari"]
    metadata.write_text(json.dumps(honest))
    from_minari(ID, tmp_path / "log.csv")
    assert len(rows_of(tmp_path / "log.csv")) == 5


@pytest.mark.parametrize("lengths", [(40_000,), (40_000, 40_000)])
def test_what_arrow_loses_is_missed(tmp_path, lengths):
    """Minari#351 itself: its reader hands out the first 32,768 rows of an episode as if they were all."""
    pytest.importorskip("pyarrow")
    made = create(lengths=lengths, data_format="arrow")
    came_back = sum(len(episode) for episode in made)
    if came_back == sum(lengths):
        pytest.skip("this Minari has mended it")
    with pytest.raises(sf.InvalidLog, match=f"{came_back:,} steps of {len(lengths)} episodes were read.*Minari#351"):
        from_minari(made, tmp_path / "log.parquet")
    from_minari(create("shop/short-v0", lengths=(40, 50), data_format="arrow"), tmp_path / "log.parquet")
    assert len(rows_of(tmp_path / "log.parquet")) == 90


def test_what_is_not_discrete_is_refused(tmp_path):
    made = create(observations=(0.0, 0.5), observation_space=Box(0.0, 1.0, ()), dtype=np.float64)
    with pytest.raises(sf.InvalidLog, match=r"the observation space is Box.*expected Discrete\(n\)"):
        from_minari(made, tmp_path / "log.csv")
    made = create("shop/floats-v0", observations=(0.0, 0.5), dtype=np.float64)
    with pytest.raises(sf.InvalidLog, match="observations of episode 0 have dtype float64, expected whole numbers"):
        from_minari(made, tmp_path / "log.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["minari"]


def test_lists_that_do_not_belong_together_are_refused(tmp_path, datasets):
    import h5py

    create(lengths=(3,))
    with h5py.File(datasets / ID / "data" / "main_data.hdf5", "a") as file:
        file["episode_0/observations"].resize((3,))
    with pytest.raises(sf.InvalidLog, match=r"episode 0 has 3 rewards and observations of shape \(3,\)"):
        from_minari(ID, tmp_path / "log.csv")


def test_a_damaged_dataset_is_refused_in_words(tmp_path, datasets):
    create(lengths=(3,))
    data = datasets / ID / "data" / "main_data.hdf5"
    data.write_bytes(data.read_bytes()[:500])
    with pytest.raises(sf.InvalidLog, match=r"Minari dataset shop/discounts-v0 cannot be read: .* Is it complete\?"):
        from_minari(ID, tmp_path / "log.csv")
    (datasets / ID / "data" / "metadata.json").write_text("{")
    with pytest.raises(sf.InvalidLog, match=r"Minari dataset 'shop/discounts-v0' cannot be read: .* Is it complete\?"):
        from_minari(ID, tmp_path / "log.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["minari"]


def test_what_cannot_be_asked_for(tmp_path):
    with pytest.raises(sf.InvalidLog, match="There is no local Minari dataset 'shop/none-v0'"):
        from_minari("shop/none-v0", tmp_path / "log.csv")
    with pytest.raises(sf.InvalidSetting, match="dataset is 3, expected the id of a local Minari dataset"):
        from_minari(3, tmp_path / "log.csv")
    with pytest.raises(sf.InvalidFile, match=r"log\.txt: its ending names no known format"):
        from_minari(ID, tmp_path / "log.txt")
    with pytest.raises(sf.InvalidFile, match=r"the folder .* does not exist"):
        from_minari(ID, tmp_path / "nowhere" / "log.csv")
    log = write(tmp_path / "log.parquet", episodes())
    for strange in ("discounts", "shop/", "../discounts", 3):
        with pytest.raises(sf.InvalidSetting, match="expected a name with a version"):
            to_minari(log, strange)


def test_a_dataset_is_never_replaced(tmp_path, datasets):
    to_minari(write(tmp_path / "log.parquet", episodes()), ID)
    before = {p: p.read_bytes() for p in datasets.rglob("*") if p.is_file()}
    with pytest.raises(sf.InvalidSetting, match="A Minari dataset shop/discounts-v0 exists already"):
        to_minari(write(tmp_path / "other.parquet", episodes(seed=1)), ID)
    assert {p: p.read_bytes() for p in datasets.rglob("*") if p.is_file()} == before
    to_minari(tmp_path / "other.parquet", "shop/discounts-v1")


def test_text_is_to_be_coded_first(tmp_path):
    rows = [(0, 0, "new", 0, 1.0, "old", False, False)]
    with pytest.raises(sf.InvalidLog, match=r"state is text, .* Encode it first"):
        to_minari(write(tmp_path / "log.csv", rows), ID)
    rows = [(0, 0, 0, "offer", 1.0, 1, False, False)]
    with pytest.raises(sf.InvalidLog, match=r"action is text, .* Encode it first"):
        to_minari(write(tmp_path / "log.csv", rows), ID)


def spoilt(what):
    rows = episodes(n=5, ends=False)
    at = rows.index(next(row for row in rows if row[:2] == (3, 1)))
    row = rows[at]
    if what == "gap":
        del rows[at]
    if what == "twice":
        rows.append(row)
    if what == "chain":
        rows[at] = (*row[:5], (row[5] + 1) % 3, *row[6:])
    if what == "after":
        rows[at] = (*row[:6], True, False)
    return rows


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("gap", r"1 gap in the steps \(episode 3\)"),
        ("twice", r"1 repeated step \(episode 3\)"),
        ("chain", r"1 broken chain \(episode 3\)"),
        ("after", r"1 row after the end of an episode \(episode 3\)"),
    ],
)
def test_rows_that_are_no_episodes_are_refused_and_nothing_is_written(tmp_path, datasets, what, words):
    with pytest.raises(sf.InvalidLog, match=words):
        to_minari(write(tmp_path / "log.parquet", spoilt(what)), ID)
    assert list(datasets.iterdir()) == []
    to_minari(write(tmp_path / "log.parquet", spoilt("nothing")), ID)


def test_a_failure_in_the_middle_leaves_nothing(tmp_path, datasets, monkeypatch):
    from minari.dataset._storages.hdf5_storage import HDF5Storage

    log = write(tmp_path / "log.parquet", episodes())
    honest = HDF5Storage.update_episodes

    def full_disk(self, buffers):
        honest(self, [next(iter(buffers))])
        raise OSError("No space left on device")

    def lossy(self, buffers):
        honest(self, list(buffers)[1:])

    monkeypatch.setattr(HDF5Storage, "update_episodes", full_disk)
    with pytest.raises(OSError, match="No space left"):
        to_minari(log, ID)
    assert list(datasets.iterdir()) == []
    monkeypatch.setattr(HDF5Storage, "update_episodes", lossy)
    with pytest.raises(sf.InvalidLog, match=r"Minari wrote \d+ steps of 39 episodes, but .* has \d+ of 40"):
        to_minari(log, ID)
    assert list(datasets.iterdir()) == []


def test_a_log_that_cannot_be_finished_leaves_nothing(tmp_path, monkeypatch):
    made = create()

    def full_disk(_):
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full_disk)
        with pytest.raises(OSError, match="No space left"):
            from_minari(made, tmp_path / "log.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["minari"]
    from_minari(made, tmp_path / "log.parquet")


@pytest.mark.parametrize("library", ["minari", "h5py"])
def test_without_minari_the_message_says_what_to_install(tmp_path, monkeypatch, library):
    log = write(tmp_path / "log.parquet", episodes())
    to_minari(log, ID)
    for name in [name for name in sys.modules if name.split(".")[0] == "minari" and name != "minari"]:
        if library == "minari" or "_storages" in name:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    for call in (lambda: from_minari(ID, tmp_path / "back.csv"), lambda: to_minari(log, "shop/other-v0")):
        with pytest.raises(sf.MissingExtra, match=r'pip install "surefoot\[minari\]"'):
            call()
    assert not (tmp_path / "back.csv").exists()
