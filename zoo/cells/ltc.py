"""Liquid time-constant network."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractDenseCell, Recurrent
from zoo.parts import check_sizes, linear_weights, signal_and_time, signals, time_constants
from zoo.registry import register


class LTC(AbstractDenseCell):
    r"""Liquid time-constant network: leaky units whose leak depends on input and state.

        dh/dt = -(1/τ + f) ⊙ h + f ⊙ A        f = σ(W x + U h + b), τ = exp(ϑ)
        y = h

    x is held over the time Δ of a step, which the paper's fused solver takes in `unfolds` parts
    δ = Δ / unfolds, implicit in h but for f:

        h ← (h + δ f ⊙ A) / (1 + δ (1/τ + f))

    It is stable for any δ, and h stays between 0 and A. With `time_step="input"` the last entry of
    `x` is Δ, for observations at irregular times, and no part of W x: it is the time since the last
    observation, under which the present one is taken to have held, and with Δ = 0 the state stays
    as it is. An encoder in front has to pass it on.

    Dense: exact RTRL keeps hidden × parameters numbers; see `zoo.AbstractDenseCell` for the others.

    Source: *Liquid Time-constant Networks*, Hasani et al. (2021), equation 1 and algorithm 1. f is
    a sigmoid, as their theorem 1 wants it: positive, bounded and monotonic.
    """

    w: Float[Array, "hidden one signals"]
    u: Float[Array, "hidden one hidden"]
    b: Float[Array, "hidden one"]
    a: Float[Array, " hidden"]
    tau_log: Float[Array, " hidden"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    time_step: float | str = eqx.field(static=True)
    unfolds: int = eqx.field(static=True)
    sensitivity: rtrl.AbstractSensitivity = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        time_step: float | Literal["input"] = 1.0,
        unfolds: int = 6,
        tau_min: float = 1.0,
        tau_max: float = 10.0,
        sensitivity: rtrl.AbstractSensitivity = rtrl.Exact(),
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`, a time in it included.
        - `hidden`: number of units, and width of `y`.
        - `time_step`: Δ, or `"input"` where the last entry of `x` is Δ; below 0 it counts as 0.
        - `unfolds`: parts in which a step is taken.
        - `tau_min`, `tau_max`: between these τ starts, with a uniform logarithm; units of Δ.
        - `sensitivity`: what RTRL follows; see `zoo.AbstractDenseCell`.
        """
        check_sizes(inputs=inputs, hidden=hidden, unfolds=unfolds)
        keys = jax.random.split(key, 5)
        self.w = linear_weights(keys[0], (hidden, 1, signals(inputs, time_step)), hidden)
        self.u = linear_weights(keys[1], (hidden, 1, hidden), hidden)
        self.b = linear_weights(keys[2], (hidden, 1), hidden)
        self.a = jax.random.normal(keys[3], (hidden,))
        self.tau_log = time_constants(keys[4], hidden, tau_min=tau_min, tau_max=tau_max)
        self.inputs, self.hidden = inputs, hidden
        self.time_step, self.unfolds, self.sensitivity = time_step, unfolds, sensitivity

    def transition(
        self, state: Float[Array, " hidden"], x: Float[Array, " inputs"], recurrent: Recurrent
    ) -> Float[Array, " hidden"]:
        """`h` after the time of a step."""
        signal, time = signal_and_time(x, self.time_step)
        drive, delta = rtrl.exact_product(self.w, signal) + self.b, time / self.unfolds
        leak = jnp.exp(-self.tau_log)
        for _ in range(self.unfolds):
            f = jax.nn.sigmoid(drive + recurrent(self.u, state))[:, 0]
            state = (state + delta * f * self.a) / (1 + delta * (leak + f))
        return state


register("ltc", LTC)
