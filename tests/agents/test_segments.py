"""Cutting rollouts: contiguous, complete, in the order of the carries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents.segments import minibatch_indices, to_segments, to_starts


def test_segments_are_contiguous_and_ordered_as_their_starts():
    time, envs, length = 12, 3, 4
    rollout = jnp.arange(time * envs).reshape(time, envs)
    starts = rollout[::length]
    segments = to_segments(rollout, length)
    assert segments.shape == (length, time // length * envs)
    np.testing.assert_array_equal(segments[0], to_starts(starts))
    for i in range(time // length):
        for env in range(envs):
            expected = rollout[i * length : (i + 1) * length, env]
            np.testing.assert_array_equal(segments[:, i * envs + env], expected)


def test_trailing_axes_and_trees_are_kept():
    tree = {"a": jnp.zeros((6, 2, 5)), "b": jnp.zeros((6, 2), bool)}
    cut = to_segments(tree, 3)
    assert cut["a"].shape == (3, 4, 5) and cut["b"].shape == (3, 4)


def test_minibatches_hold_every_segment_once():
    indices = minibatch_indices(jax.random.key(0), 24, 4)
    assert indices.shape == (4, 6)
    np.testing.assert_array_equal(np.sort(indices.ravel()), np.arange(24))
    assert not np.array_equal(indices.ravel(), np.arange(24))


def test_errors():
    with pytest.raises(ValueError, match=r"`rollout` \(time 12\) must be divisible .* \(=5\)"):
        to_segments(jnp.zeros((12, 2)), 5)
    with pytest.raises(ValueError, match=r"`minibatches` \(=5\) .* divide .* \(=24\)"):
        minibatch_indices(jax.random.key(0), 24, 5)
