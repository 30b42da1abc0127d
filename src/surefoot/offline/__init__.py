"""From a log of past episodes to a baseline: reading and counting it, learning from the counts, handing over."""

from surefoot.offline.checking import Finding, LogReport
from surefoot.offline.codebook import Codebook
from surefoot.offline.counting import check_log, count_log
from surefoot.offline.log_counts import LogCounts

__all__ = ["Codebook", "Finding", "LogCounts", "LogReport", "check_log", "count_log"]
