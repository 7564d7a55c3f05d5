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
from jax.sharding import PartitionSpec

ENVIRONMENTS = "env"
"""The axis of a mesh of devices over which environments are split."""


def on_each_device(
    run: Callable[..., Any], in_axes: int | Sequence[int] = 0, out_axes: Any = 0
) -> Callable[..., Any]:
    """Let every device run a function of environments on those that it has.

    What depends on all of a batch, such as whether any episode has ended, would otherwise be asked
    of all devices, at every step. The gradient of a network is the sum of those that each device
    has found by itself: they meet once, in one sum for each parameter, where otherwise the devices
    would add up every use of a parameter, and that of every step where a loop goes over time. And
    of a kernel, which XLA cannot split, every device would compute all. A function that treats
    environments apart gives the same either way.

    **Arguments:**

    - `run`: `(shared, *arguments) -> results`, all pytrees. What is shared, such as a network, is
      the same for all environments; of all others every leaf is an array with an axis over them.
    - `in_axes`: which axis that is, of all arguments or of each. What cannot be divided by the
      number of devices is not split.
    - `out_axes`: the same of the results, as `jax.vmap` takes them.
    """
    devices = _devices()
    if devices == 1:
        return run

    def on_all(shared: Any, *arguments: Any) -> Any:
        axes = [in_axes] * len(arguments) if isinstance(in_axes, int) else in_axes
        if jax.tree.leaves(arguments[-1])[0].shape[axes[-1]] % devices:
            return run(shared, *arguments)
        arrays, rest = eqx.partition(shared, eqx.is_array)
        # Unchecked: what a device makes by itself, as the zeros before a loop, is its own.
        return jax.shard_map(
            lambda arrays, *own: run(eqx.combine(arrays, rest), *own),
            in_specs=(PartitionSpec(), *map(_split, axes)),
            out_specs=jax.tree.map(_split, out_axes),
            check_vma=False,
        )(arrays, *arguments)

    return on_all


def split_over_devices() -> bool:
    """Whether environments lie on more than one device."""
    return _devices() > 1


def _devices() -> int:
    """Over how many devices environments are split; 1 within what each device runs by itself."""
    mesh = jax.sharding.get_abstract_mesh()
    return 1 if ENVIRONMENTS in mesh.manual_axes else mesh.shape.get(ENVIRONMENTS, 1)


def _split(axis: int) -> PartitionSpec:
    return PartitionSpec(*(None,) * axis, ENVIRONMENTS)
