"""A memoryless network that knows the time."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

import rtrl
import scan
from zoo.cell import AbstractCell
from zoo.parts import activation_function, check_sizes, linear_weights, positions, sinusoids
from zoo.registry import register


class PositionalMLP(AbstractCell):
    """No memory but a clock: `y = act(W (x + p_t) + b)`.

    `p_t` is the sinusoidal encoding of the step t in the episode, as wide as `x`. What it learns
    beyond `zoo.MLP` shows how much of a task is a matter of time alone. The state is t.

    Source: the baseline PosMLP of *Reinforcement Learning with Fast and Forgetful Memory*, Morad et
    al. (2023); the encoding of *Attention Is All You Need*, Vaswani et al. (2017), section 3.5.
    """

    w: Float[Array, "hidden inputs"]
    b: Float[Array, " hidden"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, activation: str = "relu", key: Array):
        """See `zoo.MLP`."""
        check_sizes(inputs=inputs, hidden=hidden)
        activation_function(activation)
        w_key, b_key = jax.random.split(key)
        self.w = linear_weights(w_key, (hidden, inputs), inputs)
        self.b = linear_weights(b_key, (hidden,), inputs)
        self.inputs, self.hidden, self.activation = inputs, hidden, activation

    def init_state(self) -> Int[Array, ""]:
        """0, the number of steps taken."""
        return jnp.zeros((), jnp.int32)

    def update(self, state: Int[Array, ""], x: Array) -> Int[Array, ""]:
        """One step more."""
        return state + 1

    def readout(self, state: Int[Array, ""], x: Float[Array, " inputs"]) -> Float[Array, " hidden"]:
        """`act(W (x + p_t) + b)`."""
        encoding = sinusoids(state - 1, self.inputs).astype(x.dtype)
        return activation_function(self.activation)((x + encoding) @ self.w.T + self.b)

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """No parameter acts on the clock."""
        return rtrl.Diagonal()

    def recurrence_parameters(self) -> tuple[()]:
        """Nothing."""
        return ()

    def states(
        self,
        parameters: tuple[()],
        state: Int[Array, ""],
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> Int[Array, " time"]:
        scan.check_method(method, ("auto",))
        return positions(state, begin, xs.shape[0]) + 1


register("positional_mlp", PositionalMLP)
