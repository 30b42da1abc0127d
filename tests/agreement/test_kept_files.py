"""Files that commit 68af267 wrote are still read, and what was stopped then goes on to the bits it would have had.

tests/data/kept/README.md says what each file is, settings.py what was run. A failure means that a user who updates
cannot go on: what was saved is refused, or ends in other numbers. Nothing here may be mended by writing a kept file,
or a digest of it, anew. What rested on a bound that is gone (`BY_COIN` in settings.py) is seen to be refused.

Each comparison has its control: another seed, another bit, another byte is seen to fail it.
"""

import hashlib
import importlib.util
import json
import runpy
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import duckdb
import gymnasium
import numpy as np
import pytest

import surefoot as sf
from surefoot.agents import identity
from surefoot.live import learner as live_learner
from surefoot.live.streams import FormerStream

KEPT = Path(__file__).parents[1] / "data" / "kept"
SPEC = importlib.util.spec_from_file_location("kept_settings", KEPT / "settings.py")
kept = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(kept)
EXPECTED = json.loads((KEPT / "expected.json").read_text())
HERE = kept.machine()
ALIKE = EXPECTED["machine"] == HERE  # else last bits may differ, and numbers are compared to 1e-9
NOT_DATA = {"README.md", "settings.py", "write.py", "expected.json", "bits.json"}
QUICK = ("--quick", "--jobs", "1", "--no-report")


@pytest.fixture
def folder(tmp_path):
    """A copy of all of it: nothing that is kept is written to."""
    return Path(shutil.copytree(KEPT, tmp_path / "kept", ignore=shutil.ignore_patterns("__pycache__")))


