"""RWKV's mixing over time."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import rtrl
import scan
from zoo.cell import AbstractCell
from zoo.memory import AbstractMemory
from zoo.parts import NOTHING, check_sizes, decayed, decaying_maximum, linear_weights
from zoo.registry import register
from zoo.windowed import Windowed

State = tuple[Float[Array, " hidden"], ...]


class RWKV(AbstractCell):
    r"""RWKV-4's mixing over time: an average whose weights decay exponentially.

    Its input is a window of two, `[x_{t-1}, x_t]`: `zoo.get("rwkv")` puts it in a `zoo.Windowed`.

        r, k, v = W (μ ⊙ x_t + (1 - μ) ⊙ x_{t-1})              a μ and a W for each
        a' = e^{-w} a + e^k v,   b' = e^{-w} b + e^k
        s = (a + e^{u+k} v) / (b + e^{u+k})
        y = W_o (σ(r) ⊙ s)

    The state is `(a' e^{-m'}, b' e^{-m'}, m', s)` with the running maximum `m' = max(m - w, k)`, so
    that no exponent is positive. m cancels in s, and is a constant to derivatives.

    Source: *RWKV: Reinventing RNNs for the Transformer Era*, Peng et al. (2023), equations 11 to 18
    and appendix D.
    """

    shift: Float[Array, "three inputs"]
    receptance: Float[Array, "hidden inputs"]
    key: Float[Array, "hidden inputs"]
    value: Float[Array, "hidden inputs"]
    decay_log: Float[Array, " hidden"]
    bonus: Float[Array, " hidden"]
    output: Float[Array, "hidden hidden"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, key: Array):
        """**Arguments:**

        - `inputs`: width of the window: twice that of `x`.
        - `hidden`: number of channels, and width of `y`.
        """
        check_sizes(inputs=inputs, hidden=hidden)
        if inputs % 2:
            raise ValueError(f"`inputs` (={inputs}) must be even: a window of two inputs.")
        width = inputs // 2
        keys = jax.random.split(key, 5)
        self.shift = jax.random.uniform(keys[0], (3, width))
        self.receptance, self.key, self.value = (
            linear_weights(k, (hidden, width), width) for k in keys[1:4]
        )
        place = jnp.arange(hidden) / max(hidden - 1, 1)
        self.decay_log = -5 + 8 * place**0.7
        self.bonus = jnp.log(0.3) + 0.5 * ((jnp.arange(hidden, dtype=float) + 1) % 3 - 1.0)
        self.output = linear_weights(keys[4], (hidden, hidden), hidden)
        self.inputs, self.hidden = inputs, hidden

    def init_state(self) -> State:
        """Zeros, and a very low maximum."""
        a, b, s = (jnp.zeros(self.hidden, self.bonus.dtype) for _ in range(3))
        return a, b, jnp.full_like(a, NOTHING), s

    @property
    def structure(self) -> rtrl.AbstractStructure:
        """Diagonal in a and b; m is a constant, and s does not act on the next step."""
        return rtrl.Diagonal(components=2)

    def recurrence_parameters(self) -> Any:
        """`(w, W_k on the window, W_v on the window, u)`; only s depends on u."""
        return (
            jnp.exp(self.decay_log),
            _on_window(self.key, self.shift[1]),
            _on_window(self.value, self.shift[2]),
            self.bonus,
        )

    def update(self, state: State, x: Float[Array, " inputs"]) -> State:
        """`(a' e^{-m'}, b' e^{-m'}, m', s)`."""
        a, b, m, _ = state
        w, key, value, u = self.recurrence_parameters()
        k, v = x @ key.T, x @ value.T
        new, kept = decayed(m, -w, k)
        added = jnp.exp(k - new)
        s = _average(a, b, jax.lax.stop_gradient(m), u + k, v)
        return kept * a + added * v, kept * b + added, new, s

    def states(
        self,
        parameters: Any,
        state: State,
        xs: Array,
        begin: Bool[Array, " time"] | None,
        method: str = "auto",
    ) -> Any:
        w, key, value, u = parameters
        k, v = xs @ key.T, xs @ value.T
        m, log_kept = decaying_maximum(jnp.broadcast_to(-w, k.shape), k, state[2], begin)
        added = jnp.exp(k - m)
        both = scan.linear(
            jnp.exp(log_kept)[:, None],
            jnp.stack([added * v, added], 1),
            jnp.stack(state[:2]),
            begin,
            method=method,
        )
        before = jnp.concatenate([jnp.stack(state[:2])[None], both[:-1]])
        m_before = jnp.concatenate([jax.lax.stop_gradient(state[2])[None], m[:-1]])
        if begin is not None:
            before = jnp.where(begin[:, None, None], 0, before)
            m_before = jnp.where(begin[:, None], NOTHING, m_before)
        s = _average(before[:, 0], before[:, 1], m_before, u[None] + k, v)
        return both[:, 0], both[:, 1], m, s

    def readout(self, state: State, x: Float[Array, " inputs"]) -> Float[Array, " hidden"]:
        """`W_o (σ(r) ⊙ s)`."""
        r = x @ _on_window(self.receptance, self.shift[0]).T
        return (jax.nn.sigmoid(r) * state[3]) @ self.output.T


def _on_window(weights, shift):
    """`W (μ ⊙ x_t + (1 - μ) ⊙ x_{t-1})` as a matrix that acts on `[x_{t-1}, x_t]`."""
    return jnp.concatenate([weights * (1 - shift)[None], weights * shift[None]], 1)


def _average(a, b, m, now, v):
    """`(a e^m + e^now v) / (b e^m + e^now)`."""
    top = jax.lax.stop_gradient(jnp.maximum(m, now))
    past, present = jnp.exp(m - top), jnp.exp(now - top)
    return (past * a + present * v) / (past * b + present)


def _rwkv(inputs: int, hidden: int, *, key: Array) -> AbstractMemory:
    """RWKV-4's mixing over time; see `zoo.RWKV`."""
    check_sizes(inputs=inputs, hidden=hidden)
    return Windowed(RWKV(2 * inputs, hidden, key=key), 2)


register("rwkv", _rwkv)
