"""Three small models of real work, each with a rule that a sensible person would start from."""

import numpy as np

from surefoot.base.validation import require_integer
from surefoot.errors import InvalidModel
from surefoot.model.units import Units
from surefoot.worlds.exact import lean, with_baseline
from surefoot.worlds.tabular_mdp import TabularMDP


def queue(places: int = 5, H: int = 10) -> TabularMDP:
    """Admission to a help desk: each quarter of an hour one caller may come in, if the desk lets
    them.

        waiting 0 <──> 1 <──> ... <──> places      action 0: admit, action 1: send away politely

    A caller comes with probability 0.6. Admitted, one more waits; a served one leaves with
    probability 0.5. A full desk that admits has to close for the rest of the shift with probability
    0.3 (the last state, which pays nothing). Each step pays 0.4 + 0.6 * (share of two agents kept
    busy), less 0.4 * (share of places taken)^2 for the waiting. The desk's rule: admit while at
    most half of the places are taken, with a slip of 0.1.
    """
    require_integer("places", places, 2, InvalidModel)
    require_integer("H", H, 2, InvalidModel)
    S, closed = places + 2, places + 1
    come, serve, overload = 0.6, 0.5, 0.3
    P = np.zeros((S, 2, S))
    r = np.zeros((S, 2))
    for s in range(places + 1):
        leave = serve if s > 0 else 0.0
        for a in (0, 1):
            joins = come if a == 0 and s < places else 0.0
            P[s, a, closed] = overload if a == 0 and s == places else 0.0
            stays_open = 1.0 - P[s, a, closed]
            P[s, a, min(s + 1, places)] += stays_open * joins * (1 - leave)
            P[s, a, max(s - 1, 0)] += stays_open * (1 - joins) * leave
            P[s, a, s] += stays_open * (joins * leave + (1 - joins) * (1 - leave))
            r[s, a] = 0.4 + 0.6 * min(s, 2) / 2 - 0.4 * (s / places) ** 2
    P[closed, :, closed] = 1.0
    rule = np.zeros((H, S, 2))
    rule[:, : places // 2 + 1, 0] = 1.0
    rule[:, places // 2 + 1 :, 1] = 1.0
    return with_baseline("queue", P, r, H, lean(rule, 0.1))


def dosing(H: int = 8) -> TabularMDP:
    """Dosing with toxicity: more of the drug works faster, and harms sooner.

        ill ──> better ──> well            action 0: no dose, 1: usual dose, 2: high dose
          └──────┴────> toxic ──> (rest) ──> ill;   severe: nothing pays for the rest of the course

    States: ill, better, well, toxic, severe. A week pays 0.1 when ill, 0.6 when better, 1 when
    well, 0.05 when toxic, 0 when severe. A dose moves towards well (usual 0.5, high 0.6) and can be
    toxic (usual 0.03, high 0.25); dosing a toxic patient is severe with 0.1 (usual) or 0.6 (high).
    Toxicity wears off with 0.7 without a dose, 0.2 with one that was not severe, and leaves the
    patient ill. Without a dose patients slip back with 0.3. The usual protocol: the usual dose when
    ill or better, none when well or toxic, with a slip of 0.06.
    """
    require_integer("H", H, 2, InvalidModel)
    ill, better, well, toxic, severe = range(5)
    towards, harm, worse = (0.0, 0.5, 0.6), (0.0, 0.03, 0.25), (0.0, 0.1, 0.6)
    P = np.zeros((5, 3, 5))
    for a in range(3):
        for s in (ill, better, well):
            P[s, a, toxic] += harm[a]
            up = towards[a] if s < well else 0.0
            down = 0.3 if a == 0 and s > ill else 0.0
            P[s, a, min(s + 1, well)] += up
            P[s, a, max(s - 1, ill)] += down
            P[s, a, s] += 1.0 - harm[a] - up - down
        P[toxic, a, severe] += worse[a]
        P[toxic, a, ill] += (1 - worse[a]) * (0.7 if a == 0 else 0.2)
        P[toxic, a, toxic] += (1 - worse[a]) * (0.3 if a == 0 else 0.8)
        P[severe, a, severe] = 1.0
    r = np.repeat(np.array([0.1, 0.6, 1.0, 0.05, 0.0])[:, None], 3, axis=1)
    rule = np.zeros((H, 5, 3))
    rule[:, [ill, better], 1] = 1.0
    rule[:, [well, toxic, severe], 0] = 1.0
    return with_baseline("dosing", P, r, H, lean(rule, 0.06))


def offers(H: int = 12) -> TabularMDP:
    """Weekly offers to customers: a discount costs margin now and may keep, or spoil, the customer.

        loyal <──> occasional <──> lapsing ──> gone
        action 0: no offer, 1: small coupon, 2: large coupon

    Margins a week, in euros: loyal 10, occasional 6, lapsing 3, gone 0, less 1 for a small and 4
    for a large coupon (never below -1). Coupons pull customers up (small 0.3, large 0.4 where they
    are not loyal; 0.05 without one) and train the loyal ones to wait for the next (down with 0.15
    small, 0.5 large, 0.08 without). Occasional customers start lapsing with 0.1 without an offer,
    0.06 with a small one, 0.04 with a large one; lapsing customers are gone with 0.25 a week
    without an offer, 0.12 and 0.1 with one. The marketing department's rule: small coupons for all
    but the loyal, with a slip of 0.1. Values are in euros a customer.
    """
    require_integer("H", H, 2, InvalidModel)
    loyal, occasional, lapsing, gone = range(4)
    margin, price = np.array([10.0, 6.0, 3.0, 0.0]), np.array([0.0, 1.0, 4.0])
    pull, spoil, slip = (0.05, 0.3, 0.4), (0.08, 0.15, 0.5), (0.1, 0.06, 0.04)
    P = np.zeros((4, 3, 4))
    for a in range(3):
        P[loyal, a, [loyal, occasional]] = 1 - spoil[a], spoil[a]
        P[occasional, a, [loyal, occasional, lapsing]] = pull[a], 1 - pull[a] - slip[a], slip[a]
        leave = (0.25, 0.12, 0.1)[a]
        P[lapsing, a, [occasional, lapsing, gone]] = pull[a], 1 - pull[a] - leave, leave
        P[gone, a, gone] = 1.0
    low, high = -1.0, 10.0
    euros = np.maximum(margin[:, None] - price[None, :], low)
    euros[gone] = 0.0
    rule = np.zeros((H, 4, 3))
    rule[:, loyal, 0] = 1.0
    rule[:, [occasional, lapsing, gone], 1] = 1.0
    r = (euros - low) / (high - low)
    return with_baseline("offers", P, r, H, lean(rule, 0.1), units=Units(low, high, H, "EUR"))
