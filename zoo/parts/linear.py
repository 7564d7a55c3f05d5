"""The linear layer of all cells."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from zoo.parts.initial_values import linear_weights


class Linear(eqx.Module):
    """`W x + b`, initialized as `equinox.nn.Linear` is.

    Input first, `x @ W.T`: under `vmap` the product then has the layout of its input. `W @ x` makes
    a batch of columns of it, and XLA reads that transposed in whatever follows: in `zoo.FFM` that
    took longer than the products.
    """

    weight: Float[Array, "outputs inputs"]
    bias: Float[Array, " outputs"] | None

    def __init__(self, inputs: int, outputs: int, use_bias: bool = True, *, key: Array):
        """**Arguments:**

        - `inputs`, `outputs`: widths.
        - `use_bias`: whether there is a b.
        """
        weight_key, bias_key = jax.random.split(key)
        self.weight = linear_weights(weight_key, (outputs, inputs), inputs)
        self.bias = linear_weights(bias_key, (outputs,), inputs) if use_bias else None

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """`W x + b`."""
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias
