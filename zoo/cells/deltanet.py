"""Delta rule networks, plain and gated."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import rtrl
from zoo.kinds import AbstractUnstructuredCell
from zoo.memory import AbstractMemory, State
from zoo.parts import (
    Linear,
    keys_of_a_head,
    overwritten,
    overwritten_reads,
    overwritten_states,
    unit,
)
from zoo.registry import register


class DeltaNet(AbstractUnstructuredCell):
    r"""Fast weights that are overwritten: what the memory answers to a key moves towards a value.

        q, k, v = unit(silu(W_q x)), unit(silu(W_k x)), silu(W_v x)        unit(u) = u / ‖u‖
        α, β = exp(-e^a softplus(w_α x + b_α)), σ(w_β x + b_β)             α = 1 without a gate
        S' = α S (I - β k kᵀ) + β v kᵀ
        y  = S' q

    Every head has such a memory, and its part of y. Linear in S, with a matrix that turns it: steps
    are associative, but not entry by entry. A scan goes through chunks, in each of which a
    triangular system is solved (`scan.delta_rule`). A short one makes the rank-one updates one
    after another on a CPU; elsewhere the matrices are combined in a tree. Every entry of S may
    depend on every parameter of k, so that exact RTRL is dense, for small memories; the alternative
    is `sensitivity=rtrl.UORO()`.

    Sources: *Parallelizing Linear Transformers with the Delta Rule over Sequence Length*, Yang et
    al. (2024), section 2.2; *Gated Delta Networks*, Yang et al. (2024), equation 10.
    """

    keys: Linear
    values: Linear
    queries: Linear
    learning_rate: Linear
    decay_rate: Linear | None
    decay_log: Float[Array, " heads"] | None
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    heads: int = eqx.field(static=True)
    sensitivity: rtrl.AbstractSensitivity = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        keys: int | None = None,
        heads: int = 1,
        gated: bool = False,
        sensitivity: rtrl.AbstractSensitivity = rtrl.Exact(),
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of the values and of `y`.
        - `keys`: width of a head's keys and queries; that of its values by default.
        - `heads`: a divisor of `hidden`; each has its part of the values.
        - `gated`: whether the memory decays.
        - `sensitivity`: what RTRL follows; see `zoo.AbstractUnstructuredCell`.
        """
        width = heads * keys_of_a_head(inputs, hidden, keys, heads)
        parts = jax.random.split(key, 5)
        self.keys = Linear(inputs, width, False, key=parts[0])
        self.values = Linear(inputs, hidden, False, key=parts[1])
        self.queries = Linear(inputs, width, False, key=parts[2])
        self.learning_rate = Linear(inputs, heads, key=parts[3])
        self.decay_rate = Linear(inputs, heads, key=parts[4]) if gated else None
        self.decay_log = jnp.full(heads, math.log(0.1), float) if gated else None
        self.inputs, self.hidden, self.heads = inputs, hidden, heads
        self.sensitivity = sensitivity

    def init_state(self) -> Float[Array, "heads values keys"]:
        weights, heads = self.keys.weight, self.heads
        return jnp.zeros((heads, self.hidden // heads, len(weights) // heads), weights.dtype)

    def projections(
        self, x: Float[Array, " inputs"]
    ) -> tuple[
        Float[Array, " heads"] | None,
        Float[Array, " heads"],
        Float[Array, "heads keys"],
        Float[Array, "heads values"],
    ]:
        """`(log α, β, k, v)` of a step's heads."""
        log_alpha = None
        if self.decay_rate is not None and self.decay_log is not None:
            log_alpha = -jnp.exp(self.decay_log) * jax.nn.softplus(self.decay_rate(x))
        beta = jax.nn.sigmoid(self.learning_rate(x))
        values = jax.nn.silu(self.values(x)).reshape(self.heads, -1)
        return log_alpha, beta, self._directions(self.keys(x)), values

    def update(
        self, state: Float[Array, "heads values keys"], x: Float[Array, " inputs"]
    ) -> Float[Array, "heads values keys"]:
        """`S'`: S decays, and what it answers to k moves towards v."""
        return jax.vmap(overwritten)(state, self.projections(x))

    def states(
        self,
        parameters: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> State:
        writes = jax.vmap(parameters.projections)(xs)
        of_a_head = lambda state, writes: overwritten_states(state, writes, begin, method)  # noqa: E731
        return jax.vmap(of_a_head, (0, 1), 1)(state, writes)

    def scan_in_chunks(
        self, state: State, xs: Array, begin: Bool[Array, " time"] | None
    ) -> tuple[State, Array]:
        queries = jax.vmap(lambda x: self._directions(self.queries(x)))(xs)
        writes = jax.vmap(self.projections)(xs)
        of_a_head = lambda q, state, writes: overwritten_reads(q, state, writes, begin)  # noqa: E731
        state, reads = jax.vmap(of_a_head, (1, 0, 1), (0, 1))(queries, state, writes)
        return state, reads.reshape(len(xs), -1)

    def readout(
        self, state: Float[Array, "heads values keys"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`S' q`."""
        return (state @ self._directions(self.queries(x))[..., None]).ravel()

    def _directions(self, u):
        return jax.vmap(unit)(jax.nn.silu(u).reshape(self.heads, -1))


def _deltanet(
    inputs: int,
    hidden: int,
    *,
    keys: int | None = None,
    heads: int = 1,
    sensitivity: rtrl.AbstractSensitivity = rtrl.Exact(),
    key: Array,
) -> AbstractMemory:
    """A delta rule network; see `zoo.DeltaNet`."""
    options = {"keys": keys, "heads": heads, "sensitivity": sensitivity}
    return DeltaNet(inputs, hidden, **options, key=key)


def _gated_deltanet(
    inputs: int,
    hidden: int,
    *,
    keys: int | None = None,
    heads: int = 1,
    sensitivity: rtrl.AbstractSensitivity = rtrl.Exact(),
    key: Array,
) -> AbstractMemory:
    """A delta rule network whose memory decays; see `zoo.DeltaNet`."""
    options = {"keys": keys, "heads": heads, "sensitivity": sensitivity}
    return DeltaNet(inputs, hidden, **options, gated=True, key=key)


register("deltanet", _deltanet)
register("gated_deltanet", _gated_deltanet)
