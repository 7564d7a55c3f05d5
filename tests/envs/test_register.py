"""Environments of one's own: registered names, objects, and what a configuration says of them."""

import dataclasses
import json
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from gymnax.environments.environment import Environment, EnvParams
from gymnax.wrappers import LogWrapper

from agents import envs
from agents.envs import registry, wrappers
from tests.envs.walk import Walk


class Corridor(Walk):
    """A registered environment with an option."""

    def __init__(self, length: int = 5):
        super().__init__()
        self.length = length


def corridor_of(length: int = 5):
    env = Corridor(length)
    return env, env.default_params.replace(max_steps_in_episode=2 * length)


def give_up(length: "int"):
    return "no environment"


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """What a test registers is its own."""
    monkeypatch.setattr(registry, "_REGISTERED", {})


def test_a_registered_class_is_made_by_name_with_checked_options():
    envs.register("my/corridor-v0", Corridor)
    assert "my/corridor-v0" in envs.names()
    env, params = envs.make("my/corridor-v0", length=7, max_steps_in_episode=3)
    assert (env.length, params.max_steps_in_episode) == (7, 3)
    observation, state = env.reset(jax.random.key(0), params)
    env.step(jax.random.key(1), state, 0, params)
    assert env.observation_space(params).contains(observation)
    with pytest.raises(TypeError, match=r"`length` \(='7'\) must be a whole number"):
        envs.make("my/corridor-v0", length="7")
    with pytest.raises(
        ValueError, match=r"`depth` \(=7\) of my/corridor-v0; .*: length, max_steps"
    ):
        envs.make("my/corridor-v0", depth=7)
    with pytest.raises(ValueError, match=r"the nearest names are my/corridor-v0"):
        envs.make("my/coridor-v0")


def test_a_registered_function_may_give_parameters_too():
    envs.register("corridor", corridor_of)
    env, params = envs.make("corridor", length=4)
    assert (env.length, params.max_steps_in_episode) == (4, 8)
    env, params = envs.make("corridor", external_memory="K1", max_steps_in_episode=3)
    assert isinstance(env, envs.ExternalMemory)
    assert params.max_steps_in_episode == 3


class Pair(NamedTuple):
    max_steps_in_episode: int


def test_parameters_that_are_no_dataclass_have_no_options(unhooked):
    envs.register("pair", lambda length=3: (Walk(), Pair(length)))
    assert envs.make("pair", length=4)[1] == Pair(4)
    with pytest.raises(ValueError, match=r"option `speed` \(=1\) of pair; it must be .*: length\."):
        envs.make("pair", speed=1)


@pytest.mark.parametrize(
    ("factory", "error", "message"),
    [
        (give_up, ValueError, "`length` must be given: none has no default for it"),
        (lambda: (Walk(), None, 3), TypeError, "must be made as an environment, or as a pair of"),
    ],
)
def test_what_a_factory_wants_and_makes_is_named(factory, error, message):
    envs.register("none", factory)
    with pytest.raises(error, match=message):
        envs.make("none")


def test_an_annotation_that_is_a_text_is_looked_at():
    envs.register("none", give_up)
    with pytest.raises(TypeError, match=r"`length` \(='7'\) must be a whole number"):
        envs.make("none", length="7")


def test_a_factory_has_to_make_an_environment():
    envs.register("none", give_up)
    with pytest.raises(
        TypeError, match=r"`env` \(='no environment'\) must be a gymnax environment"
    ):
        envs.make("none", length=1)


def test_a_name_is_given_once():
    envs.register("corridor", Corridor)
    anew = type("Corridor", (Corridor,), {"__module__": __name__, "__qualname__": "Corridor"})
    envs.register("corridor", anew)  # as where a notebook's cell is run again
    assert type(envs.make("corridor")[0]) is anew
    with pytest.raises(ValueError, match=r"`name` \(='corridor'\) is the name of another"):
        envs.register("corridor", corridor_of)
    assert envs.names().count("corridor") == 1


@pytest.mark.parametrize("name", ["gravity", "CartPole-v1", "MNISTBandit-bsuite"])
def test_a_known_name_stays(name):
    with pytest.raises(ValueError, match=rf"`name` \(='{name}'\) is the name of another"):
        envs.register(name, Corridor)


@pytest.mark.parametrize("name", ["", "two words", "-v0", "é", "gymnasium/Mine-v0", "a\n"])
def test_names_that_break_a_rule(name):
    with pytest.raises(ValueError, match=r"`name` \(=.*\) must be letters, digits and _ - \. /"):
        envs.register(name, Corridor)


def test_what_cannot_be_registered():
    with pytest.raises(TypeError, match=r"`name` \(=3\) must be text"):
        envs.register(3, Corridor)
    with pytest.raises(
        TypeError, match=r"`factory` \(=<.*Corridor.*\) must be a class or function"
    ):
        envs.register("corridor", Corridor())


def test_a_name_an_object_and_a_pair_are_resolved():
    env, params = envs.resolve("RepeatPrevious", {"k": 3})
    assert env.k == 3
    assert envs.resolve(env) == (env, env.default_params)
    params = params.replace(max_steps_in_episode=9)
    assert envs.resolve((env, params)) == (env, params)
    assert envs.resolve((env, params), {}) == (env, params)
    assert isinstance(envs.resolve("gravity")[0], envs.Gravity)


