"""A sweep from the command line: its runs are those of `train`, and what is left undone is told."""

import json
import re

import pytest

from agents.cli import main
from agents.cli.sweep_status import _look
from agents.running.folder import sole_writer
from agents.sweeps.folder import read_list, write_list

WORDS = [
    *("sweep", "--env", "t_maze", "--algorithm", "tabular", "--rollout-length", "50"),
    *("--steps", "400", "--evaluation-episodes", "4", "--grid", "epsilon=0.1,0.2,0.3"),
]


def shown(text):
    """The state, steps and return of each run in a table of `sweep status`."""
    rows = [line.split() for line in text.splitlines() if line.startswith("epsilon=")]
    return {row[0]: tuple(row[1:]) for row in rows}


@pytest.mark.slow
def test_a_sweep_with_a_failure_goes_on_and_the_same_command_mends_it(tmp_path, capsys):
    """For one of the runs the disk is full where it prepares its first checkpoint."""
    out, alone = tmp_path / "sweep", tmp_path / "alone"
    full = out / "runs" / "epsilon=0.2" / "checkpoint.eqx.tmp"
    full.parent.mkdir(parents=True)
    full.symlink_to("/dev/full")
    words = [*WORDS, "--out", str(out), "--workers", "2"]
    assert main(words) == 1
    told = capsys.readouterr()
    assert sorted(re.findall(r"(epsilon=\S+): (.*)", told.out)) == [
        ("epsilon=0.1", "complete"),
        ("epsilon=0.2", "exit code 2"),
        ("epsilon=0.3", "complete"),
    ]
    log = out / "logs" / "epsilon=0.2.log"
    assert "1 of 3 runs failed" in told.err and f"epsilon=0.2: exit code 2; {log}" in told.err
    assert "No space left on device" in log.read_text()
    assert main(["sweep", "status", str(out)]) == 0
    states = shown(capsys.readouterr().out)
    assert states["epsilon=0.1"][:-1] == ("complete", "400", "100", "%")
    assert states["epsilon=0.2"] == ("exit", "code", "2", "–", "–")

    assert main(words) == 0
    assert re.findall(r"(epsilon=\S+): (.*)", capsys.readouterr().out) == [
        ("epsilon=0.2", "complete")
    ]
    train = ["train", *WORDS[1:-2], "--epsilon", "0.2", "--out", str(alone), "--progress", "none"]
    assert main(train) == 0
    for name in ("scalars.csv", "checkpoint.eqx"):
        assert (alone / name).read_bytes() == (out / "runs" / "epsilon=0.2" / name).read_bytes()
    capsys.readouterr()
    assert main(["compare", str(out), "--out", str(tmp_path / "a.png"), "--metric", "return"]) == 0
    found = re.findall(r"^(epsilon=0.\d)  1 +400 ", capsys.readouterr().out, re.M)
    assert found == ["epsilon=0.1", "epsilon=0.2", "epsilon=0.3"]


def test_a_sweeps_folder_is_that_of_one_sweep_at_a_time(tmp_path, capsys):
    with sole_writer(tmp_path):
        assert main([*WORDS, "--out", str(tmp_path)]) == 2
    assert f"another process writes to --out (={tmp_path})" in capsys.readouterr().err


@pytest.fixture
def sweep(tmp_path):
    """The folder of a sweep of which a run is complete, and one in each other state."""
    names = ("done", "undrawn", "failed", "killed", "begun", "waiting", "damaged")
    write_list(tmp_path, {f"epsilon={name}": [] for name in names})
    for name, rows, code in (
        ("done", 4, 0),
        ("undrawn", 4, 2),
        ("failed", 2, 2),
        ("killed", 2, -9),
        ("begun", 1, None),
        ("damaged", 1, None),
    ):
        run = tmp_path / "runs" / f"epsilon={name}"
        run.mkdir(parents=True)
        (run / "config.json").write_text(json.dumps({"steps": 400}))
        lines = [f"{i},{100 * i},0,{i}.5" for i in range(1, rows + 1)]
        text = "\n".join(["iteration,env_steps,seed,return", *lines]) + "\n"
        (run / "scalars.csv").write_text(text.replace(",0,", ",x,") if name == "damaged" else text)
        if code is not None:
            (tmp_path / "logs").mkdir(exist_ok=True)
            (tmp_path / "logs" / f"epsilon={name}.exit").write_text(f"{code}\n")
    return tmp_path


