"""What checks a promise from outside: the ledger of plans, its verifier, the watchdog."""
