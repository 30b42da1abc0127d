"""Agents in live processes, which answer for themselves: the true model is not needed."""
