"""Maxima that stabilize exponentials: states without parameters, which cancel in a readout."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import scan
from scan.associative import match_rank

NOTHING = -1e30
"""The maximum of nothing: an infinity would turn differences into NaNs."""


def decayed(
    m: Float[Array, "..."], shift: Float[Array, "..."], value: Float[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """One step of `decaying_maximum`.

    **Returns:**

    `(m', kept)`: `max(m + shift, value)`, a constant to derivatives, and `exp(m + shift - m')`.
    """
    constant = jax.lax.stop_gradient
    new = constant(jnp.maximum(m + shift, value))
    return new, jnp.exp(constant(m) + shift - new)


def decaying_maximum(
    shift: Float[Array, "..."],
    value: Float[Array, "..."],
    start: Float[Array, "..."],
    begin: Bool[Array, " time"] | None,
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """`m_t = max(m_{t-1} + shift_t, value_t)`, a constant to derivatives.

    What it stabilizes is divided by `exp(m)`, which cancels in the readout.

    **Arguments:**

    - `shift`, `value`: shape `[time, ...]`.
    - `start`: `m` before the first step.
    - `begin`: shape `[time]`, or `None`. Where true, there is no m before.

    **Returns:**

    `(m, log_kept)`: the maxima, and `m_{t-1} + shift_t - m_t`, the logarithm of the factor by which
    what was kept before is to be multiplied, with its derivative in `shift`. It is not positive.
    """
    constant = jax.lax.stop_gradient
    # What is carried in may be of more precision than the inputs; both ways want one.
    dtype = jnp.result_type(shift, value, start)
    shift, value, start = (x.astype(dtype) for x in (shift, value, start))
    start = constant(start)

    # Around 10⁶, where float32 has steps of 0.06, a tree rounds in another order than the products
    # of `exp(log_kept)` do. Where a loop is as fast, it is the better choice.
    def in_a_loop(elements):
        def step(m, element):
            return jnp.maximum(m + element[0], element[1])

        return scan.sequential(step, start, elements, begin, initial=jnp.full_like(start, NOTHING))[
            1
        ]

    def in_a_tree(elements):
        first = (jnp.zeros_like(start), start)
        return scan.associative(_later_maximum, elements, begin, initial=first)[1]

    elements = (constant(shift), constant(value))
    m = scan.loop_or_tree(in_a_loop, in_a_tree, elements)
    before = jnp.concatenate([start[None], m[:-1]])
    if begin is not None:
        before = jnp.where(match_rank(begin, m), NOTHING, before)
    return m, before + shift - m


def _later_maximum(earlier, later):
    (shift, value), (later_shift, later_value) = earlier, later
    return shift + later_shift, jnp.maximum(value + later_shift, later_value)
