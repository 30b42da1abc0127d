"""Write docs/reproduction: tables, figures and the report of studies that were run in full.

    surefoot run online --out out/full/online
    python tools/reproduction.py out/full   (the studies in it; all other pages stay as they are)

Everything is made from the results alone; a note.txt in a folder (on how long it took, say) comes
along.
"""

import argparse
import csv
import re
import shutil
from pathlib import Path

from surefoot.studies import judge, read_results
from surefoot.studies.analysis.claims import VERDICTS
from surefoot.studies.analysis.summary import summary
from surefoot.studies.analysis.verdict import overall_verdict
from surefoot.studies.report.plots import FIGURES, save_png
from surefoot.studies.report.report import write_report
from surefoot.studies.run.store import study_folders

PAGES = Path(__file__).parents[1] / "docs" / "reproduction"
WORDS = {**VERDICTS, False: f"**{VERDICTS[False]}**"}
POINTS = 100  # of a curve, in the table that is kept


def tables(results, place):
    """Write one row per trial, and thinned curves."""
    columns = (
        "scenario",
        "agent",
        "trial",
        "episodes",
        "floor",
        "baseline",
        "optimum",
        "violations",
        "regret",
    )
    more = (
        "min_value",
        "mean_value",
        "off_baseline",
        "first_optimistic",
        "on_baseline",
        "on_mixture",
        "on_optimistic",
    )
    with (place / "trials.csv").open("w", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow((*columns, *more))
        for trials in results.trials.values():
            rows.writerows([getattr(trial, name) for name in (*columns, *more)] for trial in trials)
    with (place / "curves.csv").open("w", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(("scenario", "agent", "episode", "mean", "min", "regret"))
        for trials in results.trials.values():
            first = trials[0]
            step = max(1, len(first.curve_episode) // POINTS)
            for i in range(0, len(first.curve_episode), step):
                mean = sum(float(trial.curve_mean[i]) for trial in trials) / len(trials)
                lowest = min(float(trial.curve_min[i]) for trial in trials)
                regret = sum(float(trial.curve_regret[i]) for trial in trials) / len(trials)
                rows.writerow(
                    (first.scenario, first.agent, int(first.curve_episode[i]), mean, lowest, regret)
                )


def section(results, folder):
    """The section of one study, whose folder is written again: its claims, its numbers, its
    figures.
    """
    study, place = results.study, PAGES / results.study.name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    tables(results, place)
    yield f"## {study.name}: {study.title}\n"
    yield f"{study.question}\n"
    quick = study.size == "quick"
    if quick:
        yield "**Not in full**: the quick size.\n"
    command = f"surefoot run {study.name}{' --quick' if quick else ''}"
    yield (
        f"`{command}`: {len(study.cells)} cells, {study.trials} trials each. Every trial: "
        f"[trials.csv]({study.name}/trials.csv); mean curves: "
        f"[curves.csv]({study.name}/curves.csv); the page: "
        f"[report.html]({study.name}/report.html).\n"
    )
    note = folder / "note.txt"
    if note.exists():
        yield f"{note.read_text().strip()}\n"
    caveats = [f"- {line}" for line in overall_verdict([results]).caveats]
    if caveats:
        yield "\n".join((*caveats, ""))
    yield "| claim | whose | verdict | numbers |\n|---|---|---|---|"
    for verdict in judge(results):
        claim, numbers = (
            text.replace("|", chr(92) + "|") for text in (verdict.claim, verdict.numbers)
        )
        words = f"{WORDS[verdict.holds]} {verdict.at_K}".strip()
        lines = "<br>".join(numbers.split("; "))
        yield (
            f"| {claim} | {verdict.source} | {words} | "
            f"<details><summary>unfold</summary>{lines}</details> |"
        )
    yield (
        "\n| scenario | agent | violations per run | regret (baseline alone) | off the baseline "
        "at | optimistic at |"
    )
    yield "|---|---|---|---|---|---|"
    for row in summary(results):
        firsts = (row["off_baseline"], row["first_optimistic"])
        when = ["never" if first is None else f"{first:,.0f}" for first in firsts]
        when[0] = "has none" if row["no_floor"] else when[0]
        regret = f"{row['regret']:z,.0f} ({row['baseline_regret']:z,.0f})"
        where, who = row["scenario_title"], row["label"]
        yield f"| {where} | {who} | {row['violations']:,.0f} | {regret} | {when[0]} | {when[1]} |"
    yield ""
    for name in study.figures:
        save_png(FIGURES[name].draw(results), place / f"{name}.png")
        yield f"![{study.name}: {name}]({study.name}/{name}.png)\n"
    write_report([results], place / "report.html")


def sections(page):
    """The sections of a page by the name of their study."""
    parts = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    return {part.split(":")[0]: f"## {part}" for part in parts}


def main():
    """Write the pages of the studies that are given, and keep all others."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="a folder of folders of results")
    given = parser.parse_args().results
    page = PAGES / "README.md"
    beginning = (
        "# The paper, reproduced\n\nWritten by `python tools/reproduction.py`; what studies are: "
        "[studies.md](../studies.md). Constants are as printed, nothing is scaled; seeds, floors "
        "and numbers of episodes are in the studies' files. Episodes count from 0; in the tables "
        "moments are medians over trials, regret and violations are means. A claim holds only if "
        "it holds in every scenario and, of moments, in every trial, and for the K that stands "
        "beside it: with more episodes another verdict may come out. A study that is not in full "
        "says so below its title. Orders of Table 1 are without constants and logarithms. What the "
        "paper leaves open, and what was chosen: [choices.md](choices.md)."
    )
    written = sections(page.read_text()) if page.exists() else {}
    for folder in study_folders(given):
        results = read_results(folder)
        written[results.study.name] = "\n".join(section(results, folder))
    page.write_text("\n\n".join(text.strip() for text in (beginning, *written.values())) + "\n")


if __name__ == "__main__":
    main()
