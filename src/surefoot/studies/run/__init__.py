"""Trials of a study: run one, run all that are missing, store them."""
