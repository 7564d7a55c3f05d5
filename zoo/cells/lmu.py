"""Legendre memory unit."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractUnstructuredCell
from zoo.parts import check_sizes, linear_weights
from zoo.registry import register

State = tuple[Float[Array, " hidden"], Float[Array, " order"]]


class LMU(AbstractUnstructuredCell):
    r"""Legendre memory unit: a sliding window of one signal, as Legendre polynomials.

        u  = e_x · x + e_h · h + e_m · m
        m' = Ā m + B̄ u
        h' = tanh(W_x x + W_h h + W_m m')
        y  = h'

    Ā and B̄ are fixed: the delay of `theta` steps in `order` polynomials, under a zero-order hold.

    Source: *Legendre Memory Units: Continuous-Time Representation in Recurrent Neural Networks*,
    Voelker et al. (2019), section 2.
    """

    encode_x: Float[Array, " inputs"]
    encode_h: Float[Array, " hidden"]
    encode_m: Float[Array, " order"]
    w_x: Float[Array, "hidden inputs"]
    w_h: Float[Array, "hidden hidden"]
    w_m: Float[Array, "hidden order"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    theta: float = eqx.field(static=True)
    sensitivity: rtrl.AbstractSensitivity = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        order: int = 8,
        theta: float = 32.0,
        sensitivity: rtrl.AbstractSensitivity = rtrl.Exact(),
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of nonlinear units, and width of `y`.
        - `order`: number of polynomials.
        - `theta`: length of the window, in steps.
        - `sensitivity`: what RTRL follows; see `zoo.AbstractUnstructuredCell`.
        """
        check_sizes(inputs=inputs, hidden=hidden, order=order)
        if not theta >= 1:
            raise ValueError(f"`theta` (={theta}) must be at least 1 step.")
        keys = jax.random.split(key, 5)
        self.encode_x = linear_weights(keys[0], (inputs,), inputs)
        self.encode_h = linear_weights(keys[1], (hidden,), hidden)
        self.encode_m = jnp.zeros(order)
        self.w_x = linear_weights(keys[2], (hidden, inputs), inputs)
        self.w_h = linear_weights(keys[3], (hidden, hidden), hidden)
        self.w_m = linear_weights(keys[4], (hidden, order), order)
        self.inputs, self.hidden, self.theta = inputs, hidden, float(theta)
        self.sensitivity = sensitivity

    def init_state(self) -> State:
        return jnp.zeros(self.hidden, self.w_x.dtype), jnp.zeros(len(self.encode_m), self.w_x.dtype)

    def update(self, state: State, x: Float[Array, " inputs"]) -> State:
        """`(h', m')`."""
        h, m = state
        a, b = (jnp.asarray(part, m.dtype) for part in delay(len(self.encode_m), self.theta))
        u = self.encode_x @ x + self.encode_h @ h + self.encode_m @ m
        m = a @ m + b * u
        # Weights first, unlike elsewhere: in this loop inputs first took 1.4 to 1.7 times as long.
        return jnp.tanh(self.w_x @ x + self.w_h @ h + self.w_m @ m), m

    def readout(self, state: State, x: Array) -> Float[Array, " hidden"]:
        """`h'`."""
        return state[0]


@functools.cache
def delay(order: int, theta: float) -> tuple[np.ndarray, np.ndarray]:
    """The delay line in Legendre polynomials, in discrete time.

    **Arguments:**

    - `order`: number of polynomials.
    - `theta`: the delay, in steps.

    **Returns:**

    `(Ā, B̄)`, shapes `[order, order]` and `[order]`.
    """
    import scipy.linalg  # takes a quarter of a second, which no other memory needs

    i, j = np.indices((order, order))
    scale = (2 * np.arange(order) + 1) / theta
    a = np.where(i < j, -1.0, (-1.0) ** (i - j + 1)) * scale[:, None]
    b = (-1.0) ** np.arange(order) * scale
    a_bar = scipy.linalg.expm(a)
    return a_bar, np.linalg.solve(a, (a_bar - np.eye(order)) @ b)


register("lmu", LMU)
