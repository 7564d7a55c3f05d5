"""Any environment of the package gymnasium, which runs on the host, with gymnax's interface."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jax.core import Tracer
from jax.experimental import io_callback
from jaxtyping import Array, Bool, Float32, PRNGKeyArray

from zoo.annotations import Count, checked

from ..core.base import BaseEnvironment
from ..core.spaces import LARGEST, MultiDiscrete, open_box
from .gymnasium_host import Host

_NO_LIMIT = 1_000_000_000


@struct.dataclass
class EnvState(GymnaxEnvState):
    """A receipt for a state on the host; batched states have leading axes.

    `time`: steps taken in the episode. `number`: of the set of environments that were reset
    together. `place`: in that set. `ticket`: how often the set was stepped. All are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    number: Any
    place: Any
    ticket: Any


@checked
def from_gymnasium(
    env: str | Callable[[], Any], *, max_steps_in_episode: Count | None = None, **options: Any
) -> tuple["GymnasiumEnvironment", EnvParams]:
    """Make an environment of the package gymnasium with gymnax's interface.

    `reset` and `step` work under `jit`, `vmap`, `scan` and `while_loop`. A program that maps them
    over n environments makes one call to the host for all n, which steps them one after the other
    in a `gymnasium.vector.SyncVectorEnv`. So the agents of this library can learn in it, at the
    speed of Python.

    What differs from an environment in JAX: only the host has the state, so a state can be stepped
    once, and not after a checkpoint is loaded; all environments that were reset together by `vmap`
    are stepped together; the key of `reset` seeds them, and the key of `step` is not used. A step
    that breaks one of these rules is an error.

    **Arguments:**

    - `env`: an id of gymnasium, or a function without arguments that makes an environment, another
        one at each call.
    - `max_steps_in_episode`: truncate episodes after so many steps; by default where gymnasium
        does. Where that has no time limit, whole episodes, as in evaluations, need one.
    - `options`: of the environment's constructor, where `env` is an id.

    **Returns:**

    The environment and its parameters, as `make` does. Discrete observations and actions are int32
    and count from 0, all others are float32.

    **Raises:**

    `ValueError` for an unknown id or option or a value that is not allowed, or a function that
    makes the same environment twice; `TypeError` for a value of the wrong kind, what is no
    `gymnasium.Env`, or a space that is not Discrete, MultiDiscrete, MultiBinary or Box;
    `ModuleNotFoundError` with the line that installs Atari's emulator, if the id begins with "ALE/"
    and that is missing.
    """
    environment = GymnasiumEnvironment(Host(env, max_steps_in_episode, options))
    return environment, environment.default_params


