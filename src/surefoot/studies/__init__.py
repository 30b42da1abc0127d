"""Studies: a question as data, a runner, results that can be queried, statistics, pictures and a report."""

from surefoot.studies.claims import Verdict as Verdict
from surefoot.studies.claims import judge as judge
from surefoot.studies.library import find_studies as find_studies
from surefoot.studies.printing import print_summary as print_summary
from surefoot.studies.running import run_study as run_study
from surefoot.studies.spec import Study as Study
from surefoot.studies.spec import parse_study as parse_study
from surefoot.studies.spec import read_study as read_study
from surefoot.studies.store import Results as Results
from surefoot.studies.store import begin as begin
from surefoot.studies.store import read_results as read_results
from surefoot.studies.trial import Trial as Trial
from surefoot.studies.trial import run_trial as run_trial
