"""The summary of a study on standard output, in eighty columns."""

from typing import TYPE_CHECKING

from surefoot.studies.analysis.stats import amount
from surefoot.studies.analysis.summary import Row, Rows, summary
from surefoot.studies.analysis.trials import UNCERTIFIED, promise_beside_truth, promises_of
from surefoot.studies.analysis.verdict import overall_verdict
from surefoot.studies.run.store import Results

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = (  # headings that fit, with their numbers, in eighty columns
    ("agent", "agent"),
    ("knows_baseline_value", "knows\nV^b"),
    ("violations", "episodes\nbelow\nfloor"),
    ("runs_below", "runs\nbelow\nfloor"),
    ("regret", "regret\n(return)"),
    ("mean_return", "return\nper\nepisode"),
    ("off_baseline", "off the\nbaseline\nat"),
    ("first_optimistic", "opti-\nmistic\nat"),
)


def moment(row: Row, name: str) -> str:
    """Return when something first happened: the median over trials, and in how many it never did."""
    never, trials = row[f"{name}_never"], row["trials"]
    if never == trials:
        return "never"
    median = "–" if row[name] is None else amount(row[name])
    return f"{median} ({never} never)" if never else median


def print_summary(results: Results, rows: Rows | None = None) -> tuple[str, ...]:
    """Print a table per scenario, the baseline alone on top of each; then what is promised, and the verdict.

    `rows` is the summary of these results, where it is there already. Return where a promise was broken.
    """
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    rows = summary(results) if rows is None else rows
    for scenario in results.study.scenarios:
        mine = [row for row in rows if row["scenario"] == scenario.id]
        there = [row for row in mine if row["trials"]]
        console.print(escape(scenario.heading), style="bold", highlight=False)
        if not there:
            console.print("no trials yet\n", highlight=False)
            continue
        _print_scenario(console, mine)
    promises: dict[str, dict[str, None]] = {}
    for cell, row in zip(results.study.cells, rows, strict=True):
        for words in promises_of(results.trials.get(cell.id, ()), promise_beside_truth):
            promises.setdefault(words, {})[row["label"]] = None
    for words, labels in promises.items():
        console.print(f"{', '.join(labels)}: {words}.", highlight=False, markup=False, soft_wrap=True)
    if any(row["knows_baseline_value"] for row in rows):
        console.print("knows V^b: is the agent given the baseline's value?", soft_wrap=True)
    verdict = overall_verdict([results], [rows])
    styles = {UNCERTIFIED: "bold red"}
    console.print()
    console.print(verdict.word, style=styles.get(verdict.word, "bold"), highlight=False)
    for line in (verdict.meaning, *verdict.found, *verdict.caveats):
        console.print(line, highlight=False, markup=False)
    for line in verdict.alarms:
        console.print(line, style="bold red", highlight=False, markup=False)
    return verdict.alarms


def _print_scenario(console: "Console", rows: Rows) -> None:
    """Print the table of one scenario, of which there are trials."""
    from rich.markup import escape
    from rich.table import Table

    there = [row for row in rows if row["trials"]]
    first = there[0]
    low, high = (f"{value:.4g}" for value in (first["baseline_low"], first["baseline_high"]))
    baseline = low if low == high else f"{low} to {high}"
    console.print(
        f"floor {first['floor']:.4g}, baseline {baseline}, optimum {first['optimum']:.4g} per episode",
        highlight=False,
    )
    somebody_knows = any(row["knows_baseline_value"] for row in there)
    columns = [column for column in COLUMNS if somebody_knows or column[0] != "knows_baseline_value"]
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for key, heading in columns:
        left = key == "agent"
        table.add_column(heading, justify="left" if left else "right", overflow="fold", min_width=12 if left else None)
    # What the baseline alone would have had depends on how many episodes there were.
    lengths = {row["episodes"]: row for row in reversed(there)}
    for episodes, row in lengths.items():
        alone = {
            "agent": f"baseline alone, {episodes:,}" if len(lengths) > 1 else "baseline alone",
            "violations": amount(row["baseline_violations"]),
            "runs_below": f"{row['baseline_below']} of {row['trials']}",
            "regret": amount(row["baseline_regret"]),
            "mean_return": f"{row['baseline_return']:.4f}",
        }
        table.add_row(*(alone.get(key, "–") for key, _ in columns))
    for row in rows:
        if not row["trials"]:
            table.add_row(*(escape(row["label"]) if key == "agent" else "–" for key, _ in columns))
            continue
        texts = {
            "agent": escape(row["label"]),
            "knows_baseline_value": "yes" if row["knows_baseline_value"] else "no",
            "violations": amount(row["violations"]),
            "runs_below": f"{row['runs_below']} of {row['trials']}",
            "regret": amount(row["regret"]),
            "mean_return": f"{row['mean_return']:.4f}",
            "off_baseline": "has none" if row["no_floor"] else moment(row, "off_baseline"),
            "first_optimistic": moment(row, "first_optimistic"),
        }
        table.add_row(*(texts[key] for key, _ in columns))
    console.print(table)
    spans = " or ".join(f"{episodes:,}" for episodes in sorted(lengths))
    means = f"Means over runs of {spans} episodes; moments are medians, counted from 0.\n"
    console.print(means, highlight=False)
