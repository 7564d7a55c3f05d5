"""What stands behind a memory: policy and value."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from agents.networks.distributions import Categorical, Distribution, Gaussian, MultiCategorical
from agents.networks.spaces import MultiDiscrete


class ActorCritic(eqx.Module):
    """Policy and value, each from layers of its own.

    **Attributes:**

    - `actor`: gives logits, or the means of a Gaussian.
    - `critic`: gives the value.
    - `log_std`: of a Gaussian, the same in all states; `None` for discrete actions.
    - `action_space`: a gymnax space.
    """

    actor: Callable[[Array], Array]
    critic: Callable[[Array], Array]
    log_std: Float[Array, " actions"] | None
    action_space: Any = eqx.field(static=True)

    def __call__(self, y: Float[Array, " outputs"]) -> tuple[Distribution, Float[Array, ""]]:
        """Return `(policy, value)` for the memory's output at one step."""
        return _distribution(self.actor(y), self.log_std, self.action_space), self.critic(y)[0]


class PolicyHead(eqx.Module):
    """A policy alone; its attributes are those of `ActorCritic`, with `layers` for `actor`."""

    layers: Callable[[Array], Array]
    log_std: Float[Array, " actions"] | None
    action_space: Any = eqx.field(static=True)

    def __call__(self, y: Float[Array, " outputs"]) -> Distribution:
        """Return the policy for the memory's output at one step."""
        return _distribution(self.layers(y), self.log_std, self.action_space)


class ValueHead(eqx.Module):
    """A value alone."""

    layers: Callable[[Array], Array]

    def __call__(self, y: Float[Array, " outputs"]) -> Float[Array, ""]:
        """Return the value for the memory's output at one step."""
        return self.layers(y)[0]


def _distribution(
    numbers: Array, log_std: Float[Array, " actions"] | None, action_space: Any
) -> Distribution:
    """The policy that a layer's output stands for."""
    if log_std is not None:
        return Gaussian(numbers, log_std)
    if isinstance(action_space, MultiDiscrete):
        return MultiCategorical(numbers, action_space.nvec)
    return Categorical(numbers)
