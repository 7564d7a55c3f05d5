"""What all wrappers share: delegation, and an auto-reset that is done once, by the innermost."""

import abc
from collections.abc import Iterator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments.environment import Environment, EnvParams
from jaxtyping import Array, Bool, Float32, PRNGKeyArray

Step = tuple[Any, Any, Float32[Array, ""], Bool[Array, ""], Bool[Array, ""], dict[str, Any]]
"""What `step` returns: observation, state, reward, terminated, truncated, info."""


@struct.dataclass
class WrapperState:
    """State of a wrapped environment; batched states have leading axes.

    `env_state`: state of the environment inside. `own`: what the wrapper keeps, empty for some.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    env_state: Any
    own: Any

    @property
    def time(self) -> Any:
        """Steps taken in the present episode, as the environment inside counts them."""
        return self.env_state.time


def unwrapped(env: Any) -> Iterator[Any]:
    """List an environment, what it wraps, what that wraps, and so on."""
    yield env
    inner = getattr(env, "env", None)
    # An environment of one's own may call anything `env`, such as a name.
    if hasattr(type(inner), "step"):
        yield from unwrapped(inner)


def runs_on_the_host(env: Any) -> bool:
    """Whether an environment keeps its state outside of JAX: there it resets itself, and nothing
    else can, and no checkpoint has it. Its class says so by an attribute `on_host`."""
    return any(getattr(one, "on_host", False) for one in unwrapped(env))


def check_end(env: Any) -> None:
    """Raise `ValueError` for an environment whose episodes may have no end, where whole ones are
    to be played. Its class says so by an attribute `endless`."""
    if any(getattr(one, "endless", False) for one in unwrapped(env)):
        raise ValueError(
            f"`env` (={env.name}) must have a time limit where whole episodes are played: give it "
            "`max_steps_in_episode`, or train without evaluations, by `evaluate_every` (=0)."
        )


def where(condition: Bool[Array, ""], new: Any, old: Any) -> Any:
    """Select one of two pytrees of equal structure and types."""
    return jax.tree.map(lambda x, y: jax.lax.select(condition, x, y), new, old)


def restart(env: Environment, key: PRNGKeyArray, state: Any, params: Any) -> tuple[Any, Any]:
    """Begin an episode and keep what outlives episodes, such as running statistics.

    **Arguments:**

    - `env`: an environment, wrapped or not.
    - `state`: its state at the end of the last episode.

    **Returns:**

    The first observation and the state.
    """
    if isinstance(env, Wrapper):
        return env.restart(key, state, params)
    return env.reset(key, params)


class Wrapper(Environment[Any, EnvParams], abc.ABC):
    """Abstract: an environment made of another one, which stays available as `env`.

    Parameters are those of the environment inside. Spaces and names are too, unless a wrapper says
    otherwise. A wrapper calls `step` of the environment inside, which resets where an episode ends;
    it changes the first observation of the next episode and `info["final_observation"]` alike.

    A wrapper that draws random numbers sets `random`; the environment inside then gets a key of its
    own. Otherwise it gets the wrapper's key, and an episode is the one without the wrapper.
    """

    random: ClassVar[bool] = False

    def __init__(self, env: Environment):
        """**Arguments:**

        - `env`: the environment to wrap.
        """
        super().__init__()
        self.env = check_environment(env)

    @property
    def name(self) -> str:
        """Name of the environment inside."""
        return self.env.name

    @property
    def num_actions(self) -> int:
        """Number of discrete actions, or of dimensions of a continuous one."""
        return self.env.num_actions

    @property
    def default_params(self) -> Any:
        """Default parameters of the environment inside."""
        return self.env.default_params

    def action_space(self, params: Any = None) -> Any:
        """Give the space of actions."""
        return self.env.action_space(self.default_params if params is None else params)

    def observation_space(self, params: Any = None) -> Any:
        """Give the space of observations."""
        return self.env.observation_space(self.default_params if params is None else params)

    def is_terminated(self, state: Any, params: Any) -> Bool[Array, ""]:
        """Tell whether the environment inside has come to its own end."""
        return self.env.is_terminated(state.env_state, params)

    def is_truncated(self, state: Any, params: Any) -> Bool[Array, ""]:
        """Tell whether the time limit of the environment inside is reached."""
        return self.env.is_truncated(state.env_state, params)

    def reset(self, key: PRNGKeyArray, params: Any = None) -> tuple[Any, Any]:
        """Begin an episode, and everything that outlives episodes as well."""
        params = self.default_params if params is None else params
        key, own_key = self._keys(key)
        observation, env_state = self.env.reset(key, params)
        return self._begin(own_key, observation, env_state, None, params)

    def restart(self, key: PRNGKeyArray, state: Any, params: Any) -> tuple[Any, Any]:
        """Begin an episode and keep what outlives episodes.

        **Arguments:**

        - `state`: the state at the end of the last episode.

        **Returns:**

        The first observation and the state.
        """
        key, own_key = self._keys(key)
        observation, env_state = restart(self.env, key, state.env_state, params)
        return self._begin(own_key, observation, env_state, state, params)

    def _keys(self, key: Any) -> tuple[Any, Any]:
        """The environment's key and this wrapper's."""
        return tuple(jax.random.split(key)) if self.random else (key, key)

    def _inside(self, key: Any, env_state: Any, action: Any, params: Any) -> Step:
        """A step of the environment inside, its reward in the precision that all rewards have."""
        observation, env_state, reward, *rest = self.env.step(key, env_state, action, params)
        return observation, env_state, jnp.asarray(reward, jnp.float32), *rest

    @abc.abstractmethod
    def _begin(
        self, key: Any, observation: Any, env_state: Any, last: Any, params: Any
    ) -> tuple[Any, Any]:
        """The first observation and the state, from those of the environment inside.

        `last` is the state at the end of the last episode; `None` where everything begins.
        """

    @abc.abstractmethod
    def step(self, key: PRNGKeyArray, state: WrapperState, action: Any, params: Any = None) -> Step:
        """Take a step; where the episode ends, begin the next one.

        **Returns:**

        Observation, state, reward, terminated, truncated, and `info`, in which `final_observation`
        is the observation before a reset.
        """


class ObservationWrapper(Wrapper):
    """Abstract: a wrapper that changes observations, with or without memory."""

    def _begin(
        self, key: Any, observation: Any, env_state: Any, last: Any, params: Any
    ) -> tuple[Any, WrapperState]:
        own = self._start(params) if last is None else last.own
        observation, own = self._first(key, own, observation, params)
        return observation, WrapperState(env_state=env_state, own=own)

    def step(self, key: PRNGKeyArray, state: WrapperState, action: Any, params: Any = None) -> Step:
        params = self.default_params if params is None else params
        key, own_key = self._keys(key)
        observation, env_state, reward, terminated, truncated, info = self._inside(
            key, state.env_state, action, params
        )
        next_key, first_key = self._keys(own_key)
        final, own = self._next(
            next_key, state.own, info["final_observation"], action, reward, params
        )
        # The next episode's first observation follows all that was seen before it.
        first = self._first(first_key, own, observation, params)
        observation, own = where(terminated | truncated, first, (final, own))
        state = WrapperState(env_state=env_state, own=own)
        return (
            observation,
            state,
            reward,
            terminated,
            truncated,
            info | {"final_observation": final},
        )

    def _start(self, params: Any) -> Any:
        """What the wrapper keeps, before anything was seen."""
        del params
        return ()

    @abc.abstractmethod
    def _first(self, key: Any, own: Any, observation: Any, params: Any) -> tuple[Any, Any]:
        """What becomes of an episode's first observation, and what is kept then."""

    @abc.abstractmethod
    def _next(
        self, key: Any, own: Any, observation: Any, action: Any, reward: Any, params: Any
    ) -> tuple[Any, Any]:
        """What becomes of an observation after a step, and what is kept then."""


