"""Networks for actions in a box: a policy alone, and two values of an action."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from gymnax.environments import spaces
from jaxtyping import Array, Float

import zoo
from agents.envs.core.encoding import box_bounds, is_bounded
from agents.networks.distributions import TanhGaussian
from agents.networks.layered import MakeLayers, layered_network
from agents.networks.layers import Layers, Linear
from agents.networks.recurrent import Recurrent
from agents.networks.spaces import by_content, check_room, check_vectors


def middle_and_half(space: spaces.Box) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Return the middle of a box and half of its sides, as vectors."""
    low, high = (jnp.ravel(x).astype(float) for x in box_bounds(space))
    return (low + high) / 2, (high - low) / 2


def check_box(action_space: Any, env_name: str) -> None:
    """Raise `ValueError` for an environment whose actions are not vectors in a bounded box."""
    if not (is_bounded(action_space) and len(action_space.shape) == 1):
        raise ValueError(
            f"`env` (={env_name}) must have actions in a bounded Box of one axis, not "
            f"{action_space!r}."
        )
    check_vectors(action_space, env_name)
    check_room(action_space, env_name)


class NoisyAction(eqx.Module):
    """An action that is certain, but for noise added to explore, and clipped to the box.

    **Attributes:**

    - `action`: without the noise.
    - `deviation`: of the normal noise, in each number.
    - `low`, `high`: of the box.
    """

    action: Float[Array, "*batch n"]
    deviation: Float[Array, "*#batch n"]
    low: Float[Array, "*#batch n"]
    high: Float[Array, "*#batch n"]

    def sample(self, key: Array) -> Float[Array, "*batch n"]:
        """Draw an action."""
        noise = jax.random.normal(key, self.action.shape, self.action.dtype)
        return jnp.clip(self.action + self.deviation * noise, self.low, self.high)

    def mode(self) -> Float[Array, "*batch n"]:
        """Return the action without noise."""
        return self.action


class SquashedPolicy(eqx.Module):
    """A normal distribution squashed into the box, its mean and deviation from hidden layers."""

    hidden: Layers
    mean: Linear
    log_std: Linear
    action_space: Any = eqx.field(static=True, converter=by_content)

    def __call__(self, y: Float[Array, " outputs"]) -> TanhGaussian:
        """Return the policy for the memory's output at one step."""
        y = self.hidden(y)
        log_std = jnp.clip(self.log_std(y), -20, 2)
        return TanhGaussian(self.mean(y), log_std, *middle_and_half(self.action_space))


class NoisyPolicy(eqx.Module):
    """One action, squashed into the box, with noise of a deviation relative to the box's half."""

    hidden: Layers
    output: Linear
    noise: float = eqx.field(static=True)
    action_space: Any = eqx.field(static=True, converter=by_content)

    def __call__(self, y: Float[Array, " outputs"]) -> NoisyAction:
        """Return the policy for the memory's output at one step."""
        middle, half = middle_and_half(self.action_space)
        action = middle + half * jnp.tanh(self.output(self.hidden(y)))
        return NoisyAction(action, self.noise * half, middle - half, middle + half)


class TwinValues(eqx.Module):
    """Two values of any action. The action enters behind the memory, which never reads it.

    **Attributes:**

    - `hidden`, `output`: the layers of each.
    """

    hidden: tuple[Layers, Layers]
    output: tuple[Linear, Linear]
    action_space: Any = eqx.field(static=True, converter=by_content)

    def __call__(self, y: Float[Array, " outputs"]) -> Float[Array, " outputs"]:
        """Return the memory's output as it is: what `values` takes."""
        return y

    def values(
        self, y: Float[Array, " outputs"], action: Float[Array, " n"]
    ) -> Float[Array, " two"]:
        """Return both values of an action, given the memory's output at its step."""
        middle, half = middle_and_half(self.action_space)
        x = jnp.concatenate([y, (action - middle) / half])
        both = zip(self.hidden, self.output, strict=True)
        return jnp.concatenate([output(hidden(x)) for hidden, output in both])


def values_along(
    head: Any, y: Float[Array, "*batch outputs"], action: Float[Array, "*batch n"]
) -> Float[Array, "*batch two"]:
    """Return both values of actions along a sample, by a head of `TwinValues`."""
    values = head.values
    for _ in range(y.ndim - 1):
        values = jax.vmap(values)
    return values(y, action)


def continuous_network(
    observation_space: Any,
    action_space: spaces.Box,
    memory: zoo.Spec,
    *,
    head: Callable[..., Any],
    key: Array,
    **sizes: Any,
) -> Recurrent:
    """Make a network with one of the heads of this module.

    **Arguments:**

    - `head`: `squashed_policy`, `critics`, or `noisy_policy` with its noise.
    - `sizes`: the others of `agents.networks.layered.layered_network`.

    **Raises:**

    `ValueError` for a width that is not one, and for a normalized layer of one number.
    """
    encoder_key, memory_key, head_key = jax.random.split(key, 3)
    head_keys = jax.random.split(head_key, 4)
    return layered_network(
        observation_space,
        action_space,
        memory,
        head=lambda outputs, layers: head(outputs, layers, action_space, head_keys),
        encoder_key=encoder_key,
        memory_key=memory_key,
        **sizes,
    )


def squashed_policy(outputs: int, layers: MakeLayers, space: Any, keys: Array) -> SquashedPolicy:
    """Make the head of a policy that is drawn from."""
    hidden, width = layers(outputs, keys[0])
    mean, log_std = (Linear(width, space.shape[0], scale=0.01, key=k) for k in keys[1:3])
    return SquashedPolicy(hidden, mean, log_std, space)


def noisy_policy(
    outputs: int, layers: MakeLayers, space: Any, keys: Array, *, noise: float
) -> NoisyPolicy:
    """Make the head of a policy with one action and noise around it."""
    hidden, width = layers(outputs, keys[0])
    return NoisyPolicy(hidden, Linear(width, space.shape[0], scale=0.01, key=keys[1]), noise, space)


def critics(outputs: int, layers: MakeLayers, space: Any, keys: Array) -> TwinValues:
    """Make the head of two values of an action."""
    (one, width), (other, _) = (layers(outputs + space.shape[0], k) for k in keys[:2])
    last = [Linear(width, 1, scale=0.01, key=k) for k in keys[2:]]
    return TwinValues((one, other), (last[0], last[1]), space)
