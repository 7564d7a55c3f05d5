"""Checks that all scans share."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from scan.counts import shown
from scan.trees import built, described

_COUPLINGS = ("units", "dense")


def check_begin(begin: Any, time: int | None = None) -> Array:
    """`begin` as an array; `TypeError` where it is not of booleans, `ValueError` where it has not
    one for each of so many steps.

    Numbers are refused although a selection would take them: a flag of 0.5 is a mistake, and
    `begin_1 | begin_2` of integers is not what a tree over borders means.
    """
    try:
        flags = None if begin is None else jnp.asarray(begin)
    except (TypeError, ValueError):  # of a text, or of lists that make no array
        flags = None
    if flags is None:
        raise TypeError(f"`begin` (={shown(begin)}) must be a boolean array.")
    if flags.dtype != bool:
        raise TypeError(f"`begin` (dtype {flags.dtype}) must be a boolean array.")
    if time is not None and flags.shape != (time,):
        raise ValueError(
            f"`begin` (shape {flags.shape}) must have the shape ({time},): a flag for each step."
        )
    return flags


def check_flag(begin: Any) -> Array:
    """`begin` of one step as an array; `TypeError` where it is not boolean, `ValueError` for more
    than one flag."""
    flag = check_begin(begin)
    if flag.ndim:
        raise ValueError(
            f"`begin` (shape {flag.shape}) must be one flag: of several sequences, use `jax.vmap`."
        )
    return flag


def check_steps(name: str, xs: PyTree) -> Any:
    """The number of steps of a sequence, a symbol in an export for any, or `ValueError` where
    there are none, or several."""
    shapes = [jnp.shape(x) for x in jax.tree.leaves(xs)]
    if not shapes or any(len(shape) == 0 or shape[0] == 0 for shape in shapes):
        found = f"shape {shapes[0]}" if len(shapes) == 1 else f"shapes {shapes}"
        raise ValueError(f"`{name}` ({found}) must have a time axis of at least one step.")
    if len({shape[0] for shape in shapes}) > 1:
        raise ValueError(f"`{name}` (shapes {shapes}) must have one number of steps in all leaves.")
    return shapes[0][0]


def check_arrays(name: str, tree: PyTree) -> None:
    """`TypeError` where a leaf is no array, as the functions in a module of Equinox are."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        try:
            jnp.result_type(leaf)
        except TypeError:
            raise TypeError(
                f"`{name}{jax.tree_util.keystr(path)}` (={shown(leaf)}) must be an array: take "
                "other leaves apart, by `eqx.partition`."
            ) from None


def check_initial(initial: PyTree, state: PyTree) -> None:
    """`ValueError` where a state cannot be replaced by what is given as its initial value."""
    if initial is None and state is not None:
        raise ValueError("`initial` (=None) must be given with `begin`: the state to reset to.")
    if built(initial) != built(state):
        given, wanted = _shapes(initial), _shapes(state)
        raise ValueError(f"`initial` (shape {given}) must be built like `state` (shape {wanted}).")


def check_states(states: PyTree, state: PyTree, time: int) -> None:
    """`ValueError` where known states are not those of all steps."""
    known = check_steps("states", states)
    if known != time:
        raise ValueError(f"`states` (of {known} steps) must be those of all {time}.")
    each = jax.tree.map(lambda x: x[0], states)
    if built(each) != built(state):
        given, wanted = _shapes(each), _shapes(state)
        raise ValueError(f"`states` (each of shape {given}) must be built like `state` ({wanted}).")
    for kind in (jnp.result_type(x) for x in jax.tree.leaves(states)):
        if not jnp.issubdtype(kind, jnp.floating):
            raise ValueError(f"`states` (dtype {kind}) must be real floating point, as `state` is.")


def check_recurrence(
    state: PyTree, xs: PyTree, begin: Any, initial: PyTree, coupling: str, states: PyTree = None
) -> tuple[PyTree, Array | None]:
    """Check what `nonlinear` and `newton` are given.

    **Arguments:**

    - `state`, `xs`, `begin`, `initial`, `coupling`, `states`: as given.

    **Returns:**

    `(state, begin)` as arrays; `begin` may be `None`.

    **Raises:**

    `ValueError` or `TypeError` naming the argument, its value and the rule.
    """
    time = check_steps("xs", xs)
    if coupling not in _COUPLINGS:
        raise ValueError(f"`coupling` (={coupling!r}) must be one of {', '.join(_COUPLINGS)}.")
    state = jax.tree.map(jnp.asarray, state)
    leaves = jax.tree.leaves(state)
    kinds = {(leaf.shape, leaf.dtype) for leaf in leaves}
    if coupling == "units" and len(kinds) > 1:
        found = ", ".join(described(leaves))
        raise ValueError(
            f"`state` has leaves {found}: `coupling='units'` needs one shape and one dtype."
        )
    if any(jnp.iscomplexobj(leaf) for leaf in leaves):
        raise ValueError("`state` has a complex leaf: give its real and imaginary part.")
    if not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves):
        raise ValueError(f"`state` has leaves of {[str(h.dtype) for h in leaves]}: give real ones.")
    if begin is not None:
        begin = check_begin(begin, time)
        check_initial(initial, state)
    if states is not None:
        check_states(states, state, time)
    return state, begin


def check_update(end: PyTree, state: PyTree) -> None:
    """`ValueError` where what an update returns cannot be the next state."""
    given, wanted = described(end), described(state)
    if jax.tree.flatten(given) != jax.tree.flatten(wanted):
        raise ValueError(f"`update` returns {given}: it must return what `state` is, {wanted}.")


def _shapes(tree: PyTree) -> PyTree:
    return jax.tree.unflatten(*built(tree))
