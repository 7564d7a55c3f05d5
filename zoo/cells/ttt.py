"""A memory that is a model, trained at every step."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractUnstructuredCell
from zoo.parts import Linear, check_norm_width, check_sizes, layer_norm
from zoo.registry import register

Model = tuple[Float[Array, "hidden hidden"], Float[Array, " hidden"]]


class TTT(AbstractUnstructuredCell):
    r"""TTT-Linear: a linear model as memory, which every step trains on what it sees.

        q, k, v = W_q x, W_k x, W_v x
        f(u; W, b) = u + g ⊙ norm(W u + b) + c        norm: mean 0, variance 1
        ℓ(W, b) = ‖f(k; W, b) - v‖² / (2 hidden)
        η = η_0 σ(w_η x + b_η)
        (W, b)' = (W, b) - η ∇ℓ(W, b)
        y = f(q; W', b')

    What the model starts from is learned: the state is what an episode has added to it, and begins
    with zeros. This is the online form, which takes the gradient at the newest model, one step at a
    time; the paper's mini-batches of 16 steps take it at the model before them, and are another
    function.

    Nonlinear in W by the norm, and every entry may depend on every parameter of k: exact RTRL is
    dense, for small memories; the alternative is `sensitivity=rtrl.UORO()`.

    Source: *Learning to (Learn at Test Time): RNNs with Expressive Hidden States*, Sun et al.
    (2024), sections 2.1 to 2.7, with the bias and the mean over entries of the authors' code. What
    stands around it there (heads, rotary positions, convolutions, a norm and a map behind it) is
    left out.
    """

    queries: Linear
    keys: Linear
    values: Linear
    rate: Linear
    w: Float[Array, "hidden hidden"]
    b: Float[Array, " hidden"]
    g: Float[Array, " hidden"]
    c: Float[Array, " hidden"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    learning_rate: float = eqx.field(static=True)
    sensitivity: rtrl.AbstractSensitivity = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        learning_rate: float = 1.0,
        sensitivity: rtrl.AbstractSensitivity = rtrl.Exact(),
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of the model and of `y`, at least 2.
        - `learning_rate`: η_0, the largest step.
        - `sensitivity`: what RTRL follows; see `zoo.AbstractUnstructuredCell`.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        check_norm_width(hidden=hidden)
        if not learning_rate > 0:
            raise ValueError(f"`learning_rate` (={learning_rate}) must be above 0.")
        keys = jax.random.split(key, 5)
        self.queries = Linear(inputs, hidden, False, key=keys[0])
        self.keys = Linear(inputs, hidden, False, key=keys[1])
        self.values = Linear(inputs, hidden, False, key=keys[2])
        self.rate = Linear(inputs, 1, key=keys[3])
        self.w = 0.02 * jax.random.normal(keys[4], (hidden, hidden))
        self.b, self.c = jnp.zeros(hidden), jnp.zeros(hidden)
        self.g = jnp.ones(hidden)
        self.inputs, self.hidden, self.learning_rate = inputs, hidden, learning_rate
        self.sensitivity = sensitivity

    def init_state(self) -> Model:
        return jnp.zeros_like(self.w), jnp.zeros_like(self.b)

    def answer(self, state: Model, u: Float[Array, " hidden"]) -> Float[Array, " hidden"]:
        """`f(u; W, b)`."""
        w, b = state
        z = u @ (self.w + w).T + self.b + b
        return u + self.g * layer_norm(z, 1e-6) + self.c

    def update(self, state: Model, x: Float[Array, " inputs"]) -> Model:
        """A step of gradient descent from `(W, b)`."""
        k, v = self.keys(x), self.values(x)
        eta = self.learning_rate * jax.nn.sigmoid(self.rate(x)[0])
        gradient = jax.grad(lambda model: jnp.mean((self.answer(model, k) - v) ** 2) / 2)(state)
        return jax.tree.map(lambda part, slope: part - eta * slope, state, gradient)

    def readout(self, state: Model, x: Float[Array, " inputs"]) -> Float[Array, " hidden"]:
        """`f(q; W', b')`."""
        return self.answer(state, self.queries(x))


register("ttt", TTT)
