"""A grid's file and words: what all runs share, what differs, and what they are called."""

from pathlib import Path

import pytest

from agents.sweeps.grid import Grid, names_in, read_axes, read_grid, word_of

FILE = """
[settings]
env = "RepeatPreviousEasy"
steps = 1e6
seeds = 3
normalize-reward = true
memory_options = {r_min = 5e-1, kernel = [1, 2.50]}
env_options = ["decks=2", "label=a=b"]

[grid]
learning_rate = [1e-4, 3e-4]
memory = ["rtu", "gru"]
env_options.suits = [1, 2]
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "grid.toml"
        path.write_text(text)
        return path

    return write


def test_a_file_has_settings_and_a_grid_as_they_are_written(written):
    grid = read_grid(written(FILE))
    assert grid.settings == {
        "env": "RepeatPreviousEasy",
        "steps": "1e6",
        "seeds": "3",
        "normalize_reward": "True",
        "memory_options.r_min": "5e-1",
        "memory_options.kernel": "[1, 2.50]",
        "env_options.decks": "2",
        "env_options.label": "a=b",
    }
    assert grid.axes == {
        "learning_rate": ("1e-4", "3e-4"),
        "memory": ("rtu", "gru"),
        "env_options.suits": ("1", "2"),
    }


def test_a_file_is_read_as_utf_8_wherever_it_is(tmp_path, monkeypatch):
    def read(path, encoding="latin-1"):  # that of the system
        return path.read_bytes().decode(encoding)

    path = tmp_path / "grid.toml"
    monkeypatch.setattr(Path, "read_text", read)
    for encoding in ("utf-8", "utf-8-sig"):  # with the mark that some editors put in front
        path.write_bytes('[grid]\nenv = ["café"]'.encode(encoding))
        assert read_grid(path).axes == {"env": ("café",)}


def test_every_combination_is_a_run_of_its_own_name():
    grid = Grid({}, {"env": ("brax/ant", "gravity"), "seed": ("0", "1")})
    assert dict(grid.combinations()) == {
        "env=brax_ant,seed=0": {"env": "brax/ant", "seed": "0"},
        "env=brax_ant,seed=1": {"env": "brax/ant", "seed": "1"},
        "env=gravity,seed=0": {"env": "gravity", "seed": "0"},
        "env=gravity,seed=1": {"env": "gravity", "seed": "1"},
    }


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({}, r"a sweep needs --grid NAME=VALUE,VALUE, or a file with a \[grid\] in front"),
        ({"seed": ("1", "1")}, "two runs of the grid have the same name: seed=1"),
        ({"memory": ("é" * 122,)}, r"\(=memory=é+…, of 251 bytes\) must have at most 250"),
        ({"env": ("a/b", "a b")}, "two runs of the grid have the same name: env=a_b"),
    ],
)
def test_runs_have_names_that_differ(axes, message):
    with pytest.raises(ValueError, match=message):
        list(Grid({}, axes).combinations())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[grid", r"grid.toml is no TOML: "),
        ("seeds = 3", r"grid.toml has `seeds`; it may have the tables \[settings\] and \[grid\]"),
        ("[fixed]", r"grid.toml has `fixed`"),
        (
            "[settings]\nnum-envs = 3\nnum_envs = 4",
            r"grid.toml gives `num_envs` in \[settings\] twice, with - and with _",
        ),
        (
            "[grid]\nenv-options.k = [1]\nenv_options = {k = [2]}",
            r"grid.toml gives `env_options.k` in \[grid\] twice",
        ),
        (
            "[settings]\nenv_options = [1]",
            r"`env_options` \(=1\) in \[settings\] must be written K",
        ),
        ("[settings]\nenv_options = ['a=1', 'a=2']", r"`env_options` in \[settings\] gives 'a' tw"),
        (
            "[settings]\nnoise = [1, 2]",
            r"`noise` \(=\[1, 2\]\) in \[settings\] must be one value: ",
        ),
        ("[grid]\nseed = 3", r"`seed` \(=3\) in \[grid\] must be a list of values"),
        ("[grid]\nseed = []", r"`seed` \(=\[\]\) in \[grid\] must be a list of values"),
    ],
)
def test_a_file_that_is_no_grid(written, text, message):
    with pytest.raises(ValueError, match=message):
        read_grid(written(text))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"file of the grid cannot be read: .*nothing\.toml"):
        read_grid(tmp_path / "nothing.toml")


def test_axes_are_read_from_words():
    texts = ["learning-rate=1e-4,3e-4", "memory_options.shape=(1, 2),[3,4],5", "env=a=b"]
    texts += ["nested=[[1,2],[3,4]],(1,(2,3)),4"]
    assert read_axes(texts) == {
        "learning_rate": ("1e-4", "3e-4"),
        "memory_options.shape": ("(1, 2)", "[3,4]", "5"),
        "env": ("a=b",),
        "nested": ("[[1,2],[3,4]]", "(1,(2,3))", "4"),
    }


@pytest.mark.parametrize("text", ["seed", "seed=", "=1", "seed=1,", "seed=,1"])
def test_axes_written_wrongly(text):
    with pytest.raises(ValueError, match=r"--grid \(=.*\) must be written as NAME=VALUE,VALUE"):
        read_axes([text])


def test_an_axis_is_given_once():
    with pytest.raises(ValueError, match="--grid gives 'learning_rate' twice"):
        read_axes(["learning-rate=1", "learning_rate=2"])


def test_words_name_what_they_give():
    words = "--env a --num_envs=3 --no-normalize-reward --seed -1 --memory-options b=2 c"
    found = list(names_in([*words.split(), "--env-options=d=1"]))
    expected = ["env", "num_envs", "normalize_reward", "seed", "memory_options.b", "env_options.d"]
    assert found == expected


@pytest.mark.parametrize(
    ("name", "text", "switch", "word"),
    [
        ("learning_rate", "1e-4", None, "--learning-rate=1e-4"),
        ("memory_options.r_min", "-1", None, "--memory-options=r_min=-1"),
        ("previous_action", "True", None, "--previous-action=True"),
        ("normalize_reward", "true", False, "--normalize-reward"),
        ("normalize_reward", "False", True, "--no-normalize-reward"),
        ("cache", "true", True, ""),
        ("resume", "false", False, ""),
        ("normalize_reward", "perhaps", False, "--normalize-reward=perhaps"),
    ],
)
def test_settings_become_words(name, text, switch, word):
    assert word_of(name, text, switch=switch) == word
