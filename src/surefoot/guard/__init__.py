"""A guard of any policy: only returns are seen, and a coin at the start of each episode says who
plays it.
"""

from surefoot.guard.guard import Guard as Guard
from surefoot.guard.plan import GuardPlan as GuardPlan
from surefoot.guard.state import GuardState as GuardState
from surefoot.guard.state import Ticket as Ticket