@pytest.fixture
def command(monkeypatch, capsys):
    """`python -m surefoot ...` in this process: exit code and what was printed."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["surefoot", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            runpy.run_module("surefoot", run_name="__main__")
        return ended.value.code or 0, capsys.readouterr().out

    return call


def assert_expected(found, expected):
    """The same digests; on another machine the same numbers but for rounding."""
    if ALIKE:
        assert found["digests"] == expected["digests"]
    assert found["numbers"].keys() == expected["numbers"].keys()
    for name, value in expected["numbers"].items():
        assert found["numbers"][name] == (None if value is None else pytest.approx(value, rel=1e-9, abs=1e-9)), name


def assert_digest(found, expected):
    """One digest, where it can be compared."""
    if not ALIKE:
        pytest.skip(f"made on another machine or with other libraries: {difference()}")
    assert found == expected


def kept_counts(name, agent):
    """Counts as they were kept. Where this processor works out the baseline with other last bits, it is another one."""
    counts = sf.Counts.load(KEPT / name)
    if not ALIKE and getattr(agent, "returns", None) and counts.returns_of != agent.fingerprint:
        pytest.skip(f"the baseline has other last bits on another machine: {difference()}")
    return counts


def difference():
    made = EXPECTED["machine"]
    return ", ".join(f"{name} was {made[name]}, is {HERE[name]}" for name in made if made[name] != HERE[name])


def printed(text):
    """JSON that a command printed, in the words of 68af267."""
    return kept.in_old_words(json.loads(text))


def header(path):
    """What a file says of itself."""
    with np.load(path, allow_pickle=False) as found:
        return json.loads(str(found["about"]))


def between_in(path):
    """The sums of x (1 - x) in a file, which `in_file` leaves out."""
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files if name.endswith("z_sa")}


def history_in(path):
    """The first episode of the history in a file, and its rows: one for each episode, of so short a run."""
    with np.load(path, allow_pickle=False) as found:
        if "history_at" not in found.files:
            return 0, ()
        first, width, _ = found["history_at"]
        assert width == 1
        return int(first), (found["history_whole"], found["history_real"])


def ledger_in(path):
    """The digest of the last plan in its ledger, which a run that goes on remembers."""
    with np.load(path, allow_pickle=False) as found:
        return str(found["plans_digest"]) if "plans_digest" in found.files else None


def same_file(one, other):
    """The same names, kinds, shapes and bytes, and the same header but for the version that wrote it.

    Of a run that 68af267 began, `one` has the sums of x (1 - x), and the history, of what came later only, and a
    ledger in the format of then; with any of them its content hash is another one.
    """
    same = kept.digest(kept.in_file(one)) == kept.digest(kept.in_file(other))
    z, its_z = between_in(one), between_in(other)
    fewer = z.keys() <= its_z.keys() and all((z[name] <= its_z[name]).all() for name in z)
    first, later = history_in(one)
    begun, whole = history_in(other)
    alike = all(
        np.array_equal(part, its[first - begun :], equal_nan=True) for part, its in zip(later, whole, strict=True)
    )
    unchanged = kept.digest(z) == kept.digest(its_z) and first == begun and ledger_in(one) == ledger_in(other)
    leave = {"surefoot": ""} if unchanged else {"surefoot": "", "sha256": ""}
    mine, its = ({**header(path), **leave} for path in (one, other))
    return same and fewer and alike and mine == its


# ---- nothing is forgotten

READ = {
    *(f"{name}.npz" for name in kept.SAVED),
    *(f"{name}.ledger" for name, saved in kept.SAVED.items() if saved.ledger),
    *(f"counts-{name}.npz" for name in kept.COUNTS),
    *("loop-counts.npz", "loop-watch.npz", "policy.npz", "coin.npz", "log.csv", "log.parquet", "shop.csv"),
    *("log-counts-plain.npz", "log-counts-shop.npz", "codebook.json", "baseline.npz", "baseline-by-command.npz"),
    *("minari", "closed.ledger", "own.toml", "small.toml", "study-complete", "study-open"),
    "guards",  # by test_kept_guards.py
}


def test_every_kept_file_is_read():
    """A file that no test reads would prove nothing."""
    assert {path.name for path in KEPT.iterdir()} - NOT_DATA - {"__pycache__"} == READ


def test_files_of_the_former_bound_are_those_that_hold_its_evidence():
    """No name is in the list that need not be, and none is missing: a learner reads returns if it is there."""
    learners = {name: saved.agent() for name, saved in kept.SAVED.items()}
    learners |= {name: agent() for name, (_, agent, _) in kept.COUNTS.items()} | {"loop": kept.loop_agent()}
    assert {name for name, agent in learners.items() if getattr(agent, "returns", None)} == set(kept.BY_COIN)


def test_kept_files_are_of_every_kind():
    """One of each kind that 68af267 wrote; and those with an account, a basis, a watch or sums of rewards hold them."""
    kinds = {header(path)["kind"] for path in KEPT.glob("*.npz")}
    assert kinds == {"counts", "learning", "watch", "policy", "episodic-mixture", "log-counts"}
    for name in ("budget-exploration", "conservative-ucbvi"):
        assert kept.in_file(KEPT / f"{name}.npz")["counts_ledger"][1] > 0
    assert kept.in_file(KEPT / "counts-account.npz")["ledger"].all()
    assert kept.in_file(KEPT / "dope.npz")["counts_basis"].any()
    assert kept.in_file(KEPT / "counts-basis.npz")["basis"].any()
    assert kept.in_file(KEPT / "epsmix-live.npz")["watch_state"].any()
    for name in ("counts-veiled", "log-counts-shop"):
        assert kept.in_file(KEPT / f"{name}.npz")["x_sa"].any()
    assert kept.in_file(KEPT / "counts-veiled.npz")["record"].all()
    assert "planned_n_sas" in kept.in_file(KEPT / "loop-counts.npz")


# ---- runs of `learn`


@pytest.fixture(scope="module")
def gone_on(tmp_path_factory):
    """Each saved run goes on once for all tests: the run, and the folder of its files."""
    known = {}

    def resume(name):
        if name not in known:
            place = tmp_path_factory.mktemp("gone-on")
            for path in (*KEPT.glob(f"{name}.npz"), *KEPT.glob(f"{name}.ledger")):
                shutil.copy(path, place)
            known[name] = kept.SAVED[name].learn(place, name, resume=True), place
        return known[name]

    return resume


@pytest.fixture
def as_before(monkeypatch):
    """From here on new runs begin with the stream of 68af267, as none does any more."""

    def former(counts, seed):
        counts.stream = None
        return FormerStream(seed)

    return lambda: monkeypatch.setattr(live_learner, "stream_of", former)


GO_ON = [name for name in kept.SAVED if name not in kept.BY_COIN]
REFUSED = [name for name in kept.SAVED if name in kept.BY_COIN]
FORMER_TEXT = "Returns(share={0.share!r}, low={0.low!r}, high={0.high!r})"  # of a run, while returns were a coin's


@pytest.mark.parametrize("name", GO_ON)
def test_a_saved_run_goes_on_to_the_same_bits(name, gone_on, as_before, tmp_path):
    """A refusal means that the mark of a run has changed (names of classes, fields or modules are in it, and texts of
    settings); other digests, that a run now goes on elsewhere."""
    saved, expected = kept.SAVED[name], EXPECTED["saved"][name]
    (run, folder), whole = gone_on(name), tmp_path
    as_before()
    uninterrupted = saved.learn(whole, name)
    assert run.episodes == saved.episodes
    assert kept.of_run(run).as_json() == kept.of_run(uninterrupted).as_json()
    assert_expected(kept.of_run(run).as_json(), expected)
    assert same_file(folder / f"{name}.npz", whole / f"{name}.npz")
    if ALIKE:
        assert kept.digest(kept.in_file(folder / f"{name}.npz")) == expected["file"]


def test_a_saved_run_counts_what_came_later(gone_on, as_before, tmp_path):
    """Of rewards x that it still sees it sums x (1 - x): what is missing is what came before it was saved, no more."""
    saved, (_, folder) = kept.SAVED["alarmed"], gone_on("alarmed")
    as_before()
    for place in ("whole", "before"):
        (tmp_path / place).mkdir()
    saved.learn(tmp_path / "whole", "alarmed")
    with pytest.raises(kept.Stopped):
        saved.learn(tmp_path / "before", "alarmed", stop=True)
    files = (folder, tmp_path / "before", tmp_path / "whole")
    later, before, whole = (between_in(path / "alarmed.npz")["counts_z_sa"] for path in files)
    assert later.any() and before.any()
    np.testing.assert_array_equal(later + before, whole)
    assert not same_file(tmp_path / "whole" / "alarmed.npz", folder / "alarmed.npz")  # control: more is not fewer


@pytest.mark.parametrize("name", ["stepmix-kl", "alarmed"])
def test_a_saved_run_goes_on_beyond_its_end(name, gone_on, tmp_path):
    """68af267 wrote it for one number of episodes: with another one it is refused, with a sentence that says how to
    get there. Once it was resumed with its own, it may be longer."""
    saved = kept.SAVED[name]
    for path in (*KEPT.glob(f"{name}.npz"), *KEPT.glob(f"{name}.ledger")):
        shutil.copy(path, tmp_path)
    longer = saved._replace(episodes=saved.episodes + 20)
    with pytest.raises(sf.InvalidFile, match="for one number of episodes: resume with that number, and then with more"):
        longer.learn(tmp_path, name, resume=True)
    first, _ = gone_on(name)
    assert saved.learn(tmp_path, name, resume=True).counts == first.counts
    run = longer.learn(tmp_path, name, resume=True)
    assert run.episodes == saved.episodes + 20 and run.alarm == first.alarm
    np.testing.assert_array_equal(run.curve.mean[: saved.episodes], first.curve.mean)
    with pytest.raises(sf.InvalidFile, match=f"resume with {saved.episodes + 20} or more"):
        saved.learn(tmp_path, name, resume=True)


def counts_of(path):
    """The counts in the file of a run."""
    arrays = kept.in_file(path)
    mine = {name: array for name, array in arrays.items() if name.startswith("counts_")}
    return sf.Counts.from_arrays(path, {name.removeprefix("counts_"): array for name, array in mine.items()}), mine


@pytest.mark.parametrize("name", REFUSED)
def test_a_saved_run_by_the_former_bound_is_refused(name, folder, monkeypatch):
    """Its evidence proves nothing any more: to go on would change what a run rests on while it lasts. What was counted
    can be had: it is read and saved as it was. With the former text of its settings the file would be accepted
    (control: nothing but the bound is another)."""
    saved, path = kept.SAVED[name], folder / f"{name}.npz"
    before = path.read_bytes()
    with pytest.raises(sf.InvalidFile, match="belongs to another run: the agent"):
        saved.learn(folder, name, resume=True)
    assert path.read_bytes() == before
    counts, arrays = counts_of(path)
    assert counts.episodes == saved.stopped
    again = {f"counts_{label}": array for label, array in counts.arrays(claims=False).items()}
    assert kept.digest(again) == kept.digest(arrays)
    monkeypatch.setitem(identity.TEXTS, sf.Returns, FORMER_TEXT)
    (folder / f"{name}.ledger").unlink(missing_ok=True)
    assert saved.learn(folder, name, resume=True).episodes == saved.episodes


@pytest.mark.parametrize("name", REFUSED)
def test_a_run_by_the_bound_of_now_goes_on(name, as_before, tmp_path):
    """Control of the refusal: with the same settings, saved today."""
    saved, whole = kept.SAVED[name], tmp_path / "whole"
    whole.mkdir()
    as_before()
    with pytest.raises(kept.Stopped):
        saved.learn(tmp_path, name, stop=True)
    run, uninterrupted = saved.learn(tmp_path, name, resume=True), saved.learn(whole, name)
    assert run.counts.return_weights.any()
    assert kept.of_run(run).as_json() == kept.of_run(uninterrupted).as_json()
    assert same_file(tmp_path / f"{name}.npz", whole / f"{name}.npz")


@pytest.mark.parametrize("name", REFUSED)
def test_counts_of_a_run_by_the_former_bound_begin_without_its_evidence(name):
    """The returns in them are this baseline's, and prove nothing: the plan is that of counts which have forgotten them.
    Control: spread as they are now, as many returns do prove something."""
    agent = kept.SAVED[name].agent()
    counts = counts_of(KEPT / f"{name}.npz")[0].claimed_for(agent.problem)
    assert counts.returns_of == agent.fingerprint
    assert_no_evidence(agent, counts)


def assert_no_evidence(agent, counts):
    """Returns that are known by their number and their sum alone prove nothing; those that are spread do."""
    n, total = counts.baseline_returns.tolist()
    assert (n > 0, counts.spread_episodes, counts.return_range) == (True, 0, None)
    plan, without = (agent.plan(some, np.random.default_rng(0)) for some in (counts, counts.forget_returns()))
    assert plan.grounds.by_returns == without.grounds.by_returns == -np.inf
    assert kept.digest(kept.of_plan(plan)) == kept.digest(kept.of_plan(without))
    assert "by the returns of 0 whole baseline episodes, which lie in " in plan.explain()
    assert f"({n:,} more are no evidence: of an earlier version" in plan.explain()
    spread = counts.forget_returns()
    agent.claim(spread)
    for _ in range(n):
        spread.count_return(total // n)
    assert spread.spread_episodes == n
    assert agent.plan(spread, np.random.default_rng(0)).grounds.by_returns > 0.0


def test_a_run_that_begins_now_has_other_numbers_and_says_which(tmp_path):
    """Control: else it would prove nothing that saved runs go on with the numbers they began with."""
    name = "stepmix-kl"
    found = kept.of_run(kept.SAVED[name].learn(tmp_path, name)).as_json()
    assert found["digests"]["counts"] != EXPECTED["saved"][name]["digests"]["counts"]
    assert str(kept.in_file(tmp_path / f"{name}.npz")["counts_stream"]) == "surefoot live stream 1"
    assert "counts_stream" not in kept.in_file(KEPT / f"{name}.npz")


@pytest.mark.parametrize("name", [name for name in GO_ON if kept.SAVED[name].ledger])
def test_an_open_ledger_goes_on_to_the_same_bytes(name, gone_on):
    """Other bytes mean that records have other words or numbers, so that a digest that somebody has kept is of no
    ledger any more; a refusal to go on, that a learner no longer knows its own ledger."""
    before = (KEPT / f"{name}.ledger").read_bytes()
    assert not sf.check_ledger(KEPT / f"{name}.ledger").closed
    _, folder = gone_on(name)
    verdict = sf.check_ledger(folder / f"{name}.ledger")
    assert (verdict.closed, verdict.refusals) == (True, [])
    assert (folder / f"{name}.ledger").read_bytes().startswith(before)
    assert_digest(kept.sha256(folder / f"{name}.ledger"), EXPECTED["saved"][name]["ledger"])


def test_an_open_ledger_by_the_former_bound_is_read_and_not_gone_on_with(folder):
    """What was proved by the coin is proved: the ledger is re-derived as far as it goes. To go on with another bound
    would be another agent's ledger."""
    name = "epsmix-live"
    path, agent = folder / f"{name}.ledger", kept.SAVED[name].agent()
    verdict, before = sf.check_ledger(path), path.read_bytes()
    assert (verdict.closed, verdict.refusals, verdict.plans) == (False, [], 9)
    assert json.loads(before.splitlines()[0])["returns"] is not None
    with pytest.raises(sf.InvalidFile, match="bounded returns in another way"):
        sf.Ledger.resume(path, agent, kept.SAVED[name].stopped)
    assert path.read_bytes() == before
    known = sf.Ledger.resume(folder / "stepmix-kl.ledger", kept.SAVED["stepmix-kl"].agent(), 78)  # control
    assert "24 plans" in repr(known)


