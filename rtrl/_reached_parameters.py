"""Which parameters a function's result depends on."""

from collections.abc import Callable

import equinox as eqx
import jax
from jaxtyping import PyTree

from scan.programs import needed


def reached_parameters(function: Callable, parameters: PyTree, *arguments) -> PyTree:
    """Which array leaves of `parameters` the result of `function(parameters, *arguments)` uses.

    Read off the traced program, so a parameter that is only used after the recurrence (in a
    readout, say) is found not to be reached, and needs no sensitivity.

    **Arguments:**

    - `function`: called as `function(parameters, *arguments)`; arguments are arrays or
      `jax.ShapeDtypeStruct`s.
    - `parameters`: any pytree; only its floating-point and complex array leaves are considered.

    **Returns:**

    A pytree of Python booleans with the structure of `parameters`.
    """
    arrays, rest = eqx.partition(parameters, eqx.is_inexact_array)
    leaves, treedef = jax.tree.flatten(arrays)

    def of_leaves(leaves, *arguments):
        return function(eqx.combine(jax.tree.unflatten(treedef, leaves), rest), *arguments)

    # Traced with every leaf as an argument, even where it is a constant of the caller: only an
    # argument's way through the program can be read off it.
    program = jax.make_jaxpr(of_leaves)(leaves, *arguments).jaxpr
    used = needed(program)[: len(leaves)]
    reached = jax.tree.unflatten(treedef, used)
    return jax.tree.map(lambda flag: flag is True, reached, is_leaf=lambda x: x is None)