@pytest.mark.parametrize("env", [None, 3, Walk, (Walk(), None, None), ("gravity", None)])
def test_what_is_no_environment(env):
    with pytest.raises(TypeError, match=r"`env` \(=.*\) must be the name of an environment, a gym"):
        envs.resolve(env)
    with pytest.raises(TypeError, match=r"`env` \(=.*\) must be the name of an environment, a gym"):
        envs.describe(env)


def test_wrappers_of_gymnax_are_told_from_ours():
    with pytest.raises(TypeError, match=r"In place of gymnax's wrappers there are `agents.envs.wr"):
        envs.resolve(LogWrapper(Walk()))


def test_an_object_has_no_options():
    with pytest.raises(
        ValueError, match=r"`env_options` \(=\{'k': 3\}\) belong to a name; an .*Walk"
    ):
        envs.resolve(Walk(), {"k": 3})


def test_a_description_is_json_and_asks_for_the_object():
    assert envs.describe("gravity") == "gravity"
    described = {
        "object": "tests.envs.walk.Walk",
        "arguments": {"form": "vector", "discrete": True},
        "params": {"max_steps_in_episode": 9},
    }
    assert envs.describe(Walk()) == envs.describe((Walk(), Walk().default_params)) == described
    wrapped = envs.describe(wrappers.TimeLimit(Walk("frame"), 3))
    assert wrapped["object"] == "agents.envs.wrappers.episodes.TimeLimit(tests.envs.walk.Walk)"
    assert wrapped["arguments"] == {"limit": 3, "env": {"form": "frame", "discrete": True}}
    again = json.loads(json.dumps(described))
    with pytest.raises(ValueError, match=r"was an object \(tests\.envs\.walk\.Walk\), which can"):
        envs.resolve(again)


class Told(Walk):
    """Keeps arguments of every kind, one under another name."""

    def __init__(self, numbers, field, draw, key, goal):
        super().__init__()
        self.numbers, self.field, self.draw, self._key, self.aim = numbers, field, draw, key, goal


def test_what_a_description_tells_and_what_it_cannot():
    def told(numbers=(1, 2.5), field=0.0, draw=len, key=0, goal=1, **params):
        env = Told(numbers, np.full((8, 8), field), draw, jax.random.key(key), goal)
        return json.loads(json.dumps(envs.describe((env, env.default_params.replace(**params)))))

    arguments = told()["arguments"]
    assert arguments.keys() == {"numbers", "field", "key"}
    assert arguments["numbers"] == [1, 2.5] and arguments["key"] == [0, 0]
    assert arguments["field"].startswith("float64[8, 8], sha256 ")
    steps = jnp.int32(7)
    for change in ({"numbers": (1,)}, {"field": 1.0}, {"key": 1}, {"max_steps_in_episode": steps}):
        assert told(**change) != told(), change
    assert told(draw=max, goal=2) == told() == told(max_steps_in_episode=9)


@struct.dataclass
class Unlimited:
    speed: float = 1.0


@dataclasses.dataclass
class Unregistered:
    max_steps_in_episode: int = 3


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        (Unlimited(), TypeError, r"field `max_steps_in_episode`.* and not Unlimited\(speed=1\.0\)"),
        ({"max_steps_in_episode": 3}, TypeError, r"field `max_steps.* and not \{'max_steps"),
        (Unregistered(), TypeError, "that are a pytree, such as a `flax.str"),
        (EnvParams(max_steps_in_episode=0), ValueError, r"`max_steps_in_episode` \(=0\) is a num"),
        (EnvParams(max_steps_in_episode=2**31), ValueError, "is a number from 1 to 2147483647"),
        (EnvParams(max_steps_in_episode=np.array([3, 4])), ValueError, "is a number from 1 to 21"),
        (EnvParams(max_steps_in_episode=np.inf), ValueError, r"`max_steps_in_episode` \(=inf\) is"),
        (EnvParams(max_steps_in_episode=None), ValueError, r"`max_steps_in_episode` \(=None\) is"),
    ],
)
def test_parameters_have_a_number_of_steps(params, error, message):
    with pytest.raises(error, match=rf"`env` \(=Walk\) must have .*{message}"):
        envs.resolve((Walk(), params))


@pytest.mark.parametrize("method", ["observation_space", "action_space", "reset_env", "step_env"])
def test_an_environment_has_methods_of_its_own(method):
    without = type("Without", (Walk,), {method: getattr(Environment, method)})
    with pytest.raises(TypeError, match=rf"`env` \(=Without\) must have a method `{method}\("):
        envs.resolve(without())


@pytest.mark.parametrize("space", [lambda self: None, property(lambda self: None)])
def test_a_space_is_a_method_that_takes_parameters(space):
    other = type("Other", (Walk,), {"observation_space": space})
    with pytest.raises(
        TypeError, match=r"Other\) must have a method `observation_space\(params\)`"
    ):
        envs.resolve(other())
