"""A study of your own: what does a higher floor cost? Two floors, two agents, five trials each."""

from pathlib import Path

from surefoot.studies import begin, parse_study, print_summary, read_results, run_study

study = parse_study(
    {
        "name": "shop",
        "title": "Offers, two floors",
        "question": "What does a higher floor cost?",
        "trials": 5,
        "episodes": 5000,
        "replan": 0.1,
        "scenarios": [
            {"id": "low", "world": {"name": "offers"}, "floor": {"of_baseline": 0.85}},
            {"id": "high", "world": {"name": "offers"}, "floor": {"of_baseline": 0.95}},
        ],
        "agents": [
            {"id": "epsmix", "agent": "epsmix", "bounds": "kl", "pooled": True},
            {"id": "stepmix", "agent": "stepmix", "bounds": "kl", "pooled": True},
        ],
    },
    "own_study.py",
)
folder = begin(Path("results/shop"), study, resume=Path("results/shop").exists())
run_study(folder, jobs=2)  # the number of workers changes no byte
results = read_results(folder.path)
print_summary(results)
for floor in ("low", "high"):
    regrets = sorted(trial.regret for trial in results.of(floor, "epsmix"))
    print(
        f"{floor} floor: EpsMix loses {regrets[2]:.0f} EUR to the optimum over 5,000 customers "
        "(median of five)"
    )
print("The same as one page with figures: surefoot report results/shop")
