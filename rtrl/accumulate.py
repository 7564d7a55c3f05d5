"""The online loop: loss and gradient of a whole sequence in memory that does not grow with it."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

import scan
from rtrl.rows import looked_up
from scan.calls import misfit
from scan.counts import shown
from scan.precision import at_least_single
from scan.trees import built


def accumulate(
    loss: Callable[..., Float[Array, ""]],
    cell: Any,
    carry: PyTree,
    xs: PyTree,
    begin: Bool[Array, " time"] | None = None,
    *,
    targets: PyTree = None,
    segment: int = 1,
) -> tuple[Float[Array, ""], PyTree, PyTree]:
    """Loss, RTRL gradient and new carry of a sequence, in constant memory.

    `jax.grad` through a loop over `rtrl_step` has to keep one sensitivity per step. Here each
    segment's gradient is taken inside the loop and added up, so that memory is that of one segment
    and one gradient, however long the sequence.

    ```python
    cell = zoo.get("rtu", hidden=8, inputs=3)
    carry = cell.init_state(), cell.rtrl_init()
    loss = lambda y, target: jnp.sum((y - target) ** 2)
    value, gradient, carry = rtrl.accumulate(loss, cell, carry, xs, targets=targets)
    ```

    **Arguments:**

    - `loss`: the loss of one step, `loss(y)`, or `loss(y, target)` when `targets` are given. The
      loss of the sequence is the sum over its steps.
    - `cell`: a cell of the zoo, a `zoo.Stack`, or any Equinox module with `rtrl_scan`, such as a
      network with an encoder in front and a head behind.
    - `carry`: `(state, sensitivity)` at the start.
    - `xs`: inputs; every leaf has a leading time axis.
    - `begin`: shape `[time]`; true at the first observation of an episode.
    - `targets`: a pytree with a leading time axis, or `None`.
    - `segment`: steps per segment. 1 is the classical online loop; larger segments need fewer
      passes over the sensitivity and a little more memory.

    **Returns:**

    `(value, gradient, carry)`: the summed loss, its gradient with respect to the floating-point
    arrays of `cell` at fixed parameters over all steps since the carry's beginning, and the new
    `(state, sensitivity)`.

    **Raises:**

    `ValueError` where there are no steps, where `begin` or `targets` are of other steps, when the
    number of steps is not divisible by `segment`, and for a loss that is more than a real number;
    `TypeError` for a `begin` that is not boolean, for a loss that is no function, or takes a target
    where there are none, or none where there are, and for a `cell` without `rtrl_scan`.
    """
    _check_arguments(loss, cell, targets)
    time = scan.check_steps("xs", xs)
    begin = None if begin is None else scan.check_begin(begin, time)
    steps = scan.check_steps("targets", targets) if jax.tree.leaves(targets) else time
    if steps != time:
        raise ValueError(f"`targets` (of {steps} steps) must be of those of `xs`, {time}.")
    whole = hasattr(segment, "__index__") and not isinstance(segment, bool)
    if not whole or segment < 1 or time % segment:
        raise ValueError(
            f"`segment` (={shown(segment)}) must be a whole number that divides the number of "
            f"steps (={time})."
        )

    carry = looked_up(carry)  # what comes out is not rounded, and a loop's carry keeps its type

    def cut(x):
        return x.reshape(time // segment, segment, *x.shape[1:])

    def segment_loss(cell, carry, xs, begin, targets):
        carry, ys = cell.rtrl_scan(carry, xs, begin)
        losses = jax.vmap(loss)(ys) if targets is None else jax.vmap(loss)(ys, targets)
        if not eqx.is_array(losses) or losses.ndim != 1:
            found = jax.tree.map(lambda x: f"shape {x.shape[1:]}", losses)
            raise ValueError(f"`loss` must return one number for each step, not {found}.")
        if not jnp.issubdtype(losses.dtype, jnp.floating):
            raise ValueError(f"`loss` (dtype {losses.dtype}) must be real floating point.")
        return jnp.sum(losses), carry

    # The gradient is taken inside the loop, of one segment at a time. Taken of the loop, it would
    # store what every segment's backward pass needs, a sensitivity each.
    value_and_gradient = eqx.filter_value_and_grad(segment_loss, has_aux=True)
    pieces = jax.tree.map(cut, (xs, begin, targets))
    # The totals need their dtypes before the first step: a carry must not change its type. In half
    # precision a sum of many would stop growing.
    parameters = eqx.filter(cell, eqx.is_inexact_array)
    zero = lambda p: jnp.zeros(p.shape, at_least_single(p.dtype))  # noqa: E731
    first = jax.tree.map(lambda x: x[0], pieces)
    try:
        shape, after = eqx.filter_eval_shape(segment_loss, cell, carry, *first)
    except (TypeError, ValueError):
        # In words of all steps, as they were given, and not of a segment's.
        eqx.filter_eval_shape(segment_loss, cell, carry, xs, begin, targets)
        raise
    # So does what is carried in: one of another precision becomes what `rtrl_scan` makes of it.
    if built(carry) == built(after):
        carry = jax.tree.map(_in_dtype_of, carry, after)

    def step(totals, piece):
        value, gradient, carry = totals
        (new_value, carry), new = value_and_gradient(cell, carry, *piece)
        return value + new_value, jax.tree.map(jnp.add, gradient, new), carry

    start = (zero(shape), jax.tree.map(zero, parameters), carry)
    start = scan.vary_as_carried(step, start, pieces)
    (value, gradient, carry), _ = jax.lax.scan(lambda *x: (step(*x), None), start, pieces)
    gradient = jax.tree.map(lambda g, p: g.astype(p.dtype), gradient, parameters)
    return value.astype(shape.dtype), gradient, carry


def _in_dtype_of(x: Any, like: Any) -> Any:
    return x if jnp.result_type(x) == like.dtype else jnp.asarray(x, like.dtype)


def _check_arguments(loss: Any, cell: Any, targets: PyTree) -> None:
    if not callable(loss):
        raise TypeError(f"`loss` (={shown(loss)}) must be a function of a step's output.")
    given = ("y",) if targets is None else ("y", "target")
    if found := misfit(loss, *given):
        where = "without `targets`" if targets is None else "where `targets` are given"
        raise TypeError(
            f"`loss` (its arguments are {found}) must be `loss({', '.join(given)})` {where}."
        )
    if not callable(getattr(cell, "rtrl_scan", None)):
        raise TypeError(
            f"`cell` (={shown(cell)}) must have `rtrl_scan`, as every memory of the zoo does."
        )
