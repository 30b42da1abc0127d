"""States of guards before the first ticket."""


def begun(guard, logged=None, run="r", name="c"):
    """With one candidate, and perhaps with returns of the baseline from before."""
    return guard.admit(guard.begin(logged, run=run), name)
