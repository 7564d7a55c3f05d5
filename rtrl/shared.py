"""Parameters that many units share: a scalar, a tied weight, a whole encoder in front."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr
from jaxtyping import PyTree

from rtrl.dense import Dense
from rtrl.diagonal import Diagonal
from rtrl.structure import AbstractStructure, Pullback
from scan.programs import numbers_in
from scan.trees import built


class Parts(eqx.Module):
    """The parameters of a recurrence, by whom they act on.

    - `own`: laid out as the inner structure wants them, with the units as leading axes.
    - `shared`: of any shapes; each may act on every unit.
    - `constant`: what the units have besides and what nothing is learned of, such as the state that
      an episode begins with; laid out like `own`.
    """

    own: PyTree
    shared: PyTree = None
    constant: PyTree = None


@dataclass(frozen=True)
class Shared(AbstractStructure):
    """A structure whose units also share parameters, given as `rtrl.Parts`.

    A shared parameter acts on each unit as a copy of its own would: the sensitivity of unit u to
    the copy is kept, units × shared parameters in all, and a gradient sums over the copies.

                      own parameters of unit u ─┐
        xs ─ shared parameters ─ input of all ──┴─ recurrence of unit u ─ h_u      for every u

    Under `by_unit` the derivatives in the copies are found by running the recurrence once for each
    unit, with the unit's part of parameters and state, and what is shared computed once for all:
    about as much work as the sensitivity has numbers. It needs a `rtrl.Diagonal` inside, and a
    recurrence that makes nothing of a unit's number but what its parameters, constants and state
    say. Arrays that have no sensitivity are taken whole where a unit can take them so, as a buffer
    that is as long as the input; others with the units as leading axes are a unit's own.

    Without `by_unit` every number of the state is probed by itself, as in `rtrl.Dense`: right for
    any recurrence, and dear.

    Layout of the sensitivity: that of the inner structure for copies, or a pair: that of the inner
    structure for `own`, and that of `rtrl.Dense` for `shared`.
    """

    inner: AbstractStructure
    by_unit: bool = True

    def __post_init__(self):
        if self.by_unit and not isinstance(self.inner, Diagonal):
            raise ValueError(
                f"`by_unit` (=True) needs rtrl.Diagonal() as `inner` (={self.inner!r}), whose "
                "units do not act on each other."
            )

        if isinstance(self.inner, Shared) and self.inner.by_unit:
            raise ValueError(
                f"`inner` (={self.inner!r}) must not be by unit: parameters that all units share "
                "belong together, in one `rtrl.Shared`."
            )

    def zeros(self, parameters: Parts, state: PyTree) -> PyTree:
        if not isinstance(parameters, Parts):
            kind = type(parameters).__name__
            raise TypeError(f"`parameters` (of kind {kind}) must be an `rtrl.Parts`.")
        if self.by_unit:
            return self.inner.zeros(_with_copies(parameters, state), state)
        own = self.inner.zeros(parameters.own, state)
        return own, Dense().zeros(parameters.shared, state)

    def like_parameters(self, sensitivity: PyTree) -> PyTree:
        if self.by_unit:
            return self.inner.like_parameters(sensitivity)
        own, shared = sensitivity
        return Parts(self.inner.like_parameters(own), Dense().like_parameters(shared))

    def linearize(
        self,
        run: Callable[[Any, Any, Any], Any],
        parameters: Parts,
        others: Parts,
        state: PyTree,
    ) -> tuple[PyTree, Pullback]:
        if not self.by_unit or not jax.tree.leaves(state):
            return super().linearize(run, parameters, others, state)
        units = jax.tree.leaves(state)[0].shape
        count, axes = math.prod(units), len(units)

        def one_by_one(tree):
            """A leading axis over units, and in the units' place axes of length 1."""
            shape = lambda x: (count, *(1,) * axes, *x.shape[axes:])  # noqa: E731
            return jax.tree.map(lambda x: x.reshape(shape(x)), tree)

        def together(tree):
            return jax.tree.map(lambda x: x.reshape(*units, *x.shape[1 + axes :]), tree)

        def run_unit(own, shared, constants, whole, state):
            own_constants, constant = eqx.combine(constants, whole)
            fixed = Parts(own_constants, others.shared, constant)
            return run(Parts(own, shared), fixed, state)

        def first_unit(constants):
            return jax.tree.map(lambda x: x[0], one_by_one((parameters.own, constants, state)))

        def fits(constants, whole):
            own, fixed, before = first_unit(constants)
            try:
                end = jax.eval_shape(run_unit, own, parameters.shared, fixed, whole, before)
            except (TypeError, ValueError):  # of shapes that do not go together
                return False
            return built(end) == built(before)

        constants, whole = _by_whom(others, units, fits)
        own, fixed, before = first_unit(constants)
        of_first = lambda given, state: run_unit(given.own, given.shared, fixed, whole, state)  # noqa: E731
        of_all = lambda given, state: run(given, others, state)  # noqa: E731
        _check_numbers(
            _pulled(of_first, Parts(own, parameters.shared), before),
            _pulled(of_all, parameters, state),
            units,
        )

        def pullback(cotangent):
            def of_unit(own, constants, state, cotangent):
                run_one = lambda own, shared, state: run_unit(own, shared, constants, whole, state)  # noqa: E731

                # `shared` is the same for all: `vmap` runs what depends on it alone only once, and
                # the sum over units, which a cotangent of it would be otherwise, is not taken.
                return jax.vjp(run_one, own, parameters.shared, state)[1](cotangent)

            own, shared, before = jax.vmap(of_unit)(
                *map(one_by_one, (parameters.own, constants, state, cotangent))
            )
            copies = jax.tree.map(lambda x: x.reshape(*units, *x.shape[1:]), shared)
            return Parts(together(own), copies), together(before)

        return run(parameters, others, state), pullback

    def advance(self, pullback: Pullback, end: PyTree, sensitivity: PyTree) -> PyTree:
        if self.by_unit:
            return self.inner.advance(pullback, end, sensitivity)

        def part(pick):
            def of_part(cotangent):
                parameters, state = pullback(cotangent)
                return pick(parameters), state

            return of_part

        own, shared = sensitivity
        return (
            self.inner.advance(part(lambda p: p.own), end, own),
            Dense().advance(part(lambda p: p.shared), end, shared),
        )

    def reset(self, begin: Any, sensitivity: PyTree) -> PyTree:
        if self.by_unit:
            return self.inner.reset(begin, sensitivity)
        own, shared = sensitivity
        return self.inner.reset(begin, own), Dense().reset(begin, shared)

    def jvp(self, sensitivity: PyTree, tangent: Parts, state: PyTree) -> PyTree:
        if self.by_unit:
            return self.inner.jvp(sensitivity, _with_copies(tangent, state), state)
        own, shared = sensitivity
        by_own = self.inner.jvp(own, tangent.own, state)
        return jax.tree.map(jnp.add, by_own, Dense().jvp(shared, tangent.shared, state))


