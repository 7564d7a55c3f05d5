"""Memories that are scanned in chunks without their states: against the plain loop."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import zoo
from tests.zoo import forms


@pytest.mark.slow
def test_chunks_have_the_values_and_gradients_of_the_loop():
    """And what is not finite does not pass a border. Of the other cells the proof says it."""
    memory = zoo.get("mlstm", hidden=forms.HIDDEN, inputs=forms.INPUTS, heads=2)
    rng = np.random.default_rng(0)
    state = jax.tree.map(lambda h: np.abs(forms.normal(rng, h)), memory.init_state())
    xs = rng.normal(size=(forms.TIME, forms.INPUTS))
    weights = rng.normal(size=(forms.TIME, memory.outputs))
    begin = jnp.arange(forms.TIME) % 7 == 5
    (states, ys), gradient = forms.reference(
        memory, state, xs, begin, weights, forms.no_cuts(), np.asarray(0.7)
    )

    @eqx.filter_jit
    def in_chunks(memory, state, xs):
        def loss(arguments):
            memory, state, xs = arguments
            end, ys = memory.scan(state, xs, begin, method="chunks")
            return forms.total(ys, weights) + 0.7 * forms.of_state(end), (end, ys)

        (_, out), gradient = eqx.filter_value_and_grad(loss, has_aux=True)((memory, state, xs))
        return out, gradient

    out, found = in_chunks(memory, state, xs)
    forms.assert_close(out, (jax.tree.map(lambda h: h[-1], states), ys))
    forms.assert_close(found, gradient)
    # What is not finite does not survive the first of two borders.
    (end, ys), _ = in_chunks(memory, jax.tree.map(lambda h: h * np.nan, state), xs)
    forms.assert_close((end, ys[5:]), (out[0], out[1][5:]))


@pytest.mark.slow
def test_long_sequences_take_chunks_by_themselves():
    memory = zoo.get("linear_attention", hidden=4, inputs=3)
    xs = jax.random.normal(jax.random.key(0), (40, 3))

    def gradient(method):
        def loss(memory):
            return (memory.scan(memory.init_state(), xs, method=method)[1] ** 2).sum()

        return eqx.filter_jit(eqx.filter_grad(loss))

    methods = ("auto", "chunks", "sequential")
    programs = [gradient(method).lower(memory).compile() for method in methods]
    auto, _, loop = programs
    forms.assert_close(auto(memory), loop(memory))
    auto, chunks, loop = (program.compiled.cost_analysis()["flops"] for program in programs)
    assert auto == chunks != loop


@pytest.mark.parametrize("name", ["linear_attention", "mlstm", "deltanet"])
def test_heads_divide_the_width(name):
    with pytest.raises(ValueError, match=r"`heads` \(=3\) must divide `hidden` \(=4\)"):
        zoo.get(name, hidden=4, heads=3)


def test_a_cell_without_chunks_says_what_it_has():
    cell = zoo.get("linear_rnn", hidden=2)
    with pytest.raises(ValueError, match=r"`method` \(='chunks'\) must be one of auto, sequential"):
        cell.scan(cell.init_state(), jnp.ones((3, 2)), method="chunks")
