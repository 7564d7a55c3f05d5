"""Matrices that are overwritten: the delta rule, one rank-one update a step."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import scan
from scan.precision import exact_matmul

Write = tuple[
    Float[Array, "..."] | None, Float[Array, "..."], Float[Array, "..."], Float[Array, "..."]
]
"""`(log α, β, k, v)`: α is kept, all where it is `None`; a rate, a key of length 1 and a value."""


def overwritten(state: Float[Array, "values keys"], write: Write) -> Float[Array, "values keys"]:
    """`α S (I - β k kᵀ) + β v kᵀ`: S decays, and what it answers to k moves towards v.

    **Arguments:**

    - `state`: S.
    - `write`: `(log α, β, k, v)`, of shapes `[]`, `[]`, `[keys]` and `[values]`.

    **Returns:**

    The next S.
    """
    log_alpha, beta, k, v = write
    kept = state if log_alpha is None else jnp.exp(log_alpha) * state
    return kept + beta * (v - exact_matmul(kept, k))[:, None] * k[None]


def overwritten_states(
    state: Float[Array, "values keys"],
    writes: Write,
    begin: Bool[Array, " time"] | None,
    method: str = "auto",
) -> Float[Array, "time values keys"]:
    """All states of a sequence of `overwritten`, which begins with zeros.

    On a CPU the rank-one updates are made one after another; elsewhere the matrices are combined in
    a tree.

    **Arguments:**

    - `state`: S before the first step.
    - `writes`: as for `overwritten`, with a leading time axis.
    - `begin`: shape `[time]`, or `None`.
    - `method`: see `scan.loop_or_tree`.

    **Returns:**

    The states after every step.
    """

    # A state may be of more precision than the inputs; both ways want one.
    dtype = jnp.result_type(state, *jax.tree.leaves(writes))
    state, writes = jax.tree.map(lambda x: x.astype(dtype), (state, writes))

    def one_by_one(state, writes):
        return scan.sequential(overwritten, state, writes, begin, initial=jnp.zeros_like(state))[1]

    def in_a_tree(state, writes):
        log_alpha, beta, k, v = writes
        identity = jnp.eye(k.shape[1], dtype=k.dtype)
        step = beta[:, None, None] * k[:, None]
        turn = identity[None] - step * k[:, :, None]
        if log_alpha is not None:
            turn = jnp.exp(log_alpha)[:, None, None] * turn
        elements = turn, v[:, :, None] * step
        return scan.associative(_combined, elements, begin, initial=(identity, state))[1]

    return scan.loop_or_tree(one_by_one, in_a_tree, state, writes, method=method)


def overwritten_reads(
    queries: Float[Array, "time keys"],
    state: Float[Array, "values keys"],
    writes: Write,
    begin: Bool[Array, " time"] | None,
) -> tuple[Float[Array, "values keys"], Float[Array, "time values"]]:
    """The last state of a sequence of `overwritten`, and what all of them answer to a query each.

    **Arguments:**

    - `queries`: shape `[time, keys]`.
    - `state`, `writes`, `begin`: see `overwritten_states`.

    **Returns:**

    `(S, reads)`: the state after the last step, and `S_t q_t` of every step.
    """
    log_alpha, beta, k, v = writes
    decay = None if log_alpha is None else log_alpha[:, None]
    end, reads = scan.delta_rule(queries, k, v, beta, state.T, decay, begin)
    return end.T, reads


def _combined(earlier, later):
    """`S ↦ S A + B` after another such map."""
    (a, b), (later_a, later_b) = earlier, later
    return exact_matmul(a, later_a), exact_matmul(b, later_a) + later_b
