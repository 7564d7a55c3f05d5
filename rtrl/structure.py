"""Sensitivities of a recurrence: how they start, how a segment moves them on, how they are used.

For `h_t = f(θ, h_{t-1}, x_t)` the sensitivity `S_t = ∂h_t/∂θ` obeys `S_t = J_t S_{t-1} + I_t` with
the state Jacobian `J_t = ∂f/∂h` and the immediate Jacobian `I_t = ∂f/∂θ`. Over a segment from time
0 to time K the same holds with the Jacobians of the segment as a whole,

    S_K = (∂h_K/∂h_0) S_0 + ∂h_K/∂θ|_{h_0 fixed},

and both factors are vector-Jacobian products of the segment: reverse mode inside, forward mode
across. A *structure* says which cotangents probe the state so that nothing is mixed up, and is all
that differs between a diagonal and a dense recurrence. No derivative is written by hand.

A segment (`rtrl.segment`) is three things: supply, run, roll. Values go right and down; `◀` is what
reverse mode brings back; `▨` marks where `stop_gradient` ends it.

    carry in                      θ                    x_1 … x_K
    (h_0, S_0)                    │                        │
       ▨                          ├───────────────┐        │
       │                          ▼               ▼        ▼
       │  reset where      ┌── supply ───┐    ┌── states ──────────────┐
       ├── x_1 begins ───▶ │ value   h_0 │──▶ │ h_1, …, h_K: a scan,   │──▶ readout, loss
       │  an episode       │ ∂h_0/∂θ S_0 │◀ g │ its adjoint is BPTT    │◀ ∂L/∂h_t
       │                   └─────────────┘    └────────────────────────┘
       │                    ∂L/∂θ += g S_0     ∂L/∂θ += …   ∂L/∂x = …
       │
       │      θ ▨   x ▨   h_1 … h_K ▨
       │       │     │        │
       │       ▼     ▼        ▼
       │   ┌── roll ───────────────────────────────────────────┐
       └──▶│ surrogate states h_K(θ, h_0), pulled back for each │──▶ ▨ carry out (h_K, S_K)
           │ probe: rows of ∂h_K/∂h_0 and ∂h_K/∂θ               │
           └────────────────────────────────────────────────────┘

The gradient at `supply` is the only way from a segment to what came before it. So a backward pass
needs one sensitivity per segment, not one per step.
"""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

import scan
from rtrl._jacobians import Pullback
from rtrl._planar import is_planar
from rtrl._reached_parameters import reached_parameters
from scan._checks import check_update
from scan.associative import match_rank
from scan.counts import shown
from scan.trees import built, described, inexact


