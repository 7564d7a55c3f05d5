"""The forms under JAX's transformations, in float32, over long sequences, and their carries."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.cases import DISTINCT, FEWER, KINDS, RULED, for_each
from tests.zoo import forms
from tests.zoo.examples import ComplexParameter
from tests.zoo.forms import TIME, assert_close
from zoo.proofs.dtypes import cast, changed

every_kind = for_each(KINDS, quick=FEWER)
# Cells all go through `rtrl.segment`, of which the same is tested.
COMPOSED = ("rtu", "stack", "stack-exact", "qrnn", "transformer")


@for_each(KINDS, quick=["gru"])
def test_everything_at_once(case):
    """`jit` of `filter_grad` of `vmap` of `scan` of `checkpoint` of a segment."""
    memory, _, _, _ = forms.problem(case, 0)
    carries, xs, weights = jax.tree.map(
        lambda *x: np.stack(x), *(forms.problem(case, seed)[1:] for seed in range(3))
    )
    begin = np.random.default_rng(1).random((3, TIME)) < 0.2

    @eqx.filter_jit
    def gradient(memory, carries, xs, begin, weights):
        def of_one(memory, carry, xs, begin, weights):
            cut = lambda x: x.reshape(3, 4, *x.shape[1:])  # noqa: E731

            @jax.checkpoint
            def of_segment(carry, piece):
                xs, begin, weights = piece
                carry, ys = memory.rtrl_scan(carry, xs, begin)
                return carry, forms.total(ys, weights)

            return jnp.sum(jax.lax.scan(of_segment, carry, (cut(xs), cut(begin), cut(weights)))[1])

        def loss(memory):
            losses = jax.vmap(of_one, (None, 0, 0, 0, 0))(memory, carries, xs, begin, weights)
            return jnp.sum(losses)

        return eqx.filter_grad(loss)(memory)

    def expected(cuts):
        gradients = [
            forms.reference(
                memory, jax.tree.map(lambda h, i=i: h[i], carries[0]), xs[i], begin[i], weights[i],
                cuts,
            )[1][0]
            for i in range(3)
        ]  # fmt: skip
        return jax.tree.map(lambda *g: sum(g), *gradients)

    got = gradient(memory, carries, xs, begin, weights)
    exact, truncated = expected(forms.no_cuts()), expected(forms.cuts_at([4, 4, 4]))
    forms.assert_gradient(got, exact, truncated, case.present)


@every_kind
def test_the_second_call_does_not_compile(case):
    """What comes out goes in again: same shapes, dtypes and weak types, in every form."""
    memory, carry, xs, _ = forms.problem(case, 0)
    carry = (memory.init_state(), carry[1])
    xs, begin = jnp.asarray(xs[:3]), jnp.zeros(3, bool)
    arrays, rest = eqx.partition(memory, eqx.is_array)

    def advance(arrays, state, scanned, carry, segment):
        memory = eqx.combine(arrays, rest)
        state, _ = memory.step(state, xs[0], begin[0])
        state, _ = memory.step(state, xs[1])
        scanned, _ = memory.scan(scanned, xs, begin)
        scanned, _ = memory.scan(scanned, xs)
        carry, _ = memory.rtrl_step(carry, xs[0], begin[0])
        carry, _ = memory.rtrl_step(carry, xs[1])
        segment, _ = memory.rtrl_scan(segment, xs, begin)
        segment, _ = memory.rtrl_scan(segment, xs)
        return state, scanned, carry, segment

    given = jax.eval_shape(lambda: (carry[0], carry[0], carry, carry))
    assert not changed(given, jax.eval_shape(advance, arrays, *given))


@pytest.mark.quick_rows(1)
@for_each((case for case in KINDS if case.name in COMPOSED), quick=FEWER)
@pytest.mark.parametrize("length", [1, 4])
def test_nothing_flows_through_a_carry(case, length):
    """Neither into the one that comes in nor out of the one that goes out."""
    memory, carry, xs, weights = forms.problem(case, 0)
    begin = np.zeros(length, bool)
    carry, _ = forms.segment(memory, carry, xs[:4], np.zeros(4, bool), weights[:4])[0]
    xs, weights = xs[:length], weights[:length]

    @eqx.filter_jit
    def gradients(memory, carry, xs, begin):
        def run(memory, carry, xs):
            if length > 1:
                return memory.rtrl_scan(carry, xs, begin)
            out, y = memory.rtrl_step(carry, xs[0], begin[0])
            return out, y[None]

        outgoing = eqx.filter_grad(lambda args: forms.of_state(run(*args)[0]) + 0.0)
        incoming = eqx.filter_grad(lambda c: forms.total(run(memory, c, xs)[1], weights))
        return outgoing((memory, carry, xs)), incoming(carry)

    if jax.tree.leaves(carry):
        for leaf in jax.tree.leaves(gradients(memory, carry, xs, begin)):
            np.testing.assert_array_equal(leaf, 0)


@pytest.mark.slow
@for_each(case for case in KINDS if case.name in ("rtu", "rtu-nonlinear", "gru", "ffm"))
def test_float32(case):
    """Dtypes stay what they are, and results agree with float64 to what float32 allows."""
    memory, carry, xs, weights = forms.problem(case, 1)
    begin = np.arange(TIME) == 3
    *small, small_weights = cast((memory, carry, xs[:4], weights[:4]), np.float32)
    expected = forms.segment(memory, carry, xs[:4], begin[:4], weights[:4])
    got = forms.segment(*small, begin[:4], small_weights)
    for g, e in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert g.dtype == e.dtype == jnp.int32 or g.dtype.itemsize * 2 == e.dtype.itemsize
    assert_close(got, expected, 1e-4)
    for state in (small[0].init_state(), small[0].rtrl_init()):
        assert all(x.dtype.itemsize in (4, 8) for x in jax.tree.leaves(state))
        kinds = (jnp.float32, jnp.complex64, jnp.int32)
        assert all(x.dtype in kinds for x in jax.tree.leaves(state))


@pytest.mark.slow
@for_each(DISTINCT)
def test_a_hundred_thousand_steps(case, float32):
    """Random, huge and all-zero inputs: finite, bounded, and a kind's steps agree with its scan."""
    time = 100_000
    noise = np.random.default_rng(0).normal(size=(time, forms.INPUTS)).astype(np.float32)
    scales = np.array([1, 1e6, 0], np.float32)

    with jax.enable_x64(True):  # it is kept for other tests
        memory = forms.built(case)[0]
    memory = cast(memory, np.float32)

    @eqx.filter_jit
    def run(memory, noise, scale):
        xs, state = noise * scale, memory.init_state()
        end, ys = memory.scan(state, xs)
        stepped = end
        if case in RULED:
            stepped, _ = jax.lax.scan(lambda h, x: memory.step(h, x), state, xs)
        return end, stepped, jnp.max(jnp.abs(ys)), ys[-1]

    of_all = eqx.filter_vmap(run, in_axes=(None, None, 0))
    ends, stepped, largest, last = of_all(memory, noise, scales)
    for leaf in jax.tree.leaves(((ends, stepped), largest, last)):
        assert leaf.dtype in (jnp.float32, jnp.complex64, jnp.int32)
        assert np.all(np.isfinite(leaf))
    bound, power = case.growth
    assert np.all(largest <= bound * (1 + scales) ** power)
    for one, other in zip(jax.tree.leaves(ends), jax.tree.leaves(stepped), strict=True):
        for i in range(3):
            assert_close(one[i], other[i], 1e-4)


@pytest.mark.slow
def test_a_cell_may_have_complex_parameters():
    """They say nothing of the inputs, which stay real."""
    cell = ComplexParameter(3, 4, key=jax.random.key(0))
    sensitivity = cell.rtrl_init()
    shapes = [leaf.shape for leaf in jax.tree.leaves(sensitivity)]
    assert shapes == [(4,), (4,), (4, 3), (4, 3)]
    _, ys = cell.rtrl_scan((cell.init_state(), sensitivity), jnp.ones((5, 3)))
    assert ys.shape == (5, 4) and ys.dtype == jnp.float64
