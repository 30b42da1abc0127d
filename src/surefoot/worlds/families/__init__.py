"""Families of worlds: one file per kind."""