class MemorylessWrapper(ObservationWrapper):
    """Abstract: a wrapper that changes every observation by itself, first ones like others."""

    def _first(self, key: Any, own: Any, observation: Any, params: Any) -> tuple[Any, Any]:
        return self._observe(key, observation, params), own

    def _next(
        self, key: Any, own: Any, observation: Any, action: Any, reward: Any, params: Any
    ) -> tuple[Any, Any]:
        return self._observe(key, observation, params), own

    @abc.abstractmethod
    def _observe(self, key: Any, observation: Any, params: Any) -> Any:
        """What becomes of an observation."""


def check_environment(env: Any) -> Environment:
    """Check that a constructor's argument is an environment.

    **Arguments:**

    - `env`: what was given.

    **Raises:**

    `TypeError` if it is none.
    """
    if not isinstance(env, Environment):
        raise TypeError(
            f"`env` (={env!r}) must be a gymnax environment, such as the first result of "
            "`agents.envs.make`."
        )
    return env


def require(env: Environment, wrapper: str, *kinds: type) -> Any:
    """Give the observation space of an environment, if a wrapper can work with it.

    **Arguments:**

    - `env`: the environment.
    - `wrapper`: name of the wrapper, for the message.
    - `kinds`: the kinds of space that it takes.

    **Returns:**

    The space.

    **Raises:**

    `TypeError` if the space is of another kind or `env` is no environment.
    """
    check_environment(env)
    space = env.observation_space(env.default_params)
    if not isinstance(space, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(
            f"`env` (={env.name}) must have observations in a {names} for {wrapper}, not in "
            f"{space!r}; OneHot and Flatten make a Box of others."
        )
    return space
