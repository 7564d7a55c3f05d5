"""`zoo.Stack`: what is exact in a deep memory, what is an approximation, and how good."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

import zoo
from tests.cases import CellCase
from tests.zoo import forms
from tests.zoo.forms import TIME, assert_close


def _two_layers(inputs, hidden, *, key):
    keys = jax.random.split(key, 4)
    cells = zoo.RTU(inputs, hidden, key=keys[0]), zoo.GRU(inputs, hidden + 1, key=keys[1])
    lower = zoo.Block(cells[0], key=keys[2])
    return zoo.Stack([lower, zoo.Block(cells[1], norm=False, gated=False, key=keys[3])])


DEEP = CellCase("two layers", _two_layers, diagonal=False)


@given(seed=forms.seeds, begin=forms.borders(), lengths=forms.compositions())
def test_values_of_two_layers(seed, begin, lengths):
    memory, carry, xs, weights = forms.problem(DEEP, seed)
    (states, ys), expected = forms.reference(
        memory, carry[0], xs, begin, weights, forms.no_cuts(), 0.7
    )
    end = jax.tree.map(lambda h: h[-1], states)
    ends, got, scanned, _ = forms.segments(memory, carry, xs, begin, weights, lengths)
    assert_close((ends[-1][1][0], got, ends[-1][2], scanned), (end, ys, end, ys))
    ((state, stepped), _), ((rtrl_carry, rtrl_ys), _) = forms.looped(
        memory, carry, xs, begin, weights
    )
    assert_close((state, stepped, rtrl_carry[0], rtrl_ys), (end, ys, end, ys))
    out, gradient = forms.whole(memory, carry[0], xs, begin, weights, 0.7)
    assert_close((out, gradient), ((end, ys), expected))


@given(seed=forms.seeds, begin=forms.borders(), lengths=forms.compositions())
def test_gradients_of_two_layers(seed, begin, lengths):
    """Exact in one segment; across segments for the upper layer and what is behind it."""
    memory, carry, xs, weights = forms.problem(DEEP, seed)
    _, (exact, _, d_xs) = forms.reference(memory, carry[0], xs, begin, weights, forms.no_cuts())
    _, _, _, one = forms.segments(memory, carry, xs, begin, weights, [TIME])
    assert_close(one, (exact, d_xs))
    _, _, _, (got, _) = forms.segments(memory, carry, xs, begin, weights, lengths)
    assert_close(got.blocks[1], exact.blocks[1])
    assert_close((got.blocks[0].value, got.blocks[0].gate), _behind_lower(memory, carry, xs, begin,
                 weights, lengths))  # fmt: skip


def _behind_lower(memory, carry, xs, begin, weights, lengths):
    """The lower layer's map back stands in front of the upper cell: the present segment only."""
    _, (truncated, _, _) = forms.reference(
        memory, carry[0], xs, begin, weights, forms.cuts_at(lengths)
    )
    return truncated.blocks[0].value, truncated.blocks[0].gate


def test_what_is_lost_below_is_small():
    """The path through the upper state across a border: the lower cell's gradient is close."""
    cosines, truncated_cosines = [], []
    for seed in range(10):
        memory, carry, xs, weights = forms.problem(DEEP, seed)
        args = (memory, carry[0], xs, forms.no_cuts(), weights)
        _, _, _, (got, _) = forms.segments(memory, carry, xs, args[3], weights, [5, 1, 5, 1])
        exact = forms.reference(*args, forms.no_cuts())[1][0]
        cut = forms.reference(*args, forms.cuts_at([5, 1, 5, 1]))[1][0]

        def flat(gradient):
            cell = gradient.blocks[0].cell
            return np.concatenate([np.ravel(x) for x in jax.tree.leaves(cell)])

        g, e, t = flat(got), flat(exact), flat(cut)
        assert np.all(np.isfinite(g))
        cosines.append(g @ e / np.linalg.norm(g) / np.linalg.norm(e))
        truncated_cosines.append(t @ e / np.linalg.norm(t) / np.linalg.norm(e))
    assert np.median(cosines) > 0.9 and np.median(cosines) > np.median(truncated_cosines)
    assert max(cosines) < 1 - 1e-9  # it is an approximation: the documentation says so


def test_blocks_are_residual_around_the_cell():
    cell = zoo.MLP(3, 5, activation="tanh", key=jax.random.key(0))
    x = jnp.array([0.3, -1.0, 0.8])
    for norm in (False, True):
        for gated in (False, True):
            block = zoo.Block(cell, norm=norm, gated=gated, key=jax.random.key(1))
            inner = (x - x.mean()) / np.sqrt(x.var() + 1e-5) if norm else x
            y = np.tanh(cell.w @ inner + cell.b)
            expected = block.value.weight @ y + block.value.bias
            if gated:
                expected /= 1 + np.exp(-(block.gate.weight @ y + block.gate.bias))
            _, got = zoo.Stack([block]).step(((),), x)
            np.testing.assert_allclose(got, x + expected, rtol=1e-10)
            assert (block.norm is None, block.gate is None) == (not norm, not gated)


def test_bad_blocks_are_named():
    with pytest.raises(ValueError, match=r"`blocks` \(=\(\)\) must hold at least one block"):
        zoo.Stack([])
    blocks = [
        zoo.Block(zoo.GRU(width, 3, key=jax.random.key(0)), key=jax.random.key(0))
        for width in (2, 4)
    ]
    with pytest.raises(ValueError, match=r"`blocks` have cells with inputs \[2, 4\]: they must"):
        zoo.Stack(blocks)
