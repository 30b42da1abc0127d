"""From a log of past episodes to a baseline: reading and counting it, learning from the counts, handing over."""

from surefoot.offline.checking import Finding, LogReport
from surefoot.offline.codebook import Codebook
from surefoot.offline.counting import check_log, count_log
from surefoot.offline.lcb import vi_lcb
from surefoot.offline.learnt import Learnt
from surefoot.offline.log_counts import LogCounts
from surefoot.offline.minari import from_minari, to_minari
from surefoot.offline.robust import certify, clone, robust_vi, spibb
from surefoot.offline.warehouse import count_table

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
    "robust_vi",
    "spibb",
    "to_minari",
    "vi_lcb",
]
