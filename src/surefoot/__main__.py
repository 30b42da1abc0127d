"""`python -m surefoot` is the command."""

from surefoot.cli.main import main

main()
