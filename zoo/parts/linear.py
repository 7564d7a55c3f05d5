"""The linear layer of all cells."""

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float, PyTree

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

    def arranged(self) -> "ArrangedLinear":
        """The same map, for many steps under parameters that stay."""
        return ArrangedLinear(self.weight.T, self.bias)


class ArrangedLinear(eqx.Module):
    """A `Linear` whose matrix is kept transposed, as its product reads it.

    XLA makes a transpose a part of the product, which then reads the matrix across its rows at
    every step.
    """

    matrix: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"] | None

    @property
    def weight(self) -> Float[Array, "outputs inputs"]:
        """W, as `Linear` has it."""
        return self.matrix.T

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """`W x + b`."""
        y = x @ self.matrix
        return y if self.bias is None else y + self.bias


def arranged(tree: PyTree) -> PyTree:
    """Return a pytree with every part that has an `arranged()` replaced by it.

    For products that are taken many times, such as a rollout's: `Linear` keeps its matrix as they
    read it.
    """

    def can_be(node: Any) -> bool:
        return hasattr(node, "arranged")

    return jax.tree.map(lambda x: x.arranged() if can_be(x) else x, tree, is_leaf=can_be)
