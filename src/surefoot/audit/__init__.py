"""Checks of a promise from outside: the ledger of plans, its verifier, and the watchdog."""