@pytest.mark.parametrize("name", kept.SAVED)
def test_another_seed_is_refused_and_has_other_digests(name, folder):
    """Control: were this not so, the tests above would pass whatever was played."""
    saved, other = kept.SAVED[name], folder / "other"
    with pytest.raises(sf.InvalidFile):
        saved.learn(folder, name, resume=True, seed=saved.seed + 1)
    other.mkdir()
    found = kept.of_run(saved.learn(other, name, seed=saved.seed + 1)).as_json()
    expected = EXPECTED["saved"][name]
    for group in ("counts", "totals"):
        assert found["digests"][group] != expected["digests"][group]
    assert kept.digest(kept.in_file(other / f"{name}.npz")) != expected["file"]
    if saved.ledger:
        assert kept.sha256(other / f"{name}.ledger") != expected["ledger"]


def test_the_documented_text_still_makes_our_environment():
    """Users have this text in their own files. A failure means that it no longer works: leave an alias."""
    env = gymnasium.make(kept.OUR_ENVIRONMENT)
    assert env.spec.id == kept.our_environment().spec.id
    assert type(env.unwrapped) is type(kept.our_environment().unwrapped)


# ---- counts

CONTINUED = [name for name in kept.COUNTS if name != "account"]


@pytest.mark.parametrize("name", kept.COUNTS)
def test_counts_are_read_and_saved_as_they_were(name, tmp_path):
    path = KEPT / f"counts-{name}.npz"
    counts = sf.Counts.load(path)
    assert kept.digest(kept.of_counts(counts)) == EXPECTED["counts"][name]["holds"]
    counts.save(tmp_path / "again.npz")
    assert same_file(tmp_path / "again.npz", path)  # so 68af267 reads what is written now


