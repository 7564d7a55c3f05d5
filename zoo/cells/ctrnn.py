"""Continuous-time recurrent network."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractDenseCell, Recurrent
from zoo.parts import check_sizes, linear_weights, signal_and_time, signals, time_constants
from zoo.registry import register


class CTRNN(AbstractDenseCell):
    r"""Continuous-time recurrent network, each unit with a time constant of its own.

        τ dh/dt = -h + tanh(W x + U h + b)        τ = exp(ϑ)
        y = h

    x is held over the time Δ of a step, which is taken in `unfolds` parts δ = Δ / unfolds:

        h ← h + a (tanh(W x + U h + b) - h)       a = δ / τ, or 1 - exp(-δ / τ)

    The first `a` is Euler's, which wants δ < 2 τ; the second, `solver="exponential"`, is exact for
    the leak and stable for any δ. With `time_step="input"` the last entry of `x` is Δ, for
    observations at irregular times, and no part of W x: it is the time since the last observation,
    under which the present one is taken to have held, and with Δ = 0 the state stays as it is. An
    encoder in front has to pass it on.

    Dense: exact RTRL keeps hidden × parameters numbers; see `zoo.AbstractDenseCell` for the others.

    Source: *Approximation of Dynamical Systems by Continuous Time Recurrent Neural Networks*,
    Funahashi & Nakamura (1993).
    """

    w: Float[Array, "hidden one signals"]
    u: Float[Array, "hidden one hidden"]
    b: Float[Array, "hidden one"]
    tau_log: Float[Array, " hidden"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    time_step: float | str = eqx.field(static=True)
    unfolds: int = eqx.field(static=True)
    solver: str = eqx.field(static=True)
    sensitivity: rtrl.AbstractSensitivity = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        time_step: float | Literal["input"] = 1.0,
        unfolds: int = 1,
        solver: Literal["euler", "exponential"] = "euler",
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
        - `solver`: `"euler"` or `"exponential"`.
        - `tau_min`, `tau_max`: between these τ starts, with a uniform logarithm; units of Δ.
        - `sensitivity`: what RTRL follows; see `zoo.AbstractDenseCell`.
        """
        check_sizes(inputs=inputs, hidden=hidden, unfolds=unfolds)
        if solver not in ("euler", "exponential"):
            raise ValueError(f"`solver` (={solver!r}) must be one of euler, exponential.")
        keys = jax.random.split(key, 4)
        self.w = linear_weights(keys[0], (hidden, 1, signals(inputs, time_step)), hidden)
        self.u = linear_weights(keys[1], (hidden, 1, hidden), hidden)
        self.b = linear_weights(keys[2], (hidden, 1), hidden)
        self.tau_log = time_constants(keys[3], hidden, tau_min=tau_min, tau_max=tau_max)
        self.inputs, self.hidden = inputs, hidden
        self.time_step, self.unfolds, self.solver = time_step, unfolds, solver
        self.sensitivity = sensitivity

    def transition(
        self, state: Float[Array, " hidden"], x: Float[Array, " inputs"], recurrent: Recurrent
    ) -> Float[Array, " hidden"]:
        """`h` after the time of a step."""
        signal, time = signal_and_time(x, self.time_step)
        drive = rtrl.exact_product(self.w, signal) + self.b
        a = time / self.unfolds * jnp.exp(-self.tau_log)
        if self.solver == "exponential":
            a = -jnp.expm1(-a)
        for _ in range(self.unfolds):
            state = state + a * (jnp.tanh(drive + recurrent(self.u, state))[:, 0] - state)
        return state


register("ctrnn", CTRNN)
