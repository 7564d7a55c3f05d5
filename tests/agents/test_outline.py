"""What a run is, in a few words."""

import dataclasses
import json

import pytest

import agents
import zoo
from agents.running.outline import by_environment, common, outline, read_config
from agents.settings import to_plain


def described(agent):
    return outline({"agent": json.loads(json.dumps(to_plain(agent)))})


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (
            agents.PPO(env="RepeatFirstEasy", memory=zoo.spec("rtu", hidden=96)),
            "RepeatFirstEasy: rtu of 96 units, RTRL(8)",
        ),
        (
            agents.PPO(
                env="RepeatFirst",
                env_options={"decks": 2},
                memory=zoo.spec("gru", hidden=8, layers=2),
                gradient=agents.RTRL(segment=4, refresh="epoch"),
            ),
            "RepeatFirst(decks=2): gru of 2 layers of 8 units, RTRL(4, refresh=epoch)",
        ),
        (
            agents.PPO(
                env=agents.envs.wrappers.TimeLimit(agents.envs.RepeatFirst(), 5),
                memory=zoo.spec("lru", hidden=8),
                gradient=agents.BPTT(),
            ),
            "TimeLimit(RepeatFirst(decks=1), limit=5): lru of 8 units, BPTT",
        ),
        (agents.Tabular(env="gravity"), "gravity"),
    ],
)
def test_an_agent_is_told_by_environment_memory_and_gradient(agent, words):
    assert str(described(agent)) == words


def test_of_several_runs_is_told_what_they_share():
    options = {"env": "RepeatFirst", "memory": zoo.spec("rtu", hidden=4)}
    rtrl, bptt = (
        described(agents.PPO(**options, gradient=g)) for g in (agents.RTRL(), agents.BPTT())
    )
    assert str(common([rtrl, bptt])) == "RepeatFirst: rtu of 4 units"
    assert str(common([rtrl, described(agents.Tabular(env="gravity"))])) == ""


def test_objects_are_of_one_environment_where_all_of_it_is_the_same(tmp_path):
    objects = {
        "usual": agents.envs.RepeatPrevious(decks=1, k=4),
        "again": agents.envs.RepeatPrevious(decks=1, k=4),
        "longer": agents.envs.RepeatPrevious(decks=1, k=32),
    }
    short = dataclasses.replace(objects["usual"].default_params, max_steps_in_episode=9)
    for label, env in {**objects, "cut": (objects["usual"], short)}.items():
        (tmp_path / label).mkdir()
        config = {"agent": to_plain(agents.Tabular(env=env))}
        (tmp_path / label / "config.json").write_text(json.dumps(config))
    found = by_environment({path.name: path for path in sorted(tmp_path.iterdir())})
    assert {name: list(group) for name, group in found.items()} == {
        "RepeatPrevious(decks=1, k=4) with max_steps_in_episode=51": ["again", "usual"],
        "RepeatPrevious(decks=1, k=4) with max_steps_in_episode=9": ["cut"],
        "RepeatPrevious(decks=1, k=32)": ["longer"],
    }
    assert found["RepeatPrevious(decks=1, k=32)"]["longer"].environment in found


def test_a_strangers_configuration_moves_no_cursor():
    about = outline({"agent": {"env": "a\x1b[2J", "memory": {"name": "\x07", "hidden": 1}}})
    assert str(about).isprintable() and "a\\x1b[2J" in str(about)


@pytest.mark.parametrize("text", [None, "", "[]", "{", '{"agent": 3}', '{"agent": {"memory": 1}}'])
def test_a_configuration_that_cannot_be_read_says_nothing(text, tmp_path):
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    assert str(outline(read_config(tmp_path))) == ""
