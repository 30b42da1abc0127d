"""What all commands share: exit codes, and how they print. Labels, names of files and the like may
come from anywhere: what cannot be printed of them is written out, and reaches no terminal.
"""

from collections.abc import Sequence
from pathlib import Path

import typer

from surefoot.base.files import require_place
from surefoot.errors import InvalidSetting, printable_lines

# docs/command.md says what they mean. A promise that was broken is a certificate that failed, seen
# from outside.
FINE, BAD_DATA, USAGE, CERTIFICATE_FAILED, INTERRUPTED = 0, 1, 2, 3, 130
PROMISE_BROKEN = CERTIFICATE_FAILED


def say(text: str) -> None:
    """Print a paragraph, with line breaks between words at the width of the terminal."""
    from rich.console import Console

    Console().print(printable_lines(text), highlight=False, markup=False)


def echo(text: str) -> None:
    """Print a line as it is."""
    typer.echo(printable_lines(text))


def end_by_promises(broken: Sequence[str], told: str) -> None:
    """End with exit code 3, and this sentence, if an agent broke its promise, or returns or a
    log do not support it.
    """
    if broken:
        warn(f"surefoot: {told}")
        raise typer.Exit(PROMISE_BROKEN)


def require_new(path: Path, force: bool) -> None:
    """Refuse a file that exists, unless it may be replaced; and a place where none can be
    written.
    """
    if require_place(path).exists() and not force:
        raise InvalidSetting(
            f"{path} exists: nothing is overwritten. Choose another file with --out, or replace it "
            "with --force."
        )


def warn(text: str) -> None:
    """Print a line on standard error."""
    typer.echo(printable_lines(text), err=True)


def echo_json(values: object) -> None:
    """Print values for programs."""
    import json

    typer.echo(json.dumps(values, indent=2))
