"""What is asked of an environment object and its parameters, told where one is given."""

import inspect
from typing import Any

import jax
import numpy as np
from gymnax.environments.environment import Environment
from jax.core import Tracer

from scan.calls import misfit
from zoo.parts.checks import MOST, shown


def why_none(made: Any) -> str:
    """Say behind an error why an object is no environment, where that can be guessed."""
    if inspect.isclass(made):
        return " An instance is wanted, not a class."
    if type(made).__module__.startswith("gymnax.wrappers"):
        return " In place of gymnax's wrappers there are `agents.envs.wrappers`."
    if hasattr(made, "reset") and hasattr(made, "step"):
        return " Its class must be derived from gymnax's `Environment`."
    return ""


def check_object(env: Environment, params: Any) -> None:
    """Raise `TypeError` or `ValueError` for what no episode can be made of.

    **Arguments:**

    - `env`: the environment: has to have spaces, and a reset and a step of its own.
    - `params`: its parameters: a pytree with a number of steps, `max_steps_in_episode`.
    """
    name = f"`env` (={type(env).__qualname__})"
    for wanted, instead, arguments in (
        ("observation_space", "observation_space", ("params",)),
        ("action_space", "action_space", ("params",)),
        ("reset_env", "reset", ("key", "params")),
        ("step_env", "step", ("key", "state", "action", "params")),
    ):
        own = [method for method in (wanted, instead) if _has_own(env, method)]
        method = getattr(env, own[0]) if own else None
        if not callable(method) or misfit(method, *arguments):
            raise TypeError(f"{name} must have a method `{wanted}({', '.join(arguments)})`.")
    if not hasattr(params, "max_steps_in_episode"):
        raise TypeError(
            f"{name} must have parameters with a field `max_steps_in_episode`, as a subclass of "
            f"gymnax's EnvParams has, and not {shown(params)}."
        )
    if jax.tree_util.all_leaves([params]):
        raise TypeError(
            f"{name} must have parameters that are a pytree, such as a `flax.struct.dataclass`, "
            f"and not {shown(params)}."
        )
    limit = params.max_steps_in_episode
    if isinstance(limit, Tracer):
        return
    is_number = isinstance(limit, int | float | np.generic | np.ndarray | jax.Array)
    if isinstance(limit, bool) or not (is_number and _is_count(np.asarray(limit))):
        raise ValueError(
            f"{name} must have parameters whose `max_steps_in_episode` (={shown(limit)}) is a "
            f"number from 1 to {MOST}."
        )


def _is_count(steps: np.ndarray) -> bool:
    return steps.ndim == 0 and bool(1 <= steps <= MOST)


def _has_own(env: Environment, method: str) -> bool:
    return getattr(type(env), method) is not getattr(Environment, method)
