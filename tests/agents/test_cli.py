"""The command line: what options mean, what is printed, what errors look like."""

import importlib.abc
import json
import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from PIL import Image

import agents
import zoo
from agents import BPTT, DQN, PPO, PQN, RTRL, TBPTT, Tabular
from agents.algorithms import agent_class
from agents.cli import main
from agents.cli.main import parse_command
from agents.cli.options import field_docs, make_agent
from agents.cli.play import Play
from agents.cli.tables import decimals_of, interval
from agents.cli.train import agent_of
from agents.cli.words import in_flags, parse_count, parse_seed
from agents.learning.gradients import Gradient
from tests.agents.tasks import SMALL_TRAINING
from zoo.options import parse_options


@pytest.fixture(scope="module", autouse=True)
def usual_types():
    """JAX's usual 32-bit types."""
    jax.config.update("jax_enable_x64", False)
    yield
    jax.config.update("jax_enable_x64", True)


def build(text, algorithm="ppo"):
    env = "" if "--env " in text else "--env RepeatFirstEasy"
    words = shlex.split(f"train --algorithm {algorithm} {env} --out runs/a {text}")
    command = parse_command(words)
    return agent_of(agent_class(algorithm), command)


def test_without_options_the_algorithms_defaults_hold():
    assert build("") == PPO(env="RepeatFirstEasy", memory=zoo.spec("rtu", hidden=128))


def test_every_option_of_the_algorithm_is_passed_on():
    numbers = {"staleness_every": 5, "num_envs": 16, "rollout_length": 32, "epochs": 2}
    numbers |= {"minibatches": 8, "learning_rate": 3e-4, "discount": 0.9, "gae_lambda": 0.8}
    numbers |= {"clip": 0.1, "value_clip": 0.3, "entropy_coefficient": 0.02, "head_size": 7}
    numbers |= {"value_coefficient": 0.6, "max_grad_norm": 2.0, "encoder_size": 5}
    switches = {"previous_action": True, "previous_reward": True, "normalize_reward": True}
    given = "".join(f" --{name.replace('_', '-')} {value}" for name, value in numbers.items())
    given += " --previous-action True --previous-reward --normalize-reward --anneal --steps 1e5"
    given += " --env RepeatFirst --env-options decks=2 --memory lru --hidden 6 --layers 2"
    given += " --credit exact --memory-options r_min=0.5 --memory-options outputs=3"
    assert build(f"{given} --gradient rtrl --segment 4 --refresh epoch --storage bfloat16") == PPO(
        env="RepeatFirst",
        env_options={"decks": 2},
        memory=zoo.spec("lru", hidden=6, layers=2, credit="exact", r_min=0.5, outputs=3),
        gradient=RTRL(segment=4, refresh="epoch", storage="bfloat16"),
        anneal_steps=100_000,
        **numbers,
        **switches,
    )


@dataclass(frozen=True, kw_only=True)
class Own(PPO):
    """Where gradient and environment have other defaults."""

    env: Any = "RepeatFirst"
    env_options: dict = field(default_factory=lambda: {"decks": 2})
    gradient: Gradient = field(default_factory=lambda: TBPTT(4))

    @classmethod
    def presets(cls):
        return {"whole": {"gradient": BPTT(), "env_options": {"decks": 3}}}


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ("", {"gradient": TBPTT(4), "env_options": {"decks": 2}}),
        ("--gradient tbptt", {"gradient": TBPTT(4), "env_options": {"decks": 2}}),
        ("--segment 2", {"gradient": TBPTT(2), "env_options": {"decks": 2}}),
        ("--gradient rtrl", {"gradient": RTRL(), "env_options": {"decks": 2}}),
        ("--preset whole", {"gradient": BPTT(), "env_options": {"decks": 3}}),
        ("--env-options decks=1", {"gradient": TBPTT(4), "env_options": {"decks": 1}}),
        ("--env t_maze", {"gradient": TBPTT(4), "env": "t_maze", "env_options": {}}),
    ],
)
def test_an_agents_own_defaults_are_those_of_the_command_line(words, settings):
    agents.register("own_of_test_cli", Own)
    command = parse_command(shlex.split(f"train --algorithm own_of_test_cli --out a {words}"))
    expected = Own(memory=zoo.spec("rtu", hidden=128), **settings)
    assert make_agent(Own, command.agent) == expected


