"""Deep memories: blocks of norm, cell, gate and residual, one after another."""

from collections.abc import Iterable, Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import rtrl
import scan
from zoo.carry import carried_on
from zoo.cell import AbstractCell
from zoo.fronted import Fronted
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
from zoo.parts import Linear, real_dtype
from zoo.parts.checks import shown
from zoo.windowed import Windowed

_CREDIT = ("layerwise", "exact")


class Block(eqx.Module):
    """One layer around a memory: `x + mix(cell(norm(x)))`.

    `mix` is a linear map back to the width of `x`, gated (`W y ⊙ σ(V y)`, a gated linear unit) or
    plain.
    """

    norm: eqx.nn.LayerNorm | None
    cell: AbstractMemory
    value: Linear
    gate: Linear | None

    def __init__(self, cell: AbstractMemory, *, norm: bool = True, gated: bool = True, key: Array):
        """**Arguments:**

        - `cell`: the memory inside; its `inputs` are the width of the block.
        - `norm`: whether a layer norm stands in front of the cell.
        - `gated`: whether the map back is a gated linear unit.

        **Raises:**

        `TypeError` for what is no memory; `ValueError` for a norm of a single number.
        """
        if not isinstance(cell, AbstractMemory):
            raise TypeError(f"`cell` (={shown(cell)}) must be a memory, such as zoo.get makes.")
        if norm and cell.inputs == 1:
            raise ValueError(
                "`inputs` (=1) must be at least 2 where a layer norm stands in front of a cell, as "
                "it does in several layers: of one number it leaves 0. A linear layer in front "
                "makes more of it; zoo.Block(norm=False) has no norm."
            )
        value_key, gate_key = jax.random.split(key)
        self.norm = eqx.nn.LayerNorm(cell.inputs) if norm else None
        self.cell = cell
        self.value = Linear(cell.outputs, cell.inputs, key=value_key)
        self.gate = Linear(cell.outputs, cell.inputs, key=gate_key) if gated else None

    def before(self, x: Float[Array, " inputs"]) -> Float[Array, " inputs"]:
        """The cell's input for the block's input `x`."""
        return x if self.norm is None else self.norm(x)

    def after(
        self, x: Float[Array, " inputs"], y: Float[Array, " outputs"]
    ) -> Float[Array, " inputs"]:
        """The block's output for its input `x` and the cell's output `y`."""
        gate = 1.0 if self.gate is None else jax.nn.sigmoid(self.gate(y))
        # In the precision of `x`: some cells compute in a higher one, and the next layer would too.
        return x + (self.value(y) * gate).astype(x.dtype)


