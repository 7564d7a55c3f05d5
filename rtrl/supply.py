"""A state as a function of the parameters that it was made with: its derivative is supplied."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

import scan
from rtrl.rows import (
    as_table,
    batched_whole,
    is_stored,
    looked_up,
    pulled_back,
    rows,
    sum_pulled_back,
)
from rtrl.structure import AbstractStructure, split, state_tangent
from scan.tangents import with_tangent


def supply(
    structure: AbstractStructure,
    parameters: PyTree,
    state: PyTree,
    sensitivity: PyTree,
    begin: Bool[Array, ""] | None = None,
    *,
    products: bool = False,
) -> PyTree:
    """Return `state`, as a function of `parameters` with derivative `sensitivity`.

    Forward it is the identity on `state`. Backward it hands the cotangent on to `state`, adds the
    cotangent times the sensitivity to the gradient of `parameters`, and lets nothing flow into the
    sensitivity. Whatever is computed from the returned state then has the gradient of the whole
    past, in forward mode only with `products`. It has first derivatives only: those of the
    sensitivity are not carried, and a second derivation in the parameters raises `TypeError`. Not
    so with `SnAp0`, which has none, nor where `EProp` follows nothing: those are TBPTT's.

    **Arguments:**

    - `structure`: the recurrence's structure.
    - `parameters`: the parameters of the recurrence, as given to `rtrl.init`.
    - `state`: the state carried in.
    - `sensitivity`: its sensitivity; or `rtrl.rows` of a table of them, or `rtrl.rounded`.
    - `begin`: whether the state is that of a beginning, which has no past, whatever the sensitivity
      says.
    - `products`: how `vmap` over environments that share parameters adds up their gradients. By
      default the rule is for cotangents (`custom_vjp`): one gradient for each, summed entry by
      entry, which suits hundreds of environments or segments. Otherwise it is for tangents, which
      JAX transposes into matrix products that sum on the way: several times faster for a few
      environments, as in an online loop, and slower for hundreds.

    **Returns:**

    `state`.
    """
    hollow = jax.tree.map(lambda _: True, sensitivity, is_leaf=is_stored)
    affected, _ = split(structure, parameters, hollow)
    state, counts = eqx.partition(state, eqx.is_inexact_array)
    in_table = as_table(sensitivity)
    if in_table is not None:
        begin = jnp.zeros((), bool) if begin is None else begin
        with _in_our_words():
            return eqx.combine(_supply_row(structure, affected, state, *in_table, begin), counts)
    sensitivity = looked_up(sensitivity)
    if begin is not None:
        # A sensitivity with a NaN would make the gradient NaN though it is multiplied by zero.
        sensitivity = structure.reset(begin, sensitivity)
    # Inside `jax.shard_map` a rule's cotangents have one type: the cast's transpose sums them.
    affected, state, sensitivity = scan.vary_together(affected, state, sensitivity)
    rule = _supply_tangents if products else _supply_cotangents
    with _in_our_words():
        return eqx.combine(rule(structure, affected, state, sensitivity), counts)


@contextmanager
def _in_our_words() -> Iterator[None]:
    """Say of rules for cotangents, and for batches, what JAX says of any, with what to do."""
    try:
        yield
    except TypeError as error:
        if "forward-mode" not in str(error):
            raise
        raise TypeError(
            "The gradient by RTRL of a whole segment is for reverse mode only: in forward mode "
            "take `rtrl_step` in a loop, `rtrl.segment` with `products=True`, or `scan`."
        ) from error
    except ValueError as error:
        if "Linearization failed" not in str(error):
            raise
        raise ValueError(
            "A row of `rtrl.rows` has no gradient by itself: put a `jax.vmap` over many inside of "
            "the gradient, or the sensitivity that the row stands for in its place."
        ) from error


def _derived_once(parameters, value):
    """A value in a first derivative; a second one would lack the sensitivity's, and is refused."""
    return with_tangent(_derived_twice, value, parameters)


def _derived_twice(value, arguments, tangents):
    raise TypeError(
        "A gradient by RTRL has no derivatives of its own, because those of the sensitivity are "
        "not carried along: take second derivatives of `scan`, or of `step` in a loop."
    )


# Arrays are arguments, never closed over: only then does the rule work under jit, vmap, scan and
# checkpoint. The structure is static, and hashable.
@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _supply_cotangents(structure, parameters, state, sensitivity):
    return state


def _supply_forward(structure, parameters, state, sensitivity):
    return _derived_once(parameters, state), (parameters, sensitivity)


def _supply_backward(structure, residuals, cotangent):
    parameters, sensitivity = residuals
    return pulled_back(structure, parameters, sensitivity, cotangent), cotangent, None


_supply_cotangents.defvjp(_supply_forward, _supply_backward)


def _supply_tangents(structure, parameters, state, sensitivity):
    # The sensitivity has no tangent: it is a constant of the segment.
    sensitivity = jax.lax.stop_gradient(sensitivity)
    return with_tangent(partial(_tangent_of_past, structure), state, parameters, sensitivity)


def _tangent_of_past(structure, state, arguments, tangents):
    parameters, sensitivity = arguments
    leaves, tree = jax.tree.flatten(parameters)
    moved = [
        jnp.zeros_like(x) if t is None else t for x, t in zip(leaves, tangents[0], strict=True)
    ]
    numbers, rest = eqx.partition(sensitivity, eqx.is_inexact_array)
    sensitivity = eqx.combine(_derived_once(parameters, numbers), rest)
    return state_tangent(structure, sensitivity, jax.tree.unflatten(tree, moved), state)


def _supply_row(structure, parameters, state, table, index, begin):
    """`supply` from a row of a table; `vmap` over many is one rule for all of them."""

    def of_one(parameters, state, table, index, begin):
        sensitivity = structure.reset(begin, looked_up(rows(table, index)))
        return _supply_cotangents(structure, parameters, state, sensitivity)

    of_any = jax.custom_batching.custom_vmap(of_one)

    @of_any.def_vmap
    def of_many(size, batched, *arguments):
        parameters, state, table, index, begin = arguments
        if any(jax.tree.leaves((batched[0], batched[2]))):  # not one network, or not one table
            axes = jax.tree.map(lambda b: 0 if b else None, tuple(batched))
            supplied = jax.vmap(of_one, axes)(*arguments)
        else:
            state, index, begin = batched_whole(
                (state, index, begin), (batched[1], batched[3], batched[4]), size
            )
            supplied = _supply_rows(structure, parameters, state, table, index, begin)
        return supplied, jax.tree.map(lambda _: True, supplied)

    return of_any(parameters, state, table, index, begin)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _supply_rows(structure, parameters, state, table, index, begin):
    return state


def _supply_rows_forward(structure, parameters, state, table, index, begin):
    return _derived_once(parameters, state), (parameters, table, index, begin)


def _supply_rows_backward(structure, residuals, cotangents):
    parameters, table, index, begin = residuals
    of_parameters = sum_pulled_back(structure, parameters, table, index, begin, cotangents)
    return of_parameters, cotangents, None, None, None


_supply_rows.defvjp(_supply_rows_forward, _supply_rows_backward)
