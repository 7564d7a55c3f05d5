"""Sensitivities that lie in a table, and are looked up one by one where they are used.

A gradient over many segments is the sum of each one's cotangent times its sensitivity. Where the
sensitivities are picked first and `vmap` goes over them, XLA's CPU compiler writes a gradient of
the parameters' size for every segment before it adds them up. A loop over the rows of the table
adds each to the sum while it is in the cache: 0.8 in place of 2.2 ms for 256 segments of 96 complex
units × 64 inputs.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt16

import scan
from rtrl._planar import Planar, is_planar
from rtrl.structure import AbstractStructure, state_tangent
from scan.precision import at_least_single

# Rows that one turn of the loop adds: more of them spill out of the registers.
_TOGETHER = 4
# From how many numbers in a row on the loop's turns, some 3 µs each, are worth it: 256 rows of
# 1,920 took 0.18 ms at once and 0.22 in the loop, of 3,072 0.48 and 0.19, of 12,288 1.30 and 0.77.
_FEWEST_NUMBERS = 2048


class Row(eqx.Module):
    """An array that is a row of another: in place of each array of a sensitivity.

    **Attributes:**

    - `table`: shape `[rows, ...]`, an array or `rtrl.Rounded`; `None` among the axes of `jax.vmap`.
    - `index`: which row, or which rows; 0 among the axes of `jax.vmap`.
    """

    table: Any
    index: Any


class Rounded(eqx.Module):
    """An array of real numbers in half the memory, to two digits or three: a bfloat16's bits.

    XLA's CPU compiler turns `astype(bfloat16)` into code for one number at a time. On the bits
    themselves it makes vector instructions.

    **Attributes:**

    - `bits`: the upper half of each float32's.
    - `dtype`: of what was rounded.
    """

    bits: UInt16[Array, "..."]
    dtype: str = eqx.field(static=True)

    def restored(self) -> Float[Array, "..."]:
        """The numbers, in the type that they had."""
        bits = self.bits.astype(jnp.uint32) << 16
        return jax.lax.bitcast_convert_type(bits, jnp.float32).astype(self.dtype)


def rounded(tree: PyTree) -> PyTree:
    """A sensitivity with `Rounded` in place of its arrays of real numbers, for storing many.

    Its error is up to one part in 256 of each number, where that and its rounding are finite and
    normal numbers of float32. `rtrl.segment` and `rtrl.supply` take it in a carry; what they return
    is not rounded.
    """

    def of(x: Array) -> Any:
        if not jnp.issubdtype(x.dtype, jnp.floating) or x.dtype.itemsize <= 2:
            return x
        x32 = x.astype(jnp.float32)
        bits = jax.lax.bitcast_convert_type(x32, jnp.uint32)
        # Some NaNs would be carried over into a zero, a GPU's 0x7fffffff among them.
        bits = jnp.where(jnp.isnan(x32), 0x7FC00000, bits + 0x8000)
        return Rounded((bits >> 16).astype(jnp.uint16), x.dtype.name)

    return jax.tree.map(of, tree)


def is_stored(leaf: Any) -> bool:
    """Whether a node stands in place of an array, which `looked_up` finds."""
    return isinstance(leaf, Row | Rounded)


def rows(table: PyTree, index: Int[Array, "..."]) -> PyTree:
    """Rows of a table of sensitivities, in place of a sensitivity in a carry.

    For `jax.vmap` over many of them, along `row_axes`: `supply`'s backward pass then adds up their
    gradients row by row. Of one alone there is no gradient. Whatever else is made of a sensitivity
    looks it up first.

    **Arguments:**

    - `table`: sensitivities, every array with a leading axis over rows; they may be `rounded`.
    - `index`: which of them; must be in bounds.

    **Returns:**

    A pytree like a sensitivity, with `Row`s in place of arrays.
    """
    return jax.tree.map(lambda leaf: Row(leaf, index), table, is_leaf=is_stored)


def row_axes(tree: PyTree) -> PyTree:
    """The axes along which `jax.vmap` goes over many carries: of a table's rows, the index.

    **Arguments:**

    - `tree`: a pytree with a leading axis in every array but the tables of its rows.

    **Returns:**

    What `jax.vmap` takes for it in `in_axes`.
    """
    axis = lambda leaf: Row(None, 0) if isinstance(leaf, Row) else 0  # noqa: E731
    return jax.tree.map(axis, tree, is_leaf=is_stored)


def looked_up(tree: PyTree) -> PyTree:
    """A sensitivity with arrays in place of what `rows` and `rounded` have put there."""

    def found(leaf: Any) -> Any:
        if isinstance(leaf, Row):
            pick = lambda x: x.at[leaf.index].get(mode="promise_in_bounds")  # noqa: E731
            leaf = jax.tree.map(pick, leaf.table)
        return leaf.restored() if isinstance(leaf, Rounded) else leaf

    return jax.tree.map(found, tree, is_leaf=is_stored)


def as_table(tree: PyTree) -> tuple[PyTree, Int[Array, "..."]] | None:
    """`(table, index)` of what `rows` has made; `None` of any other sensitivity."""
    leaves = [x for x in jax.tree.leaves(tree, is_leaf=is_stored) if isinstance(x, Row)]
    if not leaves:
        return None
    return jax.tree.map(lambda row: row.table, tree, is_leaf=is_stored), leaves[0].index


def pulled_back(
    structure: AbstractStructure, like: PyTree, sensitivity: PyTree, cotangent: PyTree
) -> PyTree:
    """The cotangent of a state times its sensitivity: the cotangent of the parameters.

    A structure states one rule, for tangents. It is linear, so that its transpose needs no values:
    `like` only gives the parameters' shapes, and the two rules cannot come to differ.
    """
    state = jax.tree.map(jnp.asarray, cotangent)  # its shapes and dtypes
    (of_parameters,) = jax.linear_transpose(
        lambda tangent: state_tangent(structure, sensitivity, tangent, state), like
    )(cotangent)
    return of_parameters


def sum_pulled_back(
    structure: AbstractStructure,
    parameters: PyTree,
    table: PyTree,
    index: Int[Array, " rows"],
    begin: Bool[Array, " rows"],
    cotangents: PyTree,
) -> PyTree:
    """The sum of `pulled_back` over rows of a table: no past where an episode begins.

    **Arguments:**

    - `parameters`: those that the sensitivities are of, for their shapes.
    - `table`: of the sensitivities, `[all rows, ...]`.
    - `index`, `begin`: which rows, and where the state is that of a beginning.
    - `cotangents`: of the states, `[rows, ...]`.
    """
    like = jax.tree.map(lambda p: jax.ShapeDtypeStruct(p.shape, p.dtype), parameters)

    def of_row(table, index, begin, cotangent):
        sensitivity = structure.reset(begin, looked_up(rows(table, index)))
        return pulled_back(structure, like, sensitivity, cotangent)

    def at_once(table, *of_rows):
        each = jax.vmap(of_row, (None, 0, 0, 0))(table, *of_rows)
        return jax.tree.map(lambda x: jnp.sum(x, 0), each)

    def one_by_one(table, *of_rows):
        together = math.gcd(len(index), _TOGETHER)
        turns = jax.tree.map(lambda x: x.reshape(-1, together, *x.shape[1:]), of_rows)

        def turn(total, some):
            for i in range(together):
                row = of_row(table, *jax.tree.map(lambda x, i=i: x[i], some))
                total = jax.tree.map(lambda s, x: s + x.astype(s.dtype), total, _in_planes(row))
            return total, None

        # In half precision a sum of many would stop growing.
        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, at_least_single(x.dtype)), like)
        total, _ = jax.lax.scan(turn, _in_planes(nothing), turns)
        return jax.tree.map(lambda s, x: s.astype(x.dtype), _out_of_planes(total), like)

    numbers = sum(math.prod(x.shape[1:]) for x in jax.tree.leaves(table))
    if numbers < _FEWEST_NUMBERS:
        return at_once(table, index, begin, cotangents)

    # Under `vmap`, as over seeds, every batch has a table of its own: they are laid end to end, and
    # one loop after the other goes over its part. Batched along, each turn would gather.
    @jax.custom_batching.custom_vmap
    def loops(table, index, begin, cotangents):
        one = lambda of_rows: one_by_one(table, *of_rows)  # noqa: E731
        return jax.lax.map(one, (index, begin, cotangents))

    @loops.def_vmap
    def loops_of_batches(size, batched, table, *of_loops):
        tables, *others = batched
        flat = lambda x: jax.lax.collapse(x, 0, 2)  # noqa: E731
        total = 0
        if any(jax.tree.leaves(tables)):
            table = batched_whole(table, tables, size)
            total = jax.tree.leaves(table)[0].shape[1]
            table = jax.tree.map(flat, table)
        index, begin, cotangents = batched_whole(tuple(of_loops), tuple(others), size)
        index = index + total * jnp.arange(size, dtype=index.dtype)[:, None, None]
        sums = loops(table, *jax.tree.map(flat, (index, begin, cotangents)))
        sums = jax.tree.map(lambda x: x.reshape(size, len(x) // size, *x.shape[1:]), sums)
        return sums, jax.tree.map(lambda _: True, sums)

    def loop(table, *of_rows):
        sums = loops(table, *jax.tree.map(lambda x: x[None], of_rows))
        return jax.tree.map(lambda x: x[0], sums)

    return scan.loop_or_tree(loop, at_once, table, index, begin, cotangents)


def batched_whole(tree: PyTree, batched: PyTree, size: int) -> PyTree:
    """What a rule for `vmap` is given, with a leading axis of `size` in every array."""
    whole = lambda x, b: x if b else jnp.broadcast_to(x, (size, *x.shape))  # noqa: E731
    return jax.tree.map(whole, tree, batched)


def _in_planes(tree: PyTree) -> PyTree:
    """Complex arrays as two real ones, whose sums XLA makes vector instructions of."""
    planes = lambda x: Planar(x.real, x.imag) if jnp.iscomplexobj(x) else x  # noqa: E731
    return jax.tree.map(planes, tree)


def _out_of_planes(tree: PyTree) -> PyTree:
    whole = lambda x: x.to_complex() if is_planar(x) else x  # noqa: E731
    return jax.tree.map(whole, tree, is_leaf=is_planar)
