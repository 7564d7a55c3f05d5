"""Environment objects in words and numbers, for files that cannot hold an object."""

import dataclasses
import hashlib
import inspect
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments.environment import Environment

OBJECT = "object"  # the key of a description of an environment that has no name
_FEW = 32  # numbers of an array that are written one by one


def qualified(env: Any) -> str:
    """Module and class of an environment, wrappers around what they wrap."""
    name, inner = f"{type(env).__module__}.{type(env).__qualname__}", _inner(env)
    return name if inner is None else f"{name}({qualified(inner)})"


def description(env: Environment, params: Any) -> dict[str, Any]:
    """Describe an environment object by what can be told from another of its class.

    **Returns:**

    In JSON: module and class, the arguments of the constructor that it keeps under their names, and
    the fields of the parameters. What is no number, text or array is left out.
    """
    return {OBJECT: qualified(env), "arguments": _arguments(env), "params": _plain(params)}


def _inner(env: Any) -> Any:
    inner = getattr(env, "env", None)
    return inner if isinstance(inner, Environment) else None


def _arguments(env: Any) -> dict[str, Any]:
    own = vars(env)
    kept = {
        name: own.get(name, own.get(f"_{name}"))
        for name in inspect.signature(type(env)).parameters
        if {name, f"_{name}"} & own.keys()
    }
    told = {name: _plain(value) for name, value in kept.items() if _is_told(value)}
    inner = _inner(env)
    return told if inner is None else told | {"env": _arguments(inner)}


def _is_told(value: Any) -> bool:
    """Whether all of a value can be written, and compared with another's."""
    if isinstance(value, Mapping):
        return all(map(_is_told, value.values()))
    if isinstance(value, tuple | list):
        return all(map(_is_told, value))
    plain = bool | int | float | str | None | np.generic | np.ndarray | jax.Array
    return isinstance(value, plain) or _is_struct(value)


def _is_struct(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _plain(value: Any) -> Any:
    if _is_struct(value):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {name: _plain(field) for name, field in fields.items() if _is_told(field)}
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if not isinstance(value, np.generic | np.ndarray | jax.Array):
        return value
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    numbers = np.asarray(value)
    if numbers.size <= _FEW and numbers.dtype.kind in "biuf":
        return numbers.tolist()
    digest = hashlib.sha256(np.ascontiguousarray(numbers).tobytes()).hexdigest()[:16]
    return f"{numbers.dtype}{list(numbers.shape)}, sha256 {digest}"
