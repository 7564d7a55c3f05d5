"""Epochs of minibatches over one rollout, and how stale its carries have become."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from agents.segments import minibatch_indices, take

Metrics = dict[str, Float[Array, ""]]
Loss = Callable[[Any, Any, Any], tuple[Float[Array, ""], Metrics]]


def update(
    loss: Loss,
    optimizer: optax.GradientTransformation,
    learner: tuple[PyTree, PyTree],
    sample: PyTree,
    carries: PyTree,
    *,
    refresh: Callable[[PyTree], PyTree] | None,
    epochs: int,
    minibatches: int,
    key: Array,
) -> tuple[PyTree, PyTree, Metrics]:
    """Several passes over the segments of a rollout, in random minibatches.

    **Arguments:**

    - `loss`: `(network, sample, carry) -> (loss, metrics)`; metrics hold `ratio_error`.
    - `optimizer`: an optax optimizer.
    - `learner`: the network and the optimizer's state.
    - `sample`: the segments, leading axes `[time, segment]`.
    - `carries`: the carries at their starts, leading axis `[segment]`.
    - `refresh`: `network -> carries`, applied before every epoch after the first; or `None`.
    - `epochs`, `minibatches`: number of passes, and of parts per pass.
    - `key`: PRNG key.

    **Returns:**

    `(network, optimizer_state, metrics)`: metrics are means over all minibatches, with the
    `gradient_norm` before clipping; `ratio_error` is that of the first minibatch.
    """
    segments = jax.tree.leaves(sample)[0].shape[1]

    def minibatch(learner, indices, carries):
        network, optimizer_state = learner
        batch, carry = take(sample, indices, axis=1), take(carries, indices)
        gradient, metrics = eqx.filter_grad(loss, has_aux=True)(network, batch, carry)
        metrics["gradient_norm"] = optax.tree.norm(gradient)
        updates, optimizer_state = optimizer.update(gradient, optimizer_state)
        return (eqx.apply_updates(network, updates), optimizer_state), metrics

    def epoch(learner, inputs):
        epoch_key, number = inputs
        stored = (
            carries
            if refresh is None
            else jax.lax.cond(number > 0, refresh, lambda _: carries, learner[0])
        )
        indices = minibatch_indices(epoch_key, segments, minibatches)
        return jax.lax.scan(lambda pair, i: minibatch(pair, i, stored), learner, indices)

    inputs = (jax.random.split(key, epochs), jnp.arange(epochs))
    (network, optimizer_state), metrics = jax.lax.scan(epoch, learner, inputs)
    first = metrics["ratio_error"][0, 0]
    return network, optimizer_state, jax.tree.map(jnp.mean, metrics) | {"ratio_error": first}


def staleness(
    loss: Loss, network: PyTree, sample: PyTree, carries: PyTree, fresh: PyTree
) -> Float[Array, ""]:
    """How much the stored carries still tell: the cosine of two gradients of the memory.

    **Arguments:**

    - `loss`: `(network, sample, carry) -> (loss, metrics)`.
    - `network`: the network, with a `memory`, after it has moved.
    - `sample`: the segments, leading axes `[time, segment]`.
    - `carries`, `fresh`: the carries as they were stored, and recomputed with `network`.

    **Returns:**

    The cosine: 1 where nothing is stale.
    """

    def memory_gradient(carries):
        gradient = eqx.filter_grad(lambda n: loss(n, sample, carries)[0])(network)
        return jnp.concatenate([g.ravel() for g in jax.tree.leaves(gradient.memory)])

    a, b = memory_gradient(carries), memory_gradient(fresh)
    return jnp.vdot(a, b) / (jnp.linalg.norm(a) * jnp.linalg.norm(b) + 1e-20)