def test_the_status_tells_every_run(sweep, capsys):
    with sole_writer(sweep / "runs" / "epsilon=begun"):
        assert main(["sweep", "status", str(sweep), "--once"]) == 0
    text = capsys.readouterr().out
    assert shown(text) == {
        "epsilon=done": ("complete", "400", "100", "%", "4.500"),
        "epsilon=undrawn": ("exit", "code", "2", "400", "100", "%", "4.500"),
        "epsilon=failed": ("exit", "code", "2", "200", "50", "%", "2.500"),
        "epsilon=killed": ("killed", "by", "SIGKILL", "200", "50", "%", "2.500"),
        "epsilon=begun": ("training", "100", "25", "%", "1.500"),
        "epsilon=waiting": ("waiting", "–", "–"),
        "epsilon=damaged": ("damaged", "–", "–"),
    }
    assert "1 complete, 2 exit code 2, 1 killed by SIGKILL, 1 training, 1 waiting" in text
    assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize("words", [["--steps", "8e2"], ["--steps=100", "--steps=800"]])
def test_a_run_that_shall_go_on_is_told_by_what_is_asked_of_it(words, sweep, capsys):
    """The same sweep was begun with more steps, and stopped before these runs went on."""
    write_list(sweep, {f"epsilon={name}": words for name in ("done", "begun")})
    assert main(["sweep", "status", str(sweep), "--once"]) == 0
    told = shown(capsys.readouterr().out)
    assert told["epsilon=done"] == ("waiting", "400", "50", "%", "4.500")
    assert told["epsilon=begun"] == ("stopped", "100", "12", "%", "1.500")


def test_a_seed_without_a_value_yet_does_not_count(sweep, capsys):
    run = sweep / "runs" / "epsilon=begun" / "scalars.csv"
    run.write_text("iteration,env_steps,seed,return\n1,100,0,1.5\n1,100,1,nan\n")
    assert main(["sweep", "status", str(sweep), "--once"]) == 0
    assert shown(capsys.readouterr().out)["epsilon=begun"][-1] == "1.500"


def test_names_that_are_long_leave_room_for_what_is_told_of_them(tmp_path, capsys):
    name = ",".join(f"{x}_coefficient=0.0{x}" for x in "abcde")  # of 99 characters
    write_list(tmp_path, {name: []})
    assert main(["sweep", "status", str(tmp_path), "--once"]) == 0
    head, first, *others = capsys.readouterr().out.splitlines()
    assert head.split() == ["run", "state", "steps", "return"]
    assert first.split()[1:] == ["waiting", "–", "–"]
    broken = "".join(line.split()[0] for line in (first, *others[:-1]))
    assert broken == name and len(first) <= 80


def test_the_status_is_shown_until_nothing_is_trained(sweep, capsys, monkeypatch):
    """Its clock ends the training that it watches."""
    run = sweep / "runs" / "epsilon=begun"
    with sole_writer(run):
        lasts = True

        def sleep(seconds):
            nonlocal lasts
            assert seconds >= 0.5
            lasts = False

        monkeypatch.setattr("agents.cli.sweep_status.time.sleep", sleep)
        monkeypatch.setattr(
            "agents.running.folder.has_writer", lambda folder: lasts and folder == run
        )
        assert main(["sweep", "status", str(sweep), "--every", "0.5", "--metric", "return"]) == 0
    states = shown(capsys.readouterr().out)
    assert not lasts and states["epsilon=begun"] == ("stopped", "100", "25", "%", "1.500")


def test_a_metric_that_no_run_logs_is_refused(sweep, capsys):
    assert main(["sweep", "status", str(sweep), "--once", "--metric", "los"]) == 2
    assert "--metric (='los') must be one of return" in capsys.readouterr().err


