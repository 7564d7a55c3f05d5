"""Deep memories: blocks of norm, cell, gate and residual, one after another."""

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float

from zoo.base import AbstractMemory, Begin, Carry, Sensitivity, State


class Block(eqx.Module):
    """One layer around a memory: `x + mix(cell(norm(x)))`.

    `mix` is a linear map back to the width of `x`, gated (`W y ⊙ σ(V y)`, a gated linear unit) or
    plain.
    """

    norm: eqx.nn.LayerNorm | None
    cell: AbstractMemory
    value: eqx.nn.Linear
    gate: eqx.nn.Linear | None

    def __init__(self, cell: AbstractMemory, *, norm: bool = True, gated: bool = True, key: Array):
        """**Arguments:**

        - `cell`: the memory inside; its `inputs` are the width of the block.
        - `norm`: whether a layer norm stands in front of the cell.
        - `gated`: whether the map back is a gated linear unit.
        - `key`: PRNG key.
        """
        value_key, gate_key = jax.random.split(key)
        self.norm = eqx.nn.LayerNorm(cell.inputs) if norm else None
        self.cell = cell
        self.value = eqx.nn.Linear(cell.outputs, cell.inputs, key=value_key)
        self.gate = eqx.nn.Linear(cell.outputs, cell.inputs, key=gate_key) if gated else None

    def before(self, x: Float[Array, " inputs"]) -> Float[Array, " inputs"]:
        """The cell's input for the block's input `x`."""
        return x if self.norm is None else self.norm(x)

    def after(
        self, x: Float[Array, " inputs"], y: Float[Array, " outputs"]
    ) -> Float[Array, " inputs"]:
        """The block's output for its input `x` and the cell's output `y`."""
        gate = 1.0 if self.gate is None else jax.nn.sigmoid(self.gate(y))
        return x + self.value(y) * gate


class Stack(AbstractMemory):
    """Several blocks, one above the other, as one memory with the same four forms.

    In the RTRL forms every layer carries the sensitivities of its own parameters, and credit
    passes between layers inside a segment. What is lost is the path through an upper layer's state
    across a segment's start to the parameters of the layers below: exact for one layer, an
    approximation above, better with longer segments.
    """

    blocks: tuple[Block, ...]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, blocks: tuple[Block, ...] | list[Block]):
        """**Arguments:**

        - `blocks`: at least one, all of the same width.

        **Raises:**

        `ValueError` where the widths differ or there is no block.
        """
        if not blocks:
            raise ValueError("`blocks` (=()) must hold at least one block.")
        widths = [block.cell.inputs for block in blocks]
        if len(set(widths)) > 1:
            raise ValueError(
                f"`blocks` have cells with inputs {widths}: they must all be the same."
            )
        self.blocks = tuple(blocks)
        self.inputs = widths[0]
        self.hidden = blocks[0].cell.hidden

    @property
    def outputs(self) -> int:
        """`inputs`: a residual network keeps its width."""
        return self.inputs

    def init_state(self) -> State:
        """The states of the blocks, from the first to the last."""
        return tuple(block.cell.init_state() for block in self.blocks)

    def step(
        self, state: State, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[State, Float[Array, " outputs"]]:
        """See `zoo.AbstractMemory.step`."""
        states = []
        for block, inner in zip(self.blocks, state, strict=True):
            inner, y = block.cell.step(inner, block.before(x), begin)
            states.append(inner)
            x = block.after(x, y)
        return tuple(states), x

    def scan(
        self, state: State, xs: Float[Array, "..."], begin: Bool[Array, "..."] | None = None
    ) -> tuple[State, Float[Array, "time outputs"]]:
        """See `zoo.AbstractMemory.scan`."""
        states = []
        for block, inner in zip(self.blocks, state, strict=True):
            inner, ys = block.cell.scan(inner, jax.vmap(block.before)(xs), begin)
            states.append(inner)
            xs = jax.vmap(block.after)(xs, ys)
        return tuple(states), xs

    def rtrl_init(self) -> Sensitivity:
        """The sensitivities of the blocks, from the first to the last."""
        return tuple(block.cell.rtrl_init() for block in self.blocks)

    def rtrl_step(
        self, carry: Carry, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[Carry, Float[Array, " outputs"]]:
        """See `zoo.AbstractMemory.rtrl_step`."""
        carries = []
        for block, *inner in zip(self.blocks, *carry, strict=True):
            inner, y = block.cell.rtrl_step(tuple(inner), block.before(x), begin)
            carries.append(inner)
            x = block.after(x, y)
        states, sensitivities = zip(*carries, strict=True)
        return (states, sensitivities), x

    def rtrl_scan(
        self, carry: Carry, xs: Float[Array, "..."], begin: Bool[Array, "..."] | None = None
    ) -> tuple[Carry, Float[Array, "time outputs"]]:
        """See `zoo.AbstractMemory.rtrl_scan`."""
        carries = []
        for block, *inner in zip(self.blocks, *carry, strict=True):
            inner, ys = block.cell.rtrl_scan(tuple(inner), jax.vmap(block.before)(xs), begin)
            carries.append(inner)
            xs = jax.vmap(block.after)(xs, ys)
        states, sensitivities = zip(*carries, strict=True)
        return (states, sensitivities), xs
