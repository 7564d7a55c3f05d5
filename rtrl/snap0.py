"""Any recurrence, from the present step alone."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from rtrl._jacobians import Pullback
from rtrl.choices import AbstractSensitivity
from rtrl.products import exact_product
from rtrl.structure import AbstractStructure


@dataclass(frozen=True)
class SnAp0(AbstractStructure, AbstractSensitivity):
    """Immediate derivatives only: nothing is carried.

    A structure, and the choice of it for a cell: `zoo.GRU(..., sensitivity=rtrl.SnAp0())`.

    With the immediate Jacobian `I_t = ∂f/∂θ` of `h_t = f(θ, h_{t-1}, x_t)` alone,

        dL_t/dθ ≈ (∂L_t/∂h_t) I_t

    at every step, whatever the segment: the previous state is a constant. It is the lowest rung of
    SnAp-n, and what TBPTT of one step computes, which takes any memory. Second derivatives are
    those of that, to which the carried state is a constant, and none is refused.

    Source of the claim that it may be enough: *Immediate Derivatives Suffice for Online Recurrent
    Adaptation*, Shalev Merin (2026).
    """

    @property
    def structure(self) -> AbstractStructure:
        return self

    @property
    def at_every_step(self) -> bool:
        return True

    def followed(self, state: PyTree) -> PyTree:
        return jax.lax.stop_gradient(state)

    def product(self, matrix: Array, h: Array) -> Array:
        return exact_product(matrix, h)

    def zeros(self, parameters: PyTree, state: PyTree) -> PyTree:
        return (jax.tree.map(lambda _: None, parameters),)

    def advance(self, pullback: Pullback, end: PyTree, sensitivity: PyTree) -> PyTree:
        return sensitivity

    def jvp(self, sensitivity: PyTree, tangent: PyTree, state: PyTree) -> PyTree:
        return jax.tree.map(jnp.zeros_like, state)
