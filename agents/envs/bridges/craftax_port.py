"""Craftax: survive, mine and fight in a world that is made anew for every episode."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces

from .package_env import AbstractPort, Outcome, PackageEnvironment, port

NAMES = (
    "Craftax-Symbolic-v1",
    "Craftax-Pixels-v1",
    "Craftax-Classic-Symbolic-v1",
    "Craftax-Classic-Pixels-v1",
)
"""Every environment of craftax, by its own name."""

_NEVER = 2**31 - 1


class CraftaxPort(AbstractPort):
    """An environment of the package craftax, in its form without auto-reset.

    Source: Matthews et al., "Craftax: A Lightning-Fast Benchmark for Open-Ended Reinforcement
    Learning", ICML 2024; version 1.6.1.
    """

    package, extra = "craftax", "craftax"

    def __init__(self, name: str):
        """**Arguments:**

        - `name`: one of `NAMES`.
        """
        from craftax.craftax_env import make_craftax_env_from_name  # pyright: ignore[reportMissingImports]

        self.name = name
        self.env = make_craftax_env_from_name(name, auto_reset=False)
        params = self.env.default_params
        self.limit = params.max_timesteps
        # Its own limit would end the episode as death does.
        self.params = params.replace(max_timesteps=_NEVER)
        self.actions = spaces.Discrete(int(self.env.num_actions))
        shape = self.env.observation_space(params).shape
        self.observations = spaces.Box(0.0, 1.0, tuple(shape), jnp.float32)

    def reset(self, key: Any) -> tuple[Any, Any]:
        return self.env.reset_env(key, self.params)

    def step(self, key: Any, inner: Any, action: Any, limit: Any) -> Outcome:
        return Outcome(*self.env.step_env(key, inner, action, self.params))

    def picture(self, inner: Any) -> np.ndarray | None:
        if "Classic" in self.name:
            from craftax.craftax_classic.constants import BLOCK_PIXEL_SIZE_IMG as SIZE  # pyright: ignore[reportMissingImports]
            from craftax.craftax_classic.renderer import render_craftax_pixels  # pyright: ignore[reportMissingImports]
        else:
            from craftax.craftax.constants import BLOCK_PIXEL_SIZE_IMG as SIZE  # pyright: ignore[reportMissingImports]
            from craftax.craftax.renderer import render_craftax_pixels  # pyright: ignore[reportMissingImports]
        pixels = np.asarray(render_craftax_pixels(inner, SIZE))
        return pixels.clip(0, 255).astype(np.uint8)


def craftax(env_name: str = NAMES[0], pool_size: int = 1024) -> PackageEnvironment:
    """Make an environment of craftax.

    **Arguments:**

    - `env_name`: one of `NAMES`.
    - `pool_size`: how many worlds there are, see `PackageEnvironment`; 0 for a new one at every
        reset.

    **Raises:**

    `ModuleNotFoundError` with the line that installs craftax, if it is missing.
    """
    return port(CraftaxPort, env_name, pool_size)