def _by_whom(
    others: Parts, units: tuple[int, ...], fits: Callable[[Any, Any], bool]
) -> tuple[Any, Any]:
    """The constants of single units and those of all, each with `None` in place of the other's."""

    def divided(own):
        flags = jax.tree.unflatten(treedef, [i in own for i in range(len(leaves))])
        return eqx.partition((others.own, others.constant), flags)

    leaves, treedef = jax.tree.flatten((others.own, others.constant))
    after = len(jax.tree.leaves(others.own))
    with_units = {
        i for i, x in enumerate(leaves) if eqx.is_array(x) and x.shape[: len(units)] == units
    }
    # What an episode begins with is laid out like the state. Of others the shape does not say: an
    # array for all units may be as long. A unit alone cannot take one that is of each.
    own = {i for i in with_units if i >= after}
    if fits(*divided(own)):
        return divided(own)
    own = with_units
    for i in 2 * sorted(i for i in with_units if i < after):  # as one may hide another
        if fits(*divided(own - {i})):
            own = own - {i}
    if not fits(*divided(own)):
        raise ValueError(
            "`recurrence` must be one that a unit by itself can take, whose arrays have one unit "
            f"in place of {units}: the number of units is that of its arrays, not a setting, and "
            "what an episode begins with is in `Parts.constant`."
        )
    return divided(own)


def _pulled(run: Callable[[Any, Any], Any], parameters: Parts, state: PyTree) -> ClosedJaxpr:
    """The program of a pullback, in which the equation of known states is, too."""

    def pulled(parameters, state):
        return jax.vjp(run, parameters, state)[1](state)

    return jax.make_jaxpr(pulled)(parameters, state)


def _check_numbers(alone: ClosedJaxpr, together: ClosedJaxpr, units: tuple[int, ...]) -> None:
    """Raise `ValueError` where a program for one unit has other numbers in it than that for all."""
    differ = numbers_in(alone) ^ numbers_in(together)
    if differ:
        found = ", ".join(str(x if x.imag else x.real) for x in sorted(differ, key=abs))
        raise ValueError(
            f"`recurrence` must make no number (such as {found}) of how many units its arrays "
            f"have, {units}, as each unit runs by itself: take it from a setting, such as `hidden`."
        )


def _with_copies(parameters: Parts, state: PyTree) -> Parts:
    """A copy of the shared parameters for every unit."""
    if not jax.tree.leaves(state):  # no memory, or only a clock
        return parameters
    units = jax.tree.leaves(state)[0].shape
    copy = lambda p: jnp.broadcast_to(p, (*units, *p.shape))  # noqa: E731
    return Parts(parameters.own, jax.tree.map(copy, parameters.shared))
