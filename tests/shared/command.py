"""The command, called in this process."""

from typer.testing import CliRunner

from surefoot.cli.main import app


def surefoot(*arguments, **settings):
    """What the command answers to these arguments, and how it ends."""
    return CliRunner().invoke(app, list(map(str, arguments)), **settings)
