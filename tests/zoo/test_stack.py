"""`zoo.Stack`: what is exact in a deep memory, what is an approximation, and how good."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

import rtrl
import zoo
from tests.cases import TWO_LAYERS, CellCase, for_each
from tests.zoo import forms
from tests.zoo.examples import Network
from tests.zoo.forms import TIME, assert_close


@pytest.mark.slow
def test_credit_from_layer_to_layer_is_what_it_says():
    """The gradient of two layers is that of a loop with each layer's own path across segments."""
    report = zoo.prove(TWO_LAYERS.build, draws=2)
    assert any("against its approximation" in check.what for check in report.checks)


@pytest.mark.slow
@given(seed=forms.seeds, begin=forms.borders(), lengths=forms.compositions())
def test_gradients_of_two_layers(seed, begin, lengths):
    """Exact in one segment; across segments for the upper layer and what is behind it."""
    memory, carry, xs, weights = forms.problem(TWO_LAYERS, seed)
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


LENGTHS = [4, 1, 4, 1, 1, 1]  # which other tests compile


@pytest.mark.slow
def test_what_is_lost_below_is_small():
    """The path through the upper state across a border: the lower cell's gradient is close."""
    cosines, truncated_cosines = [], []
    for seed in range(10):
        memory, carry, xs, weights = forms.problem(TWO_LAYERS, seed)
        args = (memory, carry[0], xs, forms.no_cuts(), weights)
        _, _, _, (got, _) = forms.segments(memory, carry, xs, args[3], weights, LENGTHS)
        exact = forms.reference(*args, forms.no_cuts())[1][0]
        cut = forms.reference(*args, forms.cuts_at(LENGTHS))[1][0]

        def flat(gradient):
            cell = gradient.blocks[0].cell
            return np.concatenate([np.ravel(x) for x in jax.tree.leaves(cell)])

        g, e, t = flat(got), flat(exact), flat(cut)
        assert np.all(np.isfinite(g))
        cosines.append(g @ e / np.linalg.norm(g) / np.linalg.norm(e))
        truncated_cosines.append(t @ e / np.linalg.norm(t) / np.linalg.norm(e))
    assert np.median(cosines) > 0.9 and np.median(cosines) > np.median(truncated_cosines)
    assert max(cosines) < 1 - 1e-9  # it is an approximation: the documentation says so


def _deep(names):
    """A stack with exact credit of one cell of each name."""

    def build(inputs, hidden, *, key):
        blocks = []
        for name, layer_key in zip(names, jax.random.split(key, len(names)), strict=True):
            cell_key, block_key = jax.random.split(layer_key)
            options = {"window": 3} if name == "transformer" else {}  # shorter than the sequences
            cell = zoo.get(name, inputs=inputs, hidden=hidden, key=cell_key, **options)
            blocks.append(zoo.Block(cell, key=block_key))
        return zoo.Stack(blocks, credit="exact")

    def reachable(states):
        """An episode's beginning for the memories that count its steps."""
        return tuple(
            jax.tree.map(np.zeros_like, state) if name == "transformer" else state
            for name, state in zip(names, states, strict=True)
        )

    return CellCase("+".join(names), build, diagonal=False, reachable=reachable)


# Cells, and memories that are none, below, in the middle or on top.
EXACT = (
    _deep(["elstm", "mlp", "rtu"]),
    _deep(["qrnn", "mingru"]),
    _deep(["transformer", "linoss"]),
)


@pytest.mark.slow
@for_each(EXACT)
@given(seed=forms.seeds, begin=forms.borders(), lengths=forms.compositions())
def test_exact_credit_is_that_of_bptt(case, seed, begin, lengths):
    """For every parameter of every layer, any segmentation and episode borders anywhere.

    The inputs, and with them an encoder in front, have the gradient of the present segment.
    """
    memory, carry, xs, weights = forms.problem(case, seed, inputs=2, hidden=2)
    _, (exact, _, _) = forms.reference(memory, carry[0], xs, begin, weights, forms.no_cuts())
    _, (_, _, d_xs) = forms.reference(memory, carry[0], xs, begin, weights, forms.cuts_at(lengths))
    _, _, _, gradient = forms.segments(memory, carry, xs, begin, weights, lengths)
    assert_close(gradient, (exact, d_xs))


