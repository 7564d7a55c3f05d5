"""Simple Recurrent Unit."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractDiagonalCell
from zoo.parts import Linear, check_sizes
from zoo.registry import register

Cells = tuple[Float[Array, " hidden"], Float[Array, " hidden"]]


class SRU(AbstractDiagonalCell):
    r"""Simple Recurrent Unit: light recurrence with a highway around it.

        f = σ(W_f x + v_f ⊙ c + b_f)
        c' = f ⊙ c + (1 - f) ⊙ (W x)
        r = σ(W_r x + v_r ⊙ c + b_r)
        y = r ⊙ c' + (1 - r) ⊙ x̃

    The highway x̃ is x where it is as wide as the cell, and a linear map of it elsewhere. The reset
    gate r reads the c before the step, so the state keeps both: `(c', c)`.

    Source: *Simple Recurrent Units for Highly Parallelizable Recurrence*, Lei et al. (2018),
    equations 1 to 4.
    """

    forget: Linear
    value: Linear
    reset: Linear
    v_forget: Float[Array, " hidden"]
    v_reset: Float[Array, " hidden"]
    highway: Linear | None
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of units, and width of `y`.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        keys = jax.random.split(key, 6)
        self.forget = Linear(inputs, hidden, key=keys[0])
        self.value = Linear(inputs, hidden, use_bias=False, key=keys[1])
        self.reset = Linear(inputs, hidden, key=keys[2])
        self.v_forget, self.v_reset = (
            jax.random.uniform(k, (hidden,), minval=-1, maxval=1) for k in keys[3:5]
        )
        wide = inputs == hidden
        self.highway = None if wide else Linear(inputs, hidden, False, key=keys[5])
        self.inputs, self.hidden = inputs, hidden

    def init_state(self) -> Cells:
        dtype = self.v_forget.dtype
        return jnp.zeros(self.hidden, dtype), jnp.zeros(self.hidden, dtype)

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Diagonal; the c before the step is only read."""
        return rtrl.Diagonal(components=1)

    def update(self, state: Cells, x: Float[Array, " inputs"]) -> Cells:
        """`(c', c)`."""
        c, _ = state
        f = jax.nn.sigmoid(self.forget(x) + self.v_forget * c)
        return f * c + (1 - f) * self.value(x), c

    def readout(self, state: Cells, x: Float[Array, " inputs"]) -> Float[Array, " hidden"]:
        """`r ⊙ c' + (1 - r) ⊙ x̃`."""
        c, before = state
        r = jax.nn.sigmoid(self.reset(x) + self.v_reset * before)
        return r * c + (1 - r) * (x if self.highway is None else self.highway(x))


register("sru", SRU)
