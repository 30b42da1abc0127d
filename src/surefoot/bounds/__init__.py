"""Bounds on values from counts. Each family is proved for what its docstring says, and for
nothing else.
"""

from surefoot.bounds.bernstein import Bernstein as Bernstein
from surefoot.bounds.boxes import BernsteinBox as BernsteinBox
from surefoot.bounds.boxes import HoeffdingBox as HoeffdingBox
from surefoot.bounds.boxes import MaurerPontilBox as MaurerPontilBox
from surefoot.bounds.certificate import Certificate as Certificate
from surefoot.bounds.kl import KL as KL
from surefoot.bounds.model import Model as Model

Bounds = Bernstein | KL
BOUNDS: dict[str, type[Bernstein] | type[KL]] = {
    "paper": Bernstein,
    "kl": KL,
}  # by the names that commands and studies use
