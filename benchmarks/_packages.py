"""The Python packages that our environments are true to, for their speed."""

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from agents.envs import BraxEnvironment
from agents.envs.bridges.adapter import gymnax_settings
from benchmarks._measure import device_alone

MINIGRID = {"MemoryS7": "MiniGrid-MemoryS7-v0", "RedBlueDoors-8x8": "MiniGrid-RedBlueDoors-8x8-v0"}
"""Names of the package minigrid."""

VIEW = 3
"""Cells that an agent in a minigrid sees in each direction."""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No warnings about the age of what a package imports."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def package_of(name: str) -> tuple[str, Callable[[], Any]] | None:
    """The Python package that has an environment.

    **Arguments:**

    - `name`: of one of our environments.

    **Returns:** the package's name and a function that makes the environment; `None` if there is no
    such package, or if it is not installed.
    """
    with _quiet():
        if name in MINIGRID:
            try:
                import gymnasium
                import minigrid.wrappers
            except ModuleNotFoundError:
                return None

            def make():
                env = gymnasium.make(MINIGRID[name], disable_env_checker=True)
                return minigrid.wrappers.ViewSizeWrapper(env, agent_view_size=VIEW)

            return "minigrid", make
        try:
            from popgym import envs
        except ModuleNotFoundError:
            return None
        factory = getattr(envs, name, None)
        return ("popgym", factory) if isinstance(factory, type) else None


def steps_per_second(make: Callable[[], Any], seconds: float) -> float:
    """Steps per second of one environment in Python: random actions, resets included.

    **Arguments:**

    - `make`: makes the environment.
    - `seconds`: how long to measure.

    **Returns:** steps per second. The actions are drawn beforehand.
    """
    with _quiet(), device_alone():
        env = make()
        env.action_space.seed(0)
        actions = [env.action_space.sample() for _ in range(64)]
        env.reset(seed=0)
        steps, start, elapsed = 0, time.perf_counter(), 0.0
        while elapsed < seconds or not steps:
            for action in actions:
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()
            steps += len(actions)
            elapsed = time.perf_counter() - start
        env.close()
    return steps / elapsed


def brax_program(env: BraxEnvironment, num_envs: int, steps: int) -> tuple[Callable, tuple]:
    """brax's own loop with its `AutoResetWrapper`, which returns to the same first states for ever.

    **Arguments:**

    - `env`: our environment, for the name, the physics engine and the size of an action.
    - `num_envs`: environments side by side.
    - `steps`: steps of each.

    **Returns:** a function and its arguments for `compete`.
    """
    with _quiet(), gymnax_settings():
        from brax import envs

        theirs = envs.create(env.env_name, backend=env.backend, batch_size=num_envs)
        key = jax.random.key_data(jax.random.key(0))
        state = jax.jit(theirs.reset)(key)
        shape = (steps, num_envs, theirs.action_size)
        actions = jax.random.uniform(jax.random.key(1), shape, jnp.float32, -1, 1)

    def program(state, actions):
        def step(carry, action):
            state, total = carry
            state = theirs.step(state, action)
            return (state, total + state.reward), None

        return jax.lax.scan(step, (state, jnp.zeros(num_envs, jnp.float32)), actions)[0]

    return program, (state, actions)
