"""Adapter of gymnax's own environments to this library's contract on types."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from gymnax.environments import environment, spaces
from jaxtyping import Array, Bool, Float32, PRNGKeyArray

_NARROW = {"float64": jnp.float32, "int64": jnp.int32, "uint64": jnp.uint32}

_ANY = float(jnp.finfo(jnp.float32).max)

# Where observations leave the bounds that gymnax declares: (index, low, high), None for no change.
_WIDER_BOUNDS: dict[str, tuple[tuple[Any, float | None, float | None], ...]] = {
    "MemoryChain-bsuite": ((..., -1.0, None),),  # the context is -1 or 1
    "UmbrellaChain-bsuite": ((2, -1e-6, None),),  # the time left, 1 - t / T, rounded
    "MetaMaze-misc": ((-2, -_ANY, _ANY), (-1, -1.0, None)),  # last reward; normalized time
    "GaussianBandit-misc": ((0, -_ANY, _ANY), (3, -1.0, None)),  # the same
}


@contextlib.contextmanager
def gymnax_settings() -> Iterator[None]:
    """JAX's default settings, which gymnax's environments are written for.

    Several of them fail to trace with 64-bit types or with `jax_numpy_rank_promotion="raise"`. A
    user's choice of either is for the user's own code.

    **Returns:**

    A context manager.
    """
    with jax.enable_x64(False), jax.numpy_rank_promotion("allow"), warnings.catch_warnings():
        # gymnax's constants are 64-bit if it was imported while these types were enabled.
        warnings.filterwarnings("ignore", "Explicitly requested dtype", UserWarning)
        yield


def narrow(tree: Any) -> Any:
    """Give every leaf a type that is its own (not weak) and of 32 bits at most.

    A weak type in a carry compiles a program a second time, and fails in `jax.lax.scan`.

    **Arguments:**

    - `tree`: a pytree of arrays, PRNG keys and Python numbers.

    **Returns:**

    The same with arrays of types such as bool, int32 and float32.
    """

    def leaf(x: Any) -> Array:
        x = jnp.asarray(x)
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            return x
        return jax.lax.convert_element_type(x, _NARROW.get(x.dtype.name, x.dtype))

    return jax.tree.map(leaf, tree)


class GymnaxEnvironment(environment.Environment[Any, environment.EnvParams]):
    """An environment of gymnax, with the same dynamics and with types that can be relied on.

    The reward is a float32 scalar, `terminated` and `truncated` are Boolean scalars, a continuous
    observation is float32, nothing is weakly typed, and the state has the same types after `reset`
    and after `step`. gymnax itself has integer rewards and weak types in places. It works with
    64-bit types enabled, and then still returns 32-bit ones.
    """

    def __init__(self, env: environment.Environment, name: str):
        """**Arguments:**

        - `env`: the environment, which stays available as the attribute `env`.
        - `name`: the id it is registered under.
        """
        super().__init__()
        self.env = env
        self._name = name

    @property
    def name(self) -> str:
        """The id the environment is registered under."""
        return self._name

    @property
    def num_actions(self) -> int:
        return self.env.num_actions

    @property
    def default_params(self) -> environment.EnvParams:
        """gymnax's default parameters."""
        with gymnax_settings():
            return self.env.default_params

    def action_space(self, params: Any = None) -> Any:
        with gymnax_settings():
            return self.env.action_space(self.default_params if params is None else params)

    def observation_space(self, params: Any = None) -> Any:
        params = self.default_params if params is None else params
        with gymnax_settings():
            space = self.env.observation_space(params)
            if not isinstance(space, spaces.Box):
                return space
            low = jnp.broadcast_to(jnp.asarray(space.low, jnp.float32), space.shape)
            high = jnp.broadcast_to(jnp.asarray(space.high, jnp.float32), space.shape)
            for index, lowest, highest in _WIDER_BOUNDS.get(self.name, ()):
                low = low if lowest is None else low.at[index].set(lowest)
                high = high if highest is None else high.at[index].set(highest)
            return spaces.Box(low, high, space.shape, jnp.float32)

    def reset(self, key: PRNGKeyArray, params: Any = None) -> tuple[Any, Any]:
        params = narrow(self.default_params if params is None else params)
        with gymnax_settings():
            observation, state = self.env.reset(key, params)
            return self._observe(observation), narrow(state)

    def step(
        self, key: PRNGKeyArray, state: Any, action: Any, params: Any = None
    ) -> tuple[Any, Any, Float32[Array, ""], Bool[Array, ""], Bool[Array, ""], dict[str, Any]]:
        params = narrow(self.default_params if params is None else params)
        state, action = narrow((state, action))
        with gymnax_settings():
            observation, state, reward, terminated, truncated, info = self.env.step(
                key, state, action, params
            )
            terminated, truncated = jnp.asarray(terminated, bool), jnp.asarray(truncated, bool)
            info = narrow(info) | {
                "final_observation": self._observe(info["final_observation"]),
                "terminated": terminated,
                "truncated": truncated,
            }
            return (
                self._observe(observation),
                narrow(state),
                jnp.asarray(reward, jnp.float32),
                terminated,
                truncated,
                info,
            )

    def _observe(self, observation: Any) -> Any:
        """The observation in the type that `observation_space` declares."""
        # Discrete observations are int32 already.
        return jax.tree.map(
            lambda x: jnp.asarray(x, jnp.float32 if x.ndim else x.dtype), narrow(observation)
        )
