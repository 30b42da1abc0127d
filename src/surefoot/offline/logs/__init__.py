"""Logs of past episodes: open, check, count and write them."""
