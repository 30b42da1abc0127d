"""Worlds to learn in: synthetic families by name, and any Gymnasium environment."""

from surefoot.envs.registry import FAMILIES as FAMILIES
from surefoot.envs.registry import Family as Family
from surefoot.envs.registry import world as world
