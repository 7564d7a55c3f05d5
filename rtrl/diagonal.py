"""Recurrences whose units do not talk to each other."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from rtrl.structure import AbstractStructure, Pullback


def _expand(unit: Array, like: Array) -> Array:
    """Broadcast a per-unit array over the trailing axes of a parameter."""
    return unit.reshape(unit.shape + (1,) * (like.ndim - unit.ndim))


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
    the state, as linear ones are; then a real parameter has one complex number as sensitivity, and
    so has a complex one: the trace of a complex input matrix serves its real and imaginary part.

    Layout of the sensitivity: a tuple over components of pytrees like the parameters.
    """

    def zeros(self, parameters: PyTree, state: PyTree) -> PyTree:
        """See `rtrl.AbstractStructure.zeros`."""
        components = jax.tree.leaves(state)
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
        for leaf in jax.tree.leaves(parameters):
            if leaf.shape[: len(units)] != units:
                raise ValueError(
                    f"`parameters` has a leaf of shape {leaf.shape}: its leading axes must be the "
                    f"units {units} of a diagonal recurrence."
                )
            if jnp.iscomplexobj(leaf) and not jnp.iscomplexobj(components[0]):
                raise TypeError(
                    "`parameters` has a complex leaf but the state is real: store real pairs."
                )

        def zeros_of(component):
            return jax.tree.map(
                lambda leaf: jnp.zeros(leaf.shape, jnp.result_type(leaf, component)), parameters
            )

        return tuple(zeros_of(component) for component in components)

    def advance(self, pullback: Pullback, end: PyTree, sensitivity: PyTree) -> PyTree:
        """See `rtrl.AbstractStructure.advance`."""
        components, treedef = jax.tree.flatten(end)

        def row(k, probe):
            ones = [
                jnp.full_like(c, probe) if j == k else jnp.zeros_like(c)
                for j, c in enumerate(components)
            ]
            return pullback(jax.tree.unflatten(treedef, ones))

        advanced = []
        for k, component in enumerate(components):
            immediate, jacobian = row(k, 1)
            if jnp.iscomplexobj(component) and not all(
                jnp.iscomplexobj(leaf) for leaf in jax.tree.leaves(immediate)
            ):
                # JAX's pullback of a real parameter is the real part of cotangent × derivative.
                imaginary, _ = row(k, -1j)
                immediate = jax.tree.map(_complex_derivative, immediate, imaginary)
            factors = jax.tree.leaves(jacobian)
            advanced.append(
                jax.tree.map(
                    lambda new, *old, factors=factors: sum(
                        (_expand(a, s) * s for a, s in zip(factors, old, strict=True)), start=new
                    ),
                    immediate,
                    *sensitivity,
                )
            )
        return tuple(advanced) if components else sensitivity

    def contract(self, cotangent: PyTree, sensitivity: PyTree, parameters: PyTree) -> PyTree:
        """See `rtrl.AbstractStructure.contract`."""
        cotangents = jax.tree.leaves(cotangent)

        def of_parameter(parameter, *rows):
            total = sum(_expand(g, s) * s for g, s in zip(cotangents, rows, strict=True))
            return total if jnp.iscomplexobj(parameter) else jnp.real(total)

        return jax.tree.map(of_parameter, parameters, *sensitivity)


def _complex_derivative(real: Array, imaginary: Array) -> Array:
    return real if jnp.iscomplexobj(real) else jax.lax.complex(real, imaginary)
