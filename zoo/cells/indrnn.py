"""Independently Recurrent Neural Network."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from zoo.kinds import AbstractDiagonalCell
from zoo.parts import Linear, activation_function, check_sizes
from zoo.registry import register


class IndRNN(AbstractDiagonalCell):
    r"""Independently recurrent network: each unit feeds back to itself alone.

        h' = act(W x + u ⊙ h + b)
        y = h'

    u starts uniform in (0, 1), as the paper has it for layers that should keep memories of all
    lengths. With `relu` a unit whose u is trained beyond 1 grows without bound.

    Source: *Independently Recurrent Neural Network (IndRNN)*, Li et al. (2018).
    """

    drive: Linear
    u: Float[Array, " hidden"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, activation: str = "relu", key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of units, and width of `y`.
        - `activation`: `"relu"`, `"tanh"`, `"identity"`, `"silu"` or `"gelu"`.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        activation_function(activation)
        drive_key, u_key = jax.random.split(key)
        self.drive = Linear(inputs, hidden, key=drive_key)
        self.u = jax.random.uniform(u_key, (hidden,))
        self.inputs, self.hidden, self.activation = inputs, hidden, activation

    def update(
        self, state: Float[Array, " hidden"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`h'`."""
        return activation_function(self.activation)(self.drive(x) + self.u * state)


register("indrnn", IndRNN)
