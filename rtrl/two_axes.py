"""Recurrences of matrices whose parameters belong to one of the two axes, or to both."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from rtrl._jacobians import Pullback, jacobians_along
from rtrl._planar import (
    add,
    bilinear,
    contract_trailing,
    is_planar,
    multiply,
    total,
)
from rtrl._planar import zeros as zero_trace
from rtrl.structure import AbstractStructure, check_units
from scan.counts import check_counts
from scan.precision import EXACTLY, promoted


class Axes(eqx.Module):
    """The parameters of a recurrence with a matrix as state, sorted by the axis they belong to.

    - `both`: leading axes `[*groups, rows, columns]`; each acts on its own entry of the state.
    - `rows`: leading axes `[*groups, rows]`; each acts on a row.
    - `columns`: leading axes `[*groups, columns]`; each acts on a column. They may be fewer than
      the state's columns: those that are left over at the end do not depend on them.
    """

    both: PyTree = None
    rows: PyTree = None
    columns: PyTree = None


@dataclass(frozen=True)
class TwoAxes(AbstractStructure):
    """Matrices `[*groups, rows, columns]` that change entry by entry: `S_ij' = a_ij S_ij + b_ij`.

    Parameters come as `rtrl.Axes`. A parameter of row i changes all entries of that row, each with
    a history of its own, so its sensitivity has one more axis, over the columns; and the other way
    round. One probe per column, and one per row, keep them apart. For an outer-product memory of
    n × n with n inputs that is O(n³) numbers, with entries that decay alike O(n²): see
    `compressed`.

    - `compressed`: all entries decay alike, and `b = u(rows) v(columns)ᵀ` with u and v linear. Then
      the sensitivity to a row's parameter is the same for every row, and one of them is kept.
    - `probes_at_once`: how many probes run side by side; more need more memory.

    Leaves of the state after the first are taken as constants of the parameters: a stabilizer, say,
    that cancels in the readout.

    Source of the compressed form: *Exploring the Promise and Limits of Real-Time Recurrent
    Learning*, Irie et al. (2024), appendix A.2.
    """

    compressed: bool = False
    probes_at_once: int = 16

    def __post_init__(self):
        check_counts(1, probes_at_once=self.probes_at_once)

    def zeros(self, parameters: Axes, state: PyTree) -> PyTree:
        if not isinstance(parameters, Axes):
            kind = type(parameters).__name__
            raise TypeError(f"`parameters` (of kind {kind}) must be an `rtrl.Axes`.")
        leaves = jax.tree.leaves(state)
        if not leaves or leaves[0].ndim < 2:
            found = f"shape {leaves[0].shape}" if leaves else "without a number"
            raise ValueError(f"`state` ({found}) must begin with a leaf of rows and columns.")
        matrix = leaves[0]
        *groups, rows, columns = matrix.shape
        self._check(parameters.both, matrix.shape)
        self._check(parameters.rows, (*groups, rows))
        self._check(parameters.columns, tuple(groups))

        def of(leaf, other):
            dtype, units = promoted(leaf, matrix), len(groups) + 1
            if self.compressed:
                return zero_trace((other, *groups, *leaf.shape[units:]), dtype)
            return zero_trace((other, *leaf.shape), dtype)

        return (
            Axes(
                jax.tree.map(lambda p: zero_trace(p.shape, promoted(p, matrix)), parameters.both),
                jax.tree.map(lambda p: of(p, columns), parameters.rows),
                jax.tree.map(lambda p: of(p, rows), parameters.columns),
            ),
        )

    @staticmethod
    def _check(parameters: PyTree, units: tuple[int, ...]) -> None:
        for path, leaf in jax.tree_util.tree_leaves_with_path(parameters):
            check_units(path, leaf, units, "that part of `rtrl.Axes`")

    def advance(self, pullback: Pullback, end: PyTree, sensitivity: PyTree) -> PyTree:
        (matrix, *rest), treedef = jax.tree.flatten(end)
        # No probe for the other leaves: a stabilizer cancels in the readout.
        constants = [jnp.zeros_like(leaf) for leaf in rest]
        *_, rows, columns = matrix.shape
        (old,) = sensitivity

        def probe(mask) -> tuple[Axes, Array]:
            ones = jnp.broadcast_to(jnp.asarray(mask, matrix.dtype), matrix.shape)
            immediate, jacobian = jacobians_along(
                pullback, jax.tree.unflatten(treedef, [ones, *constants])
            )
            return immediate, jax.tree.leaves(jacobian)[0]

        # Entries decay on their own, so one probe of ones gives all their factors at once. The
        # pullbacks of a segment that follow only have to tell immediate Jacobians apart.
        immediate, factor = probe(jnp.ones((), matrix.dtype))
        both = jax.tree.map(
            lambda new, s: add(new, multiply(factor, s)),
            immediate.both,
            old.both,
            is_leaf=is_planar,
        )

        def along(part: str, count: int, mask, factors: Array) -> Any:
            stored = getattr(old, part)
            if not jax.tree.leaves(stored):
                return stored
            axis = matrix.ndim - 2  # of the units in a parameter

            def one(index):
                new = getattr(probe(mask(index))[0], part)
                if self.compressed:
                    # Rows write alike, `u_i v`: the derivative of row i in its own weights is the
                    # same for all i, and the first one stands for them.
                    new = jax.tree.map(lambda leaf: jnp.take(leaf, 0, axis), new)
                return new

            # A row's parameter changes a whole row: one probe per column keeps its entries apart.
            fresh = jax.lax.map(one, jnp.arange(count), batch_size=self.probes_at_once)

            def advanced(new, s):
                if self.compressed:
                    return add(new, multiply(factors[..., 0], s))
                # The state may have more columns than there are parameters for.
                units = jax.tree.leaves(new)[0].shape[axis + 1]
                return add(new, multiply(factors[..., :units], s))

            return jax.tree.map(advanced, fresh, stored, is_leaf=is_planar)

        column_mask = lambda j: (jnp.arange(columns) == j)[None, :]  # noqa: E731
        row_mask = lambda i: (jnp.arange(rows) == i)[:, None]  # noqa: E731
        return (
            Axes(
                both,
                along("rows", columns, column_mask, jnp.moveaxis(factor, -1, 0)),
                along("columns", rows, row_mask, jnp.moveaxis(factor, -2, 0)),
            ),
        )

    def jvp(self, sensitivity: PyTree, tangent: Axes, state: PyTree) -> PyTree:
        (matrix, *rest), treedef = jax.tree.flatten(state)
        (s,) = sensitivity
        units = matrix.ndim - 1  # the axes of a row, or a column, in all groups

        def terms(product, traces, tangents):
            pairs = zip(
                jax.tree.leaves(traces, is_leaf=is_planar), jax.tree.leaves(tangents), strict=True
            )
            return [bilinear(product, trace, t) for trace, t in pairs]

        def along(trace, t):  # [others, *groups, units, …] times [*groups, units, …]
            if self.compressed:
                # One trace stands for all units: [others, *groups, …].
                groups = t.shape[: units - 1]
                t = t.reshape(*groups, t.shape[units - 1], -1)
                trace = trace.reshape(trace.shape[0], *groups, -1)
                return jnp.einsum("o...i,...ui->o...u", trace, t, precision=EXACTLY)
            return jax.vmap(lambda one: contract_trailing(one, t, units))(trace)

        def along_rows(trace, t):
            return jnp.moveaxis(along(trace, t), 0, -1)

        def along_columns(trace, t):
            moved = jnp.moveaxis(along(trace, t), 0, -2)
            # Columns that no parameter belongs to, such as a normalizer next to the values.
            missing = matrix.shape[-1] - moved.shape[-1]
            return jnp.pad(moved, [(0, 0)] * (matrix.ndim - 1) + [(0, missing)])

        of_entries = partial(contract_trailing, units=matrix.ndim)
        pushed = [
            *terms(of_entries, s.both, tangent.both),
            *terms(along_rows, s.rows, tangent.rows),
            *terms(along_columns, s.columns, tangent.columns),
        ]
        zeros = [jnp.zeros_like(leaf) for leaf in rest]
        return jax.tree.unflatten(treedef, [total(pushed, matrix), *zeros])