def test_a_run_that_goes_on_is_looked_at_again(sweep):
    rows = _look(sweep, "return", {})
    assert rows["epsilon=done"].state == "complete"
    scalars = sweep / "runs" / "epsilon=done" / "scalars.csv"
    text = scalars.read_text()
    scalars.write_text("")  # nobody reads it once more
    assert _look(sweep, "return", rows)["epsilon=done"] is rows["epsilon=done"]
    scalars.write_text(text)
    config = sweep / "runs" / "epsilon=done" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"steps": 800}))
    assert _look(sweep, "return", rows)["epsilon=done"].planned == 800
    with sole_writer(config.parent):
        assert _look(sweep, "return", {})["epsilon=done"].state == "training"


@pytest.mark.slow
def test_a_sweep_is_compared_by_the_runs_that_have_a_value(sweep, capsys, tmp_path):
    (sweep / "runs" / "epsilon=damaged" / "scalars.csv").write_text("iteration,env_steps,seed\n")
    assert main(["compare", str(sweep), "--out", str(tmp_path / "a.png")]) == 0
    text = capsys.readouterr().out
    assert "epsilon=done" in text and "epsilon=damaged" not in text


@pytest.mark.slow
def test_of_a_sweep_evaluations_are_enough(tmp_path, capsys):
    """One run has no return of training, as where no episode ended: neither is left out."""
    write_list(tmp_path, {"longest": [], "short": []})
    for name, trained in (("longest", "nan"), ("short", "0.5")):
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        head = "iteration,env_steps,seed,return,evaluation_return"
        (folder / "scalars.csv").write_text(f"{head}\n1,10,0,{trained},0.25\n")
    words = ["compare", str(tmp_path), "--out", str(tmp_path / "a.png")]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "final evaluation_return" in text and "longest" in text and "short" in text
    assert main([*words, "--metric", "return"]) == 0
    assert "longest" not in capsys.readouterr().out


def test_of_a_sweep_in_progress_runs_without_the_metric_are_left_out(tmp_path, capsys):
    write_list(tmp_path, {"evaluated": [], "trained": []})
    for name, cells in (("evaluated", ",0.25"), ("trained", "0.5,")):
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        head = "iteration,env_steps,seed,return,evaluation_return"
        (folder / "scalars.csv").write_text(f"{head}\n1,10,0,{cells}\n")
    words = ["compare", str(tmp_path), "--out", str(tmp_path / "a.png")]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "final return" in text and "trained" in text and "evaluated" not in text
    assert main([*words, "--metric", "length"]) == 2
    assert f"no run of the sweep in {tmp_path} has a value of 'length' yet" in (
        capsys.readouterr().err.replace("\n", "")
    )


def test_numbers_of_runs_with_long_names_are_not_broken(tmp_path, capsys):
    write_list(tmp_path, {f"memory=average,learning_rate=1e-{i}": [] for i in (4, 5)})
    for i in (4, 5):
        folder = tmp_path / "runs" / f"memory=average,learning_rate=1e-{i}"
        folder.mkdir(parents=True)
        head = "iteration,env_steps,seed,return"
        (folder / "scalars.csv").write_text(f"{head}\n1,1000000,0,-0.39{i}\n")
    assert main(["compare", str(tmp_path), "--out", str(tmp_path / "a.png")]) == 0
    text = capsys.readouterr().out
    assert all(text.count(f"-0.39{i}") == 5 for i in (4, 5)) and text.count("1,000,000") == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sweep status {}", "holds no sweep: there is no sweep.json in it"),
        ("sweep status {} --every 0", r"--every \(=0.0\) must be a number of seconds above 0"),
        (
            "compare {}/begun",
            "no run of the sweep in .*/begun has a value of 'evaluation_return' or 'return'",
        ),
        ("sweep status {}/other", "sweep.json is no list of a sweep's runs"),
    ],
)
def test_what_is_no_sweep(words, message, tmp_path, capsys):
    write_list(tmp_path / "begun", {"a": []})
    assert read_list(tmp_path / "begun") == {"a": []}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sweep.json").write_text("[]")
    assert main(words.format(tmp_path).split()) == 2
    assert re.search(message, " ".join(capsys.readouterr().err.split()))
