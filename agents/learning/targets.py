"""What values are learned towards: bootstrapped targets, and networks that follow slowly."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from agents.networks.values import value_of
from zoo.annotations import Share, fitted
from zoo.parts.checks import check_shapes, shown


def copied(network: PyTree) -> PyTree:
    """Return a network with arrays of its own: a program cannot be lent the same ones twice."""
    return jax.tree.map(lambda x: jnp.copy(x) if eqx.is_array(x) else x, network)


def polyak(target: PyTree, online: PyTree, *, kept: float) -> PyTree:
    """Return `kept` of the target's numbers and the rest of the online network's: β φ + (1 - β) θ.

    What is no floating-point array is the target's.

    **Raises:**

    `ValueError` for networks that are not built alike, and for `kept` outside of [0, 1].
    """
    kept = fitted("kept", kept, Share)
    one, other = jax.tree.structure(target), jax.tree.structure(online)
    if one != other:
        raise ValueError(f"`target` (={shown(one)}) must be built like `online` (={shown(other)}).")

    def mixed(path, old, new):
        if not eqx.is_inexact_array(old):
            return old
        if old.shape != jnp.shape(new):
            at = jax.tree_util.keystr(path)
            raise ValueError(
                f"`target` (whose leaf {at} has shape {old.shape}) must be built like `online`, "
                f"whose leaf has shape {jnp.shape(new)}."
            )
        return kept * old + (1 - kept) * new

    return jax.tree_util.tree_map_with_path(mixed, target, online)


def bootstrapped(
    reward: Float[Array, "*batch"],
    terminated: Bool[Array, "*batch"],
    next_value: Float[Array, "*batch"],
    *,
    discount: float,
) -> Float[Array, "*batch"]:
    """Return `r + γ (1 - terminated) V(next)`: a truncated episode goes on, unseen.

    After a termination `next_value` is not read.

    **Raises:**

    `ValueError` for shapes that differ.
    """
    shape = jnp.shape(reward)
    check_shapes(shape, "`reward`", terminated=terminated, next_value=next_value)
    return reward + discount * jnp.where(terminated, 0, next_value)


def next_action_value(
    online: Float[Array, "*batch actions"],
    target: Float[Array, "*batch actions"],
    *,
    double: bool,
) -> Float[Array, "*batch"]:
    """Return the target network's value of the best action.

    With the `double` estimator the online network says which action is the best, so that one
    network's error is not chosen by itself; otherwise the target network says it too.

    Source: van Hasselt et al. (2016), *Deep Reinforcement Learning with Double Q-learning*.
    """
    return value_of(target, jnp.argmax(online if double else target, axis=-1))
