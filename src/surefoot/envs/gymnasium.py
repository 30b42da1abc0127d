"""The former name of `surefoot.worlds.gymnasium`. Importing either registers our worlds with Gymnasium."""

from surefoot.worlds.gymnasium import embed_policy, from_gymnasium

__all__ = ["embed_policy", "from_gymnasium"]
