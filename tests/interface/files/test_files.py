"""Counts and policies survive a round trip; what is not theirs is refused; reading never runs
anything.
"""

import json
import os
import stat

import numpy as np
import pytest

import surefoot as sf


def test_counts_round_trip(tmp_path):
    """A later save replaces the one before; pooled counts remember their steps."""
    path, rng = tmp_path / "counts.npz", np.random.default_rng(0)
    problem = sf.random_mdp(3, 2, 4, seed=0, stationary=True).problem
    counts = sf.Counts(rng.integers(0, 10**9, size=(3, 4, 2, 4)))
    for some in (counts, counts.pool(), sf.Counts.zeros(problem, pooled=True)):
        some.save(path)
        again = sf.Counts.load(path)
        assert again == some
        assert (again.H, again.s1) == (some.H, some.s1)
    assert (again.H, again.s1) == (4, 0)
    assert [p.name for p in tmp_path.iterdir()] == ["counts.npz"]


def test_policies_round_trip(tmp_path):
    world = sf.random_mdp(S=3, A=2, H=2, seed=0)
    policy = sf.boltzmann(sf.solve(world).Q, eta=3.0)
    sf.save_policy(tmp_path / "policy.npz", policy)
    np.testing.assert_array_equal(sf.load_policy(tmp_path / "policy.npz"), policy)
    mixture = sf.EpisodicMixture(policy, sf.solve(world).policy, 0.1234567890123456789)
    sf.save_policy(tmp_path / "mixture.npz", mixture)
    again = sf.load_policy(tmp_path / "mixture.npz")
    assert again.rho == mixture.rho
    np.testing.assert_array_equal(again.first, mixture.first)
    np.testing.assert_array_equal(again.second, mixture.second)


def test_what_is_not_ours_is_refused(tmp_path, assert_refused):
    path = tmp_path / "file.npz"
    assert_refused(sf.InvalidFile, "does not exist", sf.Counts.load, path)
    np.savez(path, n_sas=np.zeros((1, 1, 1, 1), dtype=int))
    assert_refused(sf.InvalidFile, "no surefoot header", sf.Counts.load, path)
    sf.save_policy(path, sf.uniform(1, 1, 1))
    assert_refused(sf.InvalidFile, "holds policy, expected counts", sf.Counts.load, path)


def test_every_damaged_byte_is_refused_in_words_or_harmless(tmp_path):
    """Whatever a flipped byte does, the answer is these very counts or InvalidFile, never an
    error of zlib's.
    """
    path = tmp_path / "counts.npz"
    counts = sf.Counts(np.arange(16).reshape(1, 2, 4, 2))
    counts.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for place in rng.choice(len(whole), size=300):
        damaged = bytearray(whole)
        damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            assert sf.Counts.load(path) == counts
        except sf.InvalidFile:
            refused += 1
    assert refused > 150


def changed_npz(path, digest):
    """A policy whose action was changed; its header keeps the digest, has another, or has none."""
    sf.save_policy(path, np.array([[[1.0, 0.0]]]))
    with np.load(path) as data:
        held = {name: data[name] for name in data.files}
    about = with_digest(json.loads(str(held.pop("about"))), digest)
    held = {name: array[..., ::-1] if array.ndim == 3 else array for name, array in held.items()}
    with path.open("wb") as stream:
        np.savez(stream, about=np.array(json.dumps(about)), **held)


def changed_json(path, digest):
    """A codebook whose first state has another name."""
    sf.Codebook(["low", "high"], ["buy", "wait"]).save(path)
    content = json.loads(path.read_text())
    with_digest(content["about"], digest)
    path.write_text(json.dumps(content).replace('"low"', '"LOW"'))


def with_digest(about, digest):
    if digest is None:
        del about["digest"]
    elif digest != "kept":
        about["digest"] = digest
    return about


@pytest.mark.parametrize("digest", ["kept", "0" * 32, "", None])
@pytest.mark.parametrize(
    ("change", "load"), [(changed_npz, sf.load_policy), (changed_json, sf.Codebook.load)]
)
def test_a_changed_file_is_refused_with_and_without_its_digest(
    tmp_path, change, load, digest, assert_refused
):
    change(tmp_path / "file", digest)
    assert_refused(sf.InvalidFile, "its content is not what was written", load, tmp_path / "file")


@pytest.mark.parametrize(("place", "words"), [(".", "is a folder"), ("no/x", "does not exist")])
def test_a_place_where_no_file_can_be_is_refused(tmp_path, place, words, assert_refused):
    counts = sf.Counts(np.zeros((1, 1, 1), dtype=np.int64), H=1)
    assert_refused(sf.InvalidFile, words, counts.save, tmp_path / place)


def test_object_arrays_are_never_loaded(tmp_path, assert_refused):
    """The one way in which an .npz could run code."""
    path = tmp_path / "counts.npz"
    np.savez(
        path, about=np.array('{"format": 1, "kind": "counts"}'), n_sas=np.array([{}], dtype=object)
    )
    assert_refused(sf.InvalidFile, "is not a surefoot file", sf.Counts.load, path)


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "policy.npz"
    sf.save_policy(path, sf.uniform(1, 2, 2))
    before = path.read_bytes()
    with pytest.raises(sf.InvalidPolicy):
        sf.save_policy(path, np.full((1, 2, 2), 0.4))
    assert path.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_or_a_device_is_never_replaced_by_a_file(tmp_path):
    """Whoever may write there would take it away from all others: of a device such as /dev/null,
    too.
    """
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(
            sf.InvalidFile, match="is a device or a pipe, expected the name of a file"
        ):
            sf.save_policy(tmp_path / name, sf.uniform(1, 1, 1))
        assert stat.S_ISFIFO((tmp_path / name).stat().st_mode)


def test_what_the_system_refuses_is_refused_in_words(tmp_path, assert_refused):
    world = sf.world("trap")
    agent = sf.EpsMix(world.problem, world.baseline, 0.1)
    long = tmp_path / ("a" * 300)
    for write in (
        lambda: sf.save_policy(long, sf.uniform(1, 1, 1)),
        lambda: sf.plot_run(sf.simulate(world, agent, 3, 0), long.with_suffix(".png")),
        lambda: sf.Ledger(long, agent),
        lambda: sf.learn("surefoot.worlds.gymnasium:Trap-v0", agent, 3, seed=0, save=long),
    ):
        assert_refused(sf.InvalidFile, "cannot be written: File name too long", write)
