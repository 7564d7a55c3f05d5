"""Initial states that are made outside the training program, for its resets to choose from."""

from collections.abc import Callable, Hashable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments.environment import EnvParams as GymnaxEnvParams
from jaxtyping import Array, PRNGKeyArray

from zoo.parts.checks import shown

_AT_ONCE = 32  # states that are drawn at a time
_MOST_CODES = 256  # of a byte

_POOLS: dict[Hashable, Any] = {}


@struct.dataclass
class EnvParams(GymnaxEnvParams):
    """Parameters of an environment that may choose its initial states from a pool.

    `max_steps_in_episode`: the time limit. `initial_states`: what `draw_initial_states` returned,
    for resets to choose from; `None` for the environment's own.
    """

    max_steps_in_episode: Any = 1000
    initial_states: Any = None


@struct.dataclass
class Coded:
    """An array of a pool with few different values: a byte for each element, and the values."""

    codes: Any
    values: Any


def drawn(reset: Callable[[PRNGKeyArray], Any], key: PRNGKeyArray, size: int) -> Any:
    """Make initial states, some at a time, so that the rest needs no memory of the device.

    **Arguments:**

    - `reset`: a compiled function of a batch of keys.
    - `size`: how many; at least 1.

    **Returns:**

    What `reset` returns for so many keys, in NumPy.
    """
    keys = jax.random.split(key, size)
    parts = [
        # The last batch goes round to the first keys, so that one program is compiled.
        jax.device_get(reset(keys[(start + np.arange(_AT_ONCE)) % size]))
        for start in range(0, size, _AT_ONCE)
    ]
    return jax.tree.map(lambda *x: np.concatenate(x)[:size], *parts)


def check_states(pool: Any, draw: Callable[[PRNGKeyArray], Any]) -> None:
    """Raise `ValueError` where a pool has no state, or states of another environment.

    **Arguments:**

    - `pool`: what was given.
    - `draw`: a compiled function of a batch of keys, which returns states of this environment. It
      is traced once.
    """
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), _AT_ONCE))
    own, own_built = jax.tree.flatten(jax.eval_shape(draw, keys))
    leaves, built = jax.tree.flatten(pool)
    shapes = [np.shape(leaf) for leaf in leaves]
    sizes = {shape[:1] for shape in shapes}
    alike = built == own_built and [s[1:] for s in shapes] == [x.shape[1:] for x in own]
    if not alike or len(sizes) > 1 or not sizes.isdisjoint({(), (0,)}):
        found = shown(jax.tree.unflatten(built, shapes))
        raise ValueError(
            f"`initial_states` (of shapes {found}) must be what `draw_initial_states` of this "
            "environment returns, with at least one state."
        )


def packed(pool: Any) -> Any:
    """Make a pool small, exactly: what is the same in all states is kept once, few values coded.

    **Arguments:**

    - `pool`: a pytree of NumPy arrays whose leading axis is the state's.

    **Returns:**

    What `chosen` takes.
    """

    def leaf(x: np.ndarray) -> Any:
        # As bits, which tell 0 from -0 and NaNs from each other.
        x_bits = x.view(f"u{x.itemsize}")
        if (x_bits == x_bits[:1]).all():
            return x[:1]
        bits, codes = np.unique(x_bits, return_inverse=True)
        if x.itemsize == 1 or bits.size > _MOST_CODES:
            return x
        return Coded(codes.reshape(x.shape).astype(np.uint8), bits.view(x.dtype))

    return jax.tree.map(leaf, pool)


def chosen(pool: Any, key: PRNGKeyArray) -> Any:
    """Choose one of a pool's states at random, all equally likely.

    **Arguments:**

    - `pool`: a pytree of arrays whose leading axis is the state's, or what `packed` made of one.
    - `key`: a new-style PRNG key.

    **Returns:**

    The state: the pytree without the leading axis.
    """
    size = max(x.shape[0] for x in jax.tree.leaves(jax.tree.map(_rows, pool, is_leaf=_is_coded)))
    # The remainder favors a state by at most size / 2^32.
    index = jax.random.bits(key, dtype=jnp.uint32) % jnp.uint32(size)

    def leaf(x: Any) -> Array:
        rows = jnp.asarray(_rows(x))
        row = rows[index] if rows.shape[0] > 1 else rows[0]
        return jnp.asarray(x.values)[row] if _is_coded(x) else row

    return jax.tree.map(leaf, pool, is_leaf=_is_coded)


def shared(name: Hashable, make: Callable[[], Any]) -> Any:
    """Return the pool of a name, which is made when it is first asked for."""
    if name not in _POOLS:
        _POOLS[name] = make()
    return _POOLS[name]


def _is_coded(x: Any) -> bool:
    return isinstance(x, Coded)


def _rows(x: Any) -> Any:
    return x.codes if _is_coded(x) else x