class GymnasiumEnvironment(BaseEnvironment):
    """An environment of the package gymnasium, which runs on the host: see `from_gymnasium`.

    The key of a reset seeds the environment, which then has its own random numbers. The time limit,
    a thousand million steps where there is none, is part of the environment on the host: another
    value in the parameters is an error there.
    """

    on_host = True

    def __init__(self, host: Host):
        """**Arguments:**

        - `host`: makes and holds the environments.

        **Raises:**

        `TypeError` for a space that is not Discrete, MultiDiscrete, MultiBinary or Box.
        """
        super().__init__(
            observations=_space("observations", host.observation_space),
            actions=_space("actions", host.action_space),
            limit=host.limit or _NO_LIMIT,
        )
        self.host = host
        self._call_reset = _for_batches(self._host_reset, self._reset_results)
        self._call_step = _for_batches(self._host_step, self._step_results)

    @property
    def name(self) -> str:
        """The name that `agents.envs.make` has for it."""
        return f"gymnasium/{self.host.name}"

    @property
    def endless(self) -> bool:
        """Whether nothing limits its episodes, which then may have no end."""
        return self.host.limit is None

    def reset(self, key: PRNGKeyArray, params: EnvParams | None = None) -> tuple[Any, EnvState]:
        """Make an environment on the host and begin an episode."""
        seed = jax.random.bits(key, dtype=jnp.uint32)
        observation, number, place = self._call_reset(seed, self._limits(params))
        zero = jnp.zeros_like(number)
        return observation, EnvState(time=zero, number=number, place=place, ticket=zero)

    def step(
        self, key: PRNGKeyArray, state: EnvState, action: Any, params: EnvParams | None = None
    ) -> tuple[Any, EnvState, Float32[Array, ""], Bool[Array, ""], Bool[Array, ""], dict[str, Any]]:
        action = jnp.asarray(action, self._actions.dtype)
        receipt = (state.number, state.place, state.ticket)
        ticket, observation, final, reward, terminated, truncated = self._call_step(
            *receipt, action, self._limits(params)
        )
        state = EnvState(
            time=jnp.where(terminated | truncated, 0, state.time + 1),
            number=state.number,
            place=state.place,
            ticket=ticket,
        )
        info = {"terminated": terminated, "truncated": truncated, "final_observation": final}
        return observation, state, reward, terminated, truncated, info

    def close(self) -> None:
        """Close the environments on the host; their states are of no use then."""
        self.host.close()

    def _limits(self, params: EnvParams | None) -> Any:
        params = self.default_params if params is None else params
        limit = params.max_steps_in_episode
        if not isinstance(limit, Tracer):
            self._check_limit(np.ravel(limit))  # on the host JAX would wrap the error in its own
        return jnp.asarray(limit, jnp.int32)

    def _check_limit(self, limits: np.ndarray) -> None:
        limit = self._limit
        if (limits != limit).any():
            raise ValueError(
                f"`max_steps_in_episode` (={limits[0]}) must be {limit}, which it was when the "
                "environment was made."
            )

    def _host_reset(self, seeds: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, ...]:
        self._check_limit(limits)
        number, observation = self.host.reset(seeds)
        numbers = np.full(len(seeds), number, np.int32)
        return self._observed(observation), numbers, np.arange(len(seeds), dtype=np.int32)

    def _host_step(
        self,
        numbers: np.ndarray,
        places: np.ndarray,
        tickets: np.ndarray,
        actions: np.ndarray,
        limits: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        self._check_limit(limits)
        observation, final, reward, terminated, truncated = self.host.step(
            numbers, places, tickets, self._acted(actions)
        )
        flags = terminated.astype(bool), truncated.astype(bool)
        reward = reward.astype(np.float32)
        return tickets + 1, self._observed(observation), self._observed(final), reward, *flags

    def _acted(self, actions: np.ndarray) -> np.ndarray:
        """Actions as elements of gymnasium's space."""
        space = self.host.action_space
        if not isinstance(self._actions, spaces.Box):
            return (actions + getattr(space, "start", 0)).astype(space.dtype)
        if space.dtype.kind in "biu":
            actions = np.rint(actions)  # a cast would take all of them towards zero
        # In float32 a bound may lie beyond the one that it was rounded from.
        return np.clip(actions.astype(np.float64), space.low, space.high).astype(space.dtype)

    def _observed(self, observation: np.ndarray) -> np.ndarray:
        start = getattr(self.host.observation_space, "start", 0)
        return (observation - start).astype(self._observations.dtype)

    @property
    def _reset_results(self) -> tuple[jax.ShapeDtypeStruct, ...]:
        integer = jax.ShapeDtypeStruct((), jnp.int32)
        return self._observation, integer, integer

    @property
    def _step_results(self) -> tuple[jax.ShapeDtypeStruct, ...]:
        flag = jax.ShapeDtypeStruct((), bool)
        reward = jax.ShapeDtypeStruct((), jnp.float32)
        ticket = jax.ShapeDtypeStruct((), jnp.int32)
        return ticket, self._observation, self._observation, reward, flag, flag

    @property
    def _observation(self) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(self._observations.shape, self._observations.dtype)


def _for_batches(
    function: Callable[..., tuple[np.ndarray, ...]], results: tuple[jax.ShapeDtypeStruct, ...]
) -> Callable[..., Any]:
    """A function of the host for JAX, which a `vmap` calls once with the whole batch.

    **Arguments:**

    - `function`: takes and returns NumPy arrays with a leading axis over the batch.
    - `results`: types of what it returns, without that axis.

    **Returns:**

    A function of arrays without that axis.
    """

    def with_axes(axes: int) -> Callable[..., Any]:
        """Make the function of arrays with so many leading axes; a `vmap` adds one more."""

        def on_host(*arguments):
            shape = arguments[0].shape
            flat = (np.asarray(x).reshape((-1, *x.shape[axes:])) for x in arguments)
            out = function(*flat)
            return tuple(x.reshape((*shape, *x.shape[1:])) for x in out)

        @jax.custom_batching.custom_vmap
        def call(*arguments):
            shape = arguments[0].shape
            types = tuple(jax.ShapeDtypeStruct((*shape, *r.shape), r.dtype) for r in results)
            # Calls depend on one another's tickets, which orders them. Ordered effects of JAX would
            # not work in a `while_loop` under `vmap`.
            return io_callback(on_host, types, *arguments)

        @call.def_vmap
        def _(size, batched, *arguments):
            arguments = (
                x if has_axis else jnp.broadcast_to(x, (size, *x.shape))
                for x, has_axis in zip(arguments, batched, strict=True)
            )
            return with_axes(axes + 1)(*arguments), (True,) * len(results)

        return call

    return with_axes(0)


def _space(what: str, space: Any) -> Any:
    """gymnax's kind of a space of gymnasium."""
    from gymnasium import spaces as theirs

    if isinstance(space, theirs.Discrete):
        return spaces.Discrete(int(space.n))
    if isinstance(space, theirs.MultiDiscrete) and space.nvec.ndim == 1:
        return MultiDiscrete(space.nvec.tolist())
    if isinstance(space, theirs.MultiBinary) and len(space.shape) == 1:
        return MultiDiscrete([2] * space.shape[0])
    if isinstance(space, theirs.Box):
        low, high = (
            np.clip(bound, -LARGEST, LARGEST).astype(np.float32)
            for bound in (space.low, space.high)
        )
        made = spaces.Box(low, high, space.shape, jnp.float32)  # pyright: ignore
        return made if space.is_bounded() else open_box(made)
    raise TypeError(
        f"The {what} (={space!r}) must be Discrete, MultiDiscrete or MultiBinary of one axis, or "
        "Box; gymnasium.wrappers.FlattenObservation makes a Box of others."
    )
