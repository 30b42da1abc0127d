"""Worlds of as many states as one likes, with few successors each: for studies and tests of
large problems.
"""

import numpy as np

from surefoot.base.validation import require_integer, require_number
from surefoot.errors import InvalidModel
from surefoot.model.given_rows import require_room
from surefoot.model.rows import rows_from
from surefoot.worlds.exact import lean, with_baseline
from surefoot.worlds.tabular_mdp import TabularMDP

RIGHT, DOWN, LEFT, UP = range(4)
KEEP, CALL_IN, SEND_HOME = range(3)


def grid_traps(
    rows: int = 6,
    columns: int = 6,
    H: int = 12,
    traps: float = 0.15,
    slip: float = 0.1,
    seed: int = 0,
) -> TabularMDP:
    """A grid with traps: the first row is safe and pays little, the inside pays well and has traps.

        start ── 0.3 ── 0.3 ── 0.3        action 0: right, 1: down, 2: left, 3: up
          │       │      │      │
         0.3 ── 0.65 ── trap ── 0.65      a trap is never left, and pays nothing
          │       │      │      │
         0.3 ── 0.65 ─── 1 ──── 1         two steps from both edges and more: pays 1

    S = rows * columns. A move slips to either side with probability slip/2; who runs against a wall
    stays, and is paid nothing. Each cell below the first row and beyond the first column is a trap
    with probability `traps`, by `seed`. Baseline: to the right in the first row, to the left in the
    last column, up from everywhere else, with a slip of 0.1. S = 10,000: rows=100, columns=100.
    """
    for name, size in (("rows", rows), ("columns", columns), ("H", H)):
        require_integer(name, size, 2, InvalidModel)
    for name, share in (("traps", traps), ("slip", slip)):
        if not 0.0 <= require_number(name, share, "a number in [0, 1)", InvalidModel) < 1.0:
            raise InvalidModel(f"{name} is {share}, expected a number in [0, 1).")
    S, A = int(rows) * int(columns), 4
    require_room(H, S, A)
    rng = np.random.default_rng(require_integer("seed", seed, 0, InvalidModel))
    row, column = np.divmod(np.arange(S), columns)
    trap = (rng.random(S) < traps) & (row > 0) & (column > 0)
    ahead = np.empty((S, A), dtype=np.int64)
    for a, (down, right) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
        there, beside = np.clip(row + down, 0, rows - 1), np.clip(column + right, 0, columns - 1)
        ahead[:, a] = np.where(trap, np.arange(S), there * columns + beside)
    pair = np.arange(S * A)
    sides = [ahead[:, (np.arange(A) + turn) % A].reshape(-1) for turn in (1, 3)]
    states = np.concatenate([ahead.reshape(-1), *sides])
    p = np.repeat([1.0 - slip, slip / 2, slip / 2], S * A)
    depth = np.minimum(np.minimum(row, column), 2)
    stays = ahead == np.arange(S)[:, None]  # a wall, or a trap
    r = np.where(stays, 0.0, (0.3 + 0.35 * depth)[:, None])
    rule = np.zeros((S, A))
    rule[np.arange(S), np.where(row > 0, UP, np.where(column < columns - 1, RIGHT, LEFT))] = 1.0
    P = rows_from(np.tile(pair, 3), states, p, S, A)
    return with_baseline("grid-traps", P, r, H, lean(np.broadcast_to(rule, (H, S, A)), 0.1))


def call_centre(lines: int = 6, desks: int = 3, hours: int = 4, H: int = 12) -> TabularMDP:
    """A call centre: how many agents should be at their desks in the next hour?

        (waiting 0..lines, agents 0..desks, hour of the day)
            ──> (waiting + calls - agents, agents ± 1, next hour)
            └── more calls than lines: closed for the rest of the day, with probability 0.5

    Action 0: keep the agents, 1: call one in, 2: send one home. The calls of an hour are fewer than
    usual with probability 0.25, as usual with 0.5, more with 0.25; the usual number rises from a
    third of the desks to two thirds in the middle of the day. Every agent takes one call an hour;
    calls beyond the lines are lost. An hour pays 0.4, plus 0.6 times the calls that are expected to
    be taken, less 0.3 for the agents, both as shares of the desks; less 0.4 times the square of the
    share of lines taken. Closed, it pays nothing. S = (lines+1) (desks+1) hours + 1. The manager's
    rule: call one in when more wait than agents are there, send one home when nobody waits, with a
    slip of 0.1. S = 10,333: lines=40, desks=20, hours=12.
    """
    for name, size in (("lines", lines), ("desks", desks), ("hours", hours), ("H", H)):
        require_integer(name, size, 1 if name == "hours" else 2, InvalidModel)
    S, A = (int(lines) + 1) * (int(desks) + 1) * int(hours) + 1, 3
    require_room(H, S, A)
    closed, open_states = S - 1, np.arange(S - 1)
    rest, hour = np.divmod(open_states, hours)
    waiting, agents = np.divmod(rest, desks + 1)
    usual = np.rint(desks * (1.0 + np.sin(np.pi * (hour + 0.5) / hours)) / 3.0).astype(np.int64)
    spread = max(1, desks // 4)
    pairs, states, shares = [], [], []
    taken = np.zeros(S - 1)
    for more, likely in ((-spread, 0.25), (0, 0.5), (spread, 0.25)):
        calls = np.maximum(usual + more, 0)
        taken += likely * np.minimum(waiting + calls, agents)
        left = np.maximum(waiting + calls - agents, 0)
        breaks = np.where(left > lines, 0.5, 0.0)
        for a, change in ((KEEP, 0), (CALL_IN, 1), (SEND_HOME, -1)):
            then = np.clip(agents + change, 0, desks)
            after = (np.minimum(left, lines) * (desks + 1) + then) * hours + (hour + 1) % hours
            pairs += [open_states * A + a] * 2
            states += [after, np.full(S - 1, closed)]
            shares += [likely * (1.0 - breaks), likely * breaks]
    pairs.append(closed * A + np.arange(A))
    states.append(np.full(A, closed))
    shares.append(np.ones(A))
    P = rows_from(np.concatenate(pairs), np.concatenate(states), np.concatenate(shares), S, A)
    paid = 0.4 + (0.6 * taken - 0.3 * agents) / desks - 0.4 * (waiting / lines) ** 2
    r = np.repeat(np.append(np.clip(paid, 0.0, 1.0), 0.0)[:, None], A, axis=1)
    rule = np.zeros((S, A))
    wanted = np.where(waiting > agents, CALL_IN, np.where(waiting == 0, SEND_HOME, KEEP))
    rule[np.arange(S), np.append(wanted, KEEP)] = 1.0
    s1 = (desks // 2) * hours
    return with_baseline("call-centre", P, r, H, lean(np.broadcast_to(rule, (H, S, A)), 0.1), s1=s1)
