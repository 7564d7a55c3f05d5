"""Memories of a bounded number of past inputs."""

from abc import abstractmethod

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from zoo.memory import AbstractMemory, Begin, Carry, Sensitivity
from zoo.parts import positions, real_dtype

State = tuple[Float[Array, "reach inputs"], Int[Array, ""]]


class AbstractFiniteMemory(AbstractMemory):
    """An output that is a function of the last inputs: a convolution, or attention in a window.

    The state is `(past, count)`: the last `reach` inputs, oldest first, and how many of them belong
    to the episode. It depends on no parameter, so there is nothing for RTRL to carry: the gradient
    of the parameters is exact in every form. An encoder in front learns from the present segment.

    A step computes anew what it needs of the past: exact under changing parameters, and slower
    than a cache.
    """

    @property
    @abstractmethod
    def reach(self) -> int:
        """How many inputs before the present one can matter."""

    @abstractmethod
    def respond(
        self, tokens: Float[Array, "tokens inputs"], age: Int[Array, " tokens"]
    ) -> Float[Array, "tokens outputs"]:
        """The output at every token of a sequence.

        **Arguments:**

        - `tokens`: inputs, one after another.
        - `age`: how many tokens of the same episode come before each. One that is negative belongs
          to no episode. Where a token's reach starts before the sequence, its output is not used.

        **Returns:**

        The outputs, shape `[tokens, outputs]`.
        """

    def init_state(self) -> State:
        """Zeros."""
        dtype = real_dtype(self)
        return jnp.zeros((self.reach, self.inputs), dtype), jnp.zeros((), jnp.int32)

    def step(
        self, state: State, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[State, Float[Array, " outputs"]]:
        self._check(x.shape, (self.inputs,), "x")
        state, ys = self.scan(state, x[None], jnp.asarray(begin)[None])
        return state, ys[0]

    def scan(
        self, state: State, xs: Float[Array, "..."], begin: Bool[Array, "..."] | None = None
    ) -> tuple[State, Float[Array, "time outputs"]]:
        self._check_sequence(xs, begin)
        (past, count), time = state, len(xs)
        tokens = jnp.concatenate([past, xs])
        before = count - jnp.arange(self.reach, 0, -1, dtype=count.dtype)
        age = jnp.concatenate([before, positions(count, begin, time)])
        in_episode = age >= 0
        age = jnp.where(in_episode, age, -1)
        # What is not finite must reach the outputs it belongs to, but zero times it no others.
        sound = jnp.all(jnp.isfinite(tokens), 1)
        ys = self.respond(jnp.where((in_episode & sound)[:, None], tokens, 0), age)
        tainted = _any_before(in_episode & ~sound, jnp.minimum(age, self.reach))
        ys = jnp.where(tainted[:, None], jnp.nan, ys)[self.reach :]
        count = jnp.minimum(age[-1] + 1, self.reach)
        lag = jnp.arange(self.reach, 0, -1)[:, None]
        return (jnp.where(lag <= count, tokens[time:], 0), count), ys

    def rtrl_init(self) -> Sensitivity:
        """Nothing."""
        return ()

    def rtrl_step(
        self, carry: Carry, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[Carry, Float[Array, " outputs"]]:
        state, sensitivity = jax.lax.stop_gradient(carry)
        state, y = self.step(state, x, begin)
        return (jax.lax.stop_gradient(state), sensitivity), y

    def rtrl_scan(
        self, carry: Carry, xs: Float[Array, "..."], begin: Bool[Array, "..."] | None = None
    ) -> tuple[Carry, Float[Array, "time outputs"]]:
        state, sensitivity = jax.lax.stop_gradient(carry)
        state, ys = self.scan(state, xs, begin)
        return (jax.lax.stop_gradient(state), sensitivity), ys


def _any_before(flags, lags):
    """Whether a flag is set at one of the `lags` steps before each, or at the step itself."""
    total = jnp.concatenate([jnp.zeros(1, int), jnp.cumsum(flags.astype(int))])
    end = jnp.arange(1, len(flags) + 1)
    return total[end] > total[jnp.maximum(end - 1 - jnp.maximum(lags, 0).astype(int), 0)]
