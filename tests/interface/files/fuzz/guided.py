"""Coverage-guided fuzzing of one reader with atheris: python tests/interface/files/fuzz/guided.py
counts --seconds 60.

atheris keeps the inputs that reach new lines of surefoot and changes those. The same property as in
test_hostile_files: a valid object, or an error of surefoot's own; within 2 GiB and 20 s. The exit
code is 0 if nothing else happened.
"""

import argparse
import random
import sys
import tempfile
import warnings
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent))
with atheris.instrument_imports(include=["surefoot"], enable_loader_override=False):
    import targets

    import surefoot as sf
    from surefoot.base import files  # noqa: F401
    from surefoot.evidence import counts  # noqa: F401
    from surefoot.logs import (  # noqa: F401
        baseline_file,
        checking,
        codebook,
        counting,
        log_counts,
        minari,
        reading,
    )
    from surefoot.model import policy  # noqa: F401
    from surefoot.run import learn  # noqa: F401
    from surefoot.studies.analysis import sql  # noqa: F401
    from surefoot.studies.run import store  # noqa: F401
    from surefoot.studies.spec import fields, study  # noqa: F401

SEEDS = 64


def main() -> None:
    """Prepare a valid file, then let atheris spoil it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=targets.TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--folder", type=Path, default=None)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="surefoot-fuzz-"))
    warnings.simplefilter("error")
    target = targets.TARGETS[given.name]
    for part in ("valid", "scratch", "corpus"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    targets.use_scratch(folder / "scratch")
    target.make(folder / "valid")
    whole = targets.refresh(target, folder / "valid", folder / "work")
    target.read(folder / "work")
    rng = random.Random(0)
    for i in range(SEEDS):
        (folder / "corpus" / f"{i}").write_bytes(rng.randbytes(60))
    seen = {"read": 0, "refused": 0}

    def one(data: bytes) -> None:
        (folder / "work" / target.file).write_bytes(target.spoil(whole, targets.Choices(data)))
        try:
            target.read(folder / "work")
            seen["read"] += 1
        except sf.SurefootError:
            seen["refused"] += 1
        if sum(seen.values()) % 500 == 0:
            print(f"{given.name}: {seen}", file=sys.stderr, flush=True)  # noqa: T201

    limits = [
        f"-max_total_time={given.seconds}",
        "-timeout=20",
        "-rss_limit_mb=2048",
        "-max_len=400",
    ]
    limits += ["-seed=1", "-print_final_stats=1", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *limits, str(folder / "corpus")], one)
    atheris.Fuzz()


main()
