"""The former name of `surefoot.worlds.gymnasium`. Importing either registers our worlds with Gymnasium."""

from surefoot.worlds.gymnasium import embed_policy as embed_policy
from surefoot.worlds.gymnasium import from_gymnasium as from_gymnasium
