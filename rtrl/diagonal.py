"""Recurrences whose units do not talk to each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from rtrl._jacobians import Pullback, jacobians_along
from rtrl._planar import (
    Trace,
    add,
    bilinear,
    contract_trailing,
    is_planar,
    multiply,
    total,
)
from rtrl._planar import zeros as zero_trace
from rtrl.structure import AbstractStructure, check_units
from scan.counts import check_counts
from scan.precision import promoted


@dataclass(frozen=True)
class Diagonal(AbstractStructure):
    """Units that depend only on their own past: the state Jacobian is diagonal, or in blocks.

    The state is a pytree of `b` arrays, its *components*, all of one shape, the shape of the units
    (`[hidden]`, or several axes). Component k of unit u may depend on all components of unit u and
    on no other unit, so the state Jacobian consists of `b × b` blocks. Every parameter's leading
    axes are those units. Under these two conditions one vector-Jacobian product per component, with
    a one for that component of every unit, gives a whole row of blocks and the immediate Jacobian
    without mixing units, and the sensitivity has the parameter's shape times `b`.

    Components are either all real or all complex. A complex recurrence is taken as holomorphic in
    the state and in complex parameters, as linear ones are; then a real parameter has one complex
    number as sensitivity, and so has a complex one: the trace of a complex input matrix serves its
    real and imaginary part. It is stored as two real arrays. What a modulus or a conjugate is taken
    of is stored as real parameters, or has the structure `rtrl.Dense`.

    - `components`: how many of the state's leaves depend on the parameters, from the first on; all
      by default. The others are taken as constants: a stabilizer that cancels in the readout, or a
      stored input.

    Layout of the sensitivity: a tuple over components of pytrees like the parameters.
    """

    components: int | None = None

    def __post_init__(self):
        if self.components is not None:
            check_counts(1, components=self.components)

    def zeros(self, parameters: PyTree, state: PyTree) -> PyTree:
        leaves = jax.tree.leaves(state)
        if self.components is not None and leaves and self.components > len(leaves):
            raise ValueError(
                f"`components` (={self.components}) must be at most those of the state, "
                f"{len(leaves)}."
            )
        components = self._tracked(leaves)
        if not components:
            return (jax.tree.map(lambda _: None, parameters),)
        units = components[0].shape
        for component in components:
            if component.shape != units or component.dtype != components[0].dtype:
                raise ValueError(
                    f"`state` has components of shape {units}, {components[0].dtype} and "
                    f"{component.shape}, {component.dtype}: a diagonal recurrence needs components "
                    "of one shape and dtype."
                )
        for path, leaf in jax.tree_util.tree_leaves_with_path(parameters):
            check_units(path, leaf, units, "a diagonal recurrence")
            if jnp.iscomplexobj(leaf) and not jnp.iscomplexobj(components[0]):
                raise TypeError(
                    "`parameters` has a complex leaf but the state is real: store real pairs."
                )

        def zeros_of(component):
            return jax.tree.map(
                lambda leaf: zero_trace(leaf.shape, promoted(leaf, component)), parameters
            )

        return tuple(zeros_of(component) for component in components)

    def advance(self, pullback: Pullback, end: PyTree, sensitivity: PyTree) -> PyTree:
        leaves, treedef = jax.tree.flatten(end)
        count = len(self._tracked(leaves))

        # A one for component k of *every* unit at once: units do not act on each other, so the rows
        # that the pullback sums do not overlap, in the state's Jacobian nor in a parameter.
        def probe(k):
            ones = [jnp.ones_like(c) if j == k else jnp.zeros_like(c) for j, c in enumerate(leaves)]
            return treedef.unflatten(ones)

        advanced = []
        for k in range(count):
            immediate, jacobian = jacobians_along(pullback, probe(k))
            # Without the barrier XLA's CPU compiler fuses a factor's sines and exponentials into
            # the product, and computes them for every number of the trace instead of every unit:
            # an online step of an RTU of 20 units took 10 µs instead of 6.
            factors = jax.lax.optimization_barrier(self._tracked(jax.tree.leaves(jacobian)))
            advanced.append(
                jax.tree.map(
                    lambda new, *old, factors=factors: _combined(factors, old, new),
                    immediate,
                    *sensitivity,
                    is_leaf=is_planar,
                )
            )
        return tuple(advanced) if advanced else sensitivity

    def jvp(self, sensitivity: PyTree, tangent: PyTree, state: PyTree) -> PyTree:
        leaves, treedef = jax.tree.flatten(state)
        out = [jnp.zeros_like(leaf) for leaf in leaves]
        for k, component in enumerate(self._tracked(leaves)):
            product = partial(contract_trailing, units=component.ndim)
            traces = jax.tree.leaves(sensitivity[k], is_leaf=is_planar)
            terms = [
                bilinear(product, trace, t)
                for trace, t in zip(traces, jax.tree.leaves(tangent), strict=True)
            ]
            out[k] = total(terms, component)
        return jax.tree.unflatten(treedef, out)

    def _tracked(self, leaves: list) -> list:
        return leaves if self.components is None else leaves[: self.components]


def _combined(factors: list, traces: Sequence[Trace], start: Trace) -> Trace:
    """`start + Σ factor × trace`."""
    products = [multiply(f, t) for f, t in zip(factors, traces, strict=True)]
    return reduce(add, products, start)
