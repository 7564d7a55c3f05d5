"""A segment of a recurrence with the gradient of its whole past: supply, run, roll."""

from abc import abstractmethod
from functools import partial
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Bool, PyTree

import scan
from rtrl.rows import looked_up
from rtrl.structure import AbstractStructure, roll, split
from rtrl.supply import supply
from scan.trees import built, described, first_difference, inexact


class AbstractRecurrence(eqx.Module):
    """What RTRL needs of a recurrence `h_t = f(θ, h_{t-1}, x_t)`.

    Every cell of the zoo is one. Anything else that changes a state step by step can be: state
    these three, and `rtrl.segment` gives it the gradient of its whole past.
    """

    @property
    @abstractmethod
    def structure(self) -> AbstractStructure:
        """How the recurrence's units depend on one another."""

    @abstractmethod
    def init_state(self) -> PyTree:
        """The state at the beginning of an episode.

        **Returns:**

        A pytree of arrays; a constant, not a function of parameters.
        """

    @abstractmethod
    def states(
        self, parameters: PyTree, state: PyTree, xs: PyTree, begin: Bool[Array, " time"] | None
    ) -> PyTree:
        """The states after every step, as a function of the recurrence's parameters.

        **Arguments:**

        - `parameters`: those that sensitivities are kept of, and whatever else is needed.
        - `state`: the state carried in.
        - `xs`: inputs; every leaf has a leading time axis.
        - `begin`: shape `[time]`, or `None`. Where true, the state is replaced by `init_state()`
          before the step.

        **Returns:**

        The states, with a leading time axis.
        """

    def segment_states(
        self, parameters: PyTree, state: PyTree, xs: PyTree, begin: Bool[Array, " time"] | None
    ) -> PyTree:
        """`states`, with the derivatives that a gradient takes inside of a segment.

        The exact ones by default. A rule that is one at every step returns the same values with its
        own derivatives.

        **Arguments:** those of `states`.

        **Returns:**

        The states, with a leading time axis.
        """
        return self.states(parameters, state, xs, begin)

    def surrogate_states(
        self,
        parameters: PyTree,
        state: PyTree,
        xs: PyTree,
        begin: Bool[Array, " time"] | None,
        states: PyTree,
    ) -> PyTree:
        """`states`, with the derivatives that the sensitivities follow: the exact ones by default.

        An approximation of RTRL returns the same values with other derivatives.

        **Arguments:** those of `states`, and

        - `states`: what `states` returned. A recurrence that is a loop need not run it again.

        **Returns:**

        The states, with a leading time axis.
        """
        return self.states(parameters, state, xs, begin)

    def end_state(self, states: PyTree) -> PyTree:
        """The state after the last step: the last of `states` by default.

        **Arguments:**

        - `states`: what `states` returned.

        **Returns:**

        A pytree like `init_state()`.
        """
        return jax.tree.map(lambda h: h[-1], states)


def segment(
    recurrence: AbstractRecurrence,
    parameters: PyTree,
    carry: tuple[Any, Any],
    xs: PyTree,
    begin: Bool[Array, " time"] | None = None,
    *,
    products: bool = False,
) -> tuple[tuple[Any, Any], PyTree]:
    """A segment of a recurrence: BPTT inside it, the sensitivity across its start.

    Whatever is computed from the states has the gradient of the whole past with respect to
    `parameters`, and of the present segment with respect to `xs`.

    ```python
    class Leak(rtrl.AbstractRecurrence):
        @property
        def structure(self):
            return rtrl.Diagonal()

        def init_state(self):
            return jnp.zeros(3)

        def states(self, parameters, state, xs, begin):
            return scan.linear(parameters["a"], xs @ parameters["w"].T, state, begin)

    def loss(parameters, carry, xs):
        carry, states = rtrl.segment(Leak(), parameters, carry, xs)
        return jnp.sum(states**2), carry
    ```

    **Arguments:**

    - `recurrence`: the recurrence.
    - `parameters`: its parameters, and whatever else its `states` needs: what `rtrl.init` was given
      to make the sensitivity.
    - `carry`: `(state, sensitivity)` at the segment's start; see `rtrl.rows` and `rtrl.rounded` for
      what may stand in place of the sensitivity.
    - `xs`: inputs; every leaf has a leading time axis.
    - `begin`: shape `[time]`, or `None` for no episode border.
    - `products`: see `rtrl.supply`.

    **Returns:**

    `(carry, states)`: the carry at the segment's end, under `stop_gradient`, and what
    `recurrence.states` returned.

    **Raises:**

    `ValueError` for a `carry` that is no such pair, or whose state or sensitivity is another
    recurrence's, for a `begin` of other steps than those of `xs`, and for parameters of another
    structure than those that the sensitivity was made for; `TypeError` for a `begin` that is not
    boolean.
    """
    check_pair(carry)
    time = scan.check_steps("xs", xs) if jax.tree.leaves(xs) else None
    begin = None if begin is None else scan.check_begin(begin, time)
    # What is carried in was computed in an earlier segment, perhaps with older parameters: its
    # derivative is the sensitivity, and a second path through it would count the past twice.
    start, sensitivity = jax.lax.stop_gradient(carry)
    _check_start(start, jax.eval_shape(recurrence.init_state))
    check = partial(_check_layout, recurrence.structure, parameters, start)
    # What is wrong is looked for only where it shows: a sensitivity's own layout has to be traced.
    try:
        after, states = _segment(recurrence, parameters, start, sensitivity, xs, begin, products)
    except Exception as error:
        check(looked_up(sensitivity), error)
        raise
    found = jax.eval_shape(looked_up, sensitivity)
    if built(after[1]) != built(found):
        check(found, None)
    return after, states


