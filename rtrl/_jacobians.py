"""Jacobians of a segment, one cotangent at a time."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from rtrl._planar import Planar

Pullback = Callable[[Any], tuple[Any, Any]]


def jacobians_along(pullback: Pullback, probe: PyTree) -> tuple[PyTree, PyTree]:
    """Immediate and state Jacobian along a probe; complex where the state is.

    JAX's pullback of a real parameter is the real part of cotangent × derivative: a complex state
    needs a second probe for the imaginary part.

    **Arguments:**

    - `pullback`: of a segment, from the cotangent of the end state.
    - `probe`: a pytree like the state.

    **Returns:**

    `(immediate, jacobian)`, like the parameters and like the state; where the state is complex
    the leaves of `immediate` are `Planar`.
    """
    immediate, jacobian = pullback(probe)
    # A second probe only where the state is complex and a parameter is real. A complex parameter's
    # pullback is complex itself. Of it and of the state's own Jacobian the first probe is enough:
    # where the recurrence is holomorphic, the cotangent 1 gives it whole.
    if any(jnp.iscomplexobj(leaf) for leaf in jax.tree.leaves(probe)):
        imaginary = immediate
        if not all(jnp.iscomplexobj(leaf) for leaf in jax.tree.leaves(immediate)):
            # Re(-i z) = Im z.
            imaginary, _ = pullback(jax.tree.map(lambda p: -1j * p, probe))
        immediate = jax.tree.map(_planar, immediate, imaginary)
    return immediate, jacobian


def _planar(real: Array, imaginary: Array) -> Planar:
    if jnp.iscomplexobj(real):
        return Planar(real.real, real.imag)
    return Planar(real, imaginary)
