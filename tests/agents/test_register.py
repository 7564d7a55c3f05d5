"""What users bring: algorithms, environment objects, and modules that register them."""

import dataclasses
import json
import os
import subprocess
import sys
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import agents
import zoo
from agents.algorithms import agent_class, name_of
from agents.running import load_run
from agents.running.programs import init_seeds
from tests.agents.cases import PAGE, documented_agent
from tests.agents.tasks import Chain, Spans


class Mine(agents.AbstractAgent):
    """An agent of which only the settings matter."""

    @property
    def steps_per_iteration(self):
        return 1

    def init(self, *, key):
        raise NotImplementedError

    def iterate(self, state):
        raise NotImplementedError

    def policy(self, learner):
        raise NotImplementedError


Mine = dataclass(frozen=True, kw_only=True)(Mine)


@dataclass(frozen=True, kw_only=True)
class Needy(Mine):
    rate: float


@dataclass(frozen=True, kw_only=True)
class Unfinished(agents.AbstractAgent):
    pass


def test_a_registered_algorithm_has_its_name():
    agents.register("mine_of_the_tests", Mine)
    assert agent_class("mine_of_the_tests") is Mine and name_of(Mine) == "mine_of_the_tests"
    again = dataclass(frozen=True, kw_only=True)(type("Mine", (Mine,), {"__module__": __name__}))
    agents.register("mine_of_the_tests", again)  # as where a notebook's cell is run again
    assert agent_class("mine_of_the_tests") is again
    with pytest.raises(ValueError, match=r"`algorithm` .* Did you mean mine_of_the_tests"):
        agent_class("mine_of_test")
    with pytest.raises(ValueError, match=r"`kind` \(=Mine\) has a name already: 'mine_of_the_test"):
        agents.register("another_name", again)


@pytest.mark.parametrize(
    ("name", "kind", "error", "message"),
    [
        ("a name", Mine, ValueError, r"`name` \(='a name'\) must be of letters, digits and unders"),
        ("ppo", Mine, ValueError, r"`name` \(='ppo'\) is that of PPO: choose another"),
        ("needy", Needy, TypeError, r"`kind` \(=Needy\) needs defaults for: rate"),
        ("un", Unfinished, TypeError, r"`kind` \(=Unfinished\) must be a dataclass that defines"),
        ("plain", type("Plain", (Mine,), {}), TypeError, r"`kind` \(=Plain\) must be a dataclass"),
        ("ppo2", agents.PPO, ValueError, r"`kind` \(=PPO\) has a name already: 'ppo'"),
    ],
)
def test_what_cannot_be_registered(name, kind, error, message):
    with pytest.raises(error, match=message):
        agents.register(name, kind)


def test_an_algorithm_without_a_name_is_not_trained(tmp_path):
    agent = Needy(env="t_maze", rate=1.0)
    with pytest.raises(ValueError, match=r"Needy has no name, .* agents.register\('name', Needy\)"):
        agents.train(agent, steps=1, out=tmp_path / "a", progress=False)


# Environment objects

PPO = agents.PPO(
    env=Spans(),
    memory=zoo.spec("rtu", hidden=3),
    num_envs=2,
    rollout_length=8,
    minibatches=1,
    epochs=1,
    encoder_size=0,
    head_size=3,
)
OBJECTS = {"ppo": PPO, "tabular": agents.Tabular(env=Spans(), rollout_length=16)}


@pytest.mark.slow
@pytest.mark.usefixtures("traced_once")
@pytest.mark.parametrize("name", OBJECTS)
def test_an_environment_object_is_trained_with_and_asked_for_again(name, tmp_path, same_state):
    env, params = OBJECTS[name].environment
    pair = env, params.replace(max_steps_in_episode=4)
    agent = dataclasses.replace(OBJECTS[name], env=pair)
    options = {"evaluate_every": 0, "progress": False}
    whole = agents.train(agent, steps=64, out=tmp_path / "whole", **options)
    assert whole.metrics["length"] <= 4
    agents.train(agent, steps=32, out=tmp_path / "parts", **options)
    parts = agents.train(agent, steps=64, out=tmp_path / "parts", resume=True, **options)
    same_state(whole.state, parts.state)
    config = json.loads((tmp_path / "whole" / "config.json").read_text())
    described = {"arguments": {}, "params": {"max_steps_in_episode": 4}}
    assert config["agent"]["env"] == {"object": f"{Spans.__module__}.Spans", **described}
    with pytest.raises(
        ValueError, match=r"env\.params\.max_steps_in_episode: 4 there, 5 asked for"
    ):
        other = dataclasses.replace(agent, env=(env, params.replace(max_steps_in_episode=5)))
        agents.train(other, steps=96, out=tmp_path / "parts", resume=True, **options)
    with pytest.raises(ValueError, match=r"the environment was an object .* give it again in a"):
        agents.load_policy(tmp_path / "whole")
    policy = agents.load_policy(tmp_path / "whole", env=pair)
    _, action = policy.act(policy.init_state(), np.int32(5), True, key=jax.random.key(0))
    assert action in (0, 1)
    same_state(load_run(tmp_path / "whole", env=pair)[1], whole.state)
    with pytest.raises(
        ValueError,
        match=r"other state:[^`]*\n`env` \(=Chain\) must be what was trained in, whose state",
    ):
        load_run(tmp_path / "whole", env=Chain())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"env": Spans}, TypeError, r"`env` .* An instance is wanted, not a class"),
        (
            {"env": Spans(), "env_options": {"a": 1}},
            ValueError,
            r"`env_options` .* belong to a name",
        ),
    ],
)
def test_bad_environments_are_named(unhooked, options, error, message):
    with pytest.raises(error, match=message):
        agents.Tabular(**options)