@dataclass(frozen=True)
class AbstractStructure(abc.ABC):
    """How the units of a recurrence depend on one another, and on which parameters.

    A structure is static (hashable, no arrays). See `rtrl.Diagonal` and `rtrl.Dense`.
    """

    @abc.abstractmethod
    def zeros(self, parameters: PyTree, state: PyTree) -> PyTree:
        """The sensitivity of a constant state: zeros.

        **Arguments:**

        - `parameters`: the parameters that the state depends on; `None` in place of others.
        - `state`: the state of the recurrence.

        **Returns:**

        A pytree of zeros in the layout of this structure.

        **Raises:**

        `ValueError` or `TypeError` where parameters or state do not have the structure's layout.
        """

    @abc.abstractmethod
    def advance(self, pullback: Pullback, end: PyTree, sensitivity: PyTree) -> PyTree:
        """Move the sensitivity from the start of a segment to its end.

        **Arguments:**

        - `pullback`: the vector-Jacobian product of the segment: a cotangent of the end state to
          the cotangents of `(parameters, start state)`.
        - `end`: the state at the segment's end.
        - `sensitivity`: the sensitivity at the segment's start.

        **Returns:**

        The sensitivity at the segment's end.
        """

    def linearize(
        self,
        run: Callable[[Any, Any, Any], Any],
        parameters: PyTree,
        others: PyTree,
        state: PyTree,
    ) -> tuple[PyTree, Pullback]:
        """The end of a segment, and its vector-Jacobian product: that of autodiff by default.

        **Arguments:**

        - `run`: the segment, `(parameters, others, state) -> end state`.
        - `parameters`, `others`: those with a sensitivity and all others, each with `None` in place
          of the rest.
        - `state`: at its start.

        **Returns:**

        `(end, pullback)`; see `advance`.
        """
        return jax.vjp(lambda parameters, state: run(parameters, others, state), parameters, state)

    def reset(self, begin: Bool[Array, ""] | bool, sensitivity: PyTree) -> PyTree:
        """Zeros where an episode begins.

        **Arguments:**

        - `begin`: whether one begins.
        - `sensitivity`: the sensitivity carried so far.

        **Returns:**

        Zeros where `begin`, else `sensitivity`.
        """
        return scan.reset(begin, jax.tree.map(jnp.zeros_like, sensitivity), sensitivity)

    def like_parameters(self, sensitivity: PyTree) -> PyTree:
        """A part of the sensitivity with the parameters' structure: `None` where they have none.

        **Arguments:**

        - `sensitivity`: as `zeros` lays it out.

        **Returns:**

        A pytree like the parameters.
        """
        return sensitivity[0]

    @abc.abstractmethod
    def jvp(self, sensitivity: PyTree, tangent: PyTree, state: PyTree) -> PyTree:
        """The tangent of the state: the sensitivity times a tangent of the parameters.

        Linear in the tangent; its transpose is what a gradient needs, the cotangent of the state
        times the sensitivity.

        **Arguments:**

        - `sensitivity`: the sensitivity of the state.
        - `tangent`: of the parameters, with the structure and shapes that `zeros` was given.
        - `state`: the state, for its structure, shapes and dtypes.

        **Returns:**

        A pytree like the state.
        """


def init(
    structure: AbstractStructure,
    update: Callable[[Any, Any, Any], Any],
    parameters: PyTree,
    state: PyTree,
    x: PyTree,
) -> PyTree:
    """The sensitivity at the beginning of an episode.

    **Arguments:**

    - `structure`: the recurrence's structure.
    - `update`: one step, `(parameters, state, x) -> state`.
    - `parameters`: any pytree. Leaves that `update` does not use get no sensitivity; this is read
      off the traced program. Nor do numbers of Python: as in Equinox they are constants.
    - `state`: the initial state; a constant. What is not floating-point in it, such as a count of
      steps, has no sensitivity.
    - `x`: an input, or its `jax.ShapeDtypeStruct`.

    **Returns:**

    The sensitivity, in the layout of the structure: for most a tuple of pytrees like `parameters`,
    with zeros where `update` depends on a parameter and `None` elsewhere.

    **Raises:**

    `ValueError` where `update` returns no such state; `TypeError` where it returns floating-point
    numbers in the place of whole ones, which would have no sensitivity, and for what is no
    structure.
    """
    if not isinstance(structure, AbstractStructure):
        raise TypeError(f"`structure` (={shown(structure)}) must be one, such as rtrl.Diagonal().")
    state = jax.tree.map(jnp.asarray, state)

    def checked(*arguments):
        end = update(*arguments)
        if built(end) != built(state):
            check_update(end, state)
        if inexact(end) != inexact(state):
            raise TypeError(
                f"`state` (={described(state)}) must be floating-point where `update` returns "
                f"such: {described(end)}."
            )
        return end

    reached = reached_parameters(checked, parameters, state, x)
    affected = eqx.filter(parameters, reached)
    return structure.zeros(affected, eqx.filter(state, eqx.is_inexact_array))


def check_units(path: Any, leaf: Array, units: tuple[int, ...], of: str) -> None:
    """Raise `ValueError` for a parameter whose leading axes are not the units of a recurrence."""
    if leaf.shape[: len(units)] != units:
        name = f"`parameters{jax.tree_util.keystr(path)}` (shape {leaf.shape})"
        raise ValueError(f"{name} must begin with the units {units} of {of}.")