@pytest.mark.parametrize("name", CONTINUED)
def test_counts_are_gone_on_from(name):
    """A refusal may mean that whose returns they are is marked in another way. Of `veiled` the returns are no evidence
    any more; neither its plan nor the run rested on them."""
    expected = EXPECTED["counts"][name]
    _, agent, _ = kept.COUNTS[name]
    counts = kept_counts(f"counts-{name}.npz", agent())
    with pytest.raises(sf.InvalidCounts, match="claimed_for"):  # 68af267 did not write what they are evidence about
        kept.gone_on(name, counts)
    counts = counts.claimed_for(agent().problem)
    assert_expected(kept.of_run(kept.gone_on(name, counts)).as_json(), expected["after"])
    assert_digest(kept.digest(kept.of_plan(agent().plan(counts))), expected["plan"])


def test_returns_in_kept_counts_are_no_evidence():
    agent = kept.veiled_agent()
    assert_no_evidence(agent, kept_counts("counts-veiled.npz", agent).claimed_for(agent.problem))


def test_an_account_by_the_former_bound_is_refused():
    """Its entries are what the coin proved. Without it an agent goes on, and begins another one. Control: an account by
    the bound of now is gone on with."""
    agent = kept.account_agent()
    counts = kept_counts("counts-account.npz", agent).claimed_for(agent.problem)
    with pytest.raises(sf.InvalidCounts, match="the account of another agent, floor, delta or bounds"):
        kept.gone_on("account", counts)
    rest = counts.forget_returns()
    assert (rest.account == 0).all()
    begun = kept.gone_on("account", rest)
    assert begun.counts.account[:2].sum() == 500
    assert begun.counts.account_of == agent.account_fingerprint != counts.account_of
    assert kept.gone_on("account", begun.counts).counts.account[:2].sum() == 1000


