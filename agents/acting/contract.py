"""What is asked of an environment, told where its program is traced and not in JAX's words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from gymnax.environments.environment import Environment
from jax.core import Tracer
from jaxtyping import Array

from agents.envs import MultiDiscrete
from agents.envs.wrappers.base import unwrapped
from agents.networks.spaces import parts_of
from zoo.parts.checks import shown

_STEP = "(observation, state, reward, terminated, truncated, info)"


def check_episode(env: Environment, params: Any) -> None:
    """Raise `ValueError` or `TypeError` where an episode's own two functions do not fit.

    gymnax's `step` is made of both, and would fail where it selects between what they return. What
    is of this library, or of gymnax, which is run in a precision of its own, is known to fit.

    **Arguments:**

    - `env`, `params`: the environment, which may be wrapped, and its parameters.
    """
    for one in unwrapped(env):
        known = type(one).__module__.startswith(("agents.", "gymnax."))
        if not known and type(one).step is Environment.step:
            _check_episode(one, params)


def _check_episode(inner: Environment, params: Any) -> None:
    key, space = jax.eval_shape(lambda: jax.random.key(0)), inner.action_space(params)
    first = _eval_shape(inner, params, "reset_env", "(observation, state)", key)
    action = jax.ShapeDtypeStruct(space.shape, space.dtype)
    answer = "(observation, state, reward, terminated, info)"
    after = _eval_shape(inner, params, "step_env", answer, key, first[1], action)
    _check_alike(inner, ("reset_env", "step_env"), first, after[:2], 0)
    if not hasattr(first[1], "time"):
        raise TypeError(
            f"{_named(inner)} `reset_env` returns a state without `time`, the steps of the episode "
            "so far, which a subclass of gymnax's EnvState has."
        )
    _check_info(inner, "step_env", after[-1])


def check_contract(env: Environment, params: Any) -> None:
    """Raise `ValueError` or `TypeError` for what a first step by one environment would show.

    For what acts in one environment by itself. Nothing is computed.

    **Arguments:**

    - `env`, `params`: the environment, which may be wrapped, and its parameters.
    """
    check_episode(env, params)
    key, space = jax.eval_shape(lambda: jax.random.key(0)), env.action_space(params)
    first = _eval_shape(env, params, "reset", "(observation, state)", key)
    check_first(env, params, first[0], axes=0)
    action = jax.ShapeDtypeStruct(space.shape, space.dtype)
    after = _eval_shape(env, params, "step", _STEP, key, first[1], action)
    check_answer(env, after)
    check_next(env, first, after[:2], after[2:5], axes=0)


def check_answer(env: Environment, answer: Any) -> Any:
    """Return what a step returns, six values, the last one with an episode's final observation.

    **Raises:**

    `ValueError` or `TypeError` where it does not.
    """
    _check_count(env, "step", answer, _STEP)
    info = answer[-1]
    _check_info(env, "step", info)
    if "final_observation" not in info:
        raise ValueError(
            f"{_named(env)} `step` returns info with {list(info)}; it must have "
            "'final_observation', that of the episode which the step may have ended."
        )
    return answer


def _check_info(env: Environment, name: str, info: Any) -> None:
    if not isinstance(info, Mapping):
        raise TypeError(
            f"{_named(env)} `{name}` returns info as {type(info).__name__}, not as a dictionary."
        )


def _eval_shape(env: Environment, params: Any, name: str, answer: str, *arguments: Any) -> Any:
    def arrays(*given):
        out = getattr(env, name)(*given, params)
        _check_count(env, name, out, answer)
        parts = zip(answer.strip("()").split(", "), out, strict=True)
        return tuple(_in_arrays(f"{_named(env)} `{name}` returns {part}", x) for part, x in parts)

    return jax.eval_shape(arrays, *arguments)


def _in_arrays(found: str, tree: Any) -> Any:
    def array(path: Any, leaf: Any) -> Array:
        try:
            return jnp.asarray(leaf)
        except (TypeError, ValueError):
            raise TypeError(
                f"{found}{jax.tree_util.keystr(path)} as {type(leaf).__name__}, not as numbers."
            ) from None

    return jax.tree_util.tree_map_with_path(array, tree)


def _check_count(env: Environment, name: str, out: Any, answer: str) -> None:
    if not isinstance(out, tuple) or len(out) != len(answer.split(",")):
        found = f"{len(out)} values" if isinstance(out, tuple) else type(out).__name__
        raise ValueError(f"{_named(env)} `{name}` returns {found}, and not {answer}.")


def check_first(env: Environment, params: Any, observation: Any, *, axes: int = 1) -> None:
    """Raise `ValueError` where first observations do not have the shapes of their space, or
    fractions where it has whole numbers.

    **Arguments:**

    - `observation`: as `reset` returns it.
    - `axes`: how many leading axes over environments it has.
    """
    single = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[axes:], x.dtype), observation)
    for place, found, wanted in _misfits(env.observation_space(params), single):
        raise ValueError(
            f"{_named(env)} `reset` returns observation{place} of {found}; `observation_space` "
            f"says {wanted}."
        )


def check_observation(space: Any, observation: Any) -> None:
    """Raise `ValueError` where an observation does not have the shapes of a space, fractions where
    it has whole numbers, what is no real number, or a number that a discrete part does not have,
    unless it is traced."""
    for place, found, wanted in _misfits(space, observation):
        raise ValueError(f"`observation`{place} (of {found}) must be of {wanted}.")
    for place, found, counts in _discrete_parts(space, observation):
        # Another number would be zeros where it is one-hot, and the last row of a table.
        if not isinstance(found, Tracer):
            values = np.asarray(found)
            if not np.all((values >= 0) & (values < np.asarray(counts))):
                raise ValueError(
                    f"`observation`{place} (={shown(found)}) must be at least 0 and below {counts}."
                )


def check_one(name: str, value: Any, kinds: Sequence[Any], rule: str) -> None:
    """Raise `TypeError` for an argument that is not one number of such kinds as `np.bool_`."""
    found = value if isinstance(value, Array) else np.asarray(value)
    if found.shape or not any(jnp.issubdtype(found.dtype, kind) for kind in kinds):
        raise TypeError(f"`{name}` (={shown(value)}) must be {rule}.")


def check_own_state(what: str, given: Any, wanted: Any) -> None:
    """Raise `TypeError` where a part of a policy's state is none of its own by its types.

    **Arguments:**

    - `what`: the part's name.
    - `given`: the part.
    - `wanted`: shapes and dtypes of the policy's own.
    """
    if _types(given) != _types(wanted):
        raise TypeError(
            f"`state` (of another {what}) must be as this policy's own `init_state` or `act` "
            "returns it; one that is prepared has states of its own."
        )


def _types(tree: Any) -> tuple[Any, list[Any]]:
    leaves, built = jax.tree.flatten(tree)
    own = jax.Array, jax.ShapeDtypeStruct
    types = (x.dtype if isinstance(x, own) else jnp.result_type(x) for x in leaves)
    return built, [(np.shape(x), dtype) for x, dtype in zip(leaves, types, strict=True)]


def check_next(
    env: Environment,
    before: tuple[Any, Any],
    after: tuple[Any, Any],
    outcome: tuple[Any, ...],
    *,
    axes: int = 1,
) -> None:
    """Raise `ValueError` or `TypeError` where a step does not return what it was called with.

    **Arguments:**

    - `before`, `after`: observation and state.
    - `outcome`: reward, terminated, truncated.
    - `axes`: how many leading axes over environments all of them have.
    """
    _check_alike(env, ("reset", "step"), before, after, axes)
    for what, x in zip(("reward", "terminated", "truncated"), outcome, strict=True):
        found = f"{_named(env)} `step` returns {what} as {_type(x, axes)}"
        if x.ndim != axes:
            raise ValueError(f"{found}, not one number.")
        if what != "reward" and x.dtype != bool:
            raise TypeError(f"{found}, not a boolean.")


def _check_alike(
    env: Environment, names: tuple[str, str], before: Any, after: Any, axes: int
) -> None:
    """The same for what two functions return, observation and state; `axes` are over many."""
    first, second = names
    for what, old, new in zip(("observation", "state"), before, after, strict=True):
        (old, was), (new, now) = map(jax.tree_util.tree_flatten_with_path, (old, new))
        if was != now:
            raise ValueError(
                f"{_named(env)} `{second}` returns a {what} of {now}, `{first}` one of {was}."
            )
        for (path, a), (_, b) in zip(old, new, strict=True):
            # A number of Python's becomes of the other's precision.
            weak = (a.weak_type or b.weak_type) and a.dtype.kind == b.dtype.kind
            if a.shape != b.shape or (a.dtype != b.dtype and not weak):
                place = f"{what}{jax.tree_util.keystr(path)}"
                raise ValueError(
                    f"{_named(env)} `{second}` returns {place} as {_type(b, axes)}, `{first}` as "
                    f"{_type(a, axes)}."
                )


def _misfits(space: Any, element: Any, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Where an element is none of a space by its types: the place, what is there and what not."""
    given = parts_of(element)
    shape = None if given else getattr(element, "shape", () if np.isscalar(element) else None)
    found = f"parts {list(given)}" if shape is None else f"shape {shape}"
    if isinstance(space, spaces.Discrete | spaces.Box | MultiDiscrete):
        if shape != tuple(space.shape):
            yield place, found, f"shape {tuple(space.shape)}"
            return
        dtype = getattr(element, "dtype", None) or np.dtype(type(element))
        is_box = isinstance(space, spaces.Box)
        kinds = (np.integer, np.bool_, *((np.floating,) if is_box else ()))
        if not any(jnp.issubdtype(dtype, kind) for kind in kinds):
            yield place, f"dtype {dtype}", "real numbers" if is_box else "whole numbers"
        return
    wanted = parts_of(space.spaces)
    if given.keys() != wanted.keys():
        yield place, found, f"parts {list(wanted)}"
        return
    for key, part in wanted.items():
        yield from _misfits(part, given[key], f"{place}[{key!r}]")


def _discrete_parts(space: Any, element: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The discrete parts of an element of a space: place, what is there, and count or counts."""
    if isinstance(space, spaces.Discrete | MultiDiscrete):
        yield place, element, space.n if isinstance(space, spaces.Discrete) else space.nvec
    elif not isinstance(space, spaces.Box):
        given = parts_of(element)
        for key, part in parts_of(space.spaces).items():
            yield from _discrete_parts(part, given[key], f"{place}[{key!r}]")


def _named(env: Environment) -> str:
    return f"`env` (={type(env).__qualname__}):"


def _type(x: Any, axes: int) -> str:
    return f"{jnp.result_type(x)}{list(x.shape[axes:])}"
