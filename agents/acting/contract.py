"""What is asked of an environment, told where its program is traced and not in JAX's words."""

from typing import Any

import jax
import jax.numpy as jnp
from gymnax.environments import spaces
from gymnax.environments.environment import Environment

from agents.envs import MultiDiscrete


def check_first(env: Environment, params: Any, observation: Any) -> None:
    """Raise `ValueError` where first observations do not have the shapes of their space.

    **Arguments:**

    - `observation`: as `reset` returns it, with a leading axis over environments.
    """
    single = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), observation)
    _check_element(env, "", env.observation_space(params), single)


def check_next(
    env: Environment, before: tuple[Any, Any], after: tuple[Any, Any], outcome: tuple[Any, ...]
) -> None:
    """Raise `ValueError` or `TypeError` where a step does not return what it was called with.

    **Arguments:**

    - `before`, `after`: observation and state, with a leading axis over environments.
    - `outcome`: reward, terminated, truncated.
    """
    for what, old, new in zip(("observation", "state"), before, after, strict=True):
        (old, was), (new, now) = map(jax.tree_util.tree_flatten_with_path, (old, new))
        if was != now:
            raise ValueError(
                f"{_named(env)} `step` returns a {what} of {now}, `reset` one of {was}."
            )
        for (path, a), (_, b) in zip(old, new, strict=True):
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                place = f"{what}{jax.tree_util.keystr(path)}"
                raise ValueError(
                    f"{_named(env)} `step` returns {place} as {_type(b)}, `reset` as {_type(a)}."
                )
    for what, x in zip(("reward", "terminated", "truncated"), outcome, strict=True):
        if x.ndim != 1:
            raise ValueError(f"{_named(env)} `step` returns {what} as {_type(x)}, not one number.")
        if what != "reward" and x.dtype != bool:
            raise TypeError(f"{_named(env)} `step` returns {what} as {_type(x)}, not a boolean.")


def _check_element(env: Environment, path: str, space: Any, element: Any) -> None:
    if isinstance(space, spaces.Discrete | spaces.Box | MultiDiscrete):
        found = getattr(element, "shape", None)
        if found != tuple(space.shape):
            found = f"parts {list(_parts(element))}" if found is None else f"shape {found}"
            raise ValueError(
                f"{_named(env)} `reset` returns observation{path} of {found}; "
                f"`observation_space` says shape {tuple(space.shape)}."
            )
        return
    given, wanted = _parts(element), _parts(space.spaces)
    if given.keys() != wanted.keys():
        found = f"parts {list(given)}" if given else f"shape {element.shape}"
        raise ValueError(
            f"{_named(env)} `reset` returns observation{path} of {found}; "
            f"`observation_space` has parts {list(wanted)}."
        )
    for key, part in wanted.items():
        _check_element(env, f"{path}[{key!r}]", part, given[key])


def _parts(tree: Any) -> dict[Any, Any]:
    """The parts of a tuple, list or dictionary by index or key; an array has none."""
    if isinstance(tree, dict):
        return dict(tree)
    return dict(enumerate(tree)) if isinstance(tree, tuple | list) else {}


def _named(env: Environment) -> str:
    return f"`env` (={type(env).__qualname__}):"


def _type(x: Any) -> str:
    return f"{jnp.result_type(x)}{list(x.shape[1:])}"
