"""Memories that see the last inputs side by side."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import scan
from zoo.memory import (
    AbstractMemory,
    AbstractStepper,
    Begin,
    Cache,
    Carry,
    PlainStepper,
    Sensitivity,
    State,
)
from zoo.parts import check_sizes, real_dtype


class Windowed(AbstractMemory):
    """A memory that is given a window of the last inputs: `cell([x_{t-k+1}, …, x_t])`.

    Inputs before the beginning of an episode are zeros. The state is `(past, state of the cell)`,
    `past` the last `window - 1` inputs, oldest first. A convolution over time in front of a cell,
    as in the QRNN, is a linear map of the window, and so belongs to the cell.

    In the RTRL forms the inputs kept from before a segment are constants: parameters of the cell
    have the gradient of the whole past, an encoder in front learns from the present segment.
    """

    cell: AbstractMemory
    window: int = eqx.field(static=True)
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, cell: Any, window: int):
        """**Arguments:**

        - `cell`: a memory whose `inputs` are `window` times those of the whole.
        - `window`: how many inputs it sees, the present one among them.
        """
        check_sizes(window=window)
        if not isinstance(cell, AbstractMemory):
            raise TypeError(f"`cell` (a {type(cell).__name__}) must be a zoo.AbstractMemory.")
        if cell.inputs % window:
            raise ValueError(f"`window` (={window}) must divide the cell's inputs ({cell.inputs}).")
        self.cell, self.window = cell, window
        self.inputs, self.hidden = cell.inputs // window, cell.hidden

    @property
    def outputs(self) -> int:
        """Those of the cell."""
        return self.cell.outputs

    def init_state(self) -> State:
        """`(zeros, state of the cell)`."""
        past = jnp.zeros((self.window - 1, self.inputs), real_dtype(self.cell))
        return past, self.cell.init_state()

    def step(
        self, state: State, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[State, Float[Array, " outputs"]]:
        state = self.check_state(state)
        return _WindowedStepper(self, PlainStepper(self.cell)).step(state, x, begin)

    def scan(
        self, state: State, xs: Float[Array, "..."], begin: Bool[Array, "..."] | None = None
    ) -> tuple[State, Float[Array, "time outputs"]]:
        xs, begin = self.check_inputs(xs, begin)
        state = self.check_state(state)
        past, windows = self._windows(state[0], xs, begin)
        inner, ys = self.cell.scan(state[1], windows, begin)
        return (past, inner), ys

    def rtrl_init(self) -> Sensitivity:
        """The sensitivity of the cell."""
        return self.cell.rtrl_init()

    def rtrl_step(
        self, carry: Carry, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[Carry, Float[Array, " outputs"]]:
        (past, state), sensitivity = self.check_carry(carry)
        x = self.check_input(x)
        past = jax.lax.stop_gradient(past)
        past, windows = self._windows(past, x[None], scan.check_flag(begin)[None])
        (state, sensitivity), y = self.cell.rtrl_step((state, sensitivity), windows[0], begin)
        return ((jax.lax.stop_gradient(past), state), sensitivity), y

    def rtrl_scan(
        self, carry: Carry, xs: Float[Array, "..."], begin: Bool[Array, "..."] | None = None
    ) -> tuple[Carry, Float[Array, "time outputs"]]:
        (past, state), sensitivity = self.check_carry(carry)
        xs, begin = self.check_inputs(xs, begin)
        past, windows = self._windows(jax.lax.stop_gradient(past), xs, begin)
        (state, sensitivity), ys = self.cell.rtrl_scan((state, sensitivity), windows, begin)
        return ((jax.lax.stop_gradient(past), state), sensitivity), ys

    def stepper(self) -> AbstractStepper:
        return _WindowedStepper(self, self.cell.stepper())

    def _windows(self, past, xs, begin):
        """The past after the last step, and every step's window, oldest first."""
        time, before = xs.shape[0], self.window - 1
        tokens = jnp.concatenate([past, xs])
        lags = [tokens[before - j : before - j + time] for j in range(self.window)]
        ends = [tokens[time + j : time + j + 1] for j in range(before)]
        if begin is not None:
            # Lag j is of the same episode unless one of the steps t-j+1 … t begins another.
            flags = jnp.concatenate([jnp.zeros(before, bool), begin])
            crossed = jnp.zeros(time, bool)
            for j in range(1, self.window):
                crossed = crossed | flags[before - j + 1 : before - j + 1 + time]
                lags[j] = jnp.where(crossed[:, None], 0, lags[j])
            later = jnp.zeros((), bool)
            for j in reversed(range(before)):
                ends[j] = jnp.where(later, 0, ends[j])
                later = later | flags[j - before]
        windows = jnp.concatenate(lags[::-1], axis=1)
        return jnp.concatenate([past[:0], *ends]), windows


class _WindowedStepper(AbstractStepper):
    """The stepper of the cell, given windows."""

    memory: Windowed
    cell: AbstractStepper

    def cache(self, state: State) -> tuple[Array, Cache]:
        past, inner = state
        return past, self.cell.cache(inner)

    def step(
        self, cache: tuple[Array, Cache], x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[tuple[Array, Cache], Float[Array, " outputs"]]:
        memory = self.memory
        x = memory.check_input(x)
        past, windows = memory._windows(cache[0], x[None], scan.check_flag(begin)[None])
        inner, y = self.cell.step(cache[1], windows[0], begin)
        return (past, inner), y

    def state(self, cache: tuple[Array, Cache]) -> State:
        past, inner = cache
        return past, self.cell.state(inner)
