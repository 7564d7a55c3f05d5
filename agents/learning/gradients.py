"""How far credit goes back in time: three choices, one mechanism.

A rollout is cut into segments, each with the carry stored at its start. A choice says how long a
segment is, what the carry holds, and how a segment is run so that its gradient is the one that the
choice stands for.
"""

import abc
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree

import zoo
from agents.learning.segments import from_segments, to_segments, to_starts
from zoo.parts.checks import check_counts


@dataclass(frozen=True)
class AbstractGradient(abc.ABC):
    """A way to compute the gradient of a recurrent network over a rollout.

    A network is anything with a cell's four forms over the inputs of a rollout, such as
    `agents.Recurrent`. All functions are unbatched unless they say otherwise.
    """

    @abc.abstractmethod
    def segment_length(self, rollout_length: int) -> int:
        """Return the number of steps per segment, a divisor of `rollout_length`.

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
    time = jax.tree.leaves(inputs)[0].shape[0]
    segment = gradient.segment_length(time)
    pieces = jax.tree.map(lambda x: x.reshape(-1, segment, *x.shape[1:]), inputs)

    def advance(carry, piece):
        run = lambda c, i: gradient.run(network, c, i)[0]  # noqa: E731
        return jax.vmap(run, (0, 1))(carry, piece), carry

    end, starts = jax.lax.scan(advance, carry, pieces)
    return end, to_starts(starts)


def outputs(gradient: AbstractGradient, network: Any, starts: PyTree, inputs: PyTree) -> PyTree:
    """Return outputs `[time, segment, ...]` for inputs alike, from carries `[segment, ...]`."""
    return jax.vmap(lambda c, i: gradient.run(network, c, i)[1], (0, 1), 1)(starts, inputs)


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
    run = lambda c, i: gradient.run(network, c, i)  # noqa: E731
    ends, found = jax.vmap(run, (0, 1), (0, 1))(starts, pieces)
    # Segments are ordered by time first: the last ones end where the rollout does.
    state = jax.tree.map(lambda x: x[-envs:], gradient.state(ends))
    return state, from_segments(found, envs)


def _stored(states: PyTree) -> tuple[PyTree, PyTree]:
    """Where the carry is the state, acting has found all carries."""
    end = jax.tree.map(lambda x: x[-1], states)
    return end, to_starts(jax.tree.map(lambda x: x[:-1], states))


def _whole_segments(rollout_length: int, name: str, segment: int) -> int:
    check_counts(1, **{name: segment})
    if rollout_length % segment:
        raise ValueError(
            f"`rollout_length` (={rollout_length}) must be divisible by `{name}` (={segment})."
        )
    return segment


@dataclass(frozen=True)
class _AbstractBackpropagation(AbstractGradient):
    """Backpropagation inside a segment and no credit across its start: the carry is the state."""

    def begin(self, network: Any) -> PyTree:
        return network.init_state()

    def state(self, carry: PyTree) -> PyTree:
        return carry

    def run(self, network: Any, carry: PyTree, inputs: PyTree) -> tuple[PyTree, PyTree]:
        return network.scan(jax.lax.stop_gradient(carry), inputs)

    def collected(
        self, network: Any, carry: PyTree, inputs: PyTree, states: PyTree
    ) -> tuple[PyTree, PyTree]:
        return _stored(states)


class Window(eqx.Module):
    """The last steps of a stream: the state before them, their inputs, and the state after them."""

    start: PyTree
    inputs: PyTree
    state: PyTree


@dataclass(frozen=True)
class TBPTT(_AbstractBackpropagation, AbstractOnlineGradient):
    """Truncated backpropagation through time.

    The gradient of a step's loss reaches back to the start of its segment and no further: steps
    are cut into segments of `length`, so it reaches between 0 and `length - 1` steps back. The
    state at a segment's start is the one stored while acting.

    Online, at every step, segments overlap: the gradient reaches `length - 1` steps back from each
    step, in a window whose start moves on by one, and a step costs `length` times as much.
    """

    length: int = 8
    """Steps of a segment."""

    def segment_length(self, rollout_length: int) -> int:
        return _whole_segments(rollout_length, "length", self.length)

    def online_begin(self, network: Any, inputs: PyTree) -> PyTree:
        check_counts(1, length=self.length)
        state = network.init_state()
        # Before the first step there are none; its `begin` keeps them out of everything.
        none = lambda x: jnp.zeros((self.length - 1, *jnp.shape(x)), jnp.asarray(x).dtype)  # noqa: E731
        return Window(state, jax.tree.map(none, inputs), state)

    def online_step(self, network: Any, carry: Window, inputs: PyTree) -> tuple[Window, PyTree]:
        start, state = jax.lax.stop_gradient((carry.start, carry.state))
        if self.length > 1:
            state, _ = network.scan(start, carry.inputs)
            start, _ = network.step(start, jax.tree.map(lambda x: x[0], carry.inputs))
        state, output = network.step(state, inputs)
        past = jax.tree.map(
            lambda old, new: jnp.concatenate([old, new[None]])[1:], carry.inputs, inputs
        )
        present = jax.lax.stop_gradient(state)
        return Window(start if self.length > 1 else present, past, present), output

    def online_state(self, carry: Window) -> PyTree:
        return carry.state


@dataclass(frozen=True)
class RTRL(AbstractOnlineGradient):
    """Real-time recurrent learning, in segments.

    The gradient of a step's loss reaches back through the whole episode: by backpropagation to the
    start of its segment, by the sensitivity from there on. `segment=1` is the classical form with
    independent minibatches of steps; longer segments give the same gradient with less memory and
    more parallelism. The carry is `(state, sensitivity)`.

    Parameters move while a rollout is used for several epochs, and sensitivities computed with the
    older ones grow stale. `refresh="never"` keeps them; `"epoch"` recomputes states and
    sensitivities along the rollout before every epoch after the first.

    Online, at every step, `segment` and `refresh` have nothing to say. The sensitivity is then made
    of the parameters of every step so far, which move slowly.
    """

    segment: int | None = 8
    """Steps of a segment; `None` for those of a whole rollout."""
    refresh: Literal["never", "epoch"] = "never"
    """When sensitivities are recomputed with the new parameters."""

    def __post_init__(self):
        if self.refresh not in ("never", "epoch"):
            raise ValueError(f"`refresh` (={self.refresh!r}) must be one of never, epoch.")

    def segment_length(self, rollout_length: int) -> int:
        if self.segment is None:
            return rollout_length
        return _whole_segments(rollout_length, "segment", self.segment)

    def begin(self, network: Any) -> PyTree:
        return network.init_state(), network.rtrl_init()

    def state(self, carry: PyTree) -> PyTree:
        return carry[0]

    def run(self, network: Any, carry: PyTree, inputs: PyTree) -> tuple[PyTree, PyTree]:
        return network.rtrl_scan(carry, inputs)

    def online_begin(self, network: Any, inputs: PyTree) -> PyTree:
        return self.begin(network)

    def online_step(self, network: Any, carry: PyTree, inputs: PyTree) -> tuple[PyTree, PyTree]:
        return network.rtrl_step(carry, inputs)

    def online_state(self, carry: PyTree) -> PyTree:
        return carry[0]

    def collected(
        self, network: Any, carry: PyTree, inputs: PyTree, states: PyTree
    ) -> tuple[PyTree, PyTree]:
        """Return the states, and the sensitivities rolled along the rollout."""
        (_, end_sensitivity), (_, sensitivities) = along(self, network, carry, inputs)
        # The roll finds the states once more, rounded otherwise. Those that acted are kept, so that
        # the ratio of the first minibatch is 1.
        end, starts = _stored(states)
        return (end, end_sensitivity), (starts, sensitivities)

    def refreshed(
        self, network: Any, carry: PyTree, inputs: PyTree, starts: PyTree, epoch: Int[Array, ""]
    ) -> PyTree:
        """Recompute the carries where `refresh` says so; the first epoch's are fresh already."""
        if self.refresh == "never":
            return starts
        return jax.lax.cond(
            jnp.asarray(epoch) > 0,
            lambda network: along(self, network, carry, inputs)[1],
            lambda _: starts,
            network,
        )


