"""Recurrent network of free 2 × 2 blocks."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from zoo.kinds import AbstractDiagonalCell
from zoo.parts import activation_function, check_sizes, join, linear_weights, ring
from zoo.registry import register

Pair = tuple[Float[Array, " hidden"], Float[Array, " hidden"]]


class BlockDiagonal(AbstractDiagonalCell):
    r"""Units of two components with a free real 2 × 2 block each.

        h1' = act(a11 ⊙ h1 + a12 ⊙ h2 + W1 x)
        h2' = act(a21 ⊙ h1 + a22 ⊙ h2 + W2 x)
        y = [h1'; h2']

    A recurrent trace unit whose rotation is not tied to a modulus and a phase: the baseline of its
    paper. The blocks start as rotations, like an RTU's; training may leave the stable region.

    Source: *Real-Time Recurrent Learning using Trace Units in Reinforcement Learning*, Elelimy et
    al. (2024), appendix E.1.
    """

    a: Float[Array, "hidden two two"]
    w1: Float[Array, "hidden inputs"]
    w2: Float[Array, "hidden inputs"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        activation: str = "tanh",
        r_min: float = 0.0,
        r_max: float = 1.0,
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of blocks; the output is twice as wide.
        - `activation`: `"relu"`, `"tanh"`, `"identity"`, `"silu"` or `"gelu"`.
        - `r_min`, `r_max`: the initial squared modulus is uniform in [r_min², r_max²].
        """
        check_sizes(inputs=inputs, hidden=hidden)
        activation_function(activation)
        ring_key, key1, key2 = jax.random.split(key, 3)
        nu, theta = ring(ring_key, hidden, r_min, r_max, 2 * jnp.pi)
        r, angle = jnp.exp(-jnp.exp(nu)), jnp.exp(theta)
        g, phi = r * jnp.cos(angle), r * jnp.sin(angle)
        self.a = jnp.stack([jnp.stack([g, -phi], -1), jnp.stack([phi, g], -1)], -2)
        self.w1 = linear_weights(key1, (hidden, inputs), inputs)
        self.w2 = linear_weights(key2, (hidden, inputs), inputs)
        self.inputs, self.hidden, self.activation = inputs, hidden, activation

    @property
    def outputs(self) -> int:
        """`2 * hidden`."""
        return 2 * self.hidden

    def init_state(self) -> Pair:
        return jnp.zeros(self.hidden, self.w1.dtype), jnp.zeros(self.hidden, self.w1.dtype)

    def update(self, state: Pair, x: Float[Array, " inputs"]) -> Pair:
        """`(h1', h2')`."""
        h1, h2 = state
        act = activation_function(self.activation)
        return (
            act(self.a[:, 0, 0] * h1 + self.a[:, 0, 1] * h2 + x @ self.w1.T),
            act(self.a[:, 1, 0] * h1 + self.a[:, 1, 1] * h2 + x @ self.w2.T),
        )

    def readout(self, state: Pair, x: Array) -> Float[Array, " outputs"]:
        """`[h1'; h2']`."""
        return join(*state)


register("block_diagonal", BlockDiagonal)
