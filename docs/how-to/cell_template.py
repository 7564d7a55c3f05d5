"""A cell to copy and edit: `python -m zoo prove my_module:LeakyUnits` says whether it still holds.

Rename the class, write its equations, and say where they are from.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import zoo
from zoo.parts import check_sizes, linear_weights


class LeakyUnits(zoo.AbstractDiagonalCell):
    r"""Units that leak at a rate which they choose.

    z  = σ(V x + u ⊙ h)
    h' = (1 - z) ⊙ h + z ⊙ tanh(W x)
    y  = scale · h'
    """

    # Leading axes are the units: [hidden] or [hidden, inputs].
    w: Float[Array, "hidden inputs"]
    v: Float[Array, "hidden inputs"]
    u: Float[Array, " hidden"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    scale: float = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, scale: float = 1.0, key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of units, and width of `y`.
        - `scale`: of the output.
        - `key`: PRNG key.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        keys = jax.random.split(key, 3)
        self.w = linear_weights(keys[0], (hidden, inputs), inputs)
        self.v = linear_weights(keys[1], (hidden, inputs), inputs)
        self.u = linear_weights(keys[2], (hidden,), hidden)
        self.inputs, self.hidden, self.scale = inputs, hidden, scale

    # All that RTRL differentiates. A unit sees its own past only.
    def update(self, state: Float[Array, " hidden"], x: Float[Array, " inputs"]):
        z = jax.nn.sigmoid(x @ self.v.T + self.u * state)
        return (1 - z) * state + z * jnp.tanh(x @ self.w.T)

    # What does not feed back: leave it out where the output is the state.
    def readout(self, state: Float[Array, " hidden"], x: Float[Array, " inputs"]):
        return self.scale * state


# Keyword arguments with defaults are options: `zoo.get("leaky_units", hidden=8, scale=2.0)`.
zoo.register("leaky_units", LeakyUnits)