@dataclass(frozen=True)
class BPTT(_AbstractBackpropagation):
    """Backpropagation through the whole rollout by a parallel scan.

    The gradient of a step's loss reaches back to the start of the rollout or of the episode,
    whichever is later.
    """

    def segment_length(self, rollout_length: int) -> int:
        return rollout_length


def check_encoder_credit(credit: str, gradient: AbstractGradient, memory: zoo.Spec) -> None:
    """Raise `ValueError` where credit cannot go through an encoder as `credit` says.

    **Arguments:**

    - `credit`: `"segment"` or `"exact"`; see `agents.networks.actor_critic`.
    - `memory`: recipe of the memory behind the encoder.
    """
    if credit not in ("segment", "exact"):
        raise ValueError(f"`encoder_credit` (={credit!r}) must be segment or exact.")
    if credit == "segment":
        return
    if not isinstance(gradient, RTRL):
        raise ValueError(
            "`encoder_credit` (='exact') needs agents.RTRL; "
            f"`gradient` (={gradient!r}) ends at a segment's start anyway."
        )
    built = eqx.filter_eval_shape(memory.build, 1, jax.random.key(0))
    if not isinstance(built, zoo.AbstractCell):
        raise ValueError(
            "`encoder_credit` (='exact') needs a memory of one cell, which "
            f"`memory` (={memory!r}) is not."
        )


Gradient = TBPTT | RTRL | BPTT
"""Any of the three."""

OnlineGradient = TBPTT | RTRL
"""Those that can be had of every step as it comes."""
