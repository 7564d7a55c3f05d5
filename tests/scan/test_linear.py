"""`scan.linear` against a plain loop: values, gradients, resets, every method and direction."""

import functools
import itertools

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

import scan
from tests.cases import slow_but

METHODS = ("sequential", "associative", "auto")


def loop(a, b, h0=None, begin=None, *, reverse=False):
    """The recurrence as the docstring writes it, one step after another; autodiff goes through."""
    h0 = jnp.zeros(b.shape[1:], jnp.result_type(a, b)) if h0 is None else h0
    begin = jnp.zeros(len(b), bool) if begin is None else begin
    begin = begin.reshape(begin.shape + (1,) * (b.ndim - begin.ndim))
    a = jnp.broadcast_to(a if a.ndim == b.ndim else a[None], b.shape)

    def step(h, inputs):
        a_t, b_t, begin_t = inputs
        h = a_t * jnp.where(begin_t, 0, h) + b_t
        return h, h

    return jax.lax.scan(step, h0, (a, b, begin), reverse=reverse)[1]


def normal(rng, shape, is_complex):
    x = rng.normal(size=shape)
    return jnp.asarray(x + 1j * rng.normal(size=shape) if is_complex else x)


def case(seed, time, features, is_complex, varies):
    rng = np.random.default_rng(seed)
    a = 0.9 * normal(rng, ((time,) if varies else ()) + features, is_complex)
    b = normal(rng, (time, *features), is_complex)
    h0 = normal(rng, features, is_complex)
    begin = jnp.asarray(rng.random(time) < 0.3)
    weight = normal(rng, (time, *features), is_complex)
    return a, b, h0, begin, weight


@given(
    st.integers(0, 10_000),
    st.sampled_from([1, 2, 3, 7, 17]),
    st.sampled_from([(), (1,), (3,), (2, 3)]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(METHODS),
)
def test_values_and_gradients_equal_the_loop(
    seed, time, features, is_complex, varies, resets, reverse, method
):
    a, b, h0, begin, weight = case(seed, time, features, is_complex, varies)
    begin = begin if resets else None

    def loss(function, **options):
        def value(a, b, h0):
            h = function(a, b, h0, begin, reverse=reverse, **options)
            return jnp.sum((weight * h).real + jnp.abs(h) ** 2), h

        return jax.value_and_grad(value, argnums=(0, 1, 2), has_aux=True)

    @jax.jit
    def both(*given):
        return loss(loop)(*given), loss(scan.linear, method=method)(*given)

    results = jax.device_get(both(a, b, h0))
    ((_, expected), expected_gradients), ((_, got), gradients) = results
    scale = 1 + np.max(np.abs(expected))
    np.testing.assert_allclose(got / scale, expected / scale, atol=1e-12, rtol=0)
    for mine, theirs in zip(gradients, expected_gradients, strict=True):
        size = 1 + np.max(np.abs(theirs))
        np.testing.assert_allclose(mine / size, theirs / size, atol=1e-12, rtol=0)


@pytest.mark.parametrize("reverse", [False, True])
def test_states_that_are_known_are_differentiated_without_being_computed_again(reverse):
    a, b, h0, begin, weight = case(0, 7, (3,), True, True)
    known = scan.linear(a, b, h0, begin, reverse=reverse)

    def loss(a, b, h0, states):
        h = scan.linear(a, b, h0, begin, reverse=reverse, states=states)
        return jnp.sum((weight * h).real + jnp.abs(h) ** 2)

    of = jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))
    got, want = of(a, b, h0, known), of(a, b, h0, None)
    jax.tree.map(lambda g, w: np.testing.assert_allclose(g, w, atol=1e-12), got, want)
    again = jax.make_jaxpr(lambda *x: scan.linear(*x, begin, states=known))(a, b, h0)
    assert "while" not in str(again) and " scan[" not in str(again)
    assert "stand_in" not in str(again)
    assert "stand_in" in str(jax.make_jaxpr(lambda *x: scan.linear(*x, begin))(a, b, h0))


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("method", METHODS)
def test_all_eight_reset_patterns(method):
    a, b, h0, _, _ = case(0, 3, (2,), True, True)
    flags = jnp.array(list(itertools.product([False, True], repeat=3)))
    got = jax.jit(jax.vmap(lambda begin: scan.linear(a, b, h0, begin, method=method)))(flags)
    expected = jax.vmap(lambda begin: loop(a, b, h0, begin))(flags)
    np.testing.assert_allclose(got, expected, atol=1e-13)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("method", METHODS)
