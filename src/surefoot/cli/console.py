"""What all commands share: exit codes, and how they print."""

import sys

import typer

# docs/command.md says what they mean. A promise that was broken is a certificate that failed, seen from outside.
FINE, BAD_DATA, USAGE, CERTIFICATE_FAILED, INTERRUPTED = 0, 1, 2, 3, 130
PROMISE_BROKEN = CERTIFICATE_FAILED


def say(text: str) -> None:
    """Print a paragraph, with line breaks between words at the width of the terminal."""
    from rich.console import Console

    Console().print(text, highlight=False, markup=False)


def echo(text: str) -> None:
    """Print a line as it is."""
    typer.echo(text)


def at_terminal() -> bool:
    """Is there somebody who can be asked?"""
    return sys.stdin.isatty() and sys.stdout.isatty()


def warn(text: str) -> None:
    """Print a line on standard error."""
    typer.echo(text, err=True)


def echo_json(values: object) -> None:
    """Print values for programs."""
    import json

    typer.echo(json.dumps(values, indent=2))