def test_a_preset_changes_the_defaults_and_what_is_given_besides_wins():
    words = "train --algorithm dqn --preset memoroids --env RepeatFirstEasy --out a --updates 4"
    command = parse_command(words.split())
    made = make_agent(DQN, command.agent)
    assert made == DQN.preset("memoroids", env="RepeatFirstEasy", updates=4)
    assert (made.batch_steps, made.updates, made.memory.name) == (1000, 4, "ffm")
    with pytest.raises(ValueError, match=r"`preset` \(='memoroid'\) .* DQN.* Did you mean memoro"):
        parse_command([*words.replace("memoroids", "memoroid").split()])
    with pytest.raises(ValueError, match=r"`preset` \(='fast'\) is not one of PPO, .*: none\.$"):
        parse_command(["train", "--preset", "fast"])


def test_an_algorithm_has_the_options_of_its_own_fields():
    agent = build("--env gravity --rule q_learning --rollout-length 1e4 --epsilon 0.2", "tabular")
    assert agent == Tabular(env="gravity", rule="q_learning", rollout_length=10_000, epsilon=0.2)


@pytest.mark.parametrize("kind", [DQN, PPO, PQN, Tabular])
def test_every_field_has_its_docstring(kind):
    assert set(field_docs(kind)) >= {name for name in kind.__dataclass_fields__ if name != "_"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", RTRL()),
        ("--gradient rtrl --segment 1", RTRL(segment=1)),
        ("--gradient tbptt", TBPTT()),
        ("--gradient tbptt --segment 16", TBPTT(length=16)),
        ("--gradient bptt", BPTT()),
    ],
)
def test_gradients(text, expected):
    assert build(text).gradient == expected


@pytest.mark.parametrize(
    "text",
    ["bptt --segment 8", "bptt --refresh never", "tbptt --storage full", "bptt --credit exact"],
)
def test_options_that_a_gradient_does_not_have(text):
    gradient, flag, _ = text.split()
    with pytest.raises(ValueError, match=f"{flag} has no meaning with --gradient {gradient}"):
        build(f"--gradient {text}")


@pytest.mark.parametrize(("text", "count"), [("1e6", 1_000_000), ("12", 12), ("1_000", 1000)])
def test_counts(text, count):
    assert parse_count(text) == count
    assert isinstance(parse_count(text), int)


@pytest.mark.parametrize("text", ["1.5", "many", "inf", "nan", "1e-3"])
def test_what_is_not_a_count(text):
    with pytest.raises(ValueError, match=f"'{text}' is not a whole number"):
        parse_count(text)


def test_options_as_key_and_value():
    texts = ["a=1", "b=0.5", "c=True", "d=none", "e=tanh", "f=(1, 2)", "g=x=y", "h="]
    values = [1, 0.5, True, None, "tanh", (1, 2), "x=y", ""]
    assert parse_options(texts, "--flag") == dict(zip("abcdefgh", values, strict=True))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["k"], r"--flag \(='k'\) must be written as key=value"),
        (["=1"], r"--flag \(='=1'\) must be written as key=value"),
        (["k=1", "k=2"], "--flag gives 'k' twice"),
    ],
)
def test_options_written_wrongly(texts, message):
    with pytest.raises(ValueError, match=message):
        parse_options(texts, "--flag")


def test_train_leaves_a_run(trained):
    config = json.loads((trained / "config.json").read_text())
    assert (config["algorithm"], config["agent"]["env"]) == ("ppo", "RepeatFirstEasy")
    assert (trained / "learning_curve.png").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("traced_once")
