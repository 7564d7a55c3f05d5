"""Environments of other JAX packages with gymnax's interface; each package has its own port."""

import abc
import contextlib
import functools
import importlib.util
import warnings
from collections.abc import Hashable, Iterator
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams as GymnaxEnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, PRNGKeyArray

from zoo.annotations import Count, Size, fitted
from zoo.parts.checks import check_key

from ..core.base import BaseEnvironment
from ..core.lazy_reset import LazyReset
from ..core.one_end import OneEnd
from .adapter import gymnax_settings, narrow
from .initial_states import EnvParams, check_states, chosen, drawn, packed, shared


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of an environment of another package; batched states have leading axes.

    `time`: steps taken, int32. `inner`: what the package keeps. `terminated`: whether the package
    ended the episode with the last step.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    inner: Any
    terminated: Any


class Outcome(NamedTuple):
    """What a step of another package's environment came to.

    **Attributes:**

    - `observation`: in the port's space, of any type.
    - `inner`: what the package keeps.
    - `reward`: a scalar.
    - `terminated`: whether the package ended the episode, for another reason than its time limit.
    - `info`: what the package tells besides.
    """

    observation: Any
    inner: Any
    reward: Any
    terminated: Any
    info: dict[str, Any]


class AbstractPort(abc.ABC):
    """Abstract: what is particular to one environment of a package.

    A constructor imports the package and makes the environment.

    **Attributes:**

    - `package`: the module to import, and the extra that installs it.
    - `name`: the package's name of the environment.
    - `observations`, `actions`: gymnax spaces.
    - `limit`: the package's own time limit, in steps.
    """

    package: ClassVar[str]
    extra: ClassVar[str]
    name: str
    observations: Any
    actions: Any
    limit: int

    @abc.abstractmethod
    def reset(self, key: Any) -> tuple[Any, Any]:
        """Begin an episode.

        **Arguments:**

        - `key`: two uint32, as `jax.random.PRNGKey` makes them.

        **Returns:**

        The first observation, and what the package keeps.
        """

    @abc.abstractmethod
    def step(self, key: Any, inner: Any, action: Any, limit: Any) -> Outcome:
        """Take a step, without the package's own reset and without its time limit.

        **Arguments:**

        - `key`: two uint32.
        - `inner`: what the package keeps.
        - `limit`: the time limit, where rewards depend on it.
        """

    def picture(self, inner: Any) -> np.ndarray | None:
        """Draw a state as the package does: `[height, width, 3]`, uint8. None if it does not."""
        del inner
        return None


