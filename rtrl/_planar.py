"""Arithmetic on the leaves of a sensitivity: real arrays, or pairs of them for complex ones."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float

from scan.associative import match_rank
from scan.precision import EXACTLY


class Planar(eqx.Module):
    """Complex numbers as two real arrays.

    XLA's CPU code for arrays of complex numbers is not vectorized; for two arrays it is, which
    halves the time of moving a large sensitivity on.
    """

    real: Float[Array, "..."]
    imag: Float[Array, "..."]

    def to_complex(self) -> Complex[Array, "..."]:
        """The complex array."""
        return jax.lax.complex(self.real, self.imag)


Trace = Array | Planar


def is_planar(leaf: Any) -> bool:
    """Whether a node of a sensitivity is a pair."""
    return isinstance(leaf, Planar)


def zeros(shape: tuple[int, ...], dtype: Any) -> Trace:
    """A trace of zeros."""
    if not jnp.issubdtype(dtype, jnp.complexfloating):
        return jnp.zeros(shape, dtype)
    real = jnp.finfo(dtype).dtype
    return Planar(jnp.zeros(shape, real), jnp.zeros(shape, real))


def multiply(factor: Array, trace: Trace) -> Trace:
    """`factor * trace`; `factor` is expanded over the trailing axes of `trace`."""
    if not isinstance(trace, Planar):
        return match_rank(factor, trace) * trace
    if not jnp.iscomplexobj(factor):
        f = match_rank(factor, trace.real)
        return Planar(f * trace.real, f * trace.imag)
    # Four real products, written out: see `Planar`.
    re, im = match_rank(factor.real, trace.real), match_rank(factor.imag, trace.real)
    return Planar(re * trace.real - im * trace.imag, re * trace.imag + im * trace.real)


def add(one: Any, other: Trace) -> Trace:
    """`one + other`, in the form of `other`."""
    if not isinstance(other, Planar):
        return jnp.add(one, other)
    return Planar(one.real + other.real, one.imag + other.imag)


def bilinear(
    product: Callable[[Array, Array], Array], trace: Trace, tangent: Array
) -> tuple[Array, Array | None]:
    """The product of a trace and a tangent of its parameter, from one of real arrays.

    **Returns:**

    Real and imaginary part; `None` where the trace is real.
    """
    if not isinstance(trace, Planar):
        return product(trace, tangent), None
    if not jnp.iscomplexobj(tangent):
        return product(trace.real, tangent), product(trace.imag, tangent)
    # No conjugate: this is the derivative times the tangent, and the derivative is holomorphic.
    real = product(trace.real, tangent.real) - product(trace.imag, tangent.imag)
    return real, product(trace.real, tangent.imag) + product(trace.imag, tangent.real)


def total(terms: list[tuple[Array, Array | None]], like: Array) -> Array:
    """The sum of such products, as the tangent of a part of the state."""
    if not terms:
        return jnp.zeros_like(like)
    real, imag = (list(parts) for parts in zip(*terms, strict=True))
    out = reduce(jnp.add, real)
    if not jnp.iscomplexobj(like):
        return out
    return jax.lax.complex(out, reduce(jnp.add, [part for part in imag if part is not None]))


def contract_trailing(trace: Array, tangent: Array, units: int) -> Array:
    """The sum of `trace * tangent` over the axes behind the first `units`.

    A matrix product, so that its transpose may sum over a batch by one as well. Sensitivities go
    through one per segment, thousands in a row, and their errors add up: hence exactly.
    """
    # A parameter of one number per unit: nothing to sum.
    if trace.ndim == units:
        return trace * tangent
    axes = tuple(range(units)), tuple(range(units, trace.ndim))
    return jax.lax.dot_general(
        trace, tangent, ((axes[1], axes[1]), (axes[0], axes[0])), precision=EXACTLY
    )