@pytest.mark.parametrize("name", kept.COUNTS)
def test_other_counts_have_other_digests(name):
    """Control: one visit more, and another seed."""
    agent, expected = kept.COUNTS[name][1](), EXPECTED["counts"][name]
    counts = kept_counts(f"counts-{name}.npz", agent).claimed_for(agent.problem)
    if name in CONTINUED:
        after = kept.of_run(kept.gone_on(name, counts, seed=5)).as_json()["digests"]
        assert after["counts"] != expected["after"]["digests"]["counts"]
    counts.n_sas[0, 1, 0, 2] += 1
    assert kept.digest(kept.of_counts(counts)) != expected["holds"]


# ---- a loop of one's own


def read_loop(seed=3):
    agent = kept.loop_agent()
    watch = kept.LOOP_WATCHDOG.on(agent, KEPT / "loop-watch.npz")
    counts = kept_counts("loop-counts.npz", agent).claimed_for(agent.problem)
    return sf.Learner(agent, seed, counts=counts, watchdog=watch)


def test_a_loop_goes_on_with_its_plan_and_its_watch(tmp_path):
    """Other digests mean that a learner does not take up the plan in force, or a watchdog not its capital."""
    learner = read_loop()
    assert learner.episodes == kept.LOOP
    assert kept.of_learner(learner).as_json() == EXPECTED["loop"]["holds"]
    sf.Counts.load(KEPT / "loop-counts.npz").save(tmp_path / "counts.npz")
    learner.watch.save(tmp_path / "watch.npz")
    assert same_file(tmp_path / "counts.npz", KEPT / "loop-counts.npz")
    assert same_file(tmp_path / "watch.npz", KEPT / "loop-watch.npz")
    kept.own_loop(learner, kept.LOOP)
    for counts in (learner.counts, learner.counts.planned):
        counts.return_weights[:] = 0  # 68af267 did not spread returns
    assert_digest(kept.of_learner(learner).as_json(), EXPECTED["loop"]["after"])


def test_returns_in_a_kept_loop_are_no_evidence():
    """Those of its next episodes are."""
    agent = kept.loop_agent()
    counts = kept_counts("loop-counts.npz", agent).claimed_for(agent.problem)
    assert_no_evidence(agent, counts)
    before = int(counts.baseline_returns[0])
    learner = kept.own_loop(read_loop(), kept.LOOP)
    assert learner.counts.spread_episodes == learner.counts.baseline_returns[0] - before > 0


def test_a_loop_with_another_seed_ends_elsewhere():
    """Control."""
    found = kept.of_learner(kept.own_loop(read_loop(seed=4), kept.LOOP)).as_json()
    for group in ("counts", "watch"):
        assert found["digests"][group] != EXPECTED["loop"]["after"]["digests"][group]


# ---- policies, logs and what was learnt from them