def test_resuming_a_complete_run_reports_it_again(trained, capsys):
    assert main([*SMALL_TRAINING, str(trained), "--resume"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(
        r"demo: evaluation_return -?\d\.\d+ \(-?\d\.\d+ and -?\d\.\d+\) after 64 steps of", text
    )


@pytest.mark.slow
def test_evaluate_is_greedy_unless_asked_otherwise(trained, capsys):
    words, printed = ["evaluate", str(trained), "--episodes", "8"], []
    for flags in ([], ["--greedy"], ["--sample"]):
        assert main([*words, *flags]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != printed[2]


def test_compare_takes_any_metric(trained, tmp_path, capsys):
    words = ["compare", str(trained), "--out", str(tmp_path / "a.png"), "--metric", "loss"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "final loss" in shown and "best" not in shown  # the largest loss is not the best


def test_small_numbers_keep_three_digits():
    digits = {0.0: 3, 12.3: 3, -0.1: 3, 0.0999: 4, 3.7e-4: 6, 1e-30: 9, np.nan: 3, np.inf: 3}
    assert {value: decimals_of(value) for value in digits} == digits
    assert interval(np.float64([4e-4, 2e-4, 3e-4]), decimals=6) == "0.000300 ± 0.000248"
    assert interval(np.float64([4e-4, 2e-4]), decimals=5) == "0.00030 (0.00020 and 0.00040)"


@pytest.mark.slow
def test_compare_takes_any_statistic(tmp_path, capsys):
    """Of five seeds, whose last values are by hand; beside it the best points and all of them."""
    (tmp_path / "five").mkdir()
    curves = {0: (9, 1), 1: (1, 2), 2: (2, 3), 3: (3, 4), 4: (5, 100)}
    lines = [f"{i + 1},{10 * i + 10},{s},{curves[s][i]}.0" for i in (0, 1) for s in curves]
    text = "\n".join(["iteration,env_steps,seed,return", *lines]) + "\n"
    (tmp_path / "five" / "scalars.csv").write_text(text)
    words = ["compare", str(tmp_path / "five"), "--out", str(tmp_path / "a.png")]
    for statistic, value in {"mean": "22.000", "median": "3.000", "iqm": "3.000"}.items():
        assert main([*words, "--statistic", statistic]) == 0
        row = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("five "))
        assert row.split()[3] == value
        assert row.split()[-4:] == ["1.000", "100.000", "23.600", "13.000"]


def test_compare_keeps_names_where_there_is_no_room(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    names = ["short", "a_name_that_is_long_enough_to_be_broken"]
    for name in names:
        (tmp_path / name).mkdir()
        lines = [f"{t},{1_000_000 * t},{s},-1{s}0.5" for t in (1, 2) for s in (0, 1)]
        text = "\n".join(["iteration,env_steps,seed,return", *lines]) + "\n"
        (tmp_path / name / "scalars.csv").write_text(text)
    words = ["compare", *(str(tmp_path / name) for name in names)]
    assert main([*words, "--out", str(tmp_path / "a.png")]) == 0
    shown = capsys.readouterr().out
    assert "\nrun" in shown and "\nshort" in shown and "\na_name_that_" in shown
    assert shown.count("-105.500 (-110.500 and -100.500)") == 2


def test_compare_takes_seeds_as_they_are_known(tmp_path, capsys):
    """One that has its first value late counts as much as others, and one without any not."""
    (tmp_path / "a").mkdir()
    curves = {0: (0, 0, 0, 1), 1: ("", "", "", 1), 2: ("", "", "", "")}
    lines = [f"{t + 1},{10 * t + 10},{s},{curves[s][t]}" for t in range(4) for s in curves]
    text = "\n".join(["iteration,env_steps,seed,return", *lines]) + "\n"
    (tmp_path / "a" / "scalars.csv").write_text(text)
    assert main(["compare", str(tmp_path / "a"), "--out", str(tmp_path / "a.png")]) == 0
    row = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("a "))
    assert row.split()[-4:] == ["1.000", "1.000", "1.000", "0.625"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("compare {run} --out {run}", "--out (={run}) must be a file, and is a folder"),
        ("compare {run} --out {run}/b/a.png", "--out (={run}/b/a.png) must be in a folder that"),
        ("compare {run} {run} --labels x x y", "--labels (x, x, y) must be one different name"),
        ("analyze {run} --out {run}/b/a.png", "--out (={run}/b/a.png) must be in a folder that"),
        ("analyze {run} --reward-memory-length 0", "--reward-memory-length (=0) must be a whole"),
        ("analyze {run} --reward-memory-length -3", "--reward-memory-length (=-3) must be a whol"),
        ("compare {run} {run}", "{run} is given twice"),
        ("experiment nosuch", "`name` (='nosuch') must be one of"),
        ("train --env t_maze --out {run} --memory-options hidden=3", "`hidden` (=3) is not an opt"),
        ("train --out {run} --env RepeatFirst --env-options seed=3", "Unknown option `seed` (=3)"),
    ],
)
def test_words_that_cannot_be_used_are_named_as_they_were_typed(words, message, tmp_path, capsys):
    (tmp_path / "scalars.csv").write_text("iteration,env_steps,seed,return\n1,10,0,2.0\n")
    assert main(words.format(run=tmp_path).split()) == 2
    told = " ".join(capsys.readouterr().err.replace("\n", "").split())
    assert message.format(run=tmp_path).replace(" ", "") in told.replace(" ", "")


def test_no_module_is_said_to_bring_an_experiment(capsys):
    for words in (["experiment", "nosuch"], ["play", "--env", "nosuch", "--out", "a.gif"]):
        assert main(words) == 2
        assert ("--import" in capsys.readouterr().err) == (words[0] == "play")


def test_an_environment_object_is_asked_for_in_a_program():
    with pytest.raises(ValueError, match=r"give it again in a program, as in .*env=…") as refused:
        agents.envs.resolve({"object": "mine.Cards"})
    assert in_flags(str(refused.value), Play(out=Path("a.gif"))) == str(refused.value)


GAIN_RUNS = {
    "lstm": ("brax/hopper-P", (4, 5, 6, 9)),
    "gru": ("brax/hopper-P", (1, 2, 1, 2)),
    "mlp": ("brax/hopper-P", (1, 3, 2, 2)),
    "seeing": ("brax/hopper", (9, 10, 9, 8)),
    "close": ("brax/hopper", (0, 0, 0, 10)),
    "worse": ("brax/hopper", (1, 1, 1, 1)),
    "other": ("brax/ant-P", (1, 2, 3, 4)),
    "breakout": ("Breakout-MinAtar(mask=top)", (1, 2, 3, 4)),
    "whole": ("Breakout-MinAtar(flicker=0.0)", (5, 5, 5, 5)),
    "chain": ("chain(length=2)", (0, 1)),
    "bright": ("chain(length=2, observability=full)", (4, 4)),
    "usual": ("chain(length=2, observability=partial)", (0, 1)),
    "long": ("chain(length=3, observability=full)", (4, 4)),
    "object": ({"object": "mine.Cards", "arguments": {"k": 4}, "params": {}}, (1, 2)),
    "another": ({"object": "mine.Cards", "arguments": {"k": 32}, "params": {}}, (1, 2)),
    "damaged": ("chain", (1, 2)),
}


@pytest.fixture(scope="module")
def gain_runs(tmp_path_factory):
    """Folders of runs with an environment and the last value of each seed."""
    folder = tmp_path_factory.mktemp("gain")
    for name, (environment, values) in GAIN_RUNS.items():
        env, options = environment, {}
        if isinstance(environment, str):
            env, _, listed = environment.rstrip(")").partition("(")
            options = parse_options(listed.split(", ") if listed else (), "--env-options")
        options = [1, 2] if name == "damaged" else options
        (folder / name).mkdir()
        config = {"agent": {"env": env, "env_options": options}}
        (folder / name / "config.json").write_text(json.dumps(config))
        rows = [
            f"{i},{10 * i},{s},{x if i == 2 else 0}.0" for i in (1, 2) for s, x in enumerate(values)
        ]
        text = "\n".join(["iteration,env_steps,seed,return", *rows]) + "\n"
        (folder / name / "scalars.csv").write_text(text)
    (folder / "bare").mkdir()
    (folder / "bare" / "scalars.csv").write_text(text)
    return folder


def compare_gain(folder, words):
    runs, least, most = words.split(" | ")
    paths = [str(folder / run) for run in runs.split()]
    ends = [f"--gain-from={folder / least}", f"--gain-to={folder / most}"]
    return main(["compare", *paths, *ends, "--out", str(folder / "a.png")])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # The means are 6 and 1.5, 2 without memory, and 9 where everything is seen.
        ("lstm gru | mlp | seeing", {"lstm": (6 - 2) / 7, "gru": (1.5 - 2) / 7}),
        ("mlp | mlp | close", {"mlp": 0}),  # of which some bootstrap samples are no better
        ("breakout | breakout | whole", {"breakout": 0}),
        ("chain | chain | bright", {"chain": 0}),
        ("usual chain | chain | bright", {"usual": 0, "chain": 0}),
        ("chain | usual | bright", {"chain": 0}),
    ],
)
def test_compare_tells_the_memory_gain(gain_runs, capsys, words, expected, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert compare_gain(gain_runs, words) == 0
    lines = capsys.readouterr().out.splitlines()
    for run, gain in expected.items():
        found = re.search(
            r" (-?\d\.\d{3})(?: \((-?\d\.\d{3}) to (-?\d\.\d{3})\))? *$",
            next(line for line in lines if line.startswith(f"{run} ")),
        )
        assert float(found[1]) == pytest.approx(gain, abs=6e-4)
        assert (found[2] is None) == (run in ("mlp", "chain", "usual"))
        if found[2]:
            assert float(found[2]) < gain < float(found[3])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("lstm other | mlp | seeing", "other is of brax/ant-P and .*mlp of brax/hopper-P: a mem"),
        ("lstm | mlp | other", "other is of brax/ant-P, which is not the fully observed twin of b"),
        ("lstm | mlp | gru", "gru is of brax/hopper-P, which is not the fully observed twin of"),
        ("seeing | seeing | worse", "worse is of brax/hopper, which is not the fully observed tw"),
        ("whole | whole | breakout", "which is not the fully observed twin of Breakout-MinAtar"),
        ("object | another | seeing", r"object is of Cards\(k=4\) and .*another of Cards\(k=32\):"),
        ("chain | chain | damaged", "damaged is of chain, which is not the fully observed twin of"),
        (
            "chain | chain | usual",
            r"usual is of chain\(length=2, observability=partial\), which is",
        ),
        ("chain | chain | long", r"long is of chain\(length=3, observability=full\), which is not"),
        ("lstm | mlp | worse", r"worse sees everything and has a return of 1.000, which must be m"),
        ("bare | bare | seeing", "bare has no config.json that names its environment"),
    ],
)
def test_a_memory_gain_of_the_wrong_runs(gain_runs, capsys, words, message):
    assert compare_gain(gain_runs, words) == 2
    assert re.search(message, capsys.readouterr().err)


