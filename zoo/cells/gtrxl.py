"""Gated Transformer-XL."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from zoo.kinds import AbstractAttentiveLayer, AbstractAttentiveMemory
from zoo.parts import Linear, check_heads, check_norm_width, check_sizes, linear_weights, sinusoids
from zoo.registry import register


class _Gate(eqx.Module):
    """A GRU in the place of a residual: the stream x is its state, a block's output y its input."""

    w: Linear
    u: Linear
    u_n: Linear
    b: Float[Array, " width"]

    def __init__(self, width, key):
        keys = jax.random.split(key, 3)
        self.w = Linear(width, 3 * width, False, key=keys[0])
        self.u = Linear(width, 2 * width, False, key=keys[1])
        self.u_n = Linear(width, width, False, key=keys[2])
        self.b = jnp.full(width, 2.0, float)

    def __call__(self, x, y):
        w_r, w_z, w_n = jnp.split(self.w(y), 3)
        u_r, u_z = jnp.split(self.u(x), 2)
        r, z = jax.nn.sigmoid(w_r + u_r), jax.nn.sigmoid(w_z + u_z - self.b)
        return (1 - z) * x + z * jnp.tanh(w_n + self.u_n(r * x))


class _Layer(AbstractAttentiveLayer):
    """Attention and a network of two linear maps, each behind a norm and in front of a gate."""

    attention_norm: eqx.nn.LayerNorm
    queries_keys_values: Linear
    distances: Linear
    of_content: Float[Array, "heads size"]
    of_distance: Float[Array, "heads size"]
    mix: Linear
    attention_gate: _Gate
    network_norm: eqx.nn.LayerNorm
    up: Linear
    down: Linear
    network_gate: _Gate
    window: int = eqx.field(static=True)

    def __init__(self, width, heads, window, key):
        keys = jax.random.split(key, 9)
        shape = heads, width // heads
        self.attention_norm = eqx.nn.LayerNorm(width)
        self.queries_keys_values = Linear(width, 3 * width, False, key=keys[0])
        self.distances = Linear(width, width, False, key=keys[1])
        self.of_content = linear_weights(keys[2], shape, width)
        self.of_distance = linear_weights(keys[3], shape, width)
        self.mix = Linear(width, width, False, key=keys[4])
        self.attention_gate = _Gate(width, keys[5])
        self.network_norm = eqx.nn.LayerNorm(width)
        self.up = Linear(width, 4 * width, key=keys[6])
        self.down = Linear(4 * width, width, key=keys[7])
        self.network_gate = _Gate(width, keys[8])
        self.window = window

    def projections(self, z):
        return self.queries_keys_values(self.attention_norm(z)).reshape(3, *self.of_content.shape)

    def aligned(self, q):
        lags, (_, width) = jnp.arange(self.window), self.distances.weight.shape
        encoded = jax.vmap(lambda lag: sinusoids(lag, width).astype(q.dtype))(lags)
        distances = jax.vmap(self.distances)(encoded).reshape(self.window, *q.shape[-2:])
        by_distance = q + jnp.broadcast_to(self.of_distance, q.shape)
        bias = jnp.einsum("...hd,whd->...hw", by_distance, distances) * q.shape[-1] ** -0.5
        return q + jnp.broadcast_to(self.of_content, q.shape), bias

    def output(self, z, read):
        y = self.attention_gate(z, jax.nn.relu(self.mix(read)))
        inner = jax.nn.relu(self.up(self.network_norm(y)))
        return self.network_gate(y, jax.nn.relu(self.down(inner)))


class GTrXL(AbstractAttentiveMemory):
    r"""Gated Transformer-XL: attention to the last `window` steps, with gates for residuals.

        E⁰ = W x
        q, k, v = maps of LN(E)                                      per head; R_l encodes lag l
        a(t, s) = softmax_s(((q_t + b_c) · k_s + (q_t + b_d) · R_{t-s}) / √size)
        Y  = gate(E, relu(mix(Σ_s a(t, s) v_s)))
        E' = gate(Y, relu(network(LN(Y))))                           of every layer
        y  = E of the last layer

        gate(x, y) = (1 - z) ⊙ x + z ⊙ tanh(W_n y + U_n (r ⊙ x))
        r, z = σ(W_r y + U_r x), σ(W_z y + U_z x - b)                b starts at 2

    The norms are in front, so that from the embedding to `y` there is a way without any, and gates
    start nearly closed: at first a layer is almost the identity.

    Segments are not seen: what the paper reaches by a memory of the last activations, with
    a window that is larger at the end of a segment than at its beginning, is here a window of the
    same `window` steps at each of them, over inputs that the state holds. The paper's activations
    are those of older parameters and let no gradient pass; here they are computed from the inputs
    under the present ones, and parameters have the gradient of the whole window, whatever the
    segments. Steps, scans and gradients agree so. The reach is `depth (window - 1)` steps.

    Sources: *Stabilizing Transformers for Reinforcement Learning*, Parisotto et al. (2020), section
    3; *Transformer-XL*, Dai et al. (2019), section 3.3.
    """

    embed: Linear
    layers: tuple[_Layer, ...]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        depth: int = 1,
        heads: int = 1,
        window: int = 32,
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of every layer and of `y`, at least 2.
        - `depth`: number of layers.
        - `heads`: a divisor of `hidden`.
        - `window`: steps that a layer attends to, the present one among them.
        """
        check_sizes(inputs=inputs, hidden=hidden, depth=depth, heads=heads, window=window)
        check_heads(hidden, heads)
        check_norm_width(hidden=hidden)
        keys = jax.random.split(key, depth + 1)
        self.embed = Linear(inputs, hidden, key=keys[0])
        self.layers = tuple(_Layer(hidden, heads, window, k) for k in keys[1:])
        self.inputs, self.hidden = inputs, hidden


register("gtrxl", GTrXL)
