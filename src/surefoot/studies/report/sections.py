"""The top of the page: what may be claimed, the studies or learners at a glance, and the claims with their verdicts."""

from collections.abc import Sequence

from surefoot.studies.analysis.claims import Verdict
from surefoot.studies.analysis.promises import UNCERTIFIED
from surefoot.studies.analysis.verdict import CERTIFIED, OverallVerdict, glance, overall_verdict
from surefoot.studies.report.html import Html, Table, inside, link, listed, said
from surefoot.studies.report.phrases import plural
from surefoot.studies.report.study_view import StudyView, tag

HOLDS = {
    True: Html('<span class="holds">✓ holds</span>'),
    False: Html('<span class="fails">✗ does not hold</span>'),
    None: Html('<span class="unsure">? cannot be judged</span>'),
}


def header(title: str, verdict: OverallVerdict, told: Sequence[StudyView]) -> Html:
    """The title and the verdict: what a reader sees first."""
    kinds = {CERTIFIED: ("certified", "✓", "good"), UNCERTIFIED: ("uncertified", "✗", "bad")}
    kind, symbol, colour = kinds.get(verdict.word, ("nothing", "○", ""))
    badges = [_badge(kind, symbol, verdict.word)]
    if verdict.alarms:
        badges.append(_badge("broken", "✗", "PROMISE BROKEN"))
        colour = "bad"
    one = told[0] if len(told) == 1 else None
    found = [said(line) for line in verdict.found]
    judged = [verdict for each in told for verdict in each.verdicts]
    if judged:
        found.append(Html(f"{link('claims', counted(judged))}."))
    finds = inside("p", Html(" ".join(found)), "found")
    means = inside("p", Html(f"{said(verdict.meaning)} {link('premises', 'What it presumes')}."))
    parts = [
        inside("p", badges, "badges"),
        *(inside("p", said(line), "alarm") for line in verdict.alarms),
        # What is not certified is said before anything that was found.
        *([means, finds] if verdict.word == UNCERTIFIED else [finds, means]),
        listed((said(line) for line in verdict.caveats), "caveats"),
        (glances(one) if one else _lines(told)).html(),
    ]
    question = inside("p", said(one.study.question), "question") if one else Html("")
    return Html(
        f'<header>\n<p class="kicker">surefoot: report</p>\n<h1>{said(title)}</h1>\n{question}\n'
        f'<section class="verdict {colour}" aria-label="Verdict">\n' + "\n".join(filter(None, parts)) + "\n</section>\n"
        '<p class="words">The floor is the lowest expected return that an episode may have; the baseline is the policy '
        "that is there before learning, and is played until something better is known to be above the floor; regret is "
        "what the best policy would have brought more. V^b is what the baseline is worth, V* what the best policy is. "
        "The optimist is the policy that is best if all that is not known yet is good; a mixture is one of it and the "
        "baseline: h0 steps by the baseline, the rest by the optimist.</p>\n</header>"
    )


def _badge(kind: str, symbol: str, word: str) -> Html:
    return Html(f'<strong class="badge {kind}"><span aria-hidden="true">{symbol}</span> {said(word)}</strong>')


def glances(told: StudyView) -> Table:
    """The learners over all places: what a reader with a minute needs."""
    rows = [
        [Html(said(one.label) + tag(one.promise)), said(one.below), said(one.regret), said(one.left)]
        for one in glance(told.results)
    ]
    headings = (
        "learner",
        "runs ever below the floor",
        "regret against the baseline alone",
        "runs that left the baseline",
    )
    places = len(told.study.scenarios)
    caption = f"The learners over {'all ' * (places > 1)}{places} {plural('place', places)} together."
    return Table(caption, headings, frozenset({1, 2, 3}), [("", rows)])


def _lines(told: Sequence[StudyView]) -> Table:
    """Each study in a line of the verdict."""
    rows = []
    for each in told:
        verdict = overall_verdict([each.results])
        marks = [verdict.word] * (verdict.word != CERTIFIED) + ["PROMISE BROKEN"] * bool(verdict.alarms)
        certified, broken = (sum(row[key] or 0 for row in each.rows) for key in ("certified", "broken"))
        holds = sum(verdict.holds is True for verdict in each.verdicts)
        others = [row for row in each.rows if row["no_floor"] or row["not_certified"]]
        below, runs = (sum(row[key] for row in others) for key in ("runs_below", "trials"))
        rows.append(
            [
                Html(link(each.anchor, each.study.title) + Html("".join(map(tag, marks)))),
                said(f"{holds} of {len(each.verdicts)}" if each.verdicts else "–"),
                said(f"{broken:,} of {certified:,}" if certified else "–"),
                said(f"{below:,} of {runs:,}" if runs else "–"),
            ]
        )
    headings = ("study", "claims that hold", "promises broken", "below the floor without a promise")
    return Table("The studies.", headings, frozenset({1, 2, 3}), [("", rows)])


def counted(verdicts: Sequence[Verdict]) -> str:
    """How many claims hold, how many do not, and of how many it cannot be said."""
    holds, fails, unsure = (sum(verdict.holds is what for verdict in verdicts) for what in (True, False, None))
    n = len(verdicts)
    words = [f"{holds} of {n} {plural('claim', n)} {'holds' if n == 1 else 'hold'}"]
    words += [f"{fails} {'does' if fails == 1 else 'do'} not"] * (fails > 0)
    words += [f"{unsure} cannot be judged"] * (unsure > 0)
    return ", ".join(words)


def claims_section(told: Sequence[StudyView]) -> Html:
    """Each claim with its verdict and numbers; nothing where nothing was claimed."""
    groups = []
    for each in told:
        rows = [[said(verdict.claim), HOLDS[verdict.holds], _lines_of(verdict.numbers)] for verdict in each.verdicts]
        groups.append((each.study.title if len(told) > 1 else "", rows))
    if not any(rows for _, rows in groups):
        return Html("")
    caption = (
        "What must come out if the paper (Li, Huang, Shen and Yang, Near-optimal Conservative Exploration in "
        "Reinforcement Learning under Episode-wise Constraints, 2023) is right, each judged by code from these results."
    )
    table = Table(caption, ("claim", "verdict", "what was found"), frozenset(), groups, stacks=True).html()
    return Html(f'<section aria-labelledby="claims">\n<h2 id="claims">What was claimed</h2>\n{table}\n</section>')


def _lines_of(numbers: str) -> Html:
    """A line for each thing that was found."""
    return Html("".join(inside("div", said(part)) for part in numbers.split("; ")))