class Gymnaxish:
    """Has the functions of an environment, and is none."""

    def reset(self, key, params=None):
        raise NotImplementedError

    def step(self, key, state, action, params=None):
        raise NotImplementedError


def test_an_environment_of_another_class_is_named(unhooked):
    with pytest.raises(TypeError, match=r"Its class must be derived from gymnax's `Environment`"):
        agents.Tabular(env=Gymnaxish())


@dataclass(frozen=True, kw_only=True)
class WithFunction(Mine):
    """Its learner is a network with a function for a leaf."""

    wraps: bool = False

    def init(self, *, key):
        network = eqx.nn.MLP(2, 2, 2, 1, key=key)
        if self.wraps:
            wrap = lambda x: x if eqx.is_array(x) else jax.tree_util.Partial(x)  # noqa: E731
            network = jax.tree.map(wrap, network)
        return agents.AgentState(network, None, None, jnp.int32(0), key)


def test_a_state_with_a_leaf_that_is_no_array_is_named():
    message = r"the state of WithFunction has \.learner\.activation \(=.*\), which is no array"
    for seeds in (1, 2):
        with pytest.raises(TypeError, match=message):
            init_seeds(WithFunction(env="t_maze"), 0, seeds)()
    state = init_seeds(WithFunction(env="t_maze", wraps=True), 0, 2)()
    assert state.learner.layers[0].weight.shape == (2, 2, 2)


# Another network or optimizer


@pytest.mark.slow
@pytest.mark.parametrize("kind", [agents.PPO, agents.PQN, agents.R2AC, agents.DQN])
def test_a_subclass_may_have_another_optimizer(kind):
    names = {"optimizer": property(lambda _: optax.sgd(0.0)), "__module__": __name__}
    still = type("Still", (kind,), names)
    settings: dict = {"env": "t_maze", "memory": zoo.spec("rtu", hidden=2), "num_envs": 4}
    if kind is agents.DQN:
        settings |= {"replay_steps": 1_000, "warm_up": 0, "batch_steps": 100}
    agent = dataclass(frozen=True, kw_only=True)(still)(**settings)
    before = jax.jit(lambda key: agent.init(key=key))(jax.random.key(0))
    iterate = lambda state, _: agent.iterate(state)  # noqa: E731
    after, _ = jax.jit(lambda state: jax.lax.scan(iterate, state, length=4))(before)
    assert eqx.tree_equal(before.learner.network, after.learner.network)


# Modules

MODULE = """
from gymnax.environments import spaces
from gymnax.environments.environment import Environment, EnvParams, EnvState
import jax.numpy as jnp

import agents
import zoo


class Ones(Environment):
    '''One step that pays 1.'''

    @property
    def default_params(self):
        return EnvParams(max_steps_in_episode=3)

    def observation_space(self, params):
        return spaces.Discrete(2)

    def action_space(self, params):
        return spaces.Discrete(2)

    def reset_env(self, key, params):
        return jnp.int32(0), EnvState(jnp.int32(0))

    def step_env(self, key, state, action, params):
        return jnp.int32(1), EnvState(state.time + 1), jnp.float32(1), jnp.bool_(True), {}


agents.envs.register("ones", Ones)
zoo.register("my_rtu", lambda inputs, hidden, *, key: zoo.RTU(inputs, hidden, key=key))
"""
# All in one process, which takes long to start.
COMMANDS = """
from agents.cli import main

small = "--num-envs 2 --rollout-length 8 --minibatches 1 --epochs 1 --hidden 3 --head-size 3"
run = "--steps 32 --evaluation-episodes 2 --progress none"
with_module = "--import my_module"
for command in (
    f"train {with_module} --env ones --memory my_rtu {small} {run} --out mine",
    f"evaluate {with_module} mine --episodes 3",
    f"train {with_module} --algorithm bias --env ones --num-envs 2 {run} --out bias",
    f"evaluate {with_module} bias --episodes 3",
):
    assert main(command.split()) == 0, command
"""


def test_the_documented_agent_is_short():
    assert len([line for line in documented_agent().splitlines() if line.strip()]) <= 60


@pytest.mark.slow
def test_a_module_of_the_users_brings_cells_environments_and_agents(tmp_path):
    (tmp_path / "my_module.py").write_text(MODULE + documented_agent())
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PAGE.parents[2])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ones: return of 3 episodes") == 2
    # Whatever is done, an episode pays 1.
    assert done.stdout.count("│ 1.000") >= 8
