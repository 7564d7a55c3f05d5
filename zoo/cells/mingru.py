"""Minimal Gated Recurrent Unit."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from zoo.kinds import AbstractLinearCell
from zoo.parts import Linear, check_sizes
from zoo.registry import register


class MinGRU(AbstractLinearCell):
    r"""Minimal GRU: gates that see the input only, so that the recurrence is linear.

        z = σ(W_z x + b_z)
        h' = (1 - z) ⊙ h + z ⊙ (W_h x + b_h)
        y = h'

    Source: *Were RNNs All We Needed?*, Feng et al. (2024), section 3.1: the form without a
    logarithm, whose state may have any sign.
    """

    gate: Linear
    candidate: Linear
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of units, and width of `y`.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        gate_key, candidate_key = jax.random.split(key)
        self.gate = Linear(inputs, hidden, key=gate_key)
        self.candidate = Linear(inputs, hidden, key=candidate_key)
        self.inputs, self.hidden = inputs, hidden

    def coefficients(
        self, x: Float[Array, " inputs"]
    ) -> tuple[Float[Array, " hidden"], Float[Array, " hidden"]]:
        """`(1 - z, z ⊙ (W_h x + b_h))`."""
        z = jax.nn.sigmoid(self.gate(x))
        return 1 - z, z * self.candidate(x)


register("mingru", MinGRU)
