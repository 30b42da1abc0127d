"""From a log of past episodes to a baseline: read and count the log, learn from the counts,
start an agent warm.
"""

from surefoot.logs.checking import Finding, LogReport
from surefoot.logs.codebook import Codebook
from surefoot.logs.counting import count_log
from surefoot.logs.faults import check_log
from surefoot.logs.log_counts import LogCounts
from surefoot.logs.log_returns import log_returns
from surefoot.logs.methods.learnt import Learnt
from surefoot.logs.methods.robust import certify, clone, robust_vi, spibb
from surefoot.logs.methods.vi_lcb import vi_lcb
from surefoot.logs.minari import from_minari
from surefoot.logs.warehouse import count_table

__all__ = [
    "Codebook",
    "Finding",
    "Learnt",
    "LogCounts",
    "LogReport",
    "certify",
    "check_log",
    "clone",
    "count_log",
    "count_table",
    "from_minari",
    "log_returns",
    "robust_vi",
    "spibb",
    "vi_lcb",
]
