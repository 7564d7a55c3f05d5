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
from zoo.parts import Linear, check_sizes, overwritten, overwritten_states, unit
from zoo.registry import register


class DeltaNet(AbstractUnstructuredCell):
    r"""Fast weights that are overwritten: what the memory answers to a key moves towards a value.

        q, k, v = unit(silu(W_q x)), unit(silu(W_k x)), silu(W_v x)        unit(u) = u / ‖u‖
        α, β = exp(-e^a softplus(w_α x + b_α)), σ(w_β x + b_β)             α = 1 without a gate
        S' = α S (I - β k kᵀ) + β v kᵀ
        y  = S' q

    Linear in S, with a matrix that turns it: steps are associative, but not entry by entry. On a
    CPU the rank-one updates are made one after another; elsewhere the matrices are combined in a
    tree. Every entry of S may depend on every parameter of k, so that exact RTRL is dense, for
    small memories; the alternative is `sensitivity=rtrl.UORO()`.

    Sources: *Parallelizing Linear Transformers with the Delta Rule over Sequence Length*, Yang et
    al. (2024), section 2.2; *Gated Delta Networks*, Yang et al. (2024), equation 10.
    """

    keys: Linear
    values: Linear
    queries: Linear
    learning_rate: Linear
    decay_rate: Linear | None
    decay_log: Float[Array, ""] | None
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    sensitivity: rtrl.AbstractSensitivity = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        keys: int | None = None,
        gated: bool = False,
        sensitivity: rtrl.AbstractSensitivity = rtrl.Exact(),
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of the values and of `y`.
        - `keys`: width of keys and queries; `hidden` by default.
        - `gated`: whether the memory decays.
        - `sensitivity`: what RTRL follows; see `zoo.AbstractUnstructuredCell`.
        """
        width = hidden if keys is None else keys
        check_sizes(inputs=inputs, hidden=hidden, keys=width)
        parts = jax.random.split(key, 5)
        self.keys = Linear(inputs, width, False, key=parts[0])
        self.values = Linear(inputs, hidden, False, key=parts[1])
        self.queries = Linear(inputs, width, False, key=parts[2])
        self.learning_rate = Linear(inputs, 1, key=parts[3])
        self.decay_rate = Linear(inputs, 1, key=parts[4]) if gated else None
        self.decay_log = jnp.full((), math.log(0.1)) if gated else None
        self.inputs, self.hidden = inputs, hidden
        self.sensitivity = sensitivity

    def init_state(self) -> Float[Array, "hidden keys"]:
        weights = self.keys.weight
        return jnp.zeros((self.hidden, weights.shape[0]), weights.dtype)

    def projections(
        self, x: Float[Array, " inputs"]
    ) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, " keys"], Float[Array, " hidden"]]:
        """`(α, β, k, v)` of a step."""
        beta = jax.nn.sigmoid(self.learning_rate(x)[0])
        alpha = jnp.ones_like(beta)
        if self.decay_rate is not None and self.decay_log is not None:
            alpha = jnp.exp(-jnp.exp(self.decay_log) * jax.nn.softplus(self.decay_rate(x)[0]))
        return alpha, beta, unit(jax.nn.silu(self.keys(x))), jax.nn.silu(self.values(x))

    def update(
        self, state: Float[Array, "hidden keys"], x: Float[Array, " inputs"]
    ) -> Float[Array, "hidden keys"]:
        """`S'`: S decays, and what it answers to k moves towards v."""
        return overwritten(state, self.projections(x))

    def states(
        self,
        parameters: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> State:
        writes = jax.vmap(parameters.projections)(xs)
        return overwritten_states(state, writes, begin, method)

    def readout(
        self, state: Float[Array, "hidden keys"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`S' q`."""
        return state @ unit(jax.nn.silu(self.queries(x)))


def _deltanet(
    inputs: int,
    hidden: int,
    *,
    keys: int | None = None,
    sensitivity: rtrl.AbstractSensitivity = rtrl.Exact(),
    key: Array,
) -> AbstractMemory:
    """A delta rule network; see `zoo.DeltaNet`."""
    return DeltaNet(inputs, hidden, keys=keys, sensitivity=sensitivity, key=key)


def _gated_deltanet(
    inputs: int,
    hidden: int,
    *,
    keys: int | None = None,
    sensitivity: rtrl.AbstractSensitivity = rtrl.Exact(),
    key: Array,
) -> AbstractMemory:
    """A delta rule network whose memory decays; see `zoo.DeltaNet`."""
    return DeltaNet(inputs, hidden, keys=keys, gated=True, sensitivity=sensitivity, key=key)


register("deltanet", _deltanet)
register("gated_deltanet", _gated_deltanet)