@pytest.mark.slow
def test_an_encoder_in_front_of_exact_credit_learns_from_the_present_segment():
    memory, carry, _, _ = forms.problem(_deep(["rtu", "gru"]), 0, inputs=2, hidden=2)
    network = Network(memory, 5, key=jax.random.key(0))
    rng = np.random.default_rng(0)
    xs, weights = jnp.array(rng.normal(size=(TIME, 5))), rng.normal(size=(TIME, 2))
    begin = jnp.arange(TIME) == 6
    _, (exact, _, _) = forms.reference(network, carry[0], xs, begin, weights, forms.no_cuts())
    lengths = [4, 4, 4]
    _, (truncated, _, _) = forms.reference(
        network, carry[0], xs, begin, weights, forms.cuts_at(lengths)
    )
    gradients = []
    for start in range(0, TIME, 4):
        part = slice(start, start + 4)

        def loss(network, carry=carry, part=part):
            out, ys = network.rtrl_scan(carry, xs[part], begin[part])
            return forms.total(ys, weights[part]), out

        gradient, carry = eqx.filter_jit(eqx.filter_grad(loss, has_aux=True))(network)
        gradients.append(gradient)
    got = jax.tree.map(lambda *g: sum(g), *gradients)
    assert_close((got.memory, got.head), (exact.memory, exact.head))
    assert_close(got.encoder, truncated.encoder)


@pytest.mark.slow
def test_the_memory_of_exact_credit_is_states_times_parameters():
    """Of what is in front of a state: the last layer's way out has no sensitivity."""
    stack = zoo.get("rtu", hidden=3, inputs=2, layers=2, credit="exact")
    sensitivity = stack.rtrl_init()
    kept = eqx.filter(stack, eqx.is_inexact_array)
    kept = eqx.tree_at(lambda s: (s.blocks[1].value, s.blocks[1].gate), kept, (None, None))
    parameters = sum(x.size for x in jax.tree.leaves(kept))
    assert stack.state_size == 12
    assert sum(x.size for x in jax.tree.leaves(sensitivity)) == 12 * parameters
    layerwise = zoo.get("rtu", hidden=3, inputs=2, layers=2).rtrl_init()
    assert sum(x.size for x in jax.tree.leaves(layerwise)) == 2 * 2 * (3 + 3 * 2)


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


def test_bad_blocks_are_named(unhooked):
    with pytest.raises(ValueError, match=r"`blocks` \(=\(\)\) must hold at least one block"):
        zoo.Stack([])
    blocks = [
        zoo.Block(zoo.GRU(width, 3, key=jax.random.key(0)), key=jax.random.key(0))
        for width in (2, 4)
    ]
    with pytest.raises(ValueError, match=r"`blocks` have cells with inputs \[2, 4\]: they must"):
        zoo.Stack(blocks)
    with pytest.raises(TypeError, match=r"`cell` \(='gru'\) must be a memory, such as zoo.get mak"):
        zoo.Block("gru", key=jax.random.key(0))
    with pytest.raises(ValueError, match=r"`inputs` \(=1\) must be at least 2 where a layer norm"):
        zoo.get("lru", inputs=1, hidden=3, layers=2, key=jax.random.key(0))
    with pytest.raises(TypeError, match=r"`blocks` \(a Block\) must be several"):
        zoo.Stack(blocks[0])  # pyright: ignore[reportArgumentType]
    assert len(zoo.Stack(block for block in blocks[:1]).blocks) == 1  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"`blocks` must hold zoo\.Block\(cell\), not a GRU by"):
        zoo.Stack([blocks[0].cell])  # pyright: ignore[reportArgumentType]


def test_bad_credit_is_named():
    with pytest.raises(ValueError, match=r"`credit` \(='none'\) must be one of layerwise, exact"):
        zoo.spec("rtu", hidden=2, credit="none")
    key = jax.random.key(0)
    window = zoo.Block(zoo.TCN(2, 3, key=key), key=key)  # which is no cell
    with pytest.raises(ValueError, match=r"`credit` \(='exackt'\) must be one of layerwise, exact"):
        zoo.Stack([window], credit="exackt")
    gru = zoo.GRU(2, 3, sensitivity=rtrl.SnAp1(), key=key)
    within = zoo.Stack([zoo.Block(gru, key=key)])
    fronted = zoo.Fronted(eqx.nn.Linear(2, 2, key=key), gru, inputs=2)
    for make in (
        lambda: zoo.Stack([zoo.Block(gru, key=key)], credit="exact"),
        lambda: zoo.Stack([zoo.Block(within, key=key)], credit="exact"),
        lambda: zoo.Stack([zoo.Block(fronted, key=key)], credit="exact"),
        lambda: zoo.spec("gru", hidden=3, layers=2, credit="exact", sensitivity="snap1"),
    ):
        with pytest.raises(ValueError, match=r"`sensitivity` \(=SnAp1\(\)\) of a cell must be"):
            make()
    stack = zoo.get("gru", hidden=2, inputs=2, credit="exact", layers=2)
    with pytest.raises(ValueError, match=r"`x` \(shape \(3,\)\) must have the shape \(2,\)"):
        stack.rtrl_step((stack.init_state(), stack.rtrl_init()), jnp.zeros(3))
