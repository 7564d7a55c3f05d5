"""What a run is, in a few words."""

import json

import pytest

import agents
import zoo
from agents.running.outline import common, outline, read_config
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
            "TimeLimit: lru of 8 units, BPTT",
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


@pytest.mark.parametrize("text", [None, "", "[]", "{", '{"agent": 3}', '{"agent": {"memory": 1}}'])
def test_a_configuration_that_cannot_be_read_says_nothing(text, tmp_path):
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    assert str(outline(read_config(tmp_path))) == ""
