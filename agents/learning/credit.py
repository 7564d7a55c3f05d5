"""How far credit goes back in time: what a choice of gradient states, and how it is run.

A rollout is cut into segments, each with the carry stored at its start. A choice says how long a
segment is, what the carry holds, and how a segment is run so that its gradient is the one that the
choice stands for.
"""

import abc
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree

import rtrl
from agents.learning.segments import from_segments, take, to_segments
from agents.parallel import on_each_device
from agents.settings import Settings


@dataclass(frozen=True)
class AbstractGradient(Settings, abc.ABC):
    """A way to compute the gradient of a recurrent network over a rollout.

    A network is anything with a cell's four forms over the inputs of a rollout, such as
    `agents.Recurrent`. All functions are unbatched unless they say otherwise.
    """

    @abc.abstractmethod
    def segment_length(self, rollout_length: int, name: str = "rollout_length") -> int:
        """Return the number of steps per segment, a divisor of a rollout's.

        **Arguments:**

        - `name`: what the agent calls the length of a rollout.

        **Raises:**

        `ValueError` where the rollout cannot be cut into equal segments.
        """

    @abc.abstractmethod
    def begin(self, network: Any) -> PyTree:
        """Return the carry at the beginning of an episode."""

    @abc.abstractmethod
    def state(self, carry: PyTree) -> PyTree:
        """Return the memory's state that a carry holds."""

    @abc.abstractmethod
    def run(self, network: Any, carry: PyTree, inputs: PyTree) -> tuple[PyTree, PyTree]:
        """Run one segment, with the gradient that this choice stands for; the carry is a constant.

        **Returns:**

        `(carry, outputs)`: at the segment's end, and the network's outputs at every step.
        """

    @abc.abstractmethod
    def collected(
        self, network: Any, carry: PyTree, inputs: PyTree, states: PyTree
    ) -> tuple[PyTree, PyTree]:
        """Return the carries at the borders of a rollout's segments, after acting.

        While parameters stand still, as they do while acting, only the memory's state is stepped;
        what a carry holds besides is found here, for whole segments at once.

        **Arguments:**

        - `network`: the network that acted.
        - `carry`: at the rollout's start, `[env, ...]`.
        - `inputs`: of the rollout, `[time, env, ...]`.
        - `states`: the memory's states at the borders while acting, `[segments + 1, env, ...]`.

        **Returns:**

        `(end, starts)`: the carry after the rollout, `[env, ...]`, and those at the segments'
        starts as `to_segments` orders them, `[segment, ...]`.
        """

    def stored(self, carry: PyTree) -> PyTree:
        """Return what is kept of the carry at a segment's start; `run` takes it in its place."""
        return carry

    def chosen(self, carries: PyTree, indices: Int[Array, "groups rows"]) -> PyTree:
        """Return the carries of some segments, for `outputs`; see `take`."""
        return take(carries, indices)

    @property
    def refreshes(self) -> bool:
        """Whether `refreshed` recomputes carries, and so states."""
        return False

    def refreshed(
        self, network: Any, carry: PyTree, inputs: PyTree, starts: PyTree, epoch: Int[Array, ""]
    ) -> PyTree:
        """Return the segments' carries for an epoch, counted from 0: by default those stored.

        `network` is as it is before the epoch; for the others see `collected`.
        """
        return starts


class AbstractOnlineGradient(AbstractGradient):
    """A gradient that can also be had of every step by itself, as it comes, in constant memory.

    A step's gradient is that of its own output; what was done before is a constant.
    """

    @abc.abstractmethod
    def online_begin(self, network: Any, inputs: PyTree) -> PyTree:
        """Return the carry before the first step of a stream.

        **Arguments:**

        - `inputs`: of that step, with `begin`; their values do not matter.
        """

    @abc.abstractmethod
    def online_step(self, network: Any, carry: PyTree, inputs: PyTree) -> tuple[PyTree, PyTree]:
        """Run one step, with the gradient that this choice stands for; the carry is a constant.

        **Returns:**

        `(carry, output)`.
        """

    @abc.abstractmethod
    def online_state(self, carry: PyTree) -> PyTree:
        """Return the memory's state that a carry of a stream holds."""


def along(
    gradient: AbstractGradient, network: Any, carry: PyTree, inputs: PyTree
) -> tuple[PyTree, PyTree]:
    """Run a network along a rollout `[time, env, ...]`, and keep the carries at segments' starts.

    **Returns:**

    `(end, starts)`; see `AbstractGradient.collected`.
    """
    return on_each_device(partial(_along, gradient), (0, 1))(network, carry, inputs)


def _along(
    gradient: AbstractGradient, network: Any, carry: PyTree, inputs: PyTree
) -> tuple[PyTree, PyTree]:
    time, envs = inputs.begin.shape
    segment = gradient.segment_length(time)
    count = time // segment
    pieces = jax.tree.map(lambda x: x.reshape(count, segment, *x.shape[1:]), inputs)

    # Each start goes to its place in the order of `to_segments` at once. What a scan stacks over
    # time would have to be transposed, and sensitivities are tens of megabytes.
    def advance(carried, numbered):
        carry, starts = carried
        number, piece = numbered
        starts = jax.tree.map(
            lambda table, x: jax.lax.dynamic_update_index_in_dim(table, x, number, 1),
            starts,
            gradient.stored(carry),
        )
        run = lambda c, i: gradient.run(network, c, i)[0]  # noqa: E731
        return (jax.vmap(run, (0, 1))(carry, piece), starts), None

    # A function of its own, since JAX remembers what it traced by the function.
    like = jax.eval_shape(lambda carry: gradient.stored(carry), carry)
    tables = jax.tree.map(lambda x: jnp.zeros((envs, count, *x.shape[1:]), x.dtype), like)
    (end, starts), _ = jax.lax.scan(advance, (carry, tables), (jnp.arange(count), pieces))
    return end, jax.tree.map(lambda x: jax.lax.collapse(x, 0, 2), starts)


def outputs(gradient: AbstractGradient, network: Any, starts: PyTree, inputs: PyTree) -> PyTree:
    """Return outputs `[time, segment, ...]` for inputs alike.

    `starts` are carries `[segment, ...]`, or what `gradient.chosen` returned.
    """

    def run(network: Any, starts: PyTree, inputs: PyTree) -> PyTree:
        axes = rtrl.row_axes(starts), 1
        return jax.vmap(lambda c, i: gradient.run(network, c, i)[1], axes, 1)(starts, inputs)

    return on_each_device(run, (0, 1), 1)(network, starts, inputs)


def unrolled(
    gradient: AbstractGradient, network: Any, starts: PyTree, inputs: PyTree
) -> tuple[PyTree, PyTree]:
    """Run the segments of a rollout `[time, env, ...]` from their carries, all at once.

    **Returns:**

    `(state, outputs)`: the memory's states after the rollout, `[env, ...]`, and the outputs along
    it, `[time, env, ...]`.
    """
    time, envs = inputs.begin.shape
    pieces = to_segments(inputs, gradient.segment_length(time))

    def run(network: Any, starts: PyTree, pieces: PyTree) -> tuple[PyTree, PyTree]:
        return jax.vmap(lambda c, i: gradient.run(network, c, i), (0, 1), (0, 1))(starts, pieces)

    ends, found = on_each_device(run, (0, 1), (0, 1))(network, starts, pieces)
    # The last segment of each environment ends where the rollout does.
    last = lambda x: x.reshape(envs, len(x) // envs, *x.shape[1:])[:, -1]  # noqa: E731
    state = jax.tree.map(last, gradient.state(ends))
    return state, from_segments(found, envs)