def test_policies_are_read(tmp_path):
    """Other digests mean other probabilities; other files, that 68af267 cannot read what is written now."""
    policy, coin = sf.load_policy(KEPT / "policy.npz"), sf.load_policy(KEPT / "coin.npz")
    parts = {"first": coin.first, "second": coin.second, "rho": coin.rho}
    assert kept.digest({"policy": policy}) == EXPECTED["policies"]["policy"]
    assert kept.digest(parts) == EXPECTED["policies"]["coin"]
    sf.save_policy(tmp_path / "policy.npz", policy)
    sf.save_policy(tmp_path / "coin.npz", coin)
    for name in ("policy.npz", "coin.npz"):
        assert same_file(tmp_path / name, KEPT / name)
    assert kept.digest({**parts, "rho": np.nextafter(coin.rho, 1.0)}) != EXPECTED["policies"]["coin"]  # control
    assert not same_file(tmp_path / "coin.npz", KEPT / "policy.npz")  # control


@pytest.mark.parametrize("name", ["plain", "shop"])
def test_counted_logs_are_read_and_learnt_from(name, tmp_path):
    """Other digests mean that a log is counted, folded or learnt from in another way."""
    path, expected = KEPT / f"log-counts-{name}.npz", EXPECTED["logs"]
    log = sf.LogCounts.load(path)
    assert kept.digest(kept.of_log(log)) == expected[name]
    log.save(tmp_path / "again.npz")
    assert same_file(tmp_path / "again.npz", path)
    problem = log.problem(None if name == "shop" else kept.log_world().r, start="as logged")
    learnt = sf.robust_vi(log.counts, problem, 0.05, kept.PRIOR)
    assert learnt.rescaled_lower == pytest.approx(expected["lower"][name], abs=1e-9)
    for other in (sf.robust_vi(log.counts, problem, 0.06, kept.PRIOR), sf.robust_vi(log.counts, problem, 0.05)):
        # control: another delta, or another prior, proves something else
        assert kept.digest(kept.of_learnt(other)) != expected["learnt"]["digests"][name]
    assert_digest(kept.digest(kept.of_learnt(learnt)), expected["learnt"]["digests"][name])


def test_logs_are_counted_as_before(tmp_path):
    """A log of a user's own, and two that we wrote: other digests mean other counts, or other folds."""
    expected = EXPECTED["logs"]
    assert kept.digest(kept.of_log(sf.count_log(KEPT / "shop.csv", **kept.SHOP))) == expected["shop"]
    for name in ("log.csv", "log.parquet"):
        assert kept.digest(kept.of_log(sf.count_log(KEPT / name, seed=5, **kept.PLAIN))) == expected["plain"]
    other = sf.count_log(KEPT / "log.csv", seed=6, **kept.PLAIN)
    assert kept.digest(kept.of_log(other)) != expected["plain"]  # control
    world = kept.log_world()
    sf.sample_log(world, sf.uniform(world.H, world.S, world.A), 100, tmp_path / "log.csv", seed=2)
    assert (tmp_path / "log.csv").read_bytes() == (KEPT / "log.csv").read_bytes()


def test_a_minari_dataset_is_read(folder, monkeypatch, tmp_path):
    """A failure means that datasets which we wrote cannot be had back."""
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder / "minari"))
    log = sf.count_log(sf.from_minari(kept.MINARI, tmp_path / "back.csv"), states=3, actions=2, reward_range=(0.0, 1.0))
    assert kept.digest(kept.of_log(log)) == EXPECTED["logs"]["minari"]
    more = sf.count_log(tmp_path / "back.csv", states=4, actions=2, reward_range=(0.0, 1.0))  # control
    assert kept.digest(kept.of_log(more)) != EXPECTED["logs"]["minari"]


def test_a_codebook_is_read(tmp_path):
    """A failure means that labels are lost."""
    book = sf.Codebook.load(KEPT / "codebook.json")
    assert (book.states, book.actions, book.rest) == (("loyal", "new"), ("call", "mail"), True)
    book.save(tmp_path / "again.json")
    mine, its = (json.loads(path.read_text()) for path in (tmp_path / "again.json", KEPT / "codebook.json"))
    assert {**mine["about"], "surefoot": ""} == {**its["about"], "surefoot": ""}
    assert mine | {"about": 0} == its | {"about": 0}
    text = (KEPT / "codebook.json").read_text()
    (tmp_path / "bent.json").write_text(text.replace("loyal", "royal"))
    with pytest.raises(sf.InvalidFile):  # control
        sf.Codebook.load(tmp_path / "bent.json")


def test_a_baseline_is_read_and_a_learner_starts_with_it(tmp_path):
    """A refused certificate means that policies or problems are marked in another way."""
    baseline = sf.load_baseline(KEPT / "baseline.npz")
    baseline.save(tmp_path / "again.npz")
    assert same_file(tmp_path / "again.npz", KEPT / "baseline.npz")
    log = sf.LogCounts.load(KEPT / "log-counts-shop.npz")
    learnt = sf.robust_vi(log.counts, log.problem(start="as logged"), 0.05, kept.PRIOR)
    assert baseline.certificate.mark == learnt.certificate.mark
    proved = baseline.certificate
    floor = 0.5 * (baseline.problem.lowest + proved.value)
    agent = sf.StepMix(baseline.problem, baseline.policy, floor, delta=0.01, certificate=proved)
    assert agent.plan(log.counts).lower >= floor