def test_a_nan_does_not_survive_a_reset(method):
    a, b, h0, _, _ = case(1, 9, (2,), False, True)
    b = b.at[2].set(jnp.nan)
    begin = jnp.arange(9) == 5

    def total(a, b, h0):
        h = scan.linear(a, b, h0, begin, method=method)
        return jnp.sum(h[5:]), h

    (d_a, *gradients), h = jax.jit(jax.grad(total, (0, 1, 2), has_aux=True))(a, b, h0)
    assert jnp.all(jnp.isnan(h[2:5])) and jnp.all(jnp.isfinite(h[5:]))
    assert all(jnp.all(jnp.isfinite(g)) for g in gradients)
    assert jnp.all(gradients[0][:5] == 0) and jnp.all(gradients[1] == 0)
    # Before the border it is zero times NaN; at it and behind there is none.
    assert jnp.all(jnp.isfinite(d_a[5:]))


@pytest.mark.quick_rows(2)
@pytest.mark.parametrize("method", METHODS)
def test_an_infinite_factor_spoils_gradients_of_what_came_before_it_only(method):
    a, b, h0, _, _ = case(1, 9, (2,), False, True)
    last = lambda b: jnp.sum(scan.linear(a.at[8].set(jnp.inf), b, h0, method=method)[8])  # noqa: E731
    np.testing.assert_array_equal(jax.jit(jax.grad(last))(b)[8], 1)


@pytest.mark.parametrize("method", ["sequential", "associative"])
def test_the_gradient_of_a_constant_grows_in_half_precision_too(method):
    b = jnp.ones((2000, 2), jnp.bfloat16)

    def total(a):
        return jnp.sum(scan.linear(a, b, method=method), dtype=jnp.float32)

    gradient = jax.jit(jax.grad(total))(jnp.full(2, 0.5, jnp.bfloat16))
    np.testing.assert_allclose(gradient.astype(float), 8000, rtol=0.01)  # Σ_t Σ_k k a^(k-1)


def test_it_is_exported_for_any_batch(unhooked):
    (batch,) = jax.export.symbolic_shape("batch")
    xs = jax.ShapeDtypeStruct((5, batch, 3), jnp.float32)
    solve = jax.jit(lambda b: scan.linear(jnp.full(3, 0.5, b.dtype), b))
    for platform in ("cpu", "cuda"):
        exported = jax.export.export(solve, platforms=(platform,))(xs)
        assert exported.out_avals[0].shape == xs.shape
    exported = jax.export.export(solve)(xs)
    got = exported.call(jnp.ones((5, 2, 3), jnp.float32))
    np.testing.assert_allclose(got[-1], 1.9375)


def test_lists_are_arrays_and_states_are_checked_at_one_step_too(unhooked):
    h = scan.linear([0.5, 0.5], [[1.0, 1.0]], [2.0, 4.0])
    np.testing.assert_array_equal(h, [[2.0, 3.0]])
    with pytest.raises(ValueError, match=r"`states` \(shape \(7, 2\)\) must have the shape of `b`"):
        scan.linear(jnp.ones(2), jnp.ones((1, 2)), states=jnp.ones((7, 2)))


