"""Compiled loops and linear programs: arrays in, arrays out."""
