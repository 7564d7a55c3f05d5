"""Quasi-recurrent network."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from zoo.kinds import AbstractLinearCell
from zoo.memory import AbstractMemory
from zoo.parts import Linear, check_sizes
from zoo.registry import register
from zoo.windowed import Windowed


class QRNN(AbstractLinearCell):
    r"""Quasi-recurrent network: gates from a convolution over time, and pooling.

        z, f, o = tanh(W_z ∗ x), σ(W_f ∗ x), σ(W_o ∗ x)
        c' = f ⊙ c + (1 - f) ⊙ z
        y = o ⊙ c'

    This is the pooling ("fo-pooling"), whose input is the window that the convolution ∗ sees.
    `zoo.get("qrnn")` puts it in a `zoo.Windowed` of two inputs, the paper's narrowest filter.

    Source: *Quasi-Recurrent Neural Networks*, Bradbury et al. (2016), equations 1 to 4.
    """

    candidate: Linear
    forget: Linear
    output: Linear
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, key: Array):
        """**Arguments:**

        - `inputs`: width of the window: that of `x` times the filter's width.
        - `hidden`: number of units, and width of `y`.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        keys = jax.random.split(key, 3)
        self.candidate, self.forget, self.output = (Linear(inputs, hidden, key=k) for k in keys)
        self.inputs, self.hidden = inputs, hidden

    def coefficients(
        self, x: Float[Array, " inputs"]
    ) -> tuple[Float[Array, " hidden"], Float[Array, " hidden"]]:
        """`(f, (1 - f) ⊙ z)`."""
        f = jax.nn.sigmoid(self.forget(x))
        return f, (1 - f) * jnp.tanh(self.candidate(x))

    def readout(
        self, state: Float[Array, " hidden"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`o ⊙ c'`."""
        return jax.nn.sigmoid(self.output(x)) * state


def _qrnn(inputs: int, hidden: int, *, window: int = 2, key: Array) -> AbstractMemory:
    """A QRNN with filters as wide as the window; see `zoo.QRNN`."""
    check_sizes(inputs=inputs, hidden=hidden, window=window)
    return Windowed(QRNN(window * inputs, hidden, key=key), window)


register("qrnn", _qrnn)
