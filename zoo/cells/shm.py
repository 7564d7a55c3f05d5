"""Stable Hadamard memory."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

import rtrl
import scan
from zoo.cell import AbstractCell
from zoo.parts import check_sizes, linear_weights, positions
from zoo.registry import register

State = tuple[Float[Array, "hidden keys"], Int[Array, ""]]
_PERIOD = 65536


class SHM(AbstractCell):
    r"""Stable Hadamard memory: every entry is calibrated by a factor around 1, then written to.

        C = 1 + tanh(θ_t (W_c x)ᵀ)
        U = σ(w_η x) (W_v x) φ(W_k x)ᵀ
        M' = M ⊙ C + U
        y = M' φ(W_q x)                                        φ = relu

    θ_t is one of L learned vectors, drawn at random at every step, which keeps the product of many
    C near 1. Here the draw is a fixed function of the step in the episode (it repeats after 65,536
    steps), so that all forms of the cell, and a rerun, make the same one. The state is M and the
    number of the step. Keys and queries are not normalized: φ acts on each entry.

    Source: *Stable Hadamard Memory: Revitalizing Memory-Augmented Agents for Reinforcement
    Learning*, Le et al. (2024), section 3.
    """

    theta: Float[Array, "hidden calibrations"]
    calibration: Float[Array, "keys inputs"]
    write_gate: Float[Array, " inputs"]
    value: Float[Array, "hidden inputs"]
    key: Float[Array, "keys inputs"]
    query: Float[Array, "keys inputs"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        keys: int | None = None,
        calibrations: int = 128,
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: rows of the memory, and width of `y`.
        - `keys`: columns of the memory; `hidden` by default.
        - `calibrations`: L, how many vectors θ there are to draw from.
        """
        keys = hidden if keys is None else keys
        check_sizes(inputs=inputs, hidden=hidden, keys=keys, calibrations=calibrations)
        parts = jax.random.split(key, 6)
        self.theta = linear_weights(parts[0], (hidden, calibrations), hidden)
        self.calibration = linear_weights(parts[1], (keys, inputs), inputs)
        self.write_gate = linear_weights(parts[2], (inputs,), inputs)
        self.value = linear_weights(parts[3], (hidden, inputs), inputs)
        self.key = linear_weights(parts[4], (keys, inputs), inputs)
        self.query = linear_weights(parts[5], (keys, inputs), inputs)
        self.inputs, self.hidden = inputs, hidden

    def init_state(self) -> State:
        dtype = self.value.dtype
        return jnp.zeros((self.hidden, len(self.key)), dtype), jnp.zeros((), jnp.int32)

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Rows and columns."""
        return rtrl.TwoAxes()

    def recurrence_parameters(self) -> rtrl.Axes:
        """θ, w_η (once for every row) and W_v belong to rows, W_c and W_k to columns."""
        gates = jnp.broadcast_to(self.write_gate, self.value.shape)
        return rtrl.Axes(rows=(self.theta, gates, self.value), columns=(self.calibration, self.key))

    def update(self, state: State, x: Float[Array, " inputs"]) -> State:
        """`(M', step + 1)`."""
        memory, count = state
        c, u = self._coefficients(self.recurrence_parameters(), x[None], count[None])
        return memory * c[0] + u[0], (count + 1) % _PERIOD

    def states(
        self,
        parameters: rtrl.Axes,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> Any:
        memory, count = state
        counts = positions(count, begin, xs.shape[0]) % _PERIOD
        c, u = self._coefficients(parameters, xs, counts)
        return scan.linear(c, u, memory, begin, method=method), (counts + 1) % _PERIOD

    def readout(self, state: State, x: Float[Array, " inputs"]) -> Float[Array, " hidden"]:
        """`M' φ(W_q x)`."""
        return state[0] @ jax.nn.relu(x @ self.query.T)

    @staticmethod
    def _coefficients(parameters, xs, counts):
        (theta, gates, value), (calibration, key) = parameters.rows, parameters.columns
        draws = jax.vmap(_draw, (0, None))(counts, theta.shape[1])
        c = 1 + jnp.tanh(theta.T[draws][:, :, None] * (xs @ calibration.T)[:, None, :])
        written = jax.nn.sigmoid(xs @ gates.T) * (xs @ value.T)
        return c, written[:, :, None] * jax.nn.relu(xs @ key.T)[:, None, :]


def _draw(count, choices):
    """Which calibration the step takes."""
    key = jax.random.fold_in(jax.random.key(0), count.astype(jnp.uint32))
    return jax.random.randint(key, (), 0, choices)


register("shm", SHM)
