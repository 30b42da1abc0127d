"""Writes the kept files, expected.json and bits.json: how they came about, for the record.

    PYTHONPATH=/path/to/68af267/src python tests/data/kept/write.py FOLDER

was run once, with commit 68af267. Run with a later commit it shows what that one would write: compare with `diff -r`.
The files are the same every time.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import settings as kept

import surefoot as sf


def write(folder: Path) -> None:
    """Everything, into an empty folder."""
    folder.mkdir(parents=True)
    expected = {
        "machine": kept.machine(),
        "saved": saved_runs(folder),
        "counts": counts(folder),
        "loop": loop(folder),
        "policies": policies(folder),
        "logs": logs(folder),
        "ledger": closed_ledger(folder),
        "studies": studies(folder),
    }
    (folder / "expected.json").write_text(kept.as_text(expected))
    (folder / "bits.json").write_text(kept.as_text({"machine": kept.machine(), "runs": bits()}))


def saved_runs(folder: Path) -> dict:
    """Runs of `learn` whose environment went away; expected is what the same runs come to if it does not."""
    expected = {}
    for name, saved in kept.SAVED.items():
        with suppress(kept.Stopped):
            saved.learn(folder, name, stop=True)
            raise AssertionError(name)
        with tempfile.TemporaryDirectory() as whole:
            run = saved.learn(Path(whole), name)
            expected[name] = kept.of_run(run).as_json()
            expected[name]["file"] = kept.digest(kept.in_file(Path(whole, f"{name}.npz")))
            if saved.ledger:
                expected[name]["ledger"] = kept.sha256(Path(whole, f"{name}.ledger"))
    return expected


def counts(folder: Path) -> dict:
    """Counts of every kind; expected is what they hold, the plan that follows, and a run that starts with them."""
    expected = {}
    for name, (world, agent, episodes) in kept.COUNTS.items():
        found = sf.simulate(world(), agent(), episodes, 1, progress=False).counts
        found.save(folder / f"counts-{name}.npz")
        expected[name] = {
            "holds": kept.digest(kept.of_counts(found)),
            "plan": kept.digest(kept.of_plan(agent().plan(found))),
            "after": kept.of_run(kept.gone_on(name, found)).as_json(),
        }
    return expected


def loop(folder: Path) -> dict:
    """A loop of one's own, stopped in the middle: its counts (with the plan in force) and its watch."""
    learner = kept.own_loop(sf.Learner(kept.loop_agent(), 3, watchdog=kept.LOOP_WATCHDOG), kept.LOOP)
    learner.counts.save(folder / "loop-counts.npz")
    learner.watch.save(folder / "loop-watch.npz")
    holds = kept.of_learner(learner).as_json()
    return {"holds": holds, "after": kept.of_learner(kept.own_loop(learner, kept.LOOP)).as_json()}


def policies(folder: Path) -> dict:
    """A policy, and a coin between two."""
    world = kept.known_world()
    policy = kept.baseline_of(world)
    sf.save_policy(folder / "policy.npz", policy)
    sf.save_policy(folder / "coin.npz", sf.EpisodicMixture(policy, sf.solve(world).policy, 0.3))
    return {
        "policy": kept.digest({"policy": policy}),
        "coin": kept.digest({"first": policy, "second": sf.solve(world).policy, "rho": 0.3}),
    }


