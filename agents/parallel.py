"""Environments split over devices: what each device does by itself, on those that it has.

A program does not have to know of this: XLA finds out what every device computes from where the
arguments lie, and moves what has to move. Where it would move much, here is how to say what can
stay. Environments are split where the mesh of `jax.set_mesh` has the axis `ENVIRONMENTS`;
everywhere else all of this does nothing.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jaxtyping import Array

ENVIRONMENTS = "env"
"""The axis of a mesh of devices over which environments are split."""


def on_each_device(run: Callable[..., Any]) -> Callable[..., Any]:
    """Let every device run a function of environments on those that it has.

    What depends on all of a batch, such as whether any episode has ended, would otherwise be asked
    of all devices, at every step. A function that treats environments apart gives the same either
    way.

    **Arguments:**

    - `run`: its arguments are pytrees of arrays, and so is what it returns: the first is the same
      for all environments, all others and the result have a leading axis over them.
    """
    if _devices() == 1:
        return run
    same, split = PartitionSpec(), PartitionSpec(ENVIRONMENTS)

    def on_all(shared: Any, *arguments: Any) -> Any:
        specs = (same, *(split for _ in arguments))
        # Unchecked: what a device makes by itself, as the zeros before a loop, is its own.
        return jax.shard_map(run, in_specs=specs, out_specs=split, check_vma=False)(
            shared, *arguments
        )

    return on_all


def with_own_copy(
    run: Callable[..., Any], in_axes: Sequence[int], out_axes: Any
) -> Callable[..., Any]:
    """Let every device run a function with a copy of its first argument, the network.

    The gradient of the network is then the sum of those of the copies, each of which a device has
    found by itself: they meet once, in one sum for each parameter. Otherwise the devices would add
    up every use of a parameter, and that of every step where a loop goes over time.

    **Arguments:**

    - `run`: `(network, *arguments) -> results`.
    - `in_axes`: of the other arguments, the axis of their leaves that is split over devices, if it
      can be divided.
    - `out_axes`: the same of the results, as `jax.vmap` takes them.
    """
    devices = _devices()

    def on_all(network: Any, *arguments: Any) -> Any:
        size = jax.tree.leaves(arguments[-1])[0].shape[in_axes[-1]]
        if devices == 1 or size % devices:
            return run(network, *arguments)
        arrays, rest = eqx.partition(network, eqx.is_array)
        copies = jax.tree.map(
            lambda x: _kept_apart(jnp.broadcast_to(x, (devices, *x.shape))), arrays
        )
        parts = [
            jax.tree.map(lambda x, axis=axis: _parted(x, axis, devices), argument)
            for argument, axis in zip(arguments, in_axes, strict=True)
        ]
        each = lambda arrays, *parts: run(eqx.combine(arrays, rest), *parts)  # noqa: E731
        results = jax.vmap(each, (0, *in_axes), out_axes)(copies, *parts)
        # Axes are named for whole results: those of one are those of all of its leaves.
        whole = lambda axis, x: jax.tree.map(lambda leaf: _joined(leaf, axis), x)  # noqa: E731
        return jax.tree.map(whole, out_axes, results)

    return on_all


def split_over_devices() -> bool:
    """Whether environments lie on more than one device."""
    return _devices() > 1


def _devices() -> int:
    """Over how many devices environments are split."""
    return jax.sharding.get_abstract_mesh().shape.get(ENVIRONMENTS, 1)


def _kept_apart(copies: Array) -> Array:
    return jax.lax.with_sharding_constraint(copies, PartitionSpec(ENVIRONMENTS))


def _parted(x: Array, axis: int, devices: int) -> Array:
    return x.reshape(*x.shape[:axis], devices, x.shape[axis] // devices, *x.shape[axis + 1 :])


def _joined(x: Array, axis: int) -> Array:
    return jax.lax.collapse(x, axis, axis + 2)
