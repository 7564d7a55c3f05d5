"""XLand-MiniGrid: MiniGrid's tasks, and grids whose rules may be given."""

from typing import Any

import numpy as np
from gymnax.environments import spaces

from .package_env import (
    AbstractPort,
    Outcome,
    PackageEnvironment,
    one_hot_planes,
    plane_space,
    port,
)

NAMES = (
    "MiniGrid-BlockedUnlockPickUp",
    *(f"MiniGrid-DoorKey-{n}x{n}" for n in (5, 6, 8, 16)),
    *(f"MiniGrid-Empty-{n}x{n}" for n in (5, 6, 8, 16)),
    *(f"MiniGrid-EmptyRandom-{n}x{n}" for n in (5, 6, 8, 16)),
    "MiniGrid-FourRooms",
    "MiniGrid-LockedRoom",
    *(f"MiniGrid-MemoryS{n}" for n in (8, 16, 32, 64, 128)),
    "MiniGrid-Playground",
    "MiniGrid-Unlock",
    "MiniGrid-UnlockPickUp",
)
"""Every environment of xminigrid that has a task without downloaded rules."""


class XMiniGridPort(AbstractPort):
    """An environment of the package xminigrid; a cell's tile and color are seen as planes.

    Source: Nikulin et al., "XLand-MiniGrid: Scalable Meta-Reinforcement Learning Environments in
    JAX", NeurIPS 2024; version 0.9.3.
    """

    package, extra = "xminigrid", "xminigrid"

    def __init__(self, name: str, view_size: int | None):
        """**Arguments:**

        - `name`: one of `NAMES`.
        - `view_size`: the side of what is seen, odd; None for the package's own.
        """
        import xminigrid  # pyright: ignore[reportMissingImports]
        from xminigrid.core.constants import NUM_COLORS, NUM_TILES  # pyright: ignore[reportMissingImports]

        self.name = name
        self.env, self.params = xminigrid.make(name)
        if view_size is not None:
            self.params = self.params.replace(view_size=view_size)
        assert self.params.max_steps is not None
        self.limit = self.params.max_steps
        self.actions = spaces.Discrete(self.env.num_actions(self.params))
        self.counts = (NUM_TILES, NUM_COLORS)
        self.observations = plane_space(self.params.view_size, self.params.view_size, self.counts)

    def reset(self, key: Any) -> tuple[Any, Any]:
        first = self.env.reset(self.params, key)
        return one_hot_planes(first.observation, self.counts), first

    def step(self, key: Any, inner: Any, action: Any, limit: Any) -> Outcome:
        # The reward falls with the part of the limit that was used; `discount` is 0 at the end
        # that is none of the limit's.
        after = self.env.step(self.params.replace(max_steps=limit), inner, action)
        seen = one_hot_planes(after.observation, self.counts)
        return Outcome(seen, after, after.reward, after.discount == 0, {})

    def picture(self, inner: Any) -> np.ndarray | None:
        return np.asarray(self.env.render(self.params, inner))


def xminigrid(env_name: str = NAMES[0], view_size: int | None = None) -> PackageEnvironment:
    """Make an environment of xminigrid.

    **Arguments:**

    - `env_name`: one of `NAMES`.
    - `view_size`: the side of the square that the agent sees before it, odd and at least 3; None
        for the package's own.

    **Raises:**

    `ModuleNotFoundError` with the line that installs xminigrid, if it is missing; `ValueError` for
    another `view_size`.
    """
    if view_size is not None and (view_size < 3 or view_size % 2 == 0):
        raise ValueError(f"`view_size` (={view_size}) must be odd and at least 3.")
    return port(XMiniGridPort, env_name, view_size=view_size)
