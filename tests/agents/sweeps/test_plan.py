"""What a sweep checks before any run begins, and what it takes to be complete."""

import json
import re
import shlex
import sys

import pytest

from agents import DQN, Tabular
from agents.algorithms import agent_class
from agents.cli import main
from agents.cli.main import parse_command
from agents.cli.train import agent_of
from agents.running.train import train

WORDS = "sweep --env t_maze --algorithm tabular --engine print --steps 100 --rollout-length 50"


def commands(text):
    """The agents and options of the printed commands, by folder."""
    found = {}
    for line in text.splitlines():
        python, dash, package, *words = shlex.split(line)
        assert (python, dash, package) == ("python", "-m", "agents")
        command = parse_command(words)
        made = agent_of(agent_class(command.algorithm), command)
        found[command.running.out.name] = made, command.running
    return found


def test_commands_are_not_printed_for_what_is_no_folder(tmp_path, capsys):
    (tmp_path / "file").touch()
    words = [*WORDS.split(), "--grid", "seed=1", "--out", str(tmp_path / "file")]
    assert main(words) == 2
    assert f"--out (={tmp_path}/file) cannot be made a folder" in capsys.readouterr().err


@pytest.mark.slow
def test_commands_are_printed_that_train_reads(tmp_path, capsys):
    words = [*WORDS.split(), "--grid", "epsilon=0.1,0.2", "--grid", "seed=0,1"]
    assert main([*words, "--out", str(tmp_path), "--seeds", "2"]) == 0
    found = commands(capsys.readouterr().out)
    assert list(found) == [f"epsilon={e},seed={s}" for e in (0.1, 0.2) for s in (0, 1)]
    for name, (made, running) in found.items():
        epsilon, seed = (text.partition("=")[2] for text in name.split(","))
        assert made == Tabular(env="t_maze", rollout_length=50, epsilon=float(epsilon))
        assert (running.steps, running.seeds, running.seed) == (100, 2, int(seed))
        assert running.out == tmp_path / "runs" / name and not running.resume
    assert set(json.loads((tmp_path / "sweep.json").read_text())["runs"]) == set(found)