def test_a_baseline_is_shown_and_made_again_by_the_command(command, tmp_path, former_defaults):
    """Other rules mean that `show` reads something else; another file, that `baseline` learns something else. (With
    the prior that it had then.)"""
    for name, key in (("baseline-by-command", "by command"), ("baseline", "by hand")):
        code, said = command("show", KEPT / f"{name}.npz", "--json")
        assert (code, printed(said)) == (0, EXPECTED["logs"][key])
    assert EXPECTED["logs"]["by command"] != EXPECTED["logs"]["by hand"]  # control
    counts = (KEPT / "log-counts-plain.npz", "--rewards", "as-logged", "--start", "as-logged")
    assert command("baseline", *counts, "--out", tmp_path / "now.npz", "--delta", "0.1")[0] == 0
    former_defaults()
    code, _ = command("baseline", *counts, "--out", tmp_path / "b.npz", "--delta", "0.1")
    assert code == 0
    other, _ = command("baseline", *counts, "--out", tmp_path / "c.npz", "--delta", "0.2")
    assert other == 0
    for name in ("now", "c"):
        assert not same_file(tmp_path / f"{name}.npz", KEPT / "baseline-by-command.npz")  # control
    if ALIKE:
        assert same_file(tmp_path / "b.npz", KEPT / "baseline-by-command.npz")


# ---- a closed ledger


def test_a_closed_ledger_is_re_derived(command):
    """A refusal means that the verifier no longer accepts what was certified."""
    verdict, expected = sf.check_ledger(KEPT / "closed.ledger"), EXPECTED["ledger"]
    assert (verdict.closed, verdict.refusals, verdict.digest) == (True, [], expected["digest"])
    assert (verdict.plans, verdict.certified) == (expected["plans"], expected["certified"])
    assert command("certify", KEPT / "closed.ledger")[0] == 0


def test_the_same_run_writes_the_same_ledger(tmp_path):
    """In the words of format 1, the format of 68af267. Other bytes mean other words or numbers in the records: read
    docs/ledger.md, whose formats are promises."""
    found = []
    for seed in (0, 1):
        kept.ledger_run(tmp_path / f"{seed}.ledger", seed)
        found.append(hashlib.sha256(kept.in_format_1(tmp_path / f"{seed}.ledger")).hexdigest())
        assert kept.sha256(tmp_path / f"{seed}.ledger") != found[-1]  # control: it was written in another format
    assert found[1] != EXPECTED["ledger"]["bytes"]  # control
    assert kept.sha256(KEPT / "closed.ledger") == EXPECTED["ledger"]["bytes"]
    assert kept.in_format_1(KEPT / "closed.ledger") == (KEPT / "closed.ledger").read_bytes()
    assert_digest(found[0], EXPECTED["ledger"]["bytes"])


@pytest.mark.parametrize("name", ["closed", "stepmix-kl", "epsmix-live"])
def test_a_changed_ledger_is_refused(name, folder, command):
    """Control: one byte of one plan."""
    path = folder / f"{name}.ledger"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"number":1', b'"number":2')
    path.write_bytes(b"".join(lines))
    assert sf.check_ledger(path).refusals
    assert command("certify", path)[0] == 3
    if name in kept.SAVED:
        with pytest.raises(sf.InvalidFile):
            kept.SAVED[name].learn(folder, name, resume=True)


# ---- studies


def same_versions(folder):
    """Results are only gone on with by the versions that began them: the command refuses others, rightly."""
    made = json.loads((folder / "study.json").read_text())["versions"]
    now = {name: version(name) for name in made if name != "python"} | {"python": HERE["python"]}
    now["surefoot"] = sf.__version__
    return {name: (made[name], now[name]) for name in made if made[name] != now[name]}


def in_format_1(path):
    """Writes a trial's file without the columns that were added since, as 68af267 wrote it."""
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute(f"CREATE TABLE trial AS FROM read_parquet('{path}', hive_partitioning = false)")
        added = kept.added_columns(name for name, *_ in con.execute("DESCRIBE trial").fetchall())
        if added:
            former = f"SELECT * EXCLUDE ({', '.join(added)}) FROM trial"
            con.execute(f"COPY ({former}) TO '{path}' (FORMAT PARQUET, COMPRESSION ZSTD)")
    return bool(added)


def trial_bytes(folder):
    return {path.relative_to(folder).as_posix(): kept.sha256(path) for path in folder.glob("trials/**/*.parquet")}


