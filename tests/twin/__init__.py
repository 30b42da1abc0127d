"""A second implementation of bounds, mixtures and plans, in exact arithmetic; and the comparison
with the first.
"""