def test_a_memory_gain_needs_both_ends(gain_runs, capsys):
    run = str(gain_runs / "mlp")
    assert main(["compare", run, "--gain-from", run, "--out", str(gain_runs / "a.png")]) == 2
    assert "--gain-from and --gain-to have a meaning only together" in capsys.readouterr().err


@pytest.mark.slow
def test_analyze_draws_and_prints_each_seeds_value_memory(trained, tmp_path, capsys):
    picture = tmp_path / "figure.png"
    options = ["--episodes", "3", "--max-steps", "9", "--reward-memory-length", "5"]
    assert main(["analyze", str(trained), "--out", str(picture), *options]) == 0
    text = capsys.readouterr().out
    rows = re.findall(r"│ (\d) +│ (\d+) +│ (\d+\.\d) +│", text)
    assert [row[0] for row in rows] == ["0", "1"]
    assert all(1 <= int(length) <= 9 and steps == "9.0" for _, length, steps in rows)
    assert f"figure: {picture}" in text
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_play_takes_another_environment_with_the_same_spaces(trained, tmp_path, capsys):
    film = tmp_path / "play.gif"
    words = ["play", str(trained), "--agent", "1", "--out", str(film), "--sample"]
    assert main([*words, "--env", "RepeatPreviousEasy", "--steps", "4"]) == 0
    text = capsys.readouterr().out
    assert "RepeatPrevious" in text and re.search(r"│ 4, cut off by --steps 4 +│", text)
    with Image.open(film) as frames:
        assert frames.n_frames == 5


