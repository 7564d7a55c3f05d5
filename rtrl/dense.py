"""Recurrences in which every unit may depend on every other, and on every parameter."""

import math
import warnings
from dataclasses import dataclass
from functools import partial, reduce

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

import scan
from rtrl._jacobians import Pullback
from rtrl.structure import AbstractStructure
from scan.counts import check_counts
from scan.precision import EXACTLY, promoted

_product = partial(jnp.tensordot, precision=EXACTLY)


@dataclass(frozen=True)
class Dense(AbstractStructure):
    """Any recurrence, exactly: one cotangent per real number of the state.

    The sensitivity of n state numbers to P parameters is n × P numbers, O(n³) for a dense network:
    the reference for tests and for small cells.

    - `warn_above`: the number of values per environment above which a warning says so.
    - `probes_at_once`: how many cotangents go back through a segment side by side. Each needs as
      much memory as the segment's own backward pass.

    Layout of the sensitivity: a tuple of one pytree like the parameters, every leaf with a leading
    axis over the state's real numbers.
    """

    warn_above: int = 10_000_000
    probes_at_once: int = 16

    def __post_init__(self):
        check_counts(0, warn_above=self.warn_above)
        check_counts(1, probes_at_once=self.probes_at_once)

    def zeros(self, parameters: PyTree, state: PyTree) -> PyTree:
        numbers = to_real_vector(state)
        size = len(numbers)
        count = size * sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(parameters))
        if count > self.warn_above:
            warnings.warn(
                f"Exact RTRL of a dense recurrence keeps {count:,} numbers per environment "
                f"({size} state numbers times the parameters). Use a diagonal cell, a smaller one, "
                "or BPTT.",
                stacklevel=2,
            )
        # As precise as the state, which half-precision parameters may be less than: a sum of many
        # steps would stop growing in theirs.
        zeros = lambda p: jnp.zeros((size, *p.shape), promoted(p, numbers))  # noqa: E731
        return (jax.tree.map(zeros, parameters),)

    def advance(self, pullback: Pullback, end: PyTree, sensitivity: PyTree) -> PyTree:
        # Real and imaginary parts are states of their own: nothing here is taken to be holomorphic.
        real = to_real_vector(end)
        if len(real) == 0:
            return sensitivity

        def row(probe):
            immediate, jacobian = pullback(cotangent_from_real_vector(probe, end))
            return immediate, cotangent_to_real_vector(jacobian)

        # A few probes side by side: all at once would hold the segment's backward pass once for
        # every number of the state.
        probes = jnp.eye(len(real), dtype=real.dtype)
        immediate, jacobian = jax.lax.map(row, probes, batch_size=self.probes_at_once)
        return (
            jax.tree.map(
                lambda new, old: (
                    new.astype(old.dtype) + _product(jacobian.astype(old.dtype), old, 1)
                ),
                immediate,
                sensitivity[0],
            ),
        )

    def jvp(self, sensitivity: PyTree, tangent: PyTree, state: PyTree) -> PyTree:
        (rows,) = sensitivity
        traces, tangents = jax.tree.leaves(rows), jax.tree.leaves(tangent)
        # A row holds cotangents: of a complex number they pair with a tangent's real part.
        pairs = zip(traces, tangents, strict=True)
        terms = [_product(s, t.astype(s.dtype), t.ndim).real for s, t in pairs]
        return from_real_vector(
            reduce(jnp.add, terms) if terms else jnp.zeros_like(to_real_vector(state)), state
        )


def to_real_vector(state: PyTree) -> Float[Array, " size"]:
    """All numbers of the state in one real vector: real parts, then imaginary parts."""
    parts = [
        part.ravel()
        for leaf in jax.tree.leaves(state)
        for part in ((leaf.real, leaf.imag) if jnp.iscomplexobj(leaf) else (leaf,))
    ]
    return jnp.concatenate(parts) if parts else jnp.zeros((0,))


def cotangent_to_real_vector(cotangent: PyTree) -> Float[Array, " size"]:
    """The cotangent of `to_real_vector`'s result: JAX's complex cotangent is ∂L/∂Re − i ∂L/∂Im."""
    return to_real_vector(jax.tree.map(jnp.conj, cotangent))


def cotangent_from_real_vector(cotangent: Float[Array, " size"], like: PyTree) -> PyTree:
    """A state's cotangent, in JAX's convention, from that of `to_real_vector`'s result."""
    vector, pullback = jax.vjp(to_real_vector, like)
    return pullback(scan.vary_together(cotangent, vector)[0])[0]


def from_real_vector(vector: Float[Array, " size"], like: PyTree) -> PyTree:
    """The state whose numbers `to_real_vector` puts in a vector."""
    leaves, treedef = jax.tree.flatten(like)
    out, start = [], 0

    def take(leaf):
        nonlocal start
        part = vector[start : start + leaf.size].reshape(leaf.shape)
        start += leaf.size
        return part

    for leaf in leaves:
        part = take(leaf)
        out.append(jax.lax.complex(part, take(leaf)) if jnp.iscomplexobj(leaf) else part)
    return jax.tree.unflatten(treedef, out)