def logs(folder: Path) -> dict:
    """Two logs, what was counted in them, the codebook, what was learnt, and a Minari dataset."""
    world = kept.log_world()
    for name in ("log.csv", "log.parquet"):
        sf.sample_log(world, sf.uniform(world.H, world.S, world.A), 100, folder / name, seed=2)
    (folder / "shop.csv").write_text(kept.shop_rows())
    shop = sf.count_log(folder / "shop.csv", **kept.SHOP)
    plain = sf.count_log(folder / "log.csv", seed=5, **kept.PLAIN)
    shop.save(folder / "log-counts-shop.npz")
    plain.save(folder / "log-counts-plain.npz")
    shop.codebook.save(folder / "codebook.json")
    learnt = sf.robust_vi(shop.counts, shop.problem(start="as logged"), 0.05)
    sf.Baseline.of(learnt, shop.codebook).save(folder / "baseline.npz")
    told = sf.robust_vi(plain.counts, plain.problem(rewards=world.r, start="as logged"), 0.05)
    declared = ("--states", "as-logged", "--reward-range", "0", "1", "--rewards", "as-logged", "--start", "as-logged")
    command("baseline", folder / "log.csv", "--out", folder / "baseline-by-command.npz", "--delta", "0.1", *declared)
    os.environ["MINARI_DATASETS_PATH"] = str(folder / "minari")
    with tempfile.TemporaryDirectory() as short:  # one episode: HDF5 takes 14 KB for each
        one = sf.sample_log(world, sf.uniform(world.H, world.S, world.A), 1, Path(short, "one.csv"), seed=2)
        sf.to_minari(one, kept.MINARI, states=world.S, actions=world.A)
        minari = kept.digest(kept.of_log(sf.count_log(one, states=world.S, actions=world.A, reward_range=(0.0, 1.0))))
    return {
        "minari": minari,
        "shop": kept.digest(kept.of_log(shop)),
        "plain": kept.digest(kept.of_log(plain)),
        "learnt": kept.Made({"shop": kept.of_learnt(learnt), "plain": kept.of_learnt(told)}, {}).as_json(),
        "lower": {"shop": learnt.lower, "plain": told.lower},
        "by command": json.loads(command("show", folder / "baseline-by-command.npz", "--json")),
        "by hand": json.loads(command("show", folder / "baseline.npz", "--json")),
    }


def closed_ledger(folder: Path) -> dict:
    """A ledger that was closed: the last record has the digest of all."""
    path = folder / "closed.ledger"
    kept.ledger_run(path)
    verdict = sf.check_ledger(path)
    return {
        "digest": verdict.digest,
        "plans": verdict.plans,
        "certified": verdict.certified,
        "bytes": kept.sha256(path),
    }


def studies(folder: Path) -> dict:
    """A study that was finished, and one that was not: trials that are not there are those that a kill has cost."""
    (folder / "own.toml").write_text(kept.STUDY)
    (folder / "small.toml").write_text(kept.SMALL_STUDY)
    run = ("--jobs", "1", "--no-report")
    command("run", folder / "small.toml", "--out", folder / "study-complete", *run)
    with tempfile.TemporaryDirectory() as whole:
        done = Path(whole, "done")
        command("run", folder / "own.toml", "--quick", "--out", done, *run)
        expected = {"quick": kept.digest(kept.of_trials(done)), "quick bytes": trial_bytes(done)}
        for name in ("study.json", "times.jsonl", *kept.FINISHED_BEFORE):
            (folder / "study-open" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(done / name, folder / "study-open" / name)
    for path in folder.glob("study-*/times.jsonl"):  # how long it took, and where, is another thing every time
        entries = [json.loads(line) for line in path.read_text().splitlines()]
        there = [entry for entry in entries if (path.parent / place_of(entry)).exists()]
        lines = (json.dumps({**entry, "seconds": 0.1, "worker": "1", "host": "here"}) for entry in there)
        path.write_text("".join(f"{line}\n" for line in lines))
    expected["complete"] = kept.digest(kept.of_trials(folder / "study-complete"))
    expected["complete bytes"] = trial_bytes(folder / "study-complete")
    expected["answer"] = json.loads(command("results", folder / "study-complete", "--sql", kept.QUESTION, "--json"))
    expected["own"] = json.loads(command("studies", folder / "own.toml", "--json"))
    expected["summary"] = json.loads(command("results", folder / "study-complete", "--json"))
    return expected


def place_of(entry: dict) -> str:
    return f"trials/{entry['panel']}/{entry['learner']}/{entry['trial']:04d}.parquet"


def trial_bytes(folder: Path) -> dict:
    """A hash of the file of each trial."""
    return {
        path.relative_to(folder).as_posix(): kept.sha256(path) for path in sorted(folder.glob("trials/**/*.parquet"))
    }


def bits() -> dict:
    """Every configured run, and the small study with a seed of its own."""
    found = {}
    for name, run in kept.RUNS.items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = run(0, Path(folder)).as_json()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "small.toml").write_text(kept.study_text(0))
        out = Path(folder, "out")
        command("run", Path(folder, "small.toml"), "--out", out, "--jobs", "1", "--no-report")
        found["study"] = kept.Made({"trials": kept.of_trials(out)}, {}).as_json()
    return found


def command(*arguments: object) -> str:
    """`surefoot ...`; what it printed."""
    call = [sys.executable, "-m", "surefoot", *map(str, arguments)]
    return subprocess.run(call, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    write(Path(sys.argv[1]))
