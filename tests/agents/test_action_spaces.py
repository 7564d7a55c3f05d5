"""What an agent cannot act in is told when it is made."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

import agents
import zoo
from tests.agents.tasks import Tape

UNBOUNDED = spaces.Box(-np.inf, np.inf, (2,))
FIXED = spaces.Box(jnp.array([-1.0, 0.0]), jnp.array([1.0, 0.0]), (2,))  # its second number is 0
PARTS = spaces.Dict({"a": spaces.Discrete(2)})
WHOLE = spaces.Box(0, 8, (1,), jnp.int32)
WIDE = spaces.Box(-2e38, 2e38, (2,))  # a side of 4e38 is none that float32 has
TURNED = spaces.Box(1.0, -1.0, (2,))


class Acted(Tape):
    """The tape, with actions of any space."""

    def __init__(self, space):
        super().__init__()
        self.space = space

    def action_space(self, params):
        return self.space


@pytest.mark.parametrize(
    ("kind", "space", "error", "message"),
    [
        (agents.StreamingTD, UNBOUNDED, ValueError, "actions that can be drawn uniformly"),
        (agents.StreamingTD, PARTS, TypeError, "must be Discrete, MultiDiscrete or Box"),
        (agents.StreamingAC, PARTS, TypeError, "must be Discrete, MultiDiscrete or Box"),
        (agents.R2AC, PARTS, TypeError, "must be Discrete, MultiDiscrete or Box"),
        (agents.PPO, PARTS, TypeError, "must be Discrete, MultiDiscrete or Box"),
        (agents.TD3, FIXED, ValueError, r"must have room in every number .* \[1\. 0\.\], has not"),
        (agents.SAC, FIXED, ValueError, "must have room in every number of an action"),
        (agents.TD3, WIDE, ValueError, r"difference and sum are finite in float32, .* -2e\+38 to"),
        (agents.SAC, UNBOUNDED, ValueError, "must have actions in a bounded Box"),
        (agents.SAC, WHOLE, ValueError, "a Box of fractions for actions, not of int32: whole num"),
        (agents.PPO, WHOLE, ValueError, "a Box of fractions for actions, not of int32: whole num"),
        (
            agents.StreamingAC,
            TURNED,
            ValueError,
            r"between their bounds, .* from 1\.0 to -1\.0, ha",
        ),
        (
            agents.PPO,
            gymnasium.spaces.Discrete(3),
            TypeError,
            r"`env` \(=Acted\): `action_space` \(=Discrete\(3\)\) is one of gymnasium.*; gymnax's",
        ),
        (
            agents.PPO,
            spaces.Discrete(jnp.int32(3)),
            ValueError,
            r"_space`.n \(=Array.* must be a whole nu",
        ),
        (
            agents.PPO,
            spaces.Box(np.zeros(3), np.ones(3), (2,)),
            ValueError,
            r"`action_space`.low \(of shape \(3,\)\) must be one number, or of the Box's shape \(2",
        ),
        (agents.PPO, spaces.Box(None, None, (2,)), TypeError, r"low \(=None\) must be numbers"),
        (
            agents.SAC,
            spaces.Box([0.0, 1.0], 2.0, (2,)),
            TypeError,
            r"low \(=\[0\.0, 1\.0\]\) must be a",
        ),
        (agents.SAC, spaces.Box(1.0, 1 + 1e-9, (2,)), ValueError, "has not in float32"),
        (agents.PPO, None, TypeError, r"Acted.: `action_space` \(=None\) must be Discrete, Multi"),
        (agents.PPO, spaces.Box(0.0, 1.0, (2, 0)), ValueError, "2, 0.. must have at least one num"),
        (agents.PPO, spaces.Tuple(()), ValueError, r"`action_space` \(=Tuple\) must have a part"),
        (agents.PPO, spaces.Box(0.0, 1.0, 3), TypeError, "a Box of shape 3. must have a tuple as"),
        (
            agents.PPO,
            spaces.Tuple([spaces.Discrete(0)]),
            ValueError,
            r"`action_space`\[0\].n \(=0\) must be a whole number of at least 1",
        ),
    ],
)
def test_spaces_without_a_way_to_act(kind, space, error, message):
    with pytest.raises(error, match=message):
        kind(env=Acted(space), memory=zoo.spec("mlp", hidden=3))


def test_squashed_actions_need_room_and_others_do_not():
    settings = {"env": Acted(FIXED), "memory": zoo.spec("mlp", hidden=3)}
    agents.PPO(**settings)
    with pytest.raises(ValueError, match="must have room in every number of an action"):
        agents.PPO(**settings, squash_actions=True)
