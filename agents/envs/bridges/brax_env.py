"""brax's environments with gymnax's interface, whole or with positions or velocities only."""

import contextlib
import functools
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, PRNGKeyArray

from zoo.annotations import Count, Size, fitted
from zoo.parts.checks import check_key, check_shapes

from ..core.one_end import OneEnd
from .adapter import gymnax_settings, narrow
from .initial_states import EnvParams, check_states, chosen

BACKENDS = ("spring", "positional", "generalized", "mjx")
"""brax's physics engines, fastest first on a CPU."""


class Layout(NamedTuple):
    """What an environment's observation and action consist of.

    **Attributes:**

    - `size`: components of an observation.
    - `actions`: components of an action.
    - `positions`, `velocities`: ranges `(start, stop)` of the components that tell where the bodies
        are, and how fast they move.
    """

    size: int
    actions: int
    positions: tuple[tuple[int, int], ...]
    velocities: tuple[tuple[int, int], ...]


# A humanoid's inertia tensors about the center of mass (45:155) depend on the posture only; what
# its actuators exert (221:244) is neither.
_HUMANOID = Layout(244, 17, ((0, 22), (45, 155)), ((22, 45), (155, 221)))

LAYOUTS = {
    "ant": Layout(27, 8, ((0, 13),), ((13, 27),)),
    "halfcheetah": Layout(17, 6, ((0, 8),), ((8, 17),)),
    "hopper": Layout(11, 3, ((0, 5),), ((5, 11),)),
    "walker2d": Layout(17, 6, ((0, 8),), ((8, 17),)),
    "humanoid": _HUMANOID,
    "humanoidstandup": _HUMANOID,
    "inverted_pendulum": Layout(4, 1, ((0, 2),), ((2, 4),)),
    "inverted_double_pendulum": Layout(8, 1, ((0, 5),), ((5, 8),)),
    "reacher": Layout(11, 2, ((0, 6), (8, 11)), ((6, 8),)),
    "pusher": Layout(23, 7, ((0, 7), (14, 23)), ((7, 14),)),
}
"""Every environment of brax that runs, by brax's name."""

SUFFIXES = {"all": "", "positions": "-P", "velocities": "-V", "target_once": "-pomdp"}
"""How an environment's name tells what is observed."""

_TARGET = ((4, 6), (8, 11))  # of the reacher: the target, and the way from it to the arm's tip


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of an environment of brax; batched states have leading axes.

    `time`: steps taken, int32. `pipeline_state`: brax's state of the physics. `terminated`: whether
    brax ended the episode with the last step.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    pipeline_state: Any
    terminated: Any


