"""What an environment of gymnasium has to return, told by its name and not in NumPy's words."""

from typing import Any

import numpy as np


class Ruled:
    """An environment whose observations and rewards are looked at.

    Put into arrays, one of another shape would be told without a name, and None become NaN. Its
    `info`, of which nothing is used, is left out: gymnasium would put that into arrays, too, and
    keeps an episode's last observation in it.
    """

    def __init__(self, env: Any, name: str):
        """**Arguments:**

        - `env`: the environment.
        - `name`: what to call it.
        """
        self._env = env
        self._called = f"`env` (={name}):"
        self._shape = env.observation_space.shape

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        **Raises:**

        `ValueError` for an observation of another shape than that of its space.
        """
        observation, _ = self._env.reset(**options)
        return self._own(observation, "reset"), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step.

        **Raises:**

        `ValueError` for an observation of another shape than that of its space, or a reward that is
        not one number.
        """
        observation, reward, terminated, truncated, _ = self._env.step(action)
        own = self._own(observation, "step")
        one = np.asarray(reward)
        if one.shape or one.dtype.kind not in "biuf":
            raise ValueError(
                f"{self._called} `step` returns the reward {reward!r}; it must be one number."
            )
        return own, reward, terminated, truncated, {}

    def __getattr__(self, name: str) -> Any:
        """What the environment has."""
        return getattr(self._env, name)

    def _own(self, observation: Any, where: str) -> np.ndarray:
        """A copy: an environment may fill one array again and again, in which the last observation
        of an episode would be the first of the next."""
        found = np.array(observation)
        if found.shape != self._shape or found.dtype.kind not in "biuf":
            raise ValueError(
                f"{self._called} `{where}` returns an observation of shape {found.shape} and dtype "
                f"{found.dtype}; `observation_space` says numbers of shape {self._shape}."
            )
        return found
