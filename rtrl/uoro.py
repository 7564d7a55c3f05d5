"""Any recurrence, approximately: an unbiased random rank-one sensitivity."""

from dataclasses import dataclass
from functools import reduce

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

import scan
from rtrl._jacobians import Pullback
from rtrl.choices import AbstractSensitivity
from rtrl.dense import (
    cotangent_from_real_vector,
    cotangent_to_real_vector,
    from_real_vector,
    to_real_vector,
)
from rtrl.products import exact_product
from rtrl.structure import AbstractStructure
from scan.counts import shown
from scan.precision import at_least_single, promoted


class RankOne(eqx.Module):
    """A sensitivity `s̃ ⊗ θ̃`, and the key of the next random signs.

    - `state`: s̃, one number per real number of the state.
    - `parameters`: θ̃, a pytree like the parameters.
    - `key`: PRNG key data.
    """

    state: Float[Array, " size"]
    parameters: PyTree
    key: Array


@dataclass(frozen=True)
class UORO(AbstractStructure, AbstractSensitivity):
    """Unbiased online recurrent optimization: the sensitivity as one outer product.

    A structure, and the choice of it for a cell: `zoo.GRU(..., sensitivity=rtrl.UORO())`.

    With random signs ν and the Jacobians J and I of a segment,

        s̃' = ρ₀ J s̃ + ρ₁ ν        θ̃' = θ̃ / ρ₀ + (νᵀ I) / ρ₁

    has E[s̃' ⊗ θ̃'] = J (s̃ ⊗ θ̃) + I. The factors ρ balance the norms, which keeps the variance
    low; it still grows with the state's size. It costs two products with Jacobians and as much
    memory as state and parameters.

    Carries that start from `rtrl_init` all have the same signs. Give a batch keys of its own by
    replacing `key` in its sensitivities. A reset keeps the key, so that episodes differ.

    Source: *Unbiased Online Recurrent Optimization*, Tallec & Ollivier (2018).
    """

    seed: int = 0

    def __post_init__(self):
        whole = isinstance(self.seed, int | np.integer) and not isinstance(self.seed, bool)
        if not (whole and 0 <= self.seed < 2**32):
            raise ValueError(
                f"`seed` (={shown(self.seed)}) must be a whole number from 0 to {2**32 - 1}."
            )

    @property
    def structure(self) -> AbstractStructure:
        return self

    def product(self, matrix: Array, h: Array) -> Array:
        return exact_product(matrix, h)

    def zeros(self, parameters: PyTree, state: PyTree) -> PyTree:
        key = jax.random.key_data(jax.random.key(int(self.seed)))
        of_state = jnp.zeros_like(to_real_vector(state))
        # θ̃ is as precise as s̃, for the reason that `rtrl.Dense` has.
        zeros = lambda p: jnp.zeros(p.shape, promoted(p, of_state))  # noqa: E731
        return (RankOne(of_state, jax.tree.map(zeros, parameters), key),)

    def reset(self, begin: Bool[Array, ""] | bool, sensitivity: PyTree) -> PyTree:
        """Zeros where an episode begins; the key goes on."""
        (old,) = sensitivity
        vectors = (old.state, old.parameters)
        zeros = jax.tree.map(jnp.zeros_like, vectors)
        state, parameters = scan.reset(begin, zeros, vectors)
        return (RankOne(state, parameters, old.key),)

    def like_parameters(self, sensitivity: PyTree) -> PyTree:
        """θ̃."""
        return sensitivity[0].parameters

    def advance(self, pullback: Pullback, end: PyTree, sensitivity: PyTree) -> PyTree:
        (old,) = sensitivity
        key, signs_key = jax.random.split(jax.random.wrap_key_data(old.key))
        signs = jax.random.rademacher(signs_key, old.state.shape, old.state.dtype)
        immediate, _ = pullback(cotangent_from_real_vector(signs, end))

        def through(cotangent):
            return cotangent_to_real_vector(pullback(cotangent_from_real_vector(cotangent, end))[1])

        # J s̃ is a product with a tangent, and all there is is a pullback. It is linear in the
        # cotangent, and its transpose is the product: no second derivation of the segment. It is
        # found by `vjp`, because JAX 0.8 and 0.9 cannot transpose the loop of a pullback.
        (moved,) = jax.vjp(through, signs)[1](old.state)
        # Of a norm above 256 the square is beyond float16.
        wide = at_least_single(signs, *(t.real for t in jax.tree.leaves(old.parameters)))
        # At the start of an episode s̃ and θ̃ are zero, and balanced by any factor: 1. The floor
        # keeps the ratio finite.
        tiny = float(jnp.finfo(wide).tiny) ** 0.5

        def balance(of_parameters, of_state):
            numerator, denominator = _norm(of_parameters, wide), _norm(of_state, wide)
            ratio = jnp.sqrt(numerator) / jnp.sqrt(jnp.maximum(denominator, tiny))
            return jnp.where(ratio > 0, ratio, 1.0)

        keep = balance(old.parameters, moved)
        add = balance(immediate, signs)
        state = (keep * moved.astype(wide) + add * signs.astype(wide)).astype(moved.dtype)

        def joined(t, i):
            both = promoted(t, wide)
            kept = t.astype(both) / keep.astype(both)
            return (kept + i.astype(both) / add.astype(both)).astype(t.dtype)

        parameters = jax.tree.map(joined, old.parameters, immediate)
        return (RankOne(state, parameters, jax.random.key_data(key)),)

    def jvp(self, sensitivity: PyTree, tangent: PyTree, state: PyTree) -> PyTree:
        (s,) = sensitivity
        pairs = zip(jax.tree.leaves(s.parameters), jax.tree.leaves(tangent), strict=True)
        moved = [jnp.sum(p * t.astype(p.dtype)).real for p, t in pairs]
        return from_real_vector(
            reduce(jnp.add, moved, jnp.zeros((), s.state.dtype)) * s.state, state
        )


def _norm(tree: PyTree, dtype: jnp.dtype) -> Float[Array, ""]:
    """The root of the sum of squares, of numbers in units of the largest: none overflows."""
    sizes = [jnp.abs(leaf).astype(dtype) for leaf in jax.tree.leaves(tree) if leaf.size]
    largest = reduce(jnp.maximum, map(jnp.max, sizes), jnp.zeros((), dtype))
    unit = jnp.where(largest > 0, largest, 1.0)  # zeros have none
    squares = [jnp.sum((size / unit) ** 2) for size in sizes]
    return unit * jnp.sqrt(reduce(jnp.add, squares, jnp.zeros((), dtype)))
