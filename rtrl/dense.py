"""Recurrences in which every unit may depend on every other, and on every parameter."""

import math
import warnings
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from rtrl.structure import AbstractStructure, Pullback


@dataclass(frozen=True)
class Dense(AbstractStructure):
    """Any recurrence, exactly: one cotangent per real number of the state.

    The sensitivity of n state numbers to P parameters is n × P numbers, O(n³) for a dense network:
    the reference for tests and for small cells. `warn_above` is the number of values per
    environment above which a warning says so.

    Layout of the sensitivity: a tuple of one pytree like the parameters, every leaf with a leading
    axis over the state's real numbers.
    """

    warn_above: int = 10_000_000

    def zeros(self, parameters: PyTree, state: PyTree) -> PyTree:
        """See `rtrl.AbstractStructure.zeros`."""
        size = len(_to_real(state))
        count = size * sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(parameters))
        if count > self.warn_above:
            warnings.warn(
                f"Exact RTRL of a dense recurrence keeps {count:,} numbers per environment "
                f"({size} state numbers times the parameters). Use a diagonal cell, a smaller one, "
                "or BPTT.",
                stacklevel=2,
            )
        return (jax.tree.map(lambda p: jnp.zeros((size, *p.shape), p.dtype), parameters),)

    def advance(self, pullback: Pullback, end: PyTree, sensitivity: PyTree) -> PyTree:
        """See `rtrl.AbstractStructure.advance`."""
        real, to_state_cotangent = jax.vjp(_to_real, end)
        if len(real) == 0:
            return sensitivity

        def row(probe):
            immediate, jacobian = pullback(*to_state_cotangent(probe))
            return immediate, _cotangent_to_real(jacobian)

        immediate, jacobian = jax.vmap(row)(jnp.eye(len(real), dtype=real.dtype))
        return (
            jax.tree.map(
                lambda new, old: new + jnp.tensordot(jacobian.astype(old.dtype), old, 1),
                immediate,
                sensitivity[0],
            ),
        )

    def contract(self, cotangent: PyTree, sensitivity: PyTree, parameters: PyTree) -> PyTree:
        """See `rtrl.AbstractStructure.contract`."""
        g = _cotangent_to_real(cotangent)
        return jax.tree.map(lambda s: jnp.tensordot(g.astype(s.dtype), s, 1), sensitivity[0])


def _to_real(state: PyTree) -> Float[Array, " size"]:
    """All numbers of the state in one real vector: real parts, then imaginary parts."""
    parts = [
        part.ravel()
        for leaf in jax.tree.leaves(state)
        for part in ((leaf.real, leaf.imag) if jnp.iscomplexobj(leaf) else (leaf,))
    ]
    return jnp.concatenate(parts) if parts else jnp.zeros((0,))


def _cotangent_to_real(cotangent: PyTree) -> Float[Array, " size"]:
    """The cotangent of `_to_real`'s result: JAX's complex cotangent is ∂L/∂Re − i ∂L/∂Im."""
    return _to_real(jax.tree.map(jnp.conj, cotangent))
