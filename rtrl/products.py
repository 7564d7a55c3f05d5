"""Recurrent products `U h` with the same value and different derivatives.

They let every unit of a dense cell act on every other. An approximation of RTRL follows some of
those paths only: under its product the recurrence looks like one whose units do not talk to each
other, and `rtrl.Diagonal` derives its sensitivity like any other, with the parameters' own size.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import scan

Matrix = Float[Array, "hidden gates hidden_in"]
Products = Float[Array, "hidden gates"]


def exact_product(matrix: Matrix, h: Float[Array, " hidden_in"]) -> Products:
    """`U h` for every gate of every unit, with its exact derivative.

    **Arguments:**

    - `matrix`: shape `[hidden, gates, hidden]`.
    - `h`: shape `[hidden]`.

    **Returns:**

    Shape `[hidden, gates]`.
    """
    hidden, gates, width = matrix.shape
    if scan.is_hoisted():
        # Gate by gate, so that what is done with each gate reads rows of memory.
        by_gate = matrix.swapaxes(0, 1).reshape(gates * hidden, width)
        return (h @ by_gate.T).reshape(gates, hidden).T
    # Transposed, so that a loop can do that once: see `scan.hoisted`.
    return (h @ matrix.reshape(hidden * gates, width).T).reshape(hidden, gates)


def snap1_product(matrix: Matrix, h: Float[Array, " hidden_in"]) -> Products:
    """`U h`, whose derivative follows the path from each unit to itself only: SnAp-1.

    Where a cell has two products one after the other, as the MGU, paths that leave a unit and come
    back within a step are left out too.

    Source: *A Practical Sparse Approximation for Real Time Recurrent Learning*, Menick et al.
    (2021).

    **Arguments:**

    - `matrix`: shape `[hidden, gates, hidden]`.
    - `h`: shape `[hidden]`.

    **Returns:**

    Shape `[hidden, gates]`.
    """
    # The first term has the value, and the parameters' derivative. The second is zero, and its
    # derivative is the diagonal of U: the one path that is followed.
    constant = jax.lax.stop_gradient(h)
    own = jax.lax.stop_gradient(jnp.diagonal(matrix, axis1=0, axis2=2).T)
    return exact_product(matrix, constant) + own * (h - constant)[:, None]


def rflo_product(matrix: Matrix, h: Float[Array, " hidden_in"]) -> Products:
    """`U h`, whose derivative follows no path through `h`: only the cell's leak remains, as RFLO.

    Source: *Local online learning in recurrent networks with random feedback*, Murray (2019),
    without the random feedback: the error reaches the units exactly.

    **Arguments:**

    - `matrix`: shape `[hidden, gates, hidden]`.
    - `h`: shape `[hidden]`.

    **Returns:**

    Shape `[hidden, gates]`.
    """
    return exact_product(matrix, jax.lax.stop_gradient(h))
