"""The memoryless baseline."""

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float

import rtrl
import scan
from zoo.cell import AbstractCell
from zoo.memory import AbstractMemory
from zoo.parts import activation_function, check_sizes, linear_weights
from zoo.registry import register
from zoo.windowed import Windowed


class MLP(AbstractCell):
    """No memory: `y = act(W x + b)`, the same for every past.

    With the four forms of a memory, so that a program can be run without one: what it learns shows
    how much of a task needs remembering. The state is empty.
    """

    w: Float[Array, "hidden inputs"]
    b: Float[Array, " hidden"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, activation: str = "relu", key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of `y`.
        - `activation`: `"relu"`, `"tanh"`, `"identity"`, `"silu"` or `"gelu"`.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        activation_function(activation)
        w_key, b_key = jax.random.split(key)
        self.w = linear_weights(w_key, (hidden, inputs), inputs)
        self.b = linear_weights(b_key, (hidden,), inputs)
        self.inputs, self.hidden, self.activation = inputs, hidden, activation

    def init_state(self) -> tuple[()]:
        """Nothing."""
        return ()

    def update(self, state: tuple[()], x: Array) -> tuple[()]:
        """Nothing."""
        return ()

    def readout(self, state: tuple[()], x: Float[Array, " inputs"]) -> Float[Array, " hidden"]:
        """`act(W x + b)`."""
        return activation_function(self.activation)(x @ self.w.T + self.b)

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Without a state, any will do."""
        return rtrl.Diagonal()

    def recurrence_parameters(self) -> tuple[()]:
        """Nothing."""
        return ()

    def states(
        self,
        parameters: tuple[()],
        state: tuple[()],
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> tuple[()]:
        """Nothing."""
        scan.check_method(method, ("auto",))
        return ()


def _frame_stack(
    inputs: int, hidden: int, *, window: int = 4, activation: str = "relu", key: Array
) -> AbstractMemory:
    """A memoryless network that sees the last inputs side by side; see `zoo.MLP`."""
    check_sizes(inputs=inputs, hidden=hidden, window=window)
    return Windowed(MLP(window * inputs, hidden, activation=activation, key=key), window)


register("frame_stack", _frame_stack)
register("mlp", MLP)
