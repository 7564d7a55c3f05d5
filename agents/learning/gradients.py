"""Three ways to compute a gradient through time: truncated, in real time, and in full."""

from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree

import rtrl
import zoo
from agents.learning.credit import AbstractGradient, AbstractOnlineGradient, along
from agents.learning.segments import numbers, take, to_segments, to_starts
from agents.parallel import split_over_devices
from agents.settings import abstract_memory, check_kind
from zoo.annotations import Count, fit_fields


def _stored(states: PyTree) -> tuple[PyTree, PyTree]:
    """Where the carry is the state, acting has found all carries."""
    end = jax.tree.map(lambda x: x[-1], states)
    return end, to_starts(jax.tree.map(lambda x: x[:-1], states))


def _check_whole(rollout_length: int, name: str, segment: int, segment_name: str) -> None:
    if rollout_length % segment:
        raise ValueError(
            f"`{name}` (={rollout_length}) must be divisible by `{segment_name}` (={segment})."
        )


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

    length: Count = 8
    """Steps of a segment."""

    def __post_init__(self):
        fit_fields(self)

    def segment_length(self, rollout_length: int, name: str = "rollout_length") -> int:
        _check_whole(rollout_length, name, self.length, "length")
        return self.length

    def online_begin(self, network: Any, inputs: PyTree) -> PyTree:
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
    sensitivities along the rollout before every epoch after the first, of which a rollout of one
    segment has no need. `"published"` does so with the defect of the code of Elelimy et al. (2024),
    to compare with: carries are then those after the first step of each segment in place of those
    before it, and the memory sees that step twice.

    Online, at every step, `segment` has nothing to say, and `refresh` and `storage` are refused.
    The sensitivity is then made of the parameters of every step so far, which move slowly.
    """

    segment: Count | None = 8
    """Steps of a segment; `None` for those of a whole rollout."""
    refresh: Literal["never", "epoch", "published"] = "never"
    """When sensitivities are recomputed with the new parameters."""
    storage: Literal["full", "bfloat16"] = "full"
    """How the sensitivities of a rollout's segments are kept: as they are, or with two or three
    digits in half the memory. Those that are carried on from step to step are never rounded."""

    def __post_init__(self):
        fit_fields(self)

    def segment_length(self, rollout_length: int, name: str = "rollout_length") -> int:
        if self.segment is None:
            return rollout_length
        _check_whole(rollout_length, name, self.segment, "segment")
        return self.segment

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

    def stored(self, carry: PyTree) -> PyTree:
        if self.storage == "full":
            return carry
        state, sensitivity = carry
        return state, rtrl.rounded(sensitivity)

    def chosen(self, carries: PyTree, indices: Int[Array, "groups rows"]) -> PyTree:
        """Return some segments' states; their sensitivities are only looked up row by row."""
        states, sensitivities = carries
        # Of a memory without any there is no table, and of one in parts there are no rows.
        if split_over_devices() or not jax.tree.leaves(sensitivities):
            return take(carries, indices)
        return take(states, indices), rtrl.rows(sensitivities, numbers(sensitivities, indices))

    @property
    def refreshes(self) -> bool:
        return self.refresh != "never"

    def refreshed(
        self, network: Any, carry: PyTree, inputs: PyTree, starts: PyTree, epoch: Int[Array, ""]
    ) -> PyTree:
        """Recompute the carries where `refresh` says so; the first epoch's are fresh already."""
        steps = len(inputs.begin)
        length = self.segment_length(steps)
        # A rollout of one segment starts where the one before it ended: nothing in it grows stale.
        if not self.refreshes or (self.refresh == "epoch" and length == steps):
            return starts

        def recomputed(network: Any) -> PyTree:
            fresh = along(self, network, carry, inputs)[1]
            if self.refresh == "epoch":
                return fresh
            pieces = to_segments(inputs, length)
            first = jax.tree.map(lambda x: x[:1], pieces)
            shifted = jax.vmap(lambda c, i: self.run(network, c, i)[0], (0, 1))(fresh, first)
            return self.stored(shifted)

        return jax.lax.cond(jnp.asarray(epoch) > 0, recomputed, lambda _: starts, network)


@dataclass(frozen=True)
class BPTT(_AbstractBackpropagation):
    """Backpropagation through the whole rollout by a parallel scan.

    The gradient of a step's loss reaches back to the start of the rollout or of the episode,
    whichever is later.
    """

    def segment_length(self, rollout_length: int, name: str = "rollout_length") -> int:
        return rollout_length


def check_no_refresh(gradient: AbstractGradient) -> None:
    """Raise `ValueError` for sensitivities that are to be recomputed, where steps are used once."""
    if gradient.refreshes:
        raise ValueError(
            f"`gradient` (={gradient!r}) must have refresh='never': steps are learned from once."
        )


def check_online(gradient: Any) -> None:
    """Raise `TypeError` for a gradient that is not had of every step as it comes, and `ValueError`
    for what has no meaning where no rollout is kept."""
    choice = "agents.RTRL() or agents.TBPTT(...), which have an online form"
    check_kind(AbstractOnlineGradient, choice, gradient=gradient)
    check_no_refresh(gradient)
    if getattr(gradient, "storage", "full") != "full":
        raise ValueError(
            f"`gradient` (={gradient!r}) must have storage='full': no segments are kept."
        )


def check_encoder_credit(
    credit: str, gradient: AbstractGradient, memory: zoo.Spec, encoder_size: int
) -> None:
    """Raise `ValueError` where credit cannot go through an encoder as `credit` says.

    **Arguments:**

    - `credit`: `"segment"` or `"exact"`; see `agents.networks.actor_critic`.
    - `memory`: recipe of the memory behind the encoder.
    - `encoder_size`: 0 where there is none.
    """
    if credit == "segment":
        return
    if not encoder_size:
        raise ValueError("`encoder_credit` (='exact') needs an encoder; `encoder_size` is 0.")
    if not isinstance(gradient, RTRL):
        raise ValueError(
            "`encoder_credit` (='exact') needs agents.RTRL; "
            f"`gradient` (={gradient!r}) ends at a segment's start anyway."
        )
    cell = abstract_memory(memory)
    if not isinstance(cell, zoo.AbstractCell) or isinstance(cell, zoo.Fronted):
        raise ValueError(
            "`encoder_credit` (='exact') needs a memory of one cell without a front of its own, "
            f"which `memory` (={memory!r}) is not."
        )


Gradient = TBPTT | RTRL | BPTT
"""Any of the three."""

OnlineGradient = TBPTT | RTRL
"""Those that can be had of every step as it comes."""
