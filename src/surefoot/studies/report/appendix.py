"""The end of the page: what the promise presumes, how to run it again, and the studies' files."""

from collections.abc import Sequence

from surefoot.agents import AGENTS
from surefoot.studies.report.html import Html, Table, inside, listed, said
from surefoot.studies.report.phrases import as_toml, command
from surefoot.studies.report.study_view import StudyView


def premises(told: Sequence[StudyView]) -> Html:
    """What the promise rests on. Those of a kind of learner are said where there is one."""
    learners = [learner for each in told for learner in each.study.agents]
    agents = [AGENTS[learner.agent] for learner in learners]
    logs = any(scenario.log is not None for each in told for scenario in each.study.scenarios)
    given = any(scenario.log is None for each in told for scenario in each.study.scenarios)
    lines = [
        "States, actions and steps are finite, and every episode has the same number H of steps.",
        "The same state and action at the same step have the same transition probabilities in every episode.",
        "Rewards are known, and lie in the range that the world states.",
        "Floor and delta were fixed before the first episode.",
    ]
    if given:
        lines.append(
            "The baseline is above the floor. That is trusted, not proved, until data certify it: before that a "
            "learner plays the baseline alone. Beside each promise stands how well it is known beforehand: certified "
            "by data, vouched for (somebody told its value), or unknown."
        )
    if logs:
        lines.append(
            "A baseline that was learnt from a log is trusted to be above the floor wherever the log's certificate "
            "does not prove it. Half of delta is for that certificate, half for the learner; the log's episodes are "
            "independent draws of one policy in the same world."
        )
    if any(agent.floor_scope.startswith("every episode's coin") for agent in agents):
        lines.append(
            "EpsMix tosses a coin at the start of an episode, and promises the coin-averaged value: the policy that "
            "the coin selects may be below the floor."
        )
    if any(agent.in_sum for agent in agents):
        names = ", ".join(dict.fromkeys(agent.name for agent in agents if agent.in_sum))
        lines.append(
            f"{names}: what is promised is the sum of all episodes so far. Single episodes may be below the floor."
        )
    if any(row["told"] for each in told for row in each.rows):
        lines.append("StudyView V^b: the learner was told the true value of the baseline, and its promise presumes it.")
    if any(learner.pooled is not False for learner in learners):
        lines.append("Where counts are pooled over steps, the dynamics do not depend on the step.")
    lines += [
        "The floor is on the expected return of what is played, not on the return that one episode happens to bring.",
        "delta is for each run of each learner by itself: of many runs together, more may fail.",
        "Violations, regret and returns are exact because the simulator knows the world. Learners never see it: they "
        "see counts.",
    ]
    return Html(
        '<section aria-labelledby="premises">\n<h2 id="premises">What the promise presumes</h2>\n'
        "<p>Certified means: proved from data, on an event of probability at least 1 − delta, if all of this is so. "
        "NOT CERTIFIED means: computed with a bonus that somebody scaled by hand, which no proof covers.</p>\n"
        + listed(said(line) for line in lines)
        + "\n</section>"
    )


def provenance(told: Sequence[StudyView]) -> Html:
    """Where the numbers come from, and how they were reckoned."""
    rows = []
    for each in told:
        versions = ", ".join(f"{name} {version}" for name, version in each.results.versions.items())
        rows.append(
            [
                said(each.study.name),
                inside("code", said(command(each.study)), "line"),
                said(each.study.seed),
                said(each.study.size),
                said(versions),
                inside("code", said(each.study.digest)),
            ]
        )
    headings = ("study", "command", "seed", "size", "made with", "digest of the study (SHA-256)")
    table = Table("Where the numbers come from.", headings, frozenset({2}), [("", rows)], frozenset({4, 5}))
    lines = [
        "Trial i draws from child i of the study's seed and from nothing else: the number of workers, their order, and "
        "more trials change nothing of what is here. The digest is of all that decides the numbers.",
        "Intervals of means are Student's t intervals over trials at 95 %; of one trial there is none. They say how "
        "sure the mean is, not how far single runs lie apart.",
        "Shares of runs have exact bounds (Clopper and Pearson) at 95 %: one-sided where none or all of the runs "
        "count, two-sided otherwise. That 0 of 10 runs went below the floor shows a share of at most 26 %; that it is "
        "at most delta is proved, not measured.",
        "An episode is below the floor if its exact expected return is more than 1e-12 (in units of 0 to H) below it.",
        "A median is over all trials of a cell; what never happened counts as later than everything.",
    ]
    return Html(
        '<section aria-labelledby="again">\n<h2 id="again">To run it again</h2>\n'
        + table.html()
        + "\n"
        + listed(said(line) for line in lines)
        + "\n</section>"
    )


def files(told: Sequence[StudyView]) -> Html:
    """The studies as TOML, to be saved and run."""
    parts = [
        f"<details>\n<summary>{said(each.study.name)}.toml</summary>\n"
        f"<pre><code>{said(as_toml(each.study))}</code></pre>\n</details>"
        for each in told
    ]
    one = len(told) == 1
    words = f"The {'study' if one else 'studies'} as data. Saved as a file, it can be run: surefoot run FILE.toml"
    heading = "The study's file" if one else "The studies' files"
    return Html(
        f'<section aria-labelledby="files">\n<h2 id="files">{said(heading)}</h2>\n<p>{said(words)}</p>\n'
        + "\n".join(parts)
        + "\n</section>"
    )
