"""Python in a process of its own."""

import os
import subprocess
import sys


def python(*arguments, folder=None, **environment):
    """What it prints; it must end well."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