@pytest.mark.slow
@pytest.mark.usefixtures("traced_once")
def test_an_interrupt_prints_the_command_that_goes_on(
    trained, tmp_path, capsys, interrupt, monkeypatch
):
    interrupt(2)
    folder = tmp_path / "with space"
    assert main([*SMALL_TRAINING, str(folder)]) == 130
    monkeypatch.undo()
    words = shlex.split(capsys.readouterr().err.strip().splitlines()[-1])
    assert words[:4] == ["python", "-m", "agents", "train"]
    assert words[-2:] == [str(folder), "--resume"]
    assert main(words[3:]) == 0
    assert (folder / "scalars.csv").read_bytes() == (trained / "scalars.csv").read_bytes()


def failing(error):
    """Importing a module of the user's is the first thing that happens: it raises."""

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if name == "a_module_that_raises":
                raise error

    return Finder()


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (agents.TrainingDiverged("training diverged in iteration 4"), 2, "diverged in iteration 4"),
        (KeyboardInterrupt(), 130, "stopped at once\n"),
        (AssertionError("a bug"), None, None),
    ],
)
def test_what_goes_wrong_is_a_message_and_a_bug_keeps_its_traceback(
    error, code, message, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "meta_path", [failing(error), *sys.meta_path])
    words = ["cells", "--import", "a_module_that_raises"]
    if code is None:
        with pytest.raises(AssertionError, match="a bug"):
            main(words)
        return
    assert main(words) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["train --algorithm", "evaluate x --out", "compare --import", "sweep --algorithm"]
)
def test_a_missing_value_is_no_bug(text, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(text.split())
    assert stopped.value.code == 2
    assert text.split()[-1] in "".join(capsys.readouterr())


def test_names_may_hold_what_others_read_as_markup(tmp_path, capsys):
    """Brackets are rich's; dollars are matplotlib's, and so is a line in front."""
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
        (folder / "scalars.csv").write_text("iteration,env_steps,seed,return\n1,10,0,2.0\n")
    out = tmp_path / "a[" / "b:100:].png"
    out.parent.mkdir()
    words = ["--out", str(out), "--title", "a$b_{$", "--labels", "[/x]", "_$b_{$"]
    assert main(["compare", *map(str, folders), *words]) == 0
    printed = capsys.readouterr().out
    assert (
        "[/x]" in printed and "_$b_{$" in printed and "a[/b:100:].png" in printed.replace("\n", "")
    )


def test_annealing_is_told_once():
    with pytest.raises(ValueError, match="--anneal and --anneal-steps both say how long"):
        build("--anneal --anneal-steps 77 --steps 400")


@pytest.mark.slow
def test_play_writes_a_film_of_random_actions(tmp_path, capsys):
    film = tmp_path / "play.gif"
    words = ["play", "--env", "t_maze", "--env-options", "length=1", "--out", str(film)]
    assert main([*words, "--episodes", "2", "--seed", "1", "--fps", "10"]) == 0
    text = capsys.readouterr().out
    rows = re.findall(r"│ (\d) +│ (-?\d+\.\d+) +│ (\d+) +│", text)
    assert [row[0] for row in rows] == ["1", "2"]
    assert f"film: {film}" in text
    with Image.open(film) as frames:
        # The first state of each episode, and one after each step; the time is in the picture.
        assert frames.n_frames == 2 + sum(int(length) for *_, length in rows)
        assert frames.info["duration"] == 100


@pytest.mark.slow
def test_envs_and_cells_are_listed(capsys):
    assert main(["envs", "--filter", "medium"]) == 0
    head, *rows, caption = capsys.readouterr().out.splitlines()
    assert len(head) <= 80
    # A row is a line: nothing is broken, not even of the longest.
    assert [row.split()[0] for row in rows] == [n for n in agents.envs.names() if "Medium" in n]
    assert rows[0].split() == ["AutoencodeMedium", "MultiDiscrete(2)", "Discrete(4)", "207"]
    assert caption.strip() == "steps: of an episode, at most"
    assert main(["cells"]) == 0
    text = capsys.readouterr().out
    assert all(re.search(rf"^{name}  ", text, re.M) for name in zoo.names())
    assert re.search(r"^mlp +none +0  ", text, re.M)
    assert re.search(r"^rtu +linear, constant +2 +nonlinear=False,", text, re.M)


@pytest.mark.parametrize("text", ["-1", "4294967296", "1e99", "x", "1.5"])
def test_a_seed_is_of_32_bits(text, capsys):
    for words in ("train --env gravity --out x", "evaluate x", "play --out x.gif", "analyze x"):
        with pytest.raises(SystemExit) as left:
            main([*words.split(), "--seed", text])
        assert left.value.code == 2
        error = " ".join(capsys.readouterr().err.replace("│", " ").split())
        assert f"Error parsing --seed: '{text}' is not a whole number from 0 to 4294967295" in error
    assert parse_seed("4_294_967_295") == 2**32 - 1


def test_all_errors_keep_their_traceback_if_asked(monkeypatch):
    monkeypatch.setenv("TRACE_ZOO_TRACEBACK", "1")
    with pytest.raises(ValueError, match="no environment's name contains"):
        main(["envs", "--filter", "chess"])


@pytest.mark.parametrize(
    "command",
    [
        *("train", "sweep", "sweep status", "evaluate", "play", "compare", "experiment", "analyze"),
        *("envs", "cells"),
    ],
)
def test_every_option_has_help(command, capsys):
    with pytest.raises(SystemExit) as left:
        main([*command.split(), "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    flags = re.findall(r"│ (--[a-z-]+)[^│]*│\n│ +([^│]*)│", text)
    assert all(words.strip() for _, words in flags)
    assert "usage: python -m agents" in text
