"""Environments by name: `make`, `names` and `episode_steps`."""

import dataclasses
import difflib
import inspect
import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any

import gymnax
import jax
import jax.numpy as jnp
from gymnax.environments.environment import Environment, EnvParams

from .adapter import GymnaxEnvironment, gymnax_settings
from .catalog import OWN
from .external_memory import ExternalMemory

_UNAVAILABLE = {"MNISTBandit-bsuite": "it downloads MNIST when it is made"}


def names() -> tuple[str, ...]:
    """The names that `make` knows: this library's environments, then gymnax's.

    **Returns:** the names. Those registered later with `gymnax.registration.register` appear too.
    """
    theirs = (name for name in gymnax.registered_envs if name not in _UNAVAILABLE)
    return tuple(dict.fromkeys((*OWN, *theirs)))


def make(
    name: str, *, external_memory: str | None = None, **options: Any
) -> tuple[Environment, EnvParams]:
    """Make an environment.

    **Arguments:**

    - `name`: one of `names()`.
    - `external_memory`: a memory that the agent sees and writes by its actions, such as `"B1"`; see
        `ExternalMemory`. None by default.
    - `options`: arguments of the environment's constructor (`decks=2`, `num_bits=3`) and fields of
        its parameters (`memory_length=10`, `max_steps_in_episode=200`).

    **Returns:** the environment and its parameters. `env.reset(key, params)` returns observation
    and state; `env.step(key, state, action, params)` returns observation, state, reward (float32),
    terminated, truncated and info. `step` resets where an episode ends, and then
    `info["final_observation"]` is the ended episode's last observation.

    **Raises:** `ValueError` with the nearest names if the name is unknown, with the environment's
    options if an option is, and if a value breaks a rule; `TypeError` if a value is of the wrong
    kind. Each names the argument, the value and the rule.
    """
    env, params = _make(name, options)
    return (env if external_memory is None else ExternalMemory(env, external_memory)), params


def _make(name: str, options: Mapping[str, Any]) -> tuple[Environment, EnvParams]:
    """The environment by itself."""
    if name in OWN:
        factory, fixed = OWN[name]
        return _build(name, factory, fixed, options)
    if name not in names():
        raise ValueError(_unknown(name))
    with gymnax_settings():
        env, params = _build(name, lambda **kwargs: gymnax.make(name, **kwargs)[0], {}, options)
    return GymnaxEnvironment(env, name), params


def episode_steps(env: Environment, params: EnvParams) -> int:
    """The most steps that an episode can have: the environment's time limit.

    **Arguments:**

    - `env`: an environment.
    - `params`: its parameters, not traced.

    **Returns:** the number of steps.
    """
    del env  # every environment so far keeps its limit in its parameters
    return math.ceil(params.max_steps_in_episode)


def needs_previous_action(env: Environment) -> bool:
    """Whether an agent has to know its previous action to make sense of the observations.

    True of the environments whose observation is the outcome of an action at a place that it does
    not show. Their class says so by an attribute `needs_previous_action`.

    **Arguments:**

    - `env`: an environment, or a wrapper that holds one as `env`.

    **Returns:** a bool.
    """
    while env is not None:
        if getattr(env, "needs_previous_action", False):
            return True
        env = getattr(env, "env", None)  # pyright: ignore[reportAssignmentType]
    return False


def _build(
    name: str,
    factory: Callable[..., Environment],
    fixed: Mapping[str, Any],
    options: Mapping[str, Any],
) -> tuple[Environment, EnvParams]:
    """Make an environment and its parameters from options, after checking them."""
    env = factory(**fixed)
    arguments = {
        argument.name: argument.default
        for argument in inspect.signature(type(env)).parameters.values()
        if argument.name not in fixed and argument.kind is not argument.VAR_KEYWORD
    }
    fields = {f.name: getattr(env.default_params, f.name) for f in _fields(env.default_params)}
    known = fields | arguments
    for option, value in options.items():
        if option not in known:
            raise ValueError(
                f"Unknown option `{option}` (={value!r}) of {name}; it must be one of: "
                f"{', '.join(sorted(known))}."
            )
    values = {option: _check(option, value, known[option]) for option, value in options.items()}
    if any(option in arguments for option in options):
        env = factory(**fixed, **{o: v for o, v in values.items() if o in arguments})
    # After the constructor, because some environments' default parameters depend on it.
    params = env.default_params
    return env, params.replace(**{o: v for o, v in values.items() if o not in arguments})  # pyright: ignore


def _fields(params: EnvParams) -> tuple[dataclasses.Field, ...]:
    return dataclasses.fields(params)  # pyright: ignore[reportArgumentType]


def _check(option: str, value: Any, default: Any) -> Any:
    """The value, if it is of the default's kind."""
    rule, holds = None, True
    if isinstance(default, bool):
        rule, holds = "True or False", isinstance(value, bool)
    elif isinstance(default, int):
        rule, holds = "an integer", _is(value, numbers.Integral)
    elif isinstance(default, float):
        rule, holds = "a number", _is(value, numbers.Real)
    if not holds:
        raise TypeError(f"`{option}` (={value!r}) must be {rule}.")
    if isinstance(default, jax.Array):
        value = jnp.asarray(value, default.dtype)
        if value.shape != default.shape:
            raise ValueError(
                f"`{option}` (of shape {value.shape}) must have shape {default.shape}."
            )
        return value
    if option == "max_steps_in_episode" and value < 1:
        raise ValueError(f"`{option}` (={value}) must be at least 1.")
    # In the default's own type: gymnax needs it in places, and a constructor may refuse NumPy's.
    return type(default)(value) if rule else value


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _unknown(name: str) -> str:
    """What to answer when there is no such environment."""
    if name in _UNAVAILABLE:
        return f"`name` (={name!r}) is not available: {_UNAVAILABLE[name]}."
    lower = {known.lower(): known for known in names()}
    near = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.5)
    hint = f"the nearest names are {', '.join(lower[n] for n in near)}. " if near else ""
    return (
        f"`name` (={name!r}) must be the name of an environment: {hint}"
        "`agents.envs.names()` lists all."
    )
