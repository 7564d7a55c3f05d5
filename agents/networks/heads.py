"""What stands behind a memory: policy and value."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from agents.networks.distributions import (
    Categorical,
    Distribution,
    Gaussian,
    MultiCategorical,
    TanhGaussian,
)
from agents.networks.spaces import MultiDiscrete, by_content


class ActorCritic(eqx.Module):
    """Policy and value, each from layers of its own.

    **Attributes:**

    - `actor`: gives logits, or the means of a Gaussian.
    - `critic`: gives the value.
    - `log_std`: of a Gaussian, the same in all states; `None` for discrete actions.
    - `action_space`: a gymnax space.
    - `squashed`: whether a Gaussian goes through a tanh into its box.
    """

    actor: Callable[[Array], Array]
    critic: Callable[[Array], Array]
    log_std: Float[Array, " actions"] | None
    action_space: Any = eqx.field(static=True, converter=by_content)
    squashed: bool = eqx.field(static=True, default=False)

    def __call__(self, y: Float[Array, " outputs"]) -> tuple[Distribution, Float[Array, ""]]:
        """Return `(policy, value)` for the memory's output at one step."""
        return _distribution(self, self.actor(y)), self.critic(y)[0]


class PolicyHead(eqx.Module):
    """A policy alone; its attributes are those of `ActorCritic`, with `layers` for `actor`."""

    layers: Callable[[Array], Array]
    log_std: Float[Array, " actions"] | None
    action_space: Any = eqx.field(static=True, converter=by_content)
    squashed: bool = eqx.field(static=True, default=False)

    def __call__(self, y: Float[Array, " outputs"]) -> Distribution:
        """Return the policy for the memory's output at one step."""
        return _distribution(self, self.layers(y))


class ValueHead(eqx.Module):
    """A value alone."""

    layers: Callable[[Array], Array]

    def __call__(self, y: Float[Array, " outputs"]) -> Float[Array, ""]:
        """Return the value for the memory's output at one step."""
        return self.layers(y)[0]


def _distribution(head: ActorCritic | PolicyHead, numbers: Array) -> Distribution:
    """The policy that a layer's output stands for."""
    space = head.action_space
    if head.log_std is not None and head.squashed:
        low, high = (jnp.broadcast_to(x, numbers.shape) for x in (space.low, space.high))
        center, half = ((x / 2).astype(numbers.dtype) for x in (high + low, high - low))
        return TanhGaussian(numbers, head.log_std, center, half)
    if head.log_std is not None:
        return Gaussian(numbers, head.log_std)
    if isinstance(space, MultiDiscrete):
        return MultiCategorical(numbers, space.nvec)
    return Categorical(numbers)
