"""Environments whose spaces are known when they are constructed."""

import math
from typing import Any

from gymnax.environments import spaces
from gymnax.environments.environment import Environment, EnvParams


class BaseEnvironment(Environment[Any, EnvParams]):
    """Abstract: an environment with spaces and a time limit that the constructor is given.

    Environments give three methods. `reset_env(key, params)` returns the first observation and the
    state, which has `time`; `step_env(key, state, action, params)` returns observation, state,
    reward, whether the episode is over, and an empty `info`, without a reset, which is `step`'s
    business; and `is_terminated(state, params)` says whether the episode has come to its own end.
    """

    def __init__(self, *, observations: spaces.Space, actions: spaces.Space, limit: int):
        """**Arguments:**

        - `observations`: the space of observations.
        - `actions`: the space of actions.
        - `limit`: the default time limit, in steps.

        **Raises:**

        `ValueError` for a limit beyond 32 bits, in which steps are counted.
        """
        if limit >= 2**31:
            raise ValueError(
                f"the time limit (={limit} steps) that follows from the options of "
                f"{type(self).__name__} must be below 2^31."
            )
        super().__init__()
        # gymnax's abstract space lacks what all of its spaces have.
        self._observations: Any = observations
        self._actions: Any = actions
        self._limit = limit

    @property
    def default_params(self) -> EnvParams:
        """Parameters with the default time limit."""
        return EnvParams(max_steps_in_episode=self._limit)

    @property
    def num_actions(self) -> int:
        """Number of actions, or of the numbers that make up one."""
        space = self._actions
        return space.n if isinstance(space, spaces.Discrete) else math.prod(space.shape)

    def action_space(self, params: EnvParams | None = None) -> Any:
        """Give the space of actions."""
        return self._actions

    def observation_space(self, params: EnvParams | None = None) -> Any:
        """Give the space of observations."""
        return self._observations
