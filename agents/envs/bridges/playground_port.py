"""MuJoCo Playground: the DeepMind control suite in MuJoCo's JAX engine."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces

from .package_env import AbstractPort, Outcome, PackageEnvironment, port

NAMES = (
    "AcrobotSwingup",
    "AcrobotSwingupSparse",
    "BallInCup",
    "CartpoleBalance",
    "CartpoleBalanceSparse",
    "CartpoleSwingup",
    "CartpoleSwingupSparse",
    "CheetahRun",
    "FingerSpin",
    "FingerTurnEasy",
    "FingerTurnHard",
    "FishSwim",
    "HopperHop",
    "HopperStand",
    "HumanoidRun",
    "HumanoidStand",
    "HumanoidWalk",
    "PendulumSwingup",
    "PointMass",
    "ReacherEasy",
    "ReacherHard",
    "SwimmerSwimmer6",
    "WalkerRun",
    "WalkerStand",
    "WalkerWalk",
)
"""Every environment of MuJoCo Playground whose robot comes with the package."""

_ANY = float(np.finfo(np.float32).max)


class PlaygroundPort(AbstractPort):
    """An environment of the package playground, with MuJoCo's engine in JAX.

    Source: Zakka et al., "MuJoCo Playground", 2025; version 0.2.0.
    """

    package, extra = "mujoco_playground", "playground"

    def __init__(self, name: str):
        """**Arguments:**

        - `name`: one of `NAMES`.
        """
        from mujoco_playground import registry  # pyright: ignore[reportMissingImports]

        self.name = name
        self.env = registry.load(name, config_overrides={"impl": "jax"})
        self.limit = registry.get_default_config(name).episode_length
        self.actions = spaces.Box(-1.0, 1.0, (self.env.action_size,), jnp.float32)
        shape = jax.eval_shape(self.env.reset, jax.random.PRNGKey(0)).obs.shape
        limit = jnp.full(shape, _ANY)
        self.observations = spaces.Box(-limit, limit, shape, jnp.float32)

    def reset(self, key: Any) -> tuple[Any, Any]:
        first = self.env.reset(key)
        return first.obs, first

    def step(self, key: Any, inner: Any, action: Any, limit: Any) -> Outcome:
        after = self.env.step(inner, action)
        return Outcome(after.obs, after, after.reward, after.done > 0.5, {})


def playground(env_name: str = NAMES[0]) -> PackageEnvironment:
    """Make an environment of MuJoCo Playground.

    **Arguments:**

    - `env_name`: one of `NAMES`.

    **Raises:**

    `ModuleNotFoundError` with the line that installs playground, if it is missing.
    """
    return port(PlaygroundPort, env_name)
