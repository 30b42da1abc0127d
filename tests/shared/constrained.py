"""Constrained optima of the worlds with costs, by Lagrangian duality."""

# world: budget on the expected cost -> best expected reward
REFERENCE = {
    "inventory": {3.5: 6.6653215273, 0.7: 1.5557105027},
    "media-buffer": {5.0: 3.2532957884, 1.0: 1.0165112816},
    "three-rooms": {3.0: 2.0, 0.6: 0.4},
}
