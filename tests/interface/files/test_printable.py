r"""What others wrote reaches no terminal raw: labels, paths, reasons and errors hold ESC here."""

import numpy as np
import pytest

import surefoot as sf

ESC = "\x1b]0;title\x07\x1b[31m"
HEADER = "episode,step,state,action,reward,next_state\n"
GUARD = sf.Guard(floor=0.1, low=0.0, high=1.0)


def message(refused, *given):
    with pytest.raises(sf.SurefootError) as caught:
        refused(*given)
    assert ESC in caught.value.args[0]  # control: without the rule it would be there
    return str(caught.value)


def chain(path):
    """A log whose chain is broken, in an episode of such a name."""
    path.write_text(HEADER + f"{ESC}q,0,a,g,0,b\n{ESC}q,1,a,g,0,a\n")
    return path


def test_messages_write_out_what_cannot_be_printed(tmp_path):
    told = [
        message(sf.count_log, str(tmp_path / f"{ESC}.csv")),
        message(sf.Counts.load, tmp_path / f"{ESC}.npz"),
    ]
    assert all(r"\x1b[31m" in text and "\x1b" not in text for text in told)


def test_reports_and_explanations_do_too(tmp_path):
    report = sf.check_log(chain(tmp_path / "log.csv"))
    log = tmp_path / "start.csv"
    log.write_text(HEADER + "".join(f"{i},0,{ESC}s,g,{i % 2},{ESC}s\n" for i in range(20)))
    counted = sf.count_log(log, states="as logged", reward_range=(0, 1))
    learnt = sf.clone(counted.counts, counted.problem(), 0.05)
    state = GUARD.withdraw(GUARD.admit(GUARD.begin(), "new"), "new", f"{ESC}complaints")
    texts = [str(report), report.errors[0].text, learnt.explain(0.1, counted)]
    texts.append(GUARD.plan(state).explain())
    assert all(r"\x1b[31m" in text and "\x1b" not in text for text in texts)


def test_a_policy_that_raises_is_told_of_so():
    def failing(observation):
        raise RuntimeError(ESC)

    run = sf.guard_env(
        "CartPole-v1",
        sf.Guard(floor=sf.Relative(0.2), low=0, high=500),
        baseline=lambda seen: 0,
        candidate=failing,
        episodes=60,
        seed=0,
    )
    assert run.failed and ESC in run.last_failure
    assert "\x1b" not in run.explain() + repr(run)


def test_who_may_read_a_file_stays_as_it_was(tmp_path):
    path, policy = tmp_path / "policy.npz", np.ones((1, 1, 1))
    sf.save_policy(path, policy)
    path.chmod(0o600)
    sf.save_policy(path, policy)
    assert path.stat().st_mode & 0o777 == 0o600
