"""Temporal convolutional network."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from zoo.kinds import AbstractFiniteMemory
from zoo.parts import Linear, RingBuffer, check_sizes, linear_weights
from zoo.registry import register


class _CausalConvolution(eqx.Module):
    """`b + Σ_j W_j x_{t - j·dilation}`, zeros before an episode."""

    weight: Float[Array, "outputs taps inputs"]
    bias: Float[Array, " outputs"]
    dilation: int = eqx.field(static=True)

    def __init__(self, inputs, outputs, taps, dilation, key):
        weight_key, bias_key = jax.random.split(key)
        self.weight = linear_weights(weight_key, (outputs, taps, inputs), taps * inputs)
        self.bias = linear_weights(bias_key, (outputs,), taps * inputs)
        self.dilation = dilation

    def __call__(self, tokens, age):
        length, out = tokens.shape[0], self.bias[None]
        for j in range(self.weight.shape[1]):
            lag = j * self.dilation
            shifted = jnp.pad(tokens, ((lag, 0), (0, 0)))[:length]
            known = (age >= lag)[:, None]
            out = out + jnp.where(known, shifted, 0) @ self.weight[:, j].T
        return out

    @property
    def reach(self):
        return self.dilation * (self.weight.shape[1] - 1)

    def recall(self, tokens):
        """The last tokens that the next one can see, and room for it."""
        seen = tokens[len(tokens) - self.reach :]
        return RingBuffer.of(jnp.pad(seen, ((1, 0), (0, 0))))

    def arranged(self):
        """The same, as the next output reads it."""
        kernel = self.weight.reshape(len(self.bias), -1).T
        return _ArrangedConvolution(kernel, self.bias, self.dilation)


class _ArrangedConvolution(eqx.Module):
    """A convolution that goes on token by token, from the last ones."""

    kernel: Float[Array, "taps_and_inputs outputs"]
    bias: Float[Array, " outputs"]
    dilation: int = eqx.field(static=True)

    def next(self, recalled, x, age):
        """The output at the token that follows."""
        recalled = recalled.append(x)
        lags = jnp.arange(0, len(recalled), self.dilation)
        seen = jnp.where((lags <= age)[:, None], recalled.at(lags), 0)
        return recalled, self.bias + seen.ravel() @ self.kernel


class TCN(AbstractFiniteMemory):
    """Temporal convolutional network: blocks of dilated causal convolutions.

    Each block is `relu(z + relu(conv(relu(conv(z)))))` with a linear map of z where widths differ;
    the dilation doubles from block to block. Without the weight norm and dropout of the paper,
    which are not of its memory. Its reach is `2 (taps - 1) (2^blocks - 1)` steps: 30 by default.

    Source: *An Empirical Evaluation of Generic Convolutional and Recurrent Networks for Sequence
    Modeling*, Bai et al. (2018), section 3.
    """

    convolutions: tuple[tuple[_CausalConvolution, _CausalConvolution], ...]
    widen: Linear | None
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs: int, hidden: int, *, blocks: int = 4, taps: int = 2, key: Array):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of every block and of `y`.
        - `blocks`: number of blocks.
        - `taps`: width of the filters, in steps.
        """
        check_sizes(inputs=inputs, hidden=hidden, blocks=blocks, taps=taps)
        keys = jax.random.split(key, 2 * blocks + 1)
        self.convolutions = tuple(
            (
                _CausalConvolution(inputs if i == 0 else hidden, hidden, taps, 2**i, keys[2 * i]),
                _CausalConvolution(hidden, hidden, taps, 2**i, keys[2 * i + 1]),
            )
            for i in range(blocks)
        )
        self.widen = Linear(inputs, hidden, key=keys[-1]) if inputs != hidden else None
        self.inputs, self.hidden = inputs, hidden

    @property
    def reach(self) -> int:
        """The sum over all filters."""
        return sum(c.reach for block in self.convolutions for c in block)

    def respond(
        self, tokens: Float[Array, "tokens inputs"], age: Int[Array, " tokens"]
    ) -> Float[Array, "tokens outputs"]:
        return self._layers(tokens, lambda i, convolution, z: convolution(z, age), jax.vmap)

    def recall(
        self, tokens: Float[Array, "reach inputs"], age: Int[Array, " reach"]
    ) -> tuple[RingBuffer, ...]:
        """The last inputs of every convolution."""
        recalled = []

        def convolve(i, convolution, z):
            recalled.append(convolution.recall(z))
            return convolution(z, age)

        self._layers(tokens, convolve, jax.vmap)
        return tuple(recalled)

    def respond_next(
        self, recalled: tuple[RingBuffer, ...], x: Float[Array, " inputs"], age: Int[Array, ""]
    ) -> tuple[tuple[RingBuffer, ...], Float[Array, " outputs"]]:
        later = []

        def convolve(i, convolution, z):
            kept, y = convolution.next(recalled[i], z, age)
            later.append(kept)
            return y

        y = self._layers(x, convolve, lambda f: f)
        return tuple(later), y

    def _layers(self, z, convolve, each):
        """All blocks; `convolve(i, convolution, z)` is the i-th convolution of all, and `each`
        makes a map of one token one of `z`."""
        for i, (first, second) in enumerate(self.convolutions):
            inner = jax.nn.relu(convolve(2 * i, first, z))
            through = jax.nn.relu(convolve(2 * i + 1, second, inner))
            if i == 0 and self.widen is not None:
                z = each(self.widen)(z)
            z = jax.nn.relu(z + through)
        return z


register("tcn", TCN)
