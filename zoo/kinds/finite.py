"""Memories of a bounded number of past inputs."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

import scan
from zoo.memory import AbstractMemory, AbstractStepper, Begin, Cache, Carry, Sensitivity
from zoo.parts import RingBuffer, arranged, positions, real_dtype

State = tuple[Float[Array, "reach inputs"], Int[Array, ""]]


class AbstractFiniteMemory(AbstractMemory):
    """An output that is a function of the last inputs: a convolution, or attention in a window.

    The state is `(past, count)`: the last `reach` inputs, oldest first, and how many of them belong
    to the episode. It depends on no parameter, so there is nothing for RTRL to carry: the gradient
    of the parameters is exact in every form. An encoder in front learns from the present segment.

    A step computes anew what it needs of the past, which is exact under changing parameters. A
    `stepper` keeps it instead, as long as parameters stay.
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

    def recall(self, tokens: Float[Array, "reach inputs"], age: Int[Array, " reach"]) -> Cache:
        """What `respond_next` needs of the past: the last inputs themselves by default.

        **Arguments:**

        - `tokens`: the last `reach` inputs, oldest first.
        - `age`: as for `respond`.

        **Returns:**

        A pytree of arrays.
        """
        return tokens

    def respond_next(
        self, recalled: Cache, x: Float[Array, " inputs"], age: Int[Array, ""]
    ) -> tuple[Cache, Float[Array, " outputs"]]:
        """The output at the token that follows: the last one of `respond`.

        **Arguments:**

        - `recalled`: as `recall` or the call before returned it.
        - `x`: the token.
        - `age`: how many tokens of the same episode came before it, if fewer than `reach`.

        **Returns:**

        `(recalled, y)`.
        """
        tokens = jnp.concatenate([recalled, x[None]])
        ages = age - jnp.arange(self.reach, -1, -1, dtype=age.dtype)
        return tokens[1:], self.respond(tokens, jnp.maximum(ages, -1))[-1]

    def stepper(self) -> AbstractStepper:
        return _FiniteStepper(self, arranged(self))

    def init_state(self) -> State:
        """Zeros."""
        dtype = real_dtype(self)
        return jnp.zeros((self.reach, self.inputs), dtype), jnp.zeros((), jnp.int32)

    def step(
        self, state: State, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[State, Float[Array, " outputs"]]:
        x = self.check_input(x)
        state, ys = self.scan(state, x[None], scan.check_flag(begin)[None])
        return state, ys[0]

    def scan(
        self, state: State, xs: Float[Array, "..."], begin: Bool[Array, "..."] | None = None
    ) -> tuple[State, Float[Array, "time outputs"]]:
        xs, begin = self.check_inputs(xs, begin)
        state = self.check_state(state)
        (past, count), time = state, xs.shape[0]
        tokens = jnp.concatenate([past, xs])
        age = jnp.concatenate([_ages(count, self.reach), positions(count, begin, time)])
        in_episode = age >= 0
        age = jnp.where(in_episode, age, -1)
        # What is not finite must reach the outputs it belongs to, but zero times it no others.
        sound = jnp.all(jnp.isfinite(tokens), 1)
        ys = self.respond(jnp.where((in_episode & sound)[:, None], tokens, 0), age)
        tainted = _any_before(in_episode & ~sound, jnp.minimum(age, self.reach))
        ys = jnp.where(tainted[:, None], jnp.nan, ys)[self.reach :]
        count = jnp.minimum(age[-1] + 1, self.reach)
        return (_of_episode(tokens[time:], count), count), ys

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


class _Recalled(eqx.Module):
    """A finite memory's state, what it recalls of it, and for how many steps more an input that is
    not finite taints the outputs."""

    past: RingBuffer
    count: Int[Array, ""]
    tainted: Int[Array, ""]
    recalled: Cache


class _FiniteStepper(AbstractStepper):
    """Steps that recall the past instead of computing it anew."""

    memory: AbstractFiniteMemory
    arranged: AbstractFiniteMemory

    def cache(self, state: State) -> _Recalled:
        past, count = state
        age, reach = _ages(count, len(past)), len(past)
        in_episode = age >= 0
        sound = jnp.all(jnp.isfinite(past), 1)
        # Token i is seen by the next i + 1 outputs.
        steps = jnp.arange(1, reach + 1, dtype=count.dtype)
        tainted = jnp.max(jnp.where(in_episode & ~sound, steps, 0), initial=0)
        tokens = jnp.where((in_episode & sound)[:, None], past, 0)
        recalled = self.memory.recall(tokens, jnp.where(in_episode, age, -1))
        return _Recalled(RingBuffer.of(past), count, tainted, recalled)

    def step(
        self, cache: _Recalled, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[_Recalled, Float[Array, " outputs"]]:
        memory = self.memory
        x = memory.check_input(x)
        zero = jnp.zeros_like(cache.count)
        age, tainted = scan.reset(begin, (zero, zero), (cache.count, cache.tainted))
        sound = jnp.all(jnp.isfinite(x))
        tainted = jnp.where(sound, tainted, memory.reach + 1)
        recalled, y = self.arranged.respond_next(cache.recalled, jnp.where(sound, x, 0), age)
        count = jnp.minimum(age + 1, memory.reach)
        y = jnp.where(tainted > 0, jnp.nan, y)
        return _Recalled(cache.past.append(x), count, jnp.maximum(tainted - 1, 0), recalled), y

    def state(self, cache: _Recalled) -> State:
        return _of_episode(cache.past.in_order(), cache.count), cache.count


def _ages(count, reach):
    """How many tokens of the episode come before each of the last `reach`; negative for others."""
    return count - jnp.arange(reach, 0, -1, dtype=count.dtype)


def _of_episode(past, count):
    """The last tokens, zeros where they are of an earlier episode."""
    lag = jnp.arange(len(past), 0, -1)[:, None]
    return jnp.where(lag <= count, past, 0)


def _any_before(flags, lags):
    """Whether a flag is set at one of the `lags` steps before each, or at the step itself."""
    total = jnp.concatenate([jnp.zeros(1, int), jnp.cumsum(flags.astype(int))])
    end = jnp.arange(1, flags.shape[0] + 1)
    return total[end] > total[jnp.maximum(end - 1 - jnp.maximum(lags, 0).astype(int), 0)]