def test_typed_options_win_over_those_that_a_file_lists(tmp_path, capsys):
    path = tmp_path / "grid.toml"
    path.write_text("[settings]\nenv_options = ['length=3']\n[grid]\nseed = [1]")
    words = ["sweep", str(path), *WORDS.split()[1:], "--env-options", "length=2"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    ((made, _),) = commands(capsys.readouterr().out).values()
    assert made.env_options == {"length": 2}


def test_what_may_be_neither_is_true_or_false_in_any_case(tmp_path, capsys):
    words = "sweep --env t_maze --memory rtu --hidden 2 --engine print --steps 1000"
    words += " --grid previous_action=true,False,None"
    assert main([*words.split(), "--out", str(tmp_path)]) == 0
    found = commands(capsys.readouterr().out)
    assert [made.previous_action for made, _ in found.values()] == [True, False, None]


def test_the_run_of_an_unknown_algorithm_is_named(tmp_path, capsys):
    words = "sweep --env t_maze --engine print --grid algorithm=tabular,foo"
    assert main([*words.split(), "--out", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith("nothing was begun: algorithm=foo: --algorithm (='foo') must be one of ")


def test_no_preset_is_one_of_the_grid(tmp_path, capsys):
    words = "sweep --env t_maze --algorithm dqn --engine print --grid preset=None,memoroids"
    assert main([*words.split(), "--out", str(tmp_path)]) == 0
    (plain, _), (preset, _) = commands(capsys.readouterr().out).values()
    assert preset == DQN.preset("memoroids", env="t_maze") != plain


def test_a_file_gives_settings_of_every_kind_and_typed_words_win(tmp_path, capsys):
    path = tmp_path / "grid.toml"
    path.write_text(
        """
        [settings]
        env = "RepeatFirst"
        env_options = {decks = 2}
        normalize_reward = true
        memory = "rtu"
        memory_options = {nonlinear = true, r_min = 0.5}
        hidden = 8
        steps = 1e5
        [grid]
        anneal = [true, false]
        previous_action = [true, false]
        memory_options.r_max = [0.8]
        epochs = [1, 2]
        """
    )
    words = ["sweep", str(path), "--out", str(tmp_path), "--engine", "print", "--grid", "epochs=3"]
    assert main([*words, "--hidden=6", "--memory-options", "r_min=0.6"]) == 0
    found = commands(capsys.readouterr().out)
    assert len(found) == 4
    for name, (made, running) in found.items():
        assert made.anneal_steps == (100_000 if "anneal=True" in name else None)
        assert made.previous_action is ("previous_action=True" in name)
        assert (made.env_options, made.normalize_reward, made.epochs) == ({"decks": 2}, True, 3)
        assert made.memory.options == {"nonlinear": True, "r_min": 0.6, "r_max": 0.8}
        assert (made.memory.hidden, running.steps) == (6, 100_000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a sweep needs --grid"),
        ("--grid epsilon=0.1,x", "epsilon=x is no command of train"),
        ("--grid colour=1", "colour=1 is no command of train"),
        ("--grid epsilon=0.1,2", r"epsilon=2: --epsilon \(=2.0\) must be"),
        ("--grid epsilon=0.1 --seeds 0", r"epsilon=0.1: --seeds \(=0\) must be a whole number"),
        ("--grid epsilon=0.1 --workers 0", r"--workers \(=0\) must be at least 1"),
        (
            "--grid seed=1 --engine print --workers 4",
            r"--workers \(=4\) has no meaning with --engine",
        ),
        ("--grid epsilon=0.1,0.1" + "0" * 240, r"of 251 bytes\) must have at most 250"),
        ("--grid rollout_length=10", "--rollout-length is in the grid and is given for all"),
        ("--grid import=a,b", "--import is no setting of a grid: give it with the command"),
        ("--grid out=a,b", "--out is no setting of a sweep"),
        ("--grid seed=1 --resume", "--resume is no setting of a sweep"),
        ("--grid seed=1 --processes 2", "--processes is no setting of a sweep, whose runs are one"),
        ("--grid seeds=4,3 --devices 2", r"seeds=3: --devices \(=2\) must divide --seeds \(=3\)"),
        (
            "--grid checkpoint_every=5,0",
            r"every=0: --checkpoint-every \(=0\) must be a whole number",
        ),
        ("--grid log_every=0", r"every=0: --log-every \(=0\) must be a whole number of at least 1"),
        ("--grid track=wandb", r"track=wandb: --track \(='wandb'\) needs the package wandb: pip"),
        (
            "--grid checkpoints=sharded",
            "checkpoints=sharded: .* need orbax-checkpoint: pip install",
        ),
    ],
)
def test_what_is_wrong_is_said_before_anything_begins(text, message, tmp_path, capsys, monkeypatch):
    for package in ("wandb", "orbax.checkpoint"):
        monkeypatch.setitem(sys.modules, package, None)
    assert main([*WORDS.split(), *text.split(), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert re.search(message, told), told
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_run_without_a_picture_is_complete_where_there_is_nothing_to_draw(tmp_path, capsys):
    words = "sweep --env t_maze --algorithm tabular --engine print --steps 2 --rollout-length 2"
    words = [*words.split(), "--evaluate-every", "0", "--grid", "seed=0", "--out", str(tmp_path)]
    folder = tmp_path / "runs" / "seed=0"
    made = Tabular(env="t_maze", rollout_length=2)
    train(made, steps=2, out=folder, evaluate_every=0, progress=False)
    assert not (folder / "learning_curve.png").exists()
    assert main(words) == 0
    assert commands(capsys.readouterr().out) == {}


@pytest.mark.slow
def test_a_run_that_cannot_go_on_is_refused_before_anything_begins(tmp_path, capsys, interrupt):
    words = [*WORDS.replace("t_maze", "gymnasium/CartPole-v1").split(), "--algorithm", "ppo"]
    words += ["--minibatches", "2", "--num-envs", "2", "--segment", "10", "--grid", "seed=0"]
    words += ["--hidden", "4", "--encoder-size", "4", "--head-size", "4"]
    words += ["--evaluation-episodes", "2", "--out", str(tmp_path)]
    assert main(words) == 0
    (line,) = capsys.readouterr().out.splitlines()
    interrupt(1)
    assert main([*shlex.split(line)[3:], "--steps", "300"]) == 130
    told = capsys.readouterr().err
    assert "cannot go back to where they were. Its policy can be loaded." in told
    assert "--resume" not in told
    assert main([*words, "--steps", "300"]) == 2
    told = capsys.readouterr().err
    assert re.search(r"seed=0: .*seed=0 holds a run that did not come to its end. .* Remove", told)


@pytest.mark.slow
def test_a_complete_run_is_skipped_and_another_refused(tmp_path, capsys):
    words = [*WORDS.split(), "--grid", "epsilon=0.1,0.2", "--out", str(tmp_path)]
    folder = tmp_path / "runs" / "epsilon=0.2"
    made = Tabular(env="t_maze", rollout_length=50, epsilon=0.2)
    train(made, steps=100, out=folder, progress=False)
    assert main(words) == 0
    assert list(commands(capsys.readouterr().out)) == ["epsilon=0.1"]
    assert main([*words, "--steps", "150"]) == 0  # it goes on further
    found = commands(capsys.readouterr().out)
    assert [running.resume for _, running in found.values()] == [False, True]
    (folder / "learning_curve.png").unlink()  # as where it was killed at its end
    assert main(words) == 0
    assert list(commands(capsys.readouterr().out)) == ["epsilon=0.1", "epsilon=0.2"]
    train(made, steps=100, out=folder, progress=False, resume=True)  # which draws it again
    assert main(words) == 0
    assert list(commands(capsys.readouterr().out)) == ["epsilon=0.1"]
    for damage in (lambda text: text.partition("\n")[0] + "\n", lambda text: text[:-9] + "x\n"):
        whole = (folder / "scalars.csv").read_text()
        (folder / "scalars.csv").write_text(damage(whole))  # which the run itself will say too
        assert main(words) == 0
        assert list(commands(capsys.readouterr().out)) == ["epsilon=0.1", "epsilon=0.2"]
        (folder / "scalars.csv").write_text(whole)
    assert main([*words, "--evaluate-every", "2"]) == 2
    told = capsys.readouterr().err
    assert "other settings:\n  evaluate_every: 1 there, 2 asked for" in told
    assert main([*words, "--steps", "50"]) == 2
    told = capsys.readouterr().err
    assert f"--steps (=50) is less than the run in {folder} has done: 100" in told
    assert main([*words, "--seeds", "2"]) == 2
    told = capsys.readouterr().err
    assert f"{folder} holds a run of other settings:\n  seeds: 1 there, 2 asked for" in told
    (folder / "checkpoint.eqx").write_bytes(b"damaged")  # which the run itself will say
    assert main([*words, "--seeds", "2"]) == 0
    assert len(commands(capsys.readouterr().out)) == 2