class Stack(AbstractMemory):
    """Several blocks, one above the other, as one memory with the same four forms.

    `credit` says which gradient the RTRL forms have, and with it what they carry, for layers of
    n₁, n₂, … real numbers of state and P₁, P₂, … parameters:

    | `credit` | credit that crosses a segment's start | numbers kept |
    |---|---|---|
    | `"layerwise"` | from each cell to its own parameters | those of each cell, Σ Pᵢ if diagonal |
    | `"exact"` | all: the stack is one dense recurrence | Σ nᵢ × Σ Pᵢ |

    Inside a segment credit passes between layers in both. What `"layerwise"` loses is the path
    through a cell's state across a segment's start to what is below that cell: other cells, norms
    and gates. It is exact for one cell, an approximation above, better with longer segments.
    `"exact"` has the gradient of BPTT for every parameter. It is for small networks: it goes back
    through each segment Σ nᵢ times. An encoder in front learns from the present segment in both.
    """

    blocks: tuple[Block, ...]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    credit: str = eqx.field(static=True)

    def __init__(self, blocks: tuple[Block, ...] | list[Block], *, credit: str = "layerwise"):
        """**Arguments:**

        - `blocks`: at least one, all of the same width.
        - `credit`: of the RTRL forms, `"layerwise"` or `"exact"`.

        **Raises:**

        `ValueError` where the widths differ or there is no block, for an unknown `credit`, and for
        exact credit through cells that approximate theirs; `TypeError` for a cell without a block.
        """
        if not isinstance(blocks, Iterable):
            raise TypeError(f"`blocks` (a {type(blocks).__name__}) must be several, in a list.")
        blocks = tuple(blocks)
        if not blocks:
            raise ValueError("`blocks` (=()) must hold at least one block.")
        for block in blocks:
            if not isinstance(block, Block):
                raise TypeError(
                    f"`blocks` must hold zoo.Block(cell), not a {type(block).__name__} by itself."
                )
        widths = [block.cell.inputs for block in blocks]
        if len(set(widths)) > 1:
            raise ValueError(
                f"`blocks` have cells with inputs {widths}: they must all be the same."
            )
        check_credit(credit)
        for block in blocks:
            for _, cell in cells(block.cell):
                check_credit(credit, getattr(cell, "sensitivity", rtrl.Exact()))
        self.blocks = blocks
        self.inputs = widths[0]
        self.hidden = blocks[0].cell.hidden
        self.credit = credit

    @property
    def outputs(self) -> int:
        """`inputs`: a residual network keeps its width."""
        return self.inputs

    def init_state(self) -> State:
        return tuple(block.cell.init_state() for block in self.blocks)

    def step(
        self, state: State, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[State, Float[Array, " outputs"]]:
        state = self.check_state(state)
        plain = tuple(PlainStepper(block.cell) for block in self.blocks)
        return _StackStepper(self, plain).step(state, x, begin)

    def scan(
        self, state: State, xs: Float[Array, "..."], begin: Bool[Array, "..."] | None = None
    ) -> tuple[State, Float[Array, "time outputs"]]:
        xs, begin = self.check_inputs(xs, begin)
        state = self.check_state(state)
        states = []
        for block, inner in zip(self.blocks, state, strict=True):
            inner, ys = block.cell.scan(inner, jax.vmap(block.before)(xs), begin)
            states.append(inner)
            xs = jax.vmap(block.after)(xs, ys)
        return tuple(states), xs

    def rtrl_init(self) -> Sensitivity:
        """The sensitivities of the cells, from the first to the last; or that of the whole."""
        if self.credit == "exact":
            x = jax.ShapeDtypeStruct((self.inputs,), real_dtype(self))
            update = lambda stack, state, x: stack.step(state, x)[0]  # noqa: E731
            return rtrl.init(rtrl.Dense(), update, self, self.init_state(), x)
        return tuple(block.cell.rtrl_init() for block in self.blocks)

    def rtrl_step(
        self, carry: Carry, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[Carry, Float[Array, " outputs"]]:
        x = self.check_input(x)
        carry = self.check_carry(carry)
        if self.credit == "exact":
            carry, ys = self._whole(carry, x[None], scan.check_flag(begin)[None], products=True)
            return carry, ys[0]
        run = lambda cell, carry, x: cell.rtrl_step(carry, x, begin)  # noqa: E731
        return carried_on(self, carry, lambda: self._layerwise(run, carry, x, lambda f: f))

    def rtrl_scan(
        self, carry: Carry, xs: Float[Array, "..."], begin: Bool[Array, "..."] | None = None
    ) -> tuple[Carry, Float[Array, "time outputs"]]:
        xs, begin = self.check_inputs(xs, begin)
        carry = self.check_carry(carry)
        if self.credit == "exact":
            return self._whole(carry, xs, begin, products=False)
        run = lambda cell, carry, xs: cell.rtrl_scan(carry, xs, begin)  # noqa: E731
        return carried_on(self, carry, lambda: self._layerwise(run, carry, xs, jax.vmap))

    def _layerwise(self, run, carry, xs, over):
        """Run one cell after another: on a step, or `over` the steps of a segment."""
        carries = []
        for block, *inner in zip(self.blocks, *carry, strict=True):
            inner, ys = run(block.cell, tuple(inner), over(block.before)(xs))
            carries.append(inner)
            xs = over(block.after)(xs, ys)
        states, sensitivities = zip(*carries, strict=True)
        return (states, sensitivities), xs

    def stepper(self) -> AbstractStepper:
        return _StackStepper(self, tuple(block.cell.stepper() for block in self.blocks))

    def _whole(self, carry, xs, begin, *, products):
        """A segment of all layers as one recurrence."""
        whole = _Whole(self.init_state())
        carry, (_, ys) = carried_on(
            self,
            carry,
            lambda: rtrl.segment(whole, self, carry, xs, begin, products=products),
        )
        return carry, ys


class _StackStepper(AbstractStepper):
    """The steppers of the cells, one above the other."""

    memory: Stack
    cells: tuple[AbstractStepper, ...]

    def cache(self, state: State) -> tuple[Cache, ...]:
        return tuple(cell.cache(inner) for cell, inner in zip(self.cells, state, strict=True))

    def step(
        self, cache: tuple[Cache, ...], x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[tuple[Cache, ...], Float[Array, " outputs"]]:
        x = self.memory.check_input(x)
        caches = []
        for block, cell, inner in zip(self.memory.blocks, self.cells, cache, strict=True):
            inner, y = cell.step(inner, block.before(x), begin)
            caches.append(inner)
            x = block.after(x, y)
        return tuple(caches), x

    def state(self, cache: tuple[Cache, ...]) -> State:
        return tuple(cell.state(inner) for cell, inner in zip(self.cells, cache, strict=True))


class _Whole(rtrl.AbstractRecurrence):
    """All layers of a stack as one dense recurrence, whose parameters are the stack.

    What `states` returns is the states of all layers, and the outputs of the last.
    """

    initial: State

    @property
    def structure(self):
        return rtrl.Dense()

    def init_state(self):
        return self.initial

    def states(self, parameters, state, xs, begin):
        layers = []
        for block, inner in zip(parameters.blocks, state, strict=True):
            inner, ys = _states(block.cell, inner, jax.vmap(block.before)(xs), begin)
            layers.append(inner)
            xs = jax.vmap(block.after)(xs, ys)
        return tuple(layers), xs

    def end_state(self, states):
        return jax.tree.map(lambda h: h[-1], states[0])


def _states(memory, state, xs, begin):
    """All states of a memory, and its outputs."""
    xs, begin = memory.check_inputs(xs, begin)
    if isinstance(memory, AbstractCell):
        states = memory.states(memory.recurrence_parameters(), state, xs, begin)
        return states, jax.vmap(memory.readout)(states, xs)

    # The scan of a window or of a stack gives the last state only.
    def step(state, inputs):
        state, y = memory.step(state, *inputs)
        return state, (state, y)

    flags = jnp.zeros(len(xs), bool) if begin is None else begin
    return jax.lax.scan(step, state, (xs, flags))[1]


def cells(memory: AbstractMemory, path: str = "") -> Iterator[tuple[str, AbstractCell]]:
    """The cells inside a memory, with the paths to them."""
    if isinstance(memory, Windowed | Fronted):
        yield from cells(memory.cell, f"{path}.cell")
    elif isinstance(memory, AbstractCell):
        yield path, memory
    elif isinstance(memory, Stack):
        for i, block in enumerate(memory.blocks):
            yield from cells(block.cell, f"{path}.blocks[{i}].cell")


def check_credit(credit: str, sensitivity: rtrl.AbstractSensitivity = rtrl.Exact()) -> None:
    """`ValueError` for a `credit` that there is not, or that a cell's `sensitivity` defeats."""
    if credit not in _CREDIT:
        raise ValueError(f"`credit` (={credit!r}) must be one of {', '.join(_CREDIT)}.")
    if credit == "exact" and not isinstance(sensitivity, rtrl.Exact):
        raise ValueError(
            f"`sensitivity` (={sensitivity!r}) of a cell must be rtrl.Exact() where `credit` is "
            "'exact'."
        )