def roll(
    structure: AbstractStructure,
    run: Callable[[Any, Any, Any, Any], Any],
    parameters: PyTree,
    state: PyTree,
    sensitivity: PyTree,
    xs: PyTree,
    begin: Bool[Array, "..."] | bool | None,
) -> PyTree:
    """The sensitivity at the end of a segment, from the one at its start.

    The cost is that of `run` and one backward pass through it per probe of the structure (one for
    a diagonal, two for blocks of two, the state's size for a dense recurrence; twice as many where
    the state is complex and a parameter is real), and one product with the old sensitivity. Memory
    does not grow with the segment's length times the sensitivity's size. For a dense recurrence of
    n units this is the O(n³) per step of Schmidhuber (1992), "A fixed size storage O(n³) time
    complexity learning algorithm", instead of the O(n⁴) of a step-by-step recursion.

    **Arguments:**

    - `structure`: the recurrence's structure.
    - `run`: the segment, `(parameters, state, xs, begin) -> end state`. It replaces the state by
      its initial value where `begin`.
    - `parameters`, `state`, `sensitivity`: at the segment's start.
    - `xs`: the segment's inputs.
    - `begin`: the segment's episode borders, `[time]`; one flag where it is one step; or `None`.

    **Returns:**

    The sensitivity at the segment's end. Differentiating it is not meaningful: callers put it
    under `stop_gradient`.
    """
    affected, others = split(structure, parameters, sensitivity)
    state, counts = eqx.partition(state, eqx.is_inexact_array)
    if begin is not None:
        # What comes before a border has no influence on the segment's end. The Jacobian says so
        # with zeros, but zero times an infinity or a NaN would not be zero.
        begin = jnp.asarray(begin)
        crossed = jnp.any(begin)
        state = scan.reset(crossed, jax.tree.map(jnp.zeros_like, state), state)
        sensitivity = structure.reset(crossed, sensitivity)
        xs, begin = _without_earlier_episodes(xs, begin)

    def end_of_run(affected, others, state):
        end = run(eqx.combine(affected, others), eqx.combine(state, counts), xs, begin)
        return eqx.filter(end, eqx.is_inexact_array)

    # Inside `jax.shard_map` every device has a sensitivity of its own: the cotangents of parameters
    # that all devices share would be summed over them.
    affected, state, sensitivity, xs = scan.vary_together(affected, state, sensitivity, xs)
    # One backward pass through the segment per probe, all of the same linearization.
    end, pullback = structure.linearize(end_of_run, affected, others, state)

    def pullback_of_probe(probe):
        return pullback(scan.vary_together(probe, end)[0])

    return structure.advance(pullback_of_probe, end, sensitivity)


def _without_earlier_episodes(xs: PyTree, begin: Array) -> tuple[PyTree, Array]:
    """Inputs and borders with that of the last border in place of every step before it.

    It is a step that the recurrence can take: from zeros, or at zeros, it might not be finite.
    """
    if not begin.ndim:
        return xs, begin
    steps = jnp.arange(len(begin))
    last = jnp.max(jnp.where(begin, steps, 0))
    before = steps < last
    replaced = lambda x: jnp.where(match_rank(before, x), x[last], x)  # noqa: E731
    return jax.tree.map(replaced, xs), begin | before


def state_tangent(
    structure: AbstractStructure, sensitivity: PyTree, tangent: PyTree, state: PyTree
) -> PyTree:
    """`structure.jvp` in the dtypes of the state, which may be narrower than the parameters'."""
    pushed = structure.jvp(sensitivity, tangent, state)
    return jax.tree.map(lambda t, h: t.astype(h.dtype), pushed, state)


def split(structure: AbstractStructure, parameters: PyTree, sensitivity: PyTree):
    """Parameters with a sensitivity, and the rest."""
    # A sensitivity is laid out like the parameters it belongs to, so it knows which they are: the
    # program need not be traced again to find out.
    like = structure.like_parameters(sensitivity)
    mask = jax.tree.map(
        lambda leaf: leaf is not None, like, is_leaf=lambda leaf: leaf is None or is_planar(leaf)
    )
    try:
        return eqx.partition(parameters, mask)
    except ValueError as error:
        raise ValueError(
            f"`parameters` (={shown(jax.tree.structure(parameters))}) must have the structure of "
            f"those that the sensitivity was made for, {shown(jax.tree.structure(mask))}."
        ) from error
