"""Delta rule networks with several writes a step."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import rtrl
from zoo.kinds import AbstractUnstructuredCell
from zoo.memory import State
from zoo.parts import (
    Linear,
    check_sizes,
    overwritten,
    overwritten_reads,
    overwritten_states,
    unit,
)
from zoo.registry import register


class DeltaProduct(AbstractUnstructuredCell):
    r"""Fast weights that are overwritten several times a step: products of Householder matrices.

        q = unit(silu(W_q x))                                              unit(u) = u / ‖u‖
        k_j, v_j, β_j = unit(silu(W_kj x)), silu(W_vj x), 2 σ(w_βj x + b_βj)
        α = exp(-e^a softplus(w_α x + b_α))                                α = 1 without a gate
        S_0 = α S
        S_j = S_{j-1} (I - β_j k_j k_jᵀ) + β_j v_j k_jᵀ                    j = 1 … writes
        S' = S_writes
        y  = S' q

    With β in (0, 2) each factor has an eigenvalue in (-1, 1): two reflections make a rotation, so
    that the memory can follow permutations, which eigenvalues in (0, 1) cannot. With one write and
    β in (0, 1) it is `zoo.DeltaNet`. The scan is that of a `zoo.DeltaNet` over time × writes steps.
    Exact RTRL is dense, for small memories; the alternative is `sensitivity=rtrl.UORO()`.

    Source: *DeltaProduct: Improving State-Tracking in Linear RNNs via Householder Products*, Siems
    et al. (2025), section 3. There a value is a linear map of x; silu is that of the authors'
    layer, and of `zoo.DeltaNet`.
    """

    keys: Linear
    values: Linear
    queries: Linear
    learning_rate: Linear
    decay_rate: Linear | None
    decay_log: Float[Array, ""] | None
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    writes: int = eqx.field(static=True)
    negative_eigenvalues: bool = eqx.field(static=True)
    sensitivity: rtrl.AbstractSensitivity = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        keys: int | None = None,
        writes: int = 2,
        gated: bool = False,
        negative_eigenvalues: bool = True,
        sensitivity: rtrl.AbstractSensitivity = rtrl.Exact(),
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of the values and of `y`.
        - `keys`: width of keys and queries; `hidden` by default.
        - `writes`: keys that are written to in a step.
        - `gated`: whether the memory decays, once a step.
        - `negative_eigenvalues`: whether β is in (0, 2), or else in (0, 1).
        - `sensitivity`: what RTRL follows; see `zoo.AbstractUnstructuredCell`.
        """
        width = hidden if keys is None else keys
        check_sizes(inputs=inputs, hidden=hidden, keys=width, writes=writes)
        parts = jax.random.split(key, 5)
        self.keys = Linear(inputs, writes * width, False, key=parts[0])
        self.values = Linear(inputs, writes * hidden, False, key=parts[1])
        self.queries = Linear(inputs, width, False, key=parts[2])
        self.learning_rate = Linear(inputs, writes, key=parts[3])
        self.decay_rate = Linear(inputs, 1, key=parts[4]) if gated else None
        self.decay_log = jnp.full((), math.log(0.1), float) if gated else None
        self.inputs, self.hidden, self.writes = inputs, hidden, writes
        self.negative_eigenvalues, self.sensitivity = negative_eigenvalues, sensitivity

    def init_state(self) -> Float[Array, "hidden keys"]:
        weights = self.queries.weight
        return jnp.zeros((self.hidden, weights.shape[0]), weights.dtype)

    def projections(
        self, x: Float[Array, " inputs"]
    ) -> tuple[
        Float[Array, " writes"] | None,
        Float[Array, " writes"],
        Float[Array, "writes keys"],
        Float[Array, "writes hidden"],
    ]:
        """`(log α, β, k, v)` of a step's writes: α is 1 for all but the first."""
        beta = (2 if self.negative_eigenvalues else 1) * jax.nn.sigmoid(self.learning_rate(x))
        log_alpha = None
        if self.decay_rate is not None and self.decay_log is not None:
            decay = jnp.exp(self.decay_log) * jax.nn.softplus(self.decay_rate(x)[0])
            log_alpha = jnp.zeros_like(beta).at[0].set(-decay)
        k = jax.vmap(unit)(jax.nn.silu(self.keys(x)).reshape(self.writes, -1))
        return log_alpha, beta, k, jax.nn.silu(self.values(x)).reshape(self.writes, -1)

    def update(
        self, state: Float[Array, "hidden keys"], x: Float[Array, " inputs"]
    ) -> Float[Array, "hidden keys"]:
        """`S'`: S decays, and what it answers to each k_j moves towards v_j, one after another."""
        writes = self.projections(x)
        for j in range(self.writes):
            state = overwritten(state, jax.tree.map(lambda w, j=j: w[j], writes))
        return state

    def states(
        self,
        parameters: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> State:
        writes, begin = parameters._in_order(xs, begin)
        return overwritten_states(state, writes, begin, method)[self.writes - 1 :: self.writes]

    def scan_in_chunks(
        self, state: State, xs: Array, begin: Bool[Array, " time"] | None
    ) -> tuple[State, Array]:
        writes, begin = self._in_order(xs, begin)
        queries = jnp.repeat(jax.vmap(self._query)(xs), self.writes, 0)
        state, reads = overwritten_reads(queries, state, writes, begin)
        return state, reads[self.writes - 1 :: self.writes]

    def readout(
        self, state: Float[Array, "hidden keys"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`S' q`."""
        return state @ self._query(x)

    def _query(self, x):
        return unit(jax.nn.silu(self.queries(x)))

    def _in_order(self, xs, begin):
        """All writes of all steps, one after another, and where among them an episode begins."""
        writes = jax.tree.map(lambda w: w.reshape(-1, *w.shape[2:]), jax.vmap(self.projections)(xs))
        if begin is not None:
            first = jnp.arange(self.writes) == 0
            begin = (begin[:, None] & first[None]).reshape(-1)
        return writes, begin


register("delta_product", DeltaProduct)
