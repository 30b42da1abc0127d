"""From a log of past episodes to a baseline: read and count the log, learn from the counts, start an agent warm."""

from surefoot.offline.logs.checking import Finding, LogReport
from surefoot.offline.logs.codebook import Codebook
from surefoot.offline.logs.counting import count_log
from surefoot.offline.logs.faults import check_log
from surefoot.offline.logs.log_counts import LogCounts
from surefoot.offline.logs.log_returns import log_returns
from surefoot.offline.logs.minari import from_minari
from surefoot.offline.logs.warehouse import count_table
from surefoot.offline.methods.learnt import Learnt
from surefoot.offline.methods.robust import certify, clone, robust_vi, spibb
from surefoot.offline.methods.vi_lcb import vi_lcb

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
