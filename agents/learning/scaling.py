"""Running scales of observations and rewards, for learning at every step."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from gymnax.environments import spaces
from jaxtyping import Array, Bool, Float

from agents.acting.behavior import normalized
from agents.envs.core.statistics import RunningStatistics
from agents.networks import Inputs


class Scaling(eqx.Module):
    """Statistics of all that was seen so far, by which observations and rewards are scaled.

    Everything counts before it is scaled, and nothing is clipped: what comes for the first time
    after n others is at most √n, and a rare reward of long episodes is as large as it is rare.

    **Attributes:**

    - `observation`: of observations, which are shifted and scaled; `None` where they are not.
    - `returns`: of the running discounted return `R = γ R + r`, 0 before an episode; rewards are
      divided by its standard deviation. `None` where they are not.
    """

    observation: RunningStatistics | None
    returns: RunningStatistics | None

    @staticmethod
    def init(space: Any, *, observations: bool, rewards: bool) -> "Scaling":
        """Start with nothing seen; observations are only scaled where they are a `Box`."""
        boxes = observations and isinstance(space, spaces.Box)
        return Scaling(
            RunningStatistics.init(space.shape) if boxes else None,
            RunningStatistics.init(()) if rewards else None,
        )

    def see(self, inputs: Inputs) -> tuple["Scaling", Inputs]:
        """Count the observations that begin an episode, and scale those of all environments."""
        scaling = self._counting(inputs, inputs.begin)
        return scaling, scaling.scaled(inputs)

    def follow(self, inputs: Inputs) -> tuple["Scaling", Inputs]:
        """Count what follows a step, and scale it; as the next step's it does not count again."""
        scaling = self._counting(inputs, None)
        return scaling, scaling.scaled(inputs)

    def scaled(self, inputs: Inputs) -> Inputs:
        """Scale observations that do not count."""
        return normalized(self.of_observations, inputs, limit=jnp.inf)

    @property
    def of_observations(self) -> RunningStatistics | None:
        """What observations are scaled by."""
        return None if self.observation is None else self.observation.of_a_sample()

    def _counting(self, inputs: Inputs, counted: Bool[Array, " env"] | None) -> "Scaling":
        if self.observation is None:
            return self
        return Scaling(self.observation.update(inputs.observation, counted), self.returns)

    def reward(
        self,
        reward: Float[Array, " env"],
        discounted: Float[Array, " env"],
        begin: Bool[Array, " env"],
        *,
        discount: float,
    ) -> tuple["Scaling", Float[Array, " env"], Float[Array, " env"]]:
        """Count the returns so far, and scale the rewards.

        **Arguments:**

        - `discounted`: R before the step.
        - `begin`: whether the step is the first of an episode.

        **Returns:**

        `(scaling, reward, discounted)`: the scaled reward, and R after the step.
        """
        discounted = jnp.where(begin, 0, discount * discounted) + reward
        if self.returns is None:
            return self, reward, discounted
        returns = self.returns.update(discounted)
        scaled = returns.of_a_sample().scale(reward, limit=jnp.inf)
        return Scaling(self.observation, returns), scaled, discounted