def test_a_study_of_a_users_own_is_read(command, folder):
    """A refusal means that a field, or one of its values, has another name."""
    code, said = command("studies", folder / "own.toml", "--json")
    assert (code, printed(said)) == (0, EXPECTED["studies"]["own"])
    (folder / "own.toml").write_text(kept.STUDY.replace("delta = 0.2", "delta = 0.3"))
    assert printed(command("studies", folder / "own.toml", "--json")[1]) != EXPECTED["studies"]["own"]  # control


def test_results_are_read(command):
    """A refusal means that studies are hashed, or trials laid out, in another way; no answer to the question, that
    columns which users ask for have other names."""
    done, expected = KEPT / "study-complete", EXPECTED["studies"]
    code, said = command("results", done, "--json")
    assert (code, printed(said)) == (0, expected["summary"])
    code, said = command("results", done, "--sql", kept.QUESTION, "--json")
    assert (code, printed(said)) == (0, expected["answer"])
    assert trial_bytes(done) == expected["complete bytes"]
    assert kept.digest(kept.of_trials(done)) == expected["complete"]


def test_a_study_goes_on_to_the_same_numbers(command, folder, former_defaults):
    """Other numbers mean that trials which are computed now do not belong to those that are there. (A study cannot say
    a prior, nor returns: with those that it had then.)"""
    former_defaults()
    place, expected = folder / "study-open", EXPECTED["studies"]
    if same_versions(place):
        pytest.skip(f"results are gone on with by the versions that began them: {same_versions(place)}")
    before = trial_bytes(place)
    assert before.keys() == set(kept.FINISHED_BEFORE)
    assert command("run", folder / "own.toml", *QUICK, "--out", place, "--resume")[0] == 0
    assert len(trial_bytes(place)) == 12
    assert trial_bytes(place).items() >= before.items()
    assert_digest(kept.digest(kept.of_trials(place)), expected["quick"])


def test_a_study_goes_on_to_the_same_bytes(command, folder, former_defaults):
    """In the columns of 68af267. If only this fails and the numbers hold, words (promise, label) have changed."""
    former_defaults()
    place = folder / "study-open"
    if same_versions(place):
        pytest.skip(f"results are gone on with by the versions that began them: {same_versions(place)}")
    assert command("run", folder / "own.toml", *QUICK, "--out", place, "--resume")[0] == 0
    assert sum(map(in_format_1, place.glob("trials/**/*.parquet"))) == 9  # those that were computed now
    assert_digest(trial_bytes(place), EXPECTED["studies"]["quick bytes"])


def test_another_study_is_refused_and_has_other_bytes(command, folder, tmp_path):
    """Control: another seed."""
    (folder / "own.toml").write_text(kept.STUDY.replace("seed = 3", "seed = 4"))
    assert command("run", folder / "own.toml", *QUICK, "--out", folder / "study-open", "--resume")[0] == 1
    (tmp_path / "small.toml").write_text(kept.study_text(1))
    out = tmp_path / "out"
    assert command("run", tmp_path / "small.toml", "--jobs", "1", "--no-report", "--out", out)[0] == 0
    expected = EXPECTED["studies"]
    assert trial_bytes(out).keys() == expected["complete bytes"].keys()
    assert trial_bytes(out) != expected["complete bytes"]
    assert kept.digest(kept.of_trials(out)) != expected["complete"]
    assert printed(command("results", out, "--json")[1]) != expected["summary"]
    assert printed(command("results", out, "--sql", kept.QUESTION, "--json")[1]) != expected["answer"]


# ---- controls of the digests themselves

READERS = {
    "counts": sf.Counts.load,
    "policy": sf.load_policy,
    "episodic-mixture": sf.load_policy,
    "log-counts": sf.LogCounts.load,
    "watch": lambda path: kept.LOOP_WATCHDOG.on(kept.loop_agent(), path),
    "learning": lambda path: kept.SAVED[path.stem].learn(path.parent, path.stem, resume=True),
}


@pytest.mark.parametrize("name", sorted(path.name for path in KEPT.glob("*.npz")))
def test_one_changed_bit_is_seen_and_refused(name, folder):
    """Control: a bit in each array of a file changes its digest; with one in the last the file is not read."""
    path = folder / name
    arrays, before = kept.in_file(path), kept.digest(kept.in_file(path))
    about = header(path)
    for label, array in arrays.items():
        if array.nbytes == 0 or array.dtype.kind == "U":
            continue
        bent = np.frombuffer(bytearray(array.tobytes()), dtype=np.uint8)
        bent[0] ^= 1
        changed = {**arrays, label: bent.view(array.dtype).reshape(array.shape)}
        assert kept.digest(changed) != before, label
    np.savez_compressed(path, about=np.array(json.dumps(about, sort_keys=True)), **changed)
    with pytest.raises(sf.InvalidFile):
        READERS[about["kind"]](path)
