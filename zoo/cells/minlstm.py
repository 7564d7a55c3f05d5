"""Minimal Long Short-Term Memory."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from zoo.kinds import AbstractLinearCell
from zoo.parts import Linear, check_sizes
from zoo.registry import register


class MinLSTM(AbstractLinearCell):
    r"""Minimal LSTM: forget and input gates that see the input only and share out one.

        f = σ(W_f x + b_f)
        i = σ(W_i x + b_i)
        h' = f / (f + i) ⊙ h + i / (f + i) ⊙ (W_h x + b_h)
        y = h'

    Source: *Were RNNs All We Needed?*, Feng et al. (2024), section 3.2: the form without a
    logarithm, whose state may have any sign.
    """

    forget: Linear
    admit: Linear
    candidate: Linear
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of units, and width of `y`.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        keys = jax.random.split(key, 3)
        self.forget = Linear(inputs, hidden, key=keys[0])
        self.admit = Linear(inputs, hidden, key=keys[1])
        self.candidate = Linear(inputs, hidden, key=keys[2])
        self.inputs, self.hidden = inputs, hidden

    def coefficients(
        self, x: Float[Array, " inputs"]
    ) -> tuple[Float[Array, " hidden"], Float[Array, " hidden"]]:
        """`(f / (f + i), i / (f + i) ⊙ (W_h x + b_h))`."""
        # f / (f + i) as σ(log f - log i): both gates may be far below the smallest number.
        difference = jax.nn.log_sigmoid(self.forget(x)) - jax.nn.log_sigmoid(self.admit(x))
        return jax.nn.sigmoid(difference), jax.nn.sigmoid(-difference) * self.candidate(x)


register("minlstm", MinLSTM)
