"""The plain loop over time: the reference that every other scan is compared with."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from scan._checks import check_begin, check_flag, check_initial, check_steps
from scan._varying import vary_as_carried
from scan.counts import check_counts


def reset(begin: Bool[Array, ""] | bool, initial: PyTree, state: PyTree) -> PyTree:
    """Replace a state by its initial value where an episode begins.

    A selection, not a multiplication by zero: a NaN in the old state does not survive.

    **Arguments:**

    - `begin`: whether the observation about to be consumed is the first of an episode.
    - `initial`: the state at the beginning of an episode.
    - `state`: the state carried so far; the same structure and shapes as `initial`.

    **Returns:**

    `initial` where `begin`, else `state`. A Python `False` returns `state` untouched.

    **Raises:**

    `TypeError` when `begin` is not boolean, `ValueError` for more than one flag, and for an
    `initial` that is not built like `state`.
    """
    if begin is False:  # of Python: nothing to select, and nothing to trace
        return state
    check_initial(initial, state)
    initial = jax.tree.map(lambda i, s: jnp.asarray(i, jnp.result_type(s)), initial, state)
    if begin is True:
        return initial
    flag = check_flag(begin)
    return jax.tree.map(lambda i, s: jnp.where(flag, i, s), initial, state)


def sequential(
    update: Callable[[Any, Any], Any],
    state: PyTree,
    xs: PyTree,
    begin: Bool[Array, " time"] | None = None,
    *,
    initial: PyTree = None,
    unroll: int = 1,
) -> tuple[PyTree, PyTree]:
    """Run `h_t = update(h_{t-1}, x_t)` one step after another.

    **Arguments:**

    - `update`: one step, `(state, x) -> state`.
    - `state`: the state carried in.
    - `xs`: inputs, every leaf with a leading time axis.
    - `begin`: shape `[time]`; where true, the state is replaced by `initial` before `x_t` is
      consumed.
    - `initial`: the state at the beginning of an episode. Needed when `begin` is given.
    - `unroll`: steps that are compiled into one turn of the loop. A GPU pays for each turn.

    **Returns:**

    `(final_state, states)`: the state after the last step, and the states after every step with
    a leading time axis.

    **Raises:**

    `ValueError` where there are no steps, or not as many in all leaves, when `begin` is given
    without an `initial` built like `state`, or not for each step, or for an `unroll` below 1;
    `TypeError` when it is not boolean.
    """
    time = check_steps("xs", xs)
    check_counts(1, unroll=unroll)
    if begin is not None:
        begin = check_begin(begin, time)
        check_initial(initial, state)

    def step(carry, inputs):
        x, begin_t = inputs
        if begin_t is not None:
            carry = reset(begin_t, initial, carry)
        return update(carry, x)

    def step_and_keep(carry, inputs):
        carry = step(carry, inputs)
        return carry, carry

    inputs = (xs, begin)
    # A number of steps that is a symbol, as in an export for any, is compared with none.
    unroll = min(unroll, time) if isinstance(time, int) else 1
    start = vary_as_carried(step, state, inputs)
    return jax.lax.scan(step_and_keep, start, inputs, unroll=unroll)
