"""`python -m surefoot` is the command."""

from surefoot.cli import main

main()
