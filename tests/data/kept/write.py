"""Writes bits.json: what configured runs come to. `python tests/data/kept/write.py` replaces it.

It is written anew only where numbers were meant to change; the commit says why.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "shared")]

import settings as kept  # noqa: E402


def bits() -> dict:
    """Every configured run, and a small study with a seed of its own."""
    found = {}
    for name, run in kept.RUNS.items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = run(0, Path(folder)).as_json()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "small.toml").write_text(kept.study_text(0))
        out = Path(folder, "out")
        study = [
            sys.executable,
            "-m",
            "surefoot",
            "run",
            str(Path(folder, "small.toml")),
            "--out",
            str(out),
        ]
        subprocess.run([*study, "--jobs", "1", "--no-report"], check=True, capture_output=True)
        found["study"] = kept.Made({"trials": kept.of_trials(out)}, {}).as_json()
    return found


if __name__ == "__main__":
    (HERE / "bits.json").write_text(kept.as_text({"machine": kept.machine(), "runs": bits()}))