SHAPES = [(), (3,), (1, 3), (2, 3), (1, 1, 3), (6, 1, 3), (6, 2, 1), (6, 1, 1)]


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("shape", slow_but([(3,), (6, 1, 3)], SHAPES, several=False), ids=str)
def test_broadcasting_of_coefficients(shape):
    a = normal(np.random.default_rng(3), shape, False)
    _, b, h0, _, weight = case(2, 6, (2, 3), False, True)

    def wide(a, b, h0):
        a = a.reshape((1,) * (3 - a.ndim) + a.shape)
        return loop(jnp.broadcast_to(a, b.shape), b, h0)

    def gradients(*arguments):
        return [
            jax.value_and_grad(
                lambda a, b, h0, f=f: jnp.sum(weight * f(a, b, h0)), argnums=(0, 1, 2)
            )(*arguments)
            for f in (wide, *(functools.partial(scan.linear, method=method) for method in METHODS))
        ]

    (expected, want), *results = jax.jit(gradients)(a, b, h0)
    for method, (value, got) in zip(METHODS, results, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-12, err_msg=method)
        for g, w in zip(got, want, strict=True):
            assert g.shape == w.shape
            np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-12, err_msg=method)


@pytest.mark.parametrize("method", slow_but(["auto"], METHODS))
def test_under_vmap_with_episodes_of_their_own(method):
    a, b, h0, _, _ = case(4, 8, (5, 2), True, False)
    begin = jnp.asarray(np.random.default_rng(0).random((8, 5)) < 0.3)
    solve = functools.partial(scan.linear, method=method)
    direct = jax.jit(solve)(a[0], b, h0, begin)
    mapped = jax.jit(jax.vmap(solve, (None, 1, 0, 1), 1))(a[0], b, h0, begin)
    np.testing.assert_allclose(direct, mapped, atol=1e-13)
    np.testing.assert_allclose(direct[:, 3], loop(a[0], b[:, 3], h0[3], begin[:, 3]), atol=1e-13)


def test_the_backward_pass_stores_coefficients_and_states_only():
    a, b, h0, begin, _ = case(5, 16, (4,), True, True)
    _, pullback = jax.vjp(lambda a, b, h0: scan.linear(a, b, h0, begin), a, b, h0)
    stored = sum(x.size for x in jax.tree.leaves(pullback) if jnp.iscomplexobj(x))
    assert stored == a.size + b.size + h0.size


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (((3,), (0, 3)), {}, r"`b` \(shape \(0, 3\)\) must have a time axis of at least one"),
        (((4,), (5, 3)), {}, r"`a` \(shape \(4,\)\) must broadcast to \(3,\)"),
        (((2, 3), (5, 3)), {}, r"`a` \(shape \(2, 3\)\) must broadcast to \(5, 3\)"),
        (((3,), (5, 3), (2,)), {}, r"`h0` \(shape \(2,\)\) must broadcast to \(3,\)"),
        (((3,), (5, 3), (3,)), {"begin": (4,)}, r"`begin` \(shape \(4,\)\) must have the leading"),
        (((3,), (5, 3)), {"states": (4, 3)}, r"`states` \(shape \(4, 3\)\) must have the"),
        (((3,), (5, 3)), {"method": "magic"}, "`method` \\(='magic'\\) must be one of auto, seq"),
    ],
)
def test_bad_input_is_named(arguments, options, message):
    if "begin" in options:
        options = {"begin": jnp.zeros(options["begin"], bool)}
    if "states" in options:
        options = {"states": jnp.ones(options["states"])}
    with pytest.raises(ValueError, match=message):
        scan.linear(*(jnp.ones(shape) for shape in arguments), **options)


@pytest.mark.parametrize("method", ["sequential", "associative", "kernel"])
def test_no_channels_make_no_states(method):
    assert scan.linear(jnp.ones(0), jnp.ones((3, 0)), method=method).shape == (3, 0)


def test_integers_are_refused():
    with pytest.raises(ValueError, match="`b` \\(dtype int64\\) must be real or complex floating"):
        scan.linear(jnp.ones(3, int), jnp.ones((4, 3), int))


@pytest.mark.skipif(jax.__version_info__ < (0, 9), reason="JAX 0.8 transposes no loop")
@pytest.mark.parametrize("method", ["sequential", "associative"])
def test_what_is_linear_in_it_is_transposed(method):
    a, b, h0, begin, weight = case(0, 5, (2,), False, True)
    solve = lambda b, h0: scan.linear(a, b, h0, begin, method=method)  # noqa: E731
    found = jax.jit(lambda: jax.linear_transpose(solve, b, h0)(weight))()
    expected = jax.vjp(lambda b, h0: loop(a, b, h0, begin), b, h0)[1](weight)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