@contextlib.contextmanager
def _brax_settings() -> Iterator[None]:
    """JAX's default settings, and no warnings about the age of brax and of what it imports."""
    with gymnax_settings(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@functools.cache
def _brax(env_name: str, backend: str) -> Any:
    """brax's own environment; it takes seconds to make, and no trace may own its arrays."""
    with jax.ensure_compile_time_eval(), _brax_settings():
        from brax import envs

        return envs.get_environment(env_name, backend=backend)


@functools.cache
def _draw(env_name: str, backend: str) -> Callable[[PRNGKeyArray], tuple[Any, Any]]:
    """A compiled function from keys to the observations and physical states of as many resets."""
    env = _brax(env_name, backend)

    def reset(key):
        state = env.reset(key)
        return narrow((state.obs, state.pipeline_state))

    return jax.jit(jax.vmap(reset))


@functools.cache
def _pool(env_name: str, backend: str, size: int) -> Any:
    """The initial states that environments of one kind share; NumPy, so that no trace owns them."""
    with jax.ensure_compile_time_eval(), _brax_settings():
        return jax.device_get(_draw(env_name, backend)(jax.random.split(jax.random.key(0), size)))


class BraxEnvironment(OneEnd[EnvState, EnvParams]):
    """An environment of brax: the same physics, rewards and observations, or a part of these.

    gymnax's `step` computes a reset at every step, and brax's costs up to a third of a step. So a
    reset chooses one of `pool_size` initial states at random. They are drawn by brax's own reset
    when the environment is first used, with a fixed key, and shared by all environments of the same
    name and backend. Any one of them has brax's distribution, but episodes that begin in the same
    one are not independent. `params.replace(initial_states=env.draw_initial_states(key, size))`
    renews them, and with `pool_size=0` every reset is brax's own.

    An action is from -1 to 1, which brax scales to the actuators' ranges; observations have no
    bounds. An episode is truncated after `max_steps_in_episode` steps. It terminates where brax
    says so. The package brax is imported when the environment is first used.

    Source: Freeman et al., "Brax: A Differentiable Physics Engine for Large Scale Rigid Body
    Simulation", 2021; version 0.14.2.
    """

    def __init__(
        self,
        env_name: str = "ant",
        observe: str = "all",
        backend: str = "spring",
        pool_size: int = 1024,
    ):
        """**Arguments:**

        - `env_name`: brax's name of the environment, a key of `LAYOUTS`.
        - `observe`: "all"; "positions" or "velocities" for those components only, by `LAYOUTS`;
            "target_once" (reacher only): everything, but the target and the way to it are zero
            except at an episode's first step.
        - `backend`: the physics engine: "spring", "positional", "generalized" or "mjx".
        - `pool_size`: how many initial states there are; 0 for a new one at every reset.

        **Raises:**

        `ValueError` for a value that is not allowed; `TypeError` if `pool_size` is not an integer;
        `ModuleNotFoundError` with the line that installs brax, if it is missing.
        """
        super().__init__()
        for argument, value, allowed in (
            ("env_name", env_name, LAYOUTS),
            ("observe", observe, SUFFIXES),
            ("backend", backend, BACKENDS),
        ):
            if not isinstance(value, str) or value not in allowed:
                raise ValueError(f"`{argument}` (={value!r}) must be one of: {', '.join(allowed)}.")
        if observe == "target_once" and env_name != "reacher":
            raise ValueError(
                f"`observe` (={observe!r}) must be another one for {env_name}: only the reacher "
                "has a target to hide."
            )
        self.pool_size = fitted("pool_size", pool_size, Size)
        if importlib.util.find_spec("brax") is None:
            raise ModuleNotFoundError(
                f"brax/{env_name} needs the package brax: pip install 'trace-zoo[brax]'",
                name="brax",
            )
        self.env_name, self.observe_what, self.backend = env_name, observe, backend

    @property
    def name(self) -> str:
        """The name that `agents.envs.make` has for it."""
        return f"brax/{self.env_name}{SUFFIXES[self.observe_what]}"

    @property
    def brax(self) -> Any:
        """brax's own environment, to render with for example."""
        return _brax(self.env_name, self.backend)

    @property
    def default_params(self) -> EnvParams:
        """A time limit of 1000 steps."""
        return EnvParams()

    @property
    def num_actions(self) -> int:
        """Components of an action."""
        return LAYOUTS[self.env_name].actions

    def action_space(self, params: EnvParams | None = None) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, (self.num_actions,), jnp.float32)

    def observation_space(self, params: EnvParams | None = None) -> spaces.Box:
        shape = (sum(stop - start for start, stop in self._shown),)
        limit = jnp.full(shape, jnp.finfo(jnp.float32).max)
        return spaces.Box(-limit, limit, shape, jnp.float32)

    def draw_initial_states(self, key: PRNGKeyArray, size: int) -> Any:
        """Draw states for resets to choose from, by brax's own reset.

        **Arguments:**

        - `size`: how many; at least 1.

        **Returns:**

        The value for `params.replace(initial_states=...)`: brax's observations and physical states
        with a leading axis of this size.

        **Raises:**

        `TypeError` if `size` is not an integer or `key` no key; `ValueError` for a `size` less
        than 1.
        """
        check_key(key)
        fitted("size", size, Count)
        with _brax_settings():
            return _draw(self.env_name, self.backend)(jax.random.split(key, size))

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether brax ended the episode."""
        return state.terminated

    def reset_env(
        self, key: PRNGKeyArray, params: EnvParams
    ) -> tuple[Float32[Array, " shown"], EnvState]:
        """Choose an initial state, or have brax make one if there is no pool."""
        pool = params.initial_states
        with _brax_settings():
            if pool is None and not self.pool_size:
                state = self.brax.reset(key)
                full, pipeline_state = narrow((state.obs, state.pipeline_state))
            else:
                if pool is None:
                    pool = _pool(self.env_name, self.backend, self.pool_size)
                else:
                    check_states(pool, _draw(self.env_name, self.backend))
                full, pipeline_state = chosen(pool, key)
            time = jnp.int32(0)
            state = EnvState(
                time=time, pipeline_state=pipeline_state, terminated=jnp.zeros((), bool)
            )
            return self._show(full, time), state

    def step_env(
        self, key: PRNGKeyArray, state: EnvState, action: Any, params: EnvParams
    ) -> tuple[Float32[Array, " shown"], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Take a step of brax."""
        check_shapes((self.num_actions,), "`action_space`", action=action)
        with _brax_settings():
            brax = self.brax
            from brax.envs.base import State

            # brax's environments read nothing else of the state before a step.
            zero = jnp.float32(0)
            before = State(state.pipeline_state, obs=None, reward=zero, done=zero)  # pyright: ignore
            after = brax.step(before, jnp.asarray(action, jnp.float32))
            full, pipeline_state = narrow((after.obs, after.pipeline_state))
            time = state.time + 1
            terminated = jnp.asarray(after.done > 0.5, bool)
            reward = jnp.asarray(after.reward, jnp.float32)
            state = EnvState(time=time, pipeline_state=pipeline_state, terminated=terminated)
            return self._show(full, time), state, reward, terminated, {}

    @property
    def _shown(self) -> tuple[tuple[int, int], ...]:
        """Ranges of brax's observation that are part of this one's."""
        layout = LAYOUTS[self.env_name]
        ranges = {"positions": layout.positions, "velocities": layout.velocities}
        return ranges.get(self.observe_what, ((0, layout.size),))

    def _show(self, full: Any, time: Any) -> Any:
        """The part of brax's observation that is shown."""
        if self.observe_what == "target_once":
            hidden = np.zeros(full.shape, bool)
            for start, stop in _TARGET:
                hidden[start:stop] = True
            full = jnp.where((time > 0) & hidden, jnp.float32(0), full)
        return jnp.concatenate([full[start:stop] for start, stop in self._shown])
