"""What stands behind a memory: policy and value."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from agents.networks.distributions import Categorical, Distribution, Gaussian, MultiCategorical
from agents.networks.layers import TwoLayers
from agents.networks.spaces import MultiDiscrete


class ActorCritic(eqx.Module):
    """Policy and value, each from a hidden layer of its own.

    **Attributes:**

    - `actor`: gives logits, or the means of a Gaussian.
    - `critic`: gives the value.
    - `log_std`: of a Gaussian, the same in all states; `None` for discrete actions.
    - `action_space`: a gymnax space.
    """

    actor: TwoLayers
    critic: TwoLayers
    log_std: Float[Array, " actions"] | None
    action_space: Any = eqx.field(static=True)

    def __call__(self, y: Float[Array, " outputs"]) -> tuple[Distribution, Float[Array, ""]]:
        """Return `(policy, value)` for the memory's output at one step."""
        action, value = self.actor(y), self.critic(y)[0]
        if self.log_std is not None:
            return Gaussian(action, self.log_std), value
        if isinstance(self.action_space, MultiDiscrete):
            return MultiCategorical(action, self.action_space.nvec), value
        return Categorical(action), value
