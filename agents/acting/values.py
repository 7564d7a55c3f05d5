"""Acting by the values of actions, by a policy alone, or at random beside predictions."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from agents.acting.behavior import (
    AbstractBehavior,
    AbstractNetworkBehavior,
    ByChance,
    Decision,
    normalized,
)
from agents.mapped import mapped
from agents.networks import Inputs
from agents.networks.spaces import by_content
from agents.networks.values import value_of


class ByValues(AbstractNetworkBehavior):
    """Takes the action of the highest value; of drawn ones a share is uniformly random.

    Keeps the value of the action and the highest one, and the highest of final observations.

    **Attributes:**

    - `network`: its output is a value for each action; see `agents.networks.ActionValues`.
    - `epsilon`: ε, the share.
    - `statistics`: of observations, which are normalized by them; `None` for none.
    """

    network: Any
    epsilon: Float[Array, ""]
    statistics: Any = None

    @property
    def value_network(self) -> Any:
        return self.network

    def __call__(self, state: Any, inputs: Inputs, key: Array | None) -> tuple[Any, Decision]:
        state, values = mapped(self.network.step)(state, self.seen(inputs))
        if key is None:
            action = jnp.argmax(values, axis=-1)
        else:
            action = epsilon_greedy(values, self.epsilon, key)
        action = action.astype(inputs.action.dtype)
        return state, Decision(action, (value_of(values, action), jnp.max(values, axis=-1)))

    def at_end(self, state: Any, inputs: Inputs) -> Array:
        _, values = mapped(self.network.step)(state, self.seen(inputs))
        return jnp.max(values, axis=-1)

    def seen(self, inputs: Inputs) -> Inputs:
        """Return what the network sees, for any leading axes: observations normalized."""
        return normalized(self.statistics, inputs, limit=jnp.inf)


class ByPrediction(AbstractNetworkBehavior):
    """Acts at random, as where the predictions were learned, with the prediction as memo.

    **Attributes:**

    - `network`: its output is the prediction.
    - `chance`: draws the actions.
    """

    network: Any
    chance: ByChance

    @property
    def has_best(self) -> bool:
        return self.chance.has_best

    @property
    def value_network(self) -> Any:
        return self.network

    def __call__(self, state: Any, inputs: Inputs, key: Array | None) -> tuple[Any, Decision]:
        state, value = mapped(self.network.step)(state, inputs)
        _, decision = self.chance((), inputs, key)
        return state, Decision(decision.action, value)


def epsilon_greedy(
    values: Float[Array, "env actions"], epsilon: Float[Array, ""], key: Array
) -> Int[Array, " env"]:
    """Return the actions of the highest values, but for a share of uniformly drawn ones."""
    share_key, action_key = jax.random.split(key)
    best = jnp.argmax(values, axis=-1)
    drawn = jax.random.randint(action_key, best.shape, 0, values.shape[-1], best.dtype)
    explores = jax.random.uniform(share_key, best.shape, jnp.float32) < epsilon
    return jnp.where(explores, drawn, best)


def linear_fall(steps: Int[Array, ""], start: float, end: float, duration: int) -> Float[Array, ""]:
    """Return a share that falls linearly over so many steps, and is constant before and after."""
    done = jnp.clip(steps / jnp.float32(duration), 0, 1)
    return (start + (end - start) * done).astype(jnp.float32)


class Recorded(AbstractBehavior):
    """Acts as another behavior does, and keeps what is seen at the end of an episode instead of
    what that behavior makes of it: replay needs the observation, and so does a learner whose actors
    are behind it.
    """

    behavior: AbstractBehavior

    def init_state(self) -> Any:
        return self.behavior.init_state()

    def __call__(self, state: Any, inputs: Inputs, key: Array | None) -> tuple[Any, Decision]:
        return self.behavior(state, inputs, key)

    def at_end(self, state: Any, inputs: Inputs) -> Inputs:
        return inputs

    def prepared(self) -> tuple[AbstractBehavior, Callable[[Any], Any], Callable[[Any], Any]]:
        behavior, cache, state = self.behavior.prepared()
        return dataclasses.replace(self, behavior=behavior), cache, state


class ByActor(AbstractNetworkBehavior):
    """Draws actions from a policy in a box, or all of them uniformly.

    **Attributes:**

    - `network`: its output is the policy.
    - `at_random`: whether actions are uniform in the box, as before learning.
    - `action_space`: the box.
    """

    network: Any
    at_random: Bool[Array, ""]
    action_space: Any = eqx.field(static=True, converter=by_content)

    def __call__(self, state: Any, inputs: Inputs, key: Array | None) -> tuple[Any, Decision]:
        state, policy = mapped(self.network.step)(state, inputs)
        if key is None:
            return state, Decision(policy.mode())
        policy_key, random_key = jax.random.split(key)
        keys = jax.random.split(random_key, inputs.begin.shape[0])
        drawn = policy.sample(policy_key)
        uniform = mapped(self.action_space.sample)(keys)
        return state, Decision(jnp.where(self.at_random, uniform, drawn))
