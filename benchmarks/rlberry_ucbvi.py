"""Runs in .venv-peers: reads [S, A, H, episodes] per line, answers with UCBVI's microseconds per
episode.
"""

import json
import logging
import sys
import time
from functools import cache

import numpy as np
import rlberry
from rlberry.agents import UCBVIAgent
from rlberry.envs.finite import FiniteMDP

# rlberry insists on rows that sum to 1 within 1e-15, so probabilities are multiples of 2^-20
GRAIN = 2**20


@cache
def compiled(S: int, A: int, H: int) -> UCBVIAgent:
    rng = np.random.default_rng(1)
    R = rng.random((S, A))
    P = rng.multinomial(GRAIN, rng.dirichlet(np.ones(S), size=(S, A))) / GRAIN
    agent = UCBVIAgent(FiniteMDP(R, P, 0), horizon=H, stage_dependent=True)
    agent.set_writer(None)  # without its log it is faster, and the log is not what we compare
    agent.fit(20)  # compiles
    return agent


def microseconds(S: int, A: int, H: int, episodes: int) -> float:
    ucbvi = compiled(S, A, H)
    started = time.perf_counter()
    ucbvi.fit(episodes)
    return (time.perf_counter() - started) / episodes * 1e6


if __name__ == "__main__":
    rlberry.logger.setLevel(logging.ERROR)
    for line in sys.stdin:
        print(json.dumps(microseconds(*json.loads(line))), flush=True)
