"""The command `surefoot`: parse, call, print."""
