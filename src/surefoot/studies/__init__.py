"""Studies: a question as data, a runner, results that can be queried, statistics, pictures and a
report.
"""

from surefoot.studies.analysis.claims import Verdict as Verdict
from surefoot.studies.analysis.claims import judge as judge
from surefoot.studies.report.terminal import print_summary as print_summary
from surefoot.studies.run.runner import run_study as run_study
from surefoot.studies.run.store import Results as Results
from surefoot.studies.run.store import begin as begin
from surefoot.studies.run.store import read_results as read_results
from surefoot.studies.run.trial import Trial as Trial
from surefoot.studies.run.trial import run_trial as run_trial
from surefoot.studies.spec.library import find_studies as find_studies
from surefoot.studies.spec.study import Study as Study
from surefoot.studies.spec.study import parse_study as parse_study
from surefoot.studies.spec.study import read_study as read_study
