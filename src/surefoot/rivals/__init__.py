"""Algorithms from other papers, to compare with."""
