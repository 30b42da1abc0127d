"""Logs of past episodes: open, check and count them, and write them."""