def _segment(recurrence, parameters, start, sensitivity, xs, begin, products):
    first = None
    if begin is not None:
        # The scan resets its start by itself, but the supplied state has to be a constant there.
        first = begin[0]
        start = scan.reset(first, recurrence.init_state(), start)
    supplied = supply(
        recurrence.structure, parameters, start, sensitivity, first, products=products
    )
    states = recurrence.segment_states(parameters, supplied, xs, begin)

    # The states ride with the inputs: before a border both are cleared, so that a NaN among them
    # does not meet the zeros of the Jacobian.
    def surrogate_end(parameters, state, inputs, begin):
        xs, states = inputs
        return recurrence.end_state(
            recurrence.surrogate_states(parameters, state, xs, begin, states)
        )

    # The roll differentiates by itself. Without the constants a gradient of the loss would go
    # through those derivatives too, only to be thrown away at the carry.
    parameters, start, inputs = _constant((parameters, start, (xs, states)))
    sensitivity = roll(
        recurrence.structure,
        surrogate_end,
        parameters,
        start,
        looked_up(sensitivity),
        inputs,
        begin,
    )
    return jax.lax.stop_gradient((recurrence.end_state(states), sensitivity)), states


def check_pair(carry: Any) -> None:
    """Raise `ValueError` for what is no pair of a state and a sensitivity."""
    pair = isinstance(carry, tuple) and len(carry) == 2
    if not pair or carry[1] is None:
        found = "whose second part is None" if pair else _said(carry)
        raise ValueError(
            f"`carry` ({found}) must be a state and its sensitivity, as "
            "`(init_state(), rtrl_init())` are."
        )


def _check_start(start: PyTree, own: PyTree) -> None:
    if built(start) != built(own) or inexact(start) != inexact(own):
        raise ValueError(
            f"`carry` (whose state is {described(start)}) must hold a state like {described(own)}, "
            "which `init_state` gives."
        )


def _check_layout(
    structure: AbstractStructure,
    parameters: PyTree,
    state: PyTree,
    found: PyTree,
    cause: Exception | None,
) -> None:
    affected, _ = split(structure, parameters, found)
    own = jax.eval_shape(structure.zeros, affected, eqx.filter(state, eqx.is_inexact_array))
    whose = f"{type(structure).__name__} for these parameters"
    check_carried_sensitivity(found, own, whose, "rtrl.init", cause)


def check_carried_sensitivity(
    found: PyTree, own: PyTree, whose: str, maker: str, cause: Exception | None
) -> None:
    """Raise `ValueError` for a sensitivity that is built otherwise than `own`.

    **Arguments:**

    - `found`, `own`: the one that is carried in, and one that `maker` makes.
    - `whose`: what the latter is of.
    - `cause`: what failed, if anything did.
    """
    if built(found) == built(own):
        return
    got, expected = first_difference(found, own)
    raise ValueError(
        f"`carry` (whose sensitivity has {got}) must hold one of {whose}, which has {expected} "
        f"there, as `{maker}` does."
    ) from cause


def _said(carry: Any) -> str:
    if eqx.is_array_like(carry):  # JAX's name of the class depends on where it is traced
        return f"={described(carry)}"
    if isinstance(carry, tuple):
        return f"a tuple of {len(carry)}"
    return f"a {type(carry).__name__}"


def _constant(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)
