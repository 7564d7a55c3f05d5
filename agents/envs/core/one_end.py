"""Episodes that end in one way: by themselves, or by the time limit."""

from gymnax.environments.environment import (
    Environment,
    EnvParams,
    EnvState,
    TEnvParams,
    TEnvState,
)
from jaxtyping import Array, Bool


class OneEnd(Environment[TEnvState, TEnvParams]):
    """Abstract: an environment that is not truncated where it terminates.

    In gymnax both flags are true where an episode comes to its own end at the time limit.
    """

    def is_truncated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether the time limit, and nothing else, ends the episode."""
        timeout = state.time >= params.max_steps_in_episode
        # `is_terminated` is of the subclass, and takes its own state and parameters.
        return timeout & ~self.is_terminated(state, params)  # pyright: ignore
