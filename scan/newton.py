"""Nonlinear recurrences in parallel over time, by Newton's method."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PyTree

from scan._checks import check_arrays, check_initial, check_recurrence
from scan._varying import broadcast_like, vary_together
from scan.associative import match_rank
from scan.blocks import blocks
from scan.counts import check_counts, shown
from scan.linear import linear
from scan.nonlinear import nonlinear, solution, states_before
from scan.programs import as_program, has_named_axis
from scan.sequential import reset

_STALLS = 2  # iterations in turn that get no smaller: one alone may be chance


class Report(NamedTuple):
    """How Newton's method went.

    - `iterations`: how many it took.
    - `converged`: whether it met the tolerance; otherwise the states are those of the loop.
    """

    iterations: Int[Array, ""]
    converged: Bool[Array, ""]


@dataclass(frozen=True)
class _Options:
    coupling: str
    tolerance: float
    max_iterations: int
    damping: float


def newton(
    update: Callable[[Any, Any, Any], Any],
    parameters: PyTree,
    state: PyTree,
    xs: PyTree,
    begin: Bool[Array, " time"] | None = None,
    *,
    initial: PyTree = None,
    coupling: str = "units",
    tolerance: float | None = None,
    max_iterations: int = 100,
    damping: float = 0.0,
) -> tuple[PyTree, Report]:
    """All states of `h_t = update(parameters, h_{t-1}, x_t)`, solved for at once.

    Given a guess of all states, the recurrence is linearized around it, and the linear recurrence
    is solved by a scan; this repeats until the states no longer move. The first t states are exact
    after t iterations, and usually a few iterations do for all. Where they do not, within
    `max_iterations`, the states are computed by the plain loop.

    The gradient does not go through the iterations: it is that of the solution, one linear scan
    backwards with the exact Jacobian; see `scan.nonlinear`.

    **Arguments:**

    - `update`: one step, `(parameters, state, x) -> state`.
    - `parameters`: what the gradient is taken of, besides `state` and `xs`; floating-point leaves.
    - `state`: the state carried in; real leaves.
    - `xs`: inputs, every leaf with a leading time axis.
    - `begin`: shape `[time]`; where true, the state is replaced by `initial`, a constant.
    - `initial`: the state at the beginning of an episode. Needed when `begin` is given.
    - `coupling`: `"units"` where the state's leaves have one shape and dtype and no unit acts on
      another: the Jacobian is exact, in blocks as wide as there are leaves (DEER). `"dense"` for
      any other: the iterations use the Jacobian's diagonal (quasi-DEER) and more of them are
      needed.
    - `tolerance`: the largest step of the recurrence that counts as none, for every number of every
      state, relative to its size and that of its unit before the step, or to the largest of all
      states but at most 1 where that is more; by default a hundred units of rounding, two in half
      precision. Relative to 1 it is enough where steps do not get smaller any more.
    - `max_iterations`: after which the loop takes over.
    - `damping`: in [0, 1): how much the Jacobian is shrunk. 0 is Newton's method, which may
      diverge where the recurrence expands; towards 1 it becomes the recurrence's own iteration.

    **Returns:**

    `(states, report)`: the states after every step, with a leading time axis.

    **Raises:**

    `ValueError` or `TypeError` naming the argument, its value and the rule. A `custom_vjp` of the
    state in a step is refused by JAX: its Jacobian is taken forward.

    Sources: *Parallelizing non-linear sequential models over the sequence length*, Lim et al.
    (2024); *Towards Scalable and Stable Parallelization of Nonlinear RNNs*, Gonzalez et al. (2024).
    """
    state, begin = check_recurrence(state, xs, begin, initial, coupling)
    if not (isinstance(damping, Real) and 0 <= damping < 1):
        raise ValueError(
            f"`damping` (={shown(damping)}) must be a number of at least 0 and below 1."
        )
    check_counts(1, max_iterations=max_iterations)
    check_arrays("parameters", parameters)
    if initial is not None:
        check_initial(initial, state)
    if not sum(h.size for h in jax.tree.leaves(state)):
        states = nonlinear(update, parameters, state, xs, begin, initial=initial, coupling=coupling)
        return states, Report(jnp.zeros((), int), jnp.array(True))
    if tolerance is None:
        numbers = jnp.finfo(jnp.result_type(*jax.tree.leaves(state)))
        # Of the few digits of half precision a hundred units are nearly all.
        tolerance = (100 if numbers.bits > 16 else 2) * float(numbers.eps)
    if not (isinstance(tolerance, Real) and tolerance >= 0):
        raise ValueError(f"`tolerance` (={shown(tolerance)}) must be a number of at least 0.")
    options = _Options(coupling, tolerance, max_iterations, damping)
    xs = jax.tree.map(jnp.asarray, xs)
    initial = jax.tree.map(jnp.zeros_like, state) if initial is None else initial
    initial = jax.tree.map(lambda i, h: jnp.asarray(i, h.dtype), initial, state)
    parameters, state, xs, begin, initial = vary_together(parameters, state, xs, begin, initial)
    update, parameters = as_program(update, parameters, state, xs)
    if has_named_axis(update):
        raise ValueError(
            "`update` acts over an axis that a `jax.vmap` has named, so that a Jacobian is not of "
            "one sequence: `scan.nonlinear` takes it."
        )
    # Derivatives are those of the solution, below: none of the iterations is differentiated.
    given = parameters, state, xs, begin, initial
    states, report = _iterated(options, update, *jax.lax.stop_gradient(given))
    return solution(update, coupling, *given, states), report


def _iterated(options, update, parameters, state, xs, begin, initial):
    problem = _Problem(options, update, parameters, state, xs, begin, initial)
    start = jnp.broadcast_to(problem.initial, (problem.time, *problem.initial.shape))

    def size_of(states):
        # Of each unit, whose components act on one another, or of each number.
        sizes = jnp.abs(states)
        return jnp.max(sizes, -1) if options.coupling == "units" else sizes

    def step_lengths(new, old):
        # By its own size: beside one unit that is large, others would be anything.
        size = size_of(new)
        start, anew = size_of(problem.state), size_of(problem.initial)
        size = jnp.maximum(size, states_before(start, begin, anew, size))
        # Where all are small, by the largest: what is scaled down is found as exactly. And by 1 at
        # least, as a step may be of larger numbers that cancel, of whose rounding no iteration
        # gets rid.
        least = jnp.clip(jnp.max(size), jnp.finfo(size.dtype).tiny, 1)
        moved = size_of(new - old)
        return [jnp.max(moved / jnp.maximum(floor, size)) for floor in (least, 1)]

    def unfinished(loop):
        count, _, _, _, found = loop
        return (count < options.max_iterations) & ~found

    def iterate(loop):
        count, states, least, stalls, _ = loop
        previous = problem.previous(states)
        new, jacobian = problem.linearized(previous)
        # Far from the solution a guess may overflow. A step with zeros in those places is a worse
        # step; one with infinities would spoil every later state, and the solution with them.
        jacobian = jnp.where(jnp.isfinite(jacobian), jacobian, 0) * (1 - options.damping)
        drive = new - problem.product(jacobian, previous)
        drive = jnp.where(jnp.isfinite(drive), drive, 0)
        solved = problem.scan(jacobian, drive)
        solved = jnp.where(jnp.isfinite(solved), solved, 0)
        moved, coarse = step_lengths(solved, states)
        # Written so that a NaN, which compares as false, goes on instead of passing as converged.
        stalls = jnp.where(moved < least, 0, stalls + 1)
        rounding_is_left = (coarse <= options.tolerance) & (stalls >= _STALLS)
        found = (moved <= options.tolerance) | rounding_is_left
        return count + 1, solved, jnp.fmin(moved, least), stalls, found

    # All of what a loop carries: devices with other inputs take another number of iterations.
    zero, infinity, never, start = vary_together(
        jnp.zeros((), int), jnp.array(jnp.inf, start.dtype), jnp.array(False), start
    )
    first = zero, start, infinity, zero, never
    count, states, *_, found = jax.lax.while_loop(unfinished, iterate, first)
    # One more step of the recurrence itself: it checks the solution, and halves its exponent.
    polished = problem.step(problem.previous(states))
    moved, coarse = step_lengths(polished, states)
    converged = (moved <= options.tolerance) | (found & (coarse <= options.tolerance))
    out = problem.unpack(polished)

    # The loop that takes over where Newton's method failed is a `while_loop` of no steps where it
    # did not, instead of a `cond`: under `vmap` a `cond` becomes a selection and always runs both
    # branches, while this loop ends as soon as no sequence of the batch needs it.
    def remaining(loop):
        return ~converged & (loop[0] < problem.time)

    def advance(loop):
        t, state, out = loop
        x, begins = jax.tree.map(lambda leaf: leaf[t], (xs, problem.begins))
        state = update(parameters, reset(begins, initial, state), x)
        return t + 1, state, jax.tree.map(lambda o, s: o.at[t].set(s), out, state)

    _, _, out = jax.lax.while_loop(remaining, advance, (zero, state, out))
    return out, Report(count, converged)


class _Problem:
    """The recurrence over packed states: `[time, *units, components]`, or `[time, size]`."""

    def __init__(self, options, update, parameters, state, xs, begin, initial):
        self.coupling = options.coupling
        self.update, self.parameters, self.xs, self.begin = update, parameters, xs, begin
        self.time = len(jax.tree.leaves(xs)[0])
        self.begins = jnp.zeros(self.time, bool) if begin is None else begin
        _, self.treedef = jax.tree.flatten(state)
        _, self.unravel = jax.flatten_util.ravel_pytree(state)
        self.state, self.initial = self.pack_one(state), self.pack_one(initial)

    def pack_one(self, state):
        if self.coupling == "dense":
            return jax.flatten_util.ravel_pytree(state)[0]
        return jnp.stack(jax.tree.leaves(state), -1)

    def unpack_one(self, packed):
        if self.coupling == "dense":
            return self.unravel(packed)
        components = [packed[..., k] for k in range(packed.shape[-1])]
        return jax.tree.unflatten(self.treedef, components)

    def pack(self, states):
        return jax.vmap(self.pack_one)(states)

    def unpack(self, packed):
        return jax.vmap(self.unpack_one)(packed)

    def previous(self, states):
        """The state before every step."""
        return states_before(self.state, self.begin, self.initial, states)

    def step(self, previous):
        """One step from each of the given states."""

        def one(packed, x):
            return self.pack_one(self.update(self.parameters, self.unpack_one(packed), x))

        return jax.vmap(one)(previous, self.xs)

    def linearized(self, previous):
        """The next states, and the Jacobian: blocks, or the diagonal."""
        new, tangent_of = jax.linearize(self.step, previous)
        count = previous.shape[-1]
        unit, _ = vary_together(jnp.eye(count, dtype=previous.dtype), previous)
        if self.coupling == "units":
            # A one in component k of every unit: no unit acts on another, so one product gives
            # column k of all blocks.
            columns = [tangent_of(broadcast_like(unit[k], new)) for k in range(count)]
            return new, jnp.stack(columns, -1)

        # One after another, as all at once would take size times the memory of a step.
        def entry(k):
            return tangent_of(broadcast_like(unit[k], new))[:, k]

        return new, jax.lax.map(entry, jnp.arange(count)).T

    def product(self, jacobian, states):
        if self.coupling == "dense":
            return jacobian * states
        return jnp.sum(jacobian * states[..., None, :], -1)

    def scan(self, jacobian, drive):
        """The linear recurrence: where an episode begins, the drive has all of the state."""
        if self.begin is not None:
            # The linear scan resets to zeros, and the state begins at `initial`: what that gives by
            # the Jacobian has to be in the drive.
            first = self.product(jacobian, jnp.broadcast_to(self.initial[None], drive.shape))
            drive = jnp.where(match_rank(self.begin, drive), drive + first, drive)
        if self.coupling == "dense":
            return linear(jacobian, drive, self.state, self.begin)
        return blocks(jacobian, drive, self.state, self.begin)
