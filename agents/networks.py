"""The recurrent actor-critic: encoder, memory, and two heads."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import zoo
from agents.distributions import Categorical, Distribution, Gaussian, MultiCategorical
from agents.envs import MultiDiscrete
from agents.spaces import encode, is_discrete, width


class Inputs(eqx.Module):
    """What the network sees at one step.

    **Attributes:**

    - `observation`: as the environment gives it.
    - `action`: the previous action; the network ignores it where `begin`.
    - `reward`: the previous reward; the network ignores it where `begin`.
    - `begin`: whether the observation is the first of an episode.
    """

    observation: Any
    action: Array
    reward: Float[Array, "..."]
    begin: Bool[Array, "..."]


class Dense(eqx.Module):
    """A linear layer with orthogonal weights: `W x + b`."""

    w: Float[Array, "outputs inputs"]
    b: Float[Array, " outputs"]

    def __init__(self, inputs: int, outputs: int, *, scale: float = math.sqrt(2), key: Array):
        """**Arguments:**

        - `inputs`, `outputs`: widths.
        - `scale`: singular value of the weights.
        - `key`: PRNG key.
        """
        self.w = jax.nn.initializers.orthogonal(scale)(key, (outputs, inputs))
        self.b = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """`W x + b`."""
        # Input first: a batch of it then stays row-major through the product.
        return x @ self.w.T + self.b


class ActorCritic(eqx.Module):
    """Observation (and, if asked for, previous action and reward) → memory → policy and value.

    Unbatched, with the memory's four forms; it has `step`, `scan` and `rtrl_scan` of its own.
    """

    encoder: Dense | None
    memory: zoo.AbstractMemory
    actor: tuple[Dense, Dense]
    critic: tuple[Dense, Dense]
    log_std: Float[Array, " actions"] | None
    observation_space: Any = eqx.field(static=True)
    action_space: Any = eqx.field(static=True)
    previous_action: bool = eqx.field(static=True)
    previous_reward: bool = eqx.field(static=True)

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        memory: zoo.Spec,
        *,
        encoder_size: int,
        head_size: int,
        previous_action: bool,
        previous_reward: bool,
        key: Array,
    ):
        """**Arguments:**

        - `observation_space`, `action_space`: gymnax spaces.
        - `memory`: recipe of the memory.
        - `encoder_size`: width of the encoder, a linear layer with a ReLU between the observation
          and the memory; 0 for none, so that the memory reads the observation itself.
        - `head_size`: width of the hidden layer of each head.
        - `previous_action`, `previous_reward`: whether they are inputs too.
        - `key`: PRNG key.

        **Raises:**

        `TypeError` for a space that is not supported.
        """
        keys = jax.random.split(key, 6)
        inputs = width(observation_space)
        inputs += width(action_space) * previous_action + previous_reward
        discrete = is_discrete(action_space)
        actions = width(action_space)
        self.encoder = Dense(inputs, encoder_size, key=keys[0]) if encoder_size else None
        self.memory = memory.build(encoder_size or inputs, keys[1])
        outputs = self.memory.outputs
        self.actor = (
            Dense(outputs, head_size, key=keys[2]),
            Dense(head_size, actions, scale=0.01, key=keys[3]),
        )
        self.critic = (
            Dense(outputs, head_size, key=keys[4]),
            Dense(head_size, 1, scale=1.0, key=keys[5]),
        )
        self.log_std = None if discrete else jnp.zeros(actions)
        self.observation_space, self.action_space = observation_space, action_space
        self.previous_action, self.previous_reward = previous_action, previous_reward

    def features(self, inputs: Inputs) -> Float[Array, " features"]:
        """What the network reads at one step: the observation's numbers come first."""
        parts = [encode(self.observation_space, inputs.observation)]
        if self.previous_action:
            action = encode(self.action_space, inputs.action)
            parts.append(jnp.where(inputs.begin, 0, action))
        if self.previous_reward:
            parts.append(jnp.where(inputs.begin, 0, inputs.reward)[None])
        return jnp.concatenate(parts)

    def embed(self, features: Float[Array, " features"]) -> Float[Array, " encoder"]:
        """The memory's input, from what the network reads."""
        return features if self.encoder is None else jax.nn.relu(self.encoder(features))

    def encode(self, inputs: Inputs) -> Float[Array, " encoder"]:
        """The memory's input at one step."""
        return self.embed(self.features(inputs))

    def heads(self, y: Float[Array, " outputs"]) -> tuple[Distribution, Array]:
        """Policy and value from the memory's output at one step."""

        def head(layers):
            return layers[1](jax.nn.relu(layers[0](y)))

        action, value = head(self.actor), head(self.critic)[0]
        if self.log_std is not None:
            return Gaussian(action, self.log_std), value
        if isinstance(self.action_space, MultiDiscrete):
            return MultiCategorical(action, self.action_space.nvec), value
        return Categorical(action), value

    def step(self, state: Any, inputs: Inputs) -> tuple[Any, tuple[Distribution, Array]]:
        """One step, for acting.

        **Arguments:**

        - `state`: the memory's state.
        - `inputs`: of one step.

        **Returns:**

        `(state, (policy, value))`.
        """
        state, y = self.memory.step(state, self.encode(inputs), inputs.begin)
        return state, self.heads(y)

    def scan(self, state: Any, inputs: Inputs) -> tuple[Any, tuple[Distribution, Array]]:
        """A sequence of steps; every leaf of `inputs` has a leading time axis.

        **Arguments:**

        - `state`: the memory's state at the start.
        - `inputs`: of all steps.

        **Returns:**

        `(state, (policy, value))`, the latter with a leading time axis.
        """
        state, ys = self.memory.scan(state, jax.vmap(self.encode)(inputs), inputs.begin)
        return state, jax.vmap(self.heads)(ys)

    def rtrl_scan(self, carry: Any, inputs: Inputs) -> tuple[Any, tuple[Distribution, Array]]:
        """A segment whose gradient in the memory's parameters reaches beyond its start.

        **Arguments:**

        - `carry`: the memory's `(state, sensitivity)` at the start.
        - `inputs`: of all steps.

        **Returns:**

        `(carry, (policy, value))`, the latter with a leading time axis.
        """
        carry, ys = self.memory.rtrl_scan(carry, jax.vmap(self.encode)(inputs), inputs.begin)
        return carry, jax.vmap(self.heads)(ys)
