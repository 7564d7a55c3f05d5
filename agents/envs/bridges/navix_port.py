"""NAVIX: MiniGrid's tasks in JAX."""

from typing import Any

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
    *(f"Navix-SimpleCrossingS{n}-v0" for n in ("9N1", "9N2", "9N3", "11N5")),
    *(f"Navix-DistShift{n}-v0" for n in (1, 2)),
    *(f"Navix-DoorKey-{n}x{n}-v0" for n in (5, 6, 8, 16)),
    *(f"Navix-DoorKey-Random-{n}x{n}-v0" for n in (5, 6, 8, 16)),
    *(f"Navix-Dynamic-Obstacles-{n}x{n}-v0" for n in (5, 6, 8, 16)),
    *(f"Navix-Dynamic-Obstacles-{n}x{n}-Random-v0" for n in (5, 6)),
    *(f"Navix-Empty-{n}x{n}-v0" for n in (5, 6, 8, 16)),
    *(f"Navix-Empty-Random-{n}x{n}-v0" for n in (5, 6, 8, 16)),
    "Navix-FourRooms-v0",
    *(f"Navix-GoToDoor-{n}x{n}-v0" for n in (5, 6, 8)),
    *(f"Navix-KeyCorridor{n}-v0" for n in ("S3R1", "S3R2", "S3R3", "S4R3", "S5R3", "S6R3")),
    *(f"Navix-LavaGapS{n}-v0" for n in (5, 6, 7)),
)
"""Every environment of navix, by its own name."""

OBSERVE = ("view", "all")
"""What may be seen: the cells before the agent, or the whole grid."""

_COUNTS = (11, 6, 4)  # kinds of things, colors, and directions or states of doors
_TERMINATION = 2  # navix's step type


class NavixPort(AbstractPort):
    """An environment of the package navix; kind, color and state of a cell are seen as planes.

    Source: Pignatelli et al., "NAVIX: Scaling MiniGrid Environments with JAX", 2024; version 0.7.4.
    """

    package, extra = "navix", "navix"

    def __init__(self, name: str, observe: str):
        """**Arguments:**

        - `name`: one of `NAMES`.
        - `observe`: one of `OBSERVE`.
        """
        import navix  # pyright: ignore[reportMissingImports]

        self.name = name
        views = navix.observations
        see = views.symbolic if observe == "all" else views.symbolic_first_person
        self.env = navix.make(name, observation_fn=see)
        self.limit = int(self.env.max_steps)
        self.actions = spaces.Discrete(int(self.env.action_space.n))
        rows, columns, _ = self.env.observation_space.shape
        self.observations = plane_space(rows, columns, _COUNTS)

    def reset(self, key: Any) -> tuple[Any, Any]:
        first = self.env.reset(key)
        return one_hot_planes(first.observation, _COUNTS), _without_sprites(first)

    def step(self, key: Any, inner: Any, action: Any, limit: Any) -> Outcome:
        # `step` would reset, a step late; the reward may depend on the limit.
        after = self.env.replace(max_steps=limit)._step(inner, action)
        ended = after.step_type == _TERMINATION
        seen = one_hot_planes(after.observation, _COUNTS)
        return Outcome(seen, _without_sprites(after), after.reward, ended, {})


def _without_sprites(timestep: Any) -> Any:
    """What has to be kept: not the pictures of things, which every state has a copy of."""
    return timestep.replace(state=timestep.state.replace(cache=None))


def navix(env_name: str = NAMES[0], observe: str = "view") -> PackageEnvironment:
    """Make an environment of navix.

    **Arguments:**

    - `env_name`: one of `NAMES`.
    - `observe`: "view" for the cells before the agent, "all" for the whole grid.

    **Raises:**

    `ModuleNotFoundError` with the line that installs navix, if it is missing; `ValueError` for
    another `observe`.
    """
    if observe not in OBSERVE:
        raise ValueError(f"`observe` (={observe!r}) must be one of: {', '.join(OBSERVE)}.")
    return port(NavixPort, env_name, observe=observe)
