"""From Minari: the same rows; a dataset that lost steps is refused; nothing is left
half-written.
"""

import json
import sys
from itertools import groupby
from operator import itemgetter

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import surefoot as sf
from log_rows import WRITER, assert_same, simulate, write
from surefoot.logs import from_minari

ID = "shop/discounts-v0"


@pytest.fixture(autouse=True)
def datasets(tmp_path, monkeypatch):
    """Minari's folder, for this test alone."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


def rows_of(path):
    return WRITER.sql(f"SELECT * FROM '{path}' ORDER BY episode, step").fetchall()


def create(
    dataset_id=ID,
    observations=(0, 1, 2),
    observation_space=None,
    data_format="hdf5",
    dtype=np.int64,
    lengths=(2,),
):
    """A dataset made by Minari itself."""
    made = [
        {
            "observations": np.resize(np.array(observations, dtype=dtype), n + 1),
            "actions": np.resize([1, 0], n),
            "rewards": np.resize([0.5, 1.0], n),
            "terminations": np.arange(n) == n - 1,
            "truncations": np.zeros(n, dtype=bool),
        }
        for n in lengths
    ]
    return stored(dataset_id, made, observation_space or Discrete(3), data_format)


def stored(dataset_id, made, observation_space, data_format="hdf5"):
    """A dataset of these episodes, each a table of arrays."""
    import minari
    from minari.data_collector import EpisodeBuffer

    buffers = [EpisodeBuffer(**arrays, infos={}) for arrays in made]
    with pytest.warns(UserWarning):  # that no author was named, and so on
        return minari.create_dataset_from_buffers(
            dataset_id,
            buffers,
            observation_space=observation_space,
            action_space=Discrete(2),
            data_format=data_format,
        )


def dataset_of(rows):
    """A dataset of the episodes in these rows."""
    made = []
    for _, group in groupby(rows, key=itemgetter(0)):
        _, _, states, actions, rewards, next_states, terminated, truncated = zip(
            *group, strict=True
        )
        made.append(
            {
                "observations": np.array([*states, next_states[-1]]),
                "actions": np.array(actions),
                "rewards": np.array(rewards),
                "terminations": np.array(terminated),
                "truncations": np.array(truncated),
            }
        )
    return stored(ID, made, Discrete(3))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("ends", [0.2, 0.0])
def test_every_row_comes_back(tmp_path, ending, ends):
    rows, back = simulate(40, 4, kind="random", ends=ends), tmp_path / f"back.{ending}"
    dataset_of(rows)
    assert from_minari(ID, back) == back
    assert rows_of(back) == rows
    log = write(tmp_path / "log.parquet", rows)
    before = sf.count_log(log, states=3, actions=2)
    assert_same(before, sf.count_log(back, states=3, actions=2))
    assert (before.absorbing_state is not None) == (ends > 0.0)
    # the control: equality is not vacuous
    other = write(tmp_path / "other.parquet", simulate(40, 4, seed=1, ends=ends))
    assert sf.count_log(other, states=3, actions=2).counts != before.counts
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["minari", "log.parquet", back.name, "other.parquet"]
    )


def test_a_dataset_of_minaris_own_and_a_part_of_it(tmp_path):
    made = create(lengths=(2, 3, 1))
    from_minari(made, tmp_path / "all.csv")
    assert [row[:2] for row in rows_of(tmp_path / "all.csv")] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
        (1, 2),
        (2, 0),
    ]
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
    with pytest.raises(
        sf.InvalidLog,
        match=r"steps of \d episodes were read, but it states that it has .*Minari#351",
    ):
        from_minari(ID, tmp_path / "log.csv")
    assert (tmp_path / "log.csv").read_text() == "what was there"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.csv", "minari"]
    metadata.write_text(json.dumps(honest))
    from_minari(ID, tmp_path / "log.csv")
    assert len(rows_of(tmp_path / "log.csv")) == 5


@pytest.mark.parametrize("lengths", [(40_000,), (40_000, 40_000)])
def test_what_arrow_loses_is_missed(tmp_path, lengths):
    """Minari#351 itself: its reader hands out the first 32,768 rows of an episode as if they
    were all.
    """
    pytest.importorskip("pyarrow")
    made = create(lengths=lengths, data_format="arrow")
    came_back = sum(len(episode) for episode in made)
    if came_back == sum(lengths):
        pytest.skip("this Minari has mended it")
    with pytest.raises(
        sf.InvalidLog, match=f"{came_back:,} steps of {len(lengths)} episodes were read.*Minari#351"
    ):
        from_minari(made, tmp_path / "log.parquet")
    from_minari(
        create("shop/short-v0", lengths=(40, 50), data_format="arrow"), tmp_path / "log.parquet"
    )
    assert len(rows_of(tmp_path / "log.parquet")) == 90


def test_what_is_not_discrete_is_refused(tmp_path):
    made = create(observations=(0.0, 0.5), observation_space=Box(0.0, 1.0, ()), dtype=np.float64)
    with pytest.raises(
        sf.InvalidLog, match=r"the observation space is Box.*expected Discrete\(n\)"
    ):
        from_minari(made, tmp_path / "log.csv")
    made = create("shop/floats-v0", observations=(0.0, 0.5), dtype=np.float64)
    with pytest.raises(
        sf.InvalidLog, match="observations of episode 0 have dtype float64, expected whole numbers"
    ):
        from_minari(made, tmp_path / "log.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["minari"]


def test_lists_that_do_not_belong_together_are_refused(tmp_path, datasets):
    import h5py

    create(lengths=(3,))
    with h5py.File(datasets / ID / "data" / "main_data.hdf5", "a") as file:
        file["episode_0/observations"].resize((3,))
    with pytest.raises(
        sf.InvalidLog, match=r"episode 0 has 3 rewards and observations of shape \(3,\)"
    ):
        from_minari(ID, tmp_path / "log.csv")


def test_a_damaged_dataset_is_refused_in_words(tmp_path, datasets):
    create(lengths=(3,))
    data = datasets / ID / "data" / "main_data.hdf5"
    data.write_bytes(data.read_bytes()[:500])
    with pytest.raises(
        sf.InvalidLog, match=r"Minari dataset shop/discounts-v0 cannot be read: .* Is it complete\?"
    ):
        from_minari(ID, tmp_path / "log.csv")
    (datasets / ID / "data" / "metadata.json").write_text("{")
    with pytest.raises(
        sf.InvalidLog,
        match=r"Minari dataset 'shop/discounts-v0' cannot be read: .* Is it complete\?",
    ):
        from_minari(ID, tmp_path / "log.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["minari"]


def test_what_cannot_be_asked_for(tmp_path):
    with pytest.raises(sf.InvalidLog, match="There is no local Minari dataset 'shop/none-v0'"):
        from_minari("shop/none-v0", tmp_path / "log.csv")
    with pytest.raises(
        sf.InvalidSetting, match="dataset is 3, expected the id of a local Minari dataset"
    ):
        from_minari(3, tmp_path / "log.csv")
    with pytest.raises(sf.InvalidFile, match=r"log\.txt: its ending names no known format"):
        from_minari(ID, tmp_path / "log.txt")
    with pytest.raises(sf.InvalidFile, match=r"the folder .* does not exist"):
        from_minari(ID, tmp_path / "nowhere" / "log.csv")


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
    create()
    for name in [
        name for name in sys.modules if name.split(".")[0] == "minari" and name != "minari"
    ]:
        if library == "minari" or "_storages" in name:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(sf.MissingExtra, match=r'pip install "surefoot\[minari\]"'):
        from_minari(ID, tmp_path / "back.csv")
    assert not (tmp_path / "back.csv").exists()
