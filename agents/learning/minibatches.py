"""Epochs of minibatches over one rollout, and how stale its carries have become."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from agents.learning.segments import take
from zoo.parts.checks import check_counts

Metrics = dict[str, Float[Array, ""]]
Loss = Callable[[Any, Any, Any], tuple[Float[Array, ""], Metrics]]
Renewed = Callable[[Any, Any, Any], Any]


def check_minibatches(minibatches: int, segments: int) -> None:
    """Raise `ValueError` where a rollout's segments cannot be parted into equal minibatches."""
    if segments % minibatches:
        raise ValueError(
            f"`minibatches` (={minibatches}) must divide the number of segments "
            f"(={segments} = num_envs * rollout_length / segment length)."
        )


def epochs_of_minibatches(
    loss: Loss,
    optimizer: optax.GradientTransformation,
    learner: tuple[PyTree, PyTree],
    sample: PyTree,
    carries: Callable[[PyTree, Int[Array, ""]], PyTree],
    *,
    envs: int,
    epochs: int,
    minibatches: int,
    first: str = "ratio_error",
    renewed: Renewed | None = None,
    chosen: Callable[[PyTree, Array], PyTree] = take,
    key: Array,
) -> tuple[PyTree, PyTree, Metrics]:
    """Pass several times over the segments of a rollout, in random minibatches.

    **Arguments:**

    - `loss`: `(network, sample, carry) -> (loss, metrics)`.
    - `optimizer`: an optax optimizer.
    - `learner`: the network and the optimizer's state.
    - `sample`: the segments, leading axes `[time, segment]`, in the order of `to_segments`.
    - `carries`: `(network, epoch) -> carries` at the segments' starts, leading axis `[segment]`.
    - `envs`: how many environments the segments are of.
    - `epochs`, `minibatches`: number of passes, and of parts per pass.
    - `first`: a metric which is that of the first minibatch, before anything has moved: it tells
      whether what is learned from is what acted.
    - `renewed`: `(network, sample, carries) -> sample`, what every pass after the first learns
      from; by default the same as the first.
    - `chosen`: `(carries, indices) -> carry`, what the loss gets of a minibatch's carries.

    **Returns:**

    `(network, optimizer_state, metrics)`: metrics are means over all minibatches, with the
    `gradient_norm` before clipping.

    **Raises:**

    `ValueError` for no epoch, and for minibatches that the segments cannot be divided into.
    """
    check_counts(1, epochs=epochs, minibatches=minibatches)
    segments = jax.tree.leaves(sample)[0].shape[1]

    def minibatch(learner, indices, sample, carries):
        network, optimizer_state = learner
        batch, carry = take(sample, indices, axis=1), chosen(carries, indices)
        gradient, metrics = eqx.filter_grad(loss, has_aux=True)(network, batch, carry)
        metrics["gradient_norm"] = optax.tree.norm(gradient)
        updates, optimizer_state = optimizer.update(gradient, optimizer_state)
        return (eqx.apply_updates(network, updates), optimizer_state), metrics

    def epoch(learner, inputs):
        epoch_key, number = inputs
        starts = carries(learner[0], number)
        present = sample
        if renewed is not None:
            present = jax.lax.cond(
                number > 0, renewed, lambda _, sample, __: sample, learner[0], sample, starts
            )
        indices = minibatch_indices(epoch_key, segments, minibatches, envs=envs)
        return jax.lax.scan(lambda pair, i: minibatch(pair, i, present, starts), learner, indices)

    inputs = (jax.random.split(key, epochs), jnp.arange(epochs))
    (network, optimizer_state), metrics = jax.lax.scan(epoch, learner, inputs)
    before = {first: metrics[first][0, 0]}
    return network, optimizer_state, jax.tree.map(jnp.mean, metrics) | before


def minibatch_indices(
    key: Array, segments: int, minibatches: int, *, envs: int
) -> Int[Array, "minibatches groups rows"]:
    """Draw a random partition of segments into minibatches, with as many of every environment.

    Where an environment has too few segments for that, the fewest environments side by side that
    have enough are one group. Whole environments may then lie on devices of their own, without any
    segment of a minibatch having to move, and the draw does not depend on how many devices there
    are.

    **Arguments:**

    - `segments`: of all environments, in the order of `to_segments`.

    **Returns:**

    For each minibatch the segments of each group, counted from the group's first.

    **Raises:**

    `ValueError` when the segments cannot be divided equally.
    """
    check_counts(1, minibatches=minibatches)
    check_minibatches(minibatches, segments)
    groups = envs * math.gcd(minibatches, segments // envs) // minibatches
    draw = lambda key: jax.random.permutation(key, segments // groups)  # noqa: E731
    drawn = jax.vmap(draw)(jax.random.split(key, groups))
    return jnp.moveaxis(drawn.reshape(groups, minibatches, -1), 1, 0)


def staleness(
    loss: Loss,
    network: PyTree,
    sample: PyTree,
    stored: PyTree,
    fresh: PyTree,
    *,
    part: Callable[[PyTree], PyTree],
) -> Float[Array, ""]:
    """Measure how much stored carries still tell: the cosine of two gradients, 1 if nothing is
    stale.

    **Arguments:**

    - `loss`, `sample`: see `epochs_of_minibatches`.
    - `network`: after it has moved.
    - `stored`, `fresh`: the carries as they were stored, and recomputed with `network`.
    - `part`: picks what is compared from a gradient, such as that of the memory.
    """

    def flat_gradient(carries):
        gradient = eqx.filter_grad(lambda n: loss(n, sample, carries)[0])(network)
        return jnp.concatenate([g.ravel() for g in jax.tree.leaves(part(gradient))])

    a, b = flat_gradient(stored), flat_gradient(fresh)
    # The tiny term keeps the cosine of two vanishing gradients a number.
    return jnp.vdot(a, b) / (jnp.linalg.norm(a) * jnp.linalg.norm(b) + 1e-20)