@contextlib.contextmanager
def package_settings() -> Iterator[None]:
    """JAX's default settings, and no warnings about the age of a package and its imports."""
    with gymnax_settings(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def is_installed(package: str) -> bool:
    """Tell whether a package can be imported, without importing it."""
    return importlib.util.find_spec(package) is not None


def port(
    kind: type[AbstractPort], name: str, pool_size: int = 0, **options: Any
) -> "PackageEnvironment":
    """Make an environment by the port of its package.

    **Arguments:**

    - `kind`, `name`, `options`: the port's class and arguments.
    - `pool_size`: see `PackageEnvironment`.

    **Raises:**

    `ModuleNotFoundError` with the line that installs the package, if it is missing; what
    `PackageEnvironment` raises.
    """
    fitted("pool_size", pool_size, Size)
    if not is_installed(kind.package):
        raise ModuleNotFoundError(
            f"{kind.extra}/{name} needs the package {kind.extra}: "
            f"pip install 'trace-zoo[{kind.extra}]'",
            name=kind.package,
        )
    # No trace may own the constants of a package, which it makes when it is imported.
    with jax.ensure_compile_time_eval(), package_settings():
        make: Any = kind  # a port's constructor has the arguments of its package
        made = make(name, **options)
    # A stand-in for a package has other worlds.
    origin = (kind, type(made.env), name, *sorted(options.items()))
    return PackageEnvironment(made, pool_size, origin)


class PackageEnvironment(OneEnd[Any, GymnaxEnvParams], LazyReset, BaseEnvironment):
    """An environment of another JAX package: its dynamics and rewards, this library's contract.

    The package's own auto-reset and time limit are not used. An episode is truncated after
    `max_steps_in_episode` steps, by default the package's limit, and terminates where the package
    says so for another reason. A reset is only made where an episode ends. `info` has what the
    package tells, and `final_observation`.

    With a `pool_size` a reset chooses one of so many initial states at random, which are made by
    the package's reset when the environment is first used, with a fixed key: programs that train
    and evaluate then hold no reset of the package. Any one of them has the package's distribution,
    but episodes that begin in the same one are not independent.
    `params.replace(initial_states=env.draw_initial_states(key, size))` takes others.
    """

    resets_at_once = 4  # a world of craftax takes as long as a hundred steps

    def __init__(self, port: AbstractPort, pool_size: int, origin: Hashable):
        """**Arguments:**

        - `port`: what is particular to the environment.
        - `pool_size`: how many initial states there are; 0 for a new one at every reset.
        - `origin`: what the port was made of; environments of the same share their pool.
        """
        super().__init__(
            observations=port.observations, actions=port.actions, limit=int(port.limit)
        )
        self.port = port
        self.pool_size = pool_size
        self._origin = origin

    @property
    def default_params(self) -> EnvParams:
        """The package's time limit, and the environment's own initial states."""
        return EnvParams(max_steps_in_episode=self._limit)

    @property
    def name(self) -> str:
        """The name that `agents.envs.make` has for it."""
        return f"{self.port.extra}/{self.port.name}"

    def is_terminated(self, state: EnvState, params: GymnaxEnvParams) -> Bool[Array, ""]:
        """Tell whether the package ended the episode."""
        return state.terminated

    def reset_env(self, key: PRNGKeyArray, params: Any) -> tuple[Any, EnvState]:
        """Choose an initial state, or have the package make one if there is no pool."""
        with package_settings():
            if params.initial_states is not None:
                check_states(params.initial_states, self._draw)
                observation, inner = chosen(params.initial_states, key)
            elif self.pool_size:
                observation, inner = chosen(self._pool(), key)
            else:
                observation, inner = self._first(key)
            state = EnvState(time=jnp.int32(0), inner=inner, terminated=jnp.zeros((), bool))
            return observation, state

    def draw_initial_states(self, key: PRNGKeyArray, size: int) -> Any:
        """Draw states for resets to choose from, by the package's own reset.

        **Arguments:**

        - `size`: how many; at least 1.

        **Returns:**

        The value for `params.replace(initial_states=...)`, in NumPy: first observations and what
        the package keeps, with a leading axis of this size.

        **Raises:**

        `TypeError` if `size` is not an integer or `key` no key; `ValueError` for a `size` less
        than 1.
        """
        check_key(key)
        fitted("size", size, Count)
        with jax.ensure_compile_time_eval(), package_settings():
            return drawn(self._draw, key, size)

    @functools.cached_property
    def _draw(self) -> Any:
        """A compiled function from keys to as many first observations and packages' states."""
        return jax.jit(jax.vmap(self._first))

    def _pool(self) -> Any:
        def draw() -> Any:
            with jax.ensure_compile_time_eval():
                key = jax.random.key(0)
            return packed(self.draw_initial_states(key, self.pool_size))

        return shared((self._origin, self.pool_size), draw)

    def _first(self, key: Any) -> tuple[Any, Any]:
        """What the package begins an episode with."""
        observation, inner = self.port.reset(jax.random.key_data(key))
        return self._observed(observation), narrow(inner)

    def step_env(
        self, key: PRNGKeyArray, state: EnvState, action: Any, params: GymnaxEnvParams
    ) -> tuple[Any, EnvState, Float32[Array, ""], Bool[Array, ""], dict[str, Any]]:
        """Take a step of the package."""
        with package_settings():
            action = jnp.asarray(action, self._actions.dtype)
            out = self.port.step(
                jax.random.key_data(key), state.inner, action, params.max_steps_in_episode
            )
            # Some packages begin with other types than they go on with.
            inner = jax.tree.map(
                lambda new, old: jnp.asarray(new).astype(old.dtype), out.inner, state.inner
            )
            terminated = jnp.asarray(out.terminated, bool)
            after = EnvState(time=state.time + 1, inner=inner, terminated=terminated)
            reward = jnp.asarray(out.reward, jnp.float32)
            return self._observed(out.observation), after, reward, terminated, narrow(out.info)

    def _observed(self, observation: Any) -> Any:
        return jax.tree.map(
            lambda x: jax.lax.convert_element_type(jnp.asarray(x), self._observations.dtype),
            observation,
        )


def one_hot_planes(ids: Any, counts: tuple[int, ...]) -> Float32[Array, "rows columns planes"]:
    """Make planes of zeros and ones of a grid whose cells have several numbers each.

    **Arguments:**

    - `ids`: integers `[rows, columns, numbers]`.
    - `counts`: how many values each number has; a greater one has no plane.
    """
    planes = [jax.nn.one_hot(ids[..., i], n, dtype=jnp.float32) for i, n in enumerate(counts)]
    return jnp.concatenate(planes, axis=-1)


def plane_space(rows: int, columns: int, counts: tuple[int, ...]) -> spaces.Box:
    """Make the space of what `one_hot_planes` returns."""
    return spaces.Box(0.0, 1.0, (rows, columns, sum(counts)), jnp.float32)
