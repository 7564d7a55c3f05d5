"""Memories of outer products by chunks against a plain loop: values, gradients, resets, NaNs."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scan

TIME, HEADS, KEYS, VALUES = 11, 4, 2, 3
both_ways = pytest.mark.parametrize("method", ["sequential", "associative"])


def loop(q, k, v, rates, state, log_decay, begin):
    def step(s, inputs):
        q, k, v, rate, decay, begin = inputs
        s = jnp.exp(decay)[..., None] * jnp.where(begin, 0, s)
        u = v if rate is None else rate[:, None] * (v - jnp.einsum("hkv,hk->hv", s, k))
        s = s + k[:, :, None] * u[:, None]
        return s, jnp.einsum("hkv,hk->hv", s, q)

    return jax.lax.scan(step, state, (q, k, v, rates, log_decay, begin))


def chunked(q, k, v, rates, state, log_decay, begin, length=4, method="sequential"):
    how = {"length": length, "method": method}
    if rates is None:
        return scan.outer_products(q, k, v, state, log_decay, begin, **how)
    return scan.delta_rule(q, k, v, rates, state, log_decay, begin, **how)


def problem(decays, delta):
    rng = np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape))  # noqa: E731
    q, k, v = (draw(TIME, HEADS, n) for n in (KEYS, KEYS, VALUES))
    rates = jax.nn.sigmoid(draw(TIME, HEADS)) if delta else None
    log_decay = -jnp.exp(3 * draw(TIME, HEADS, decays)) if decays else None
    begin = jnp.isin(jnp.arange(TIME), jnp.array([5, 7]))  # within a chunk, and at its last step
    return q, 0.5 * k, v, rates, draw(HEADS, KEYS, VALUES), log_decay, begin


def with_gradient(run, arguments):
    def loss(floats):
        end, reads = run(*floats, arguments[-1])
        return jnp.sum(jnp.sin(reads)) + jnp.sum(end**2), (end, reads)

    return jax.jit(jax.value_and_grad(loss, has_aux=True))(arguments[:-1])


@pytest.mark.quick_rows(3)
@both_ways
@pytest.mark.parametrize(
    ("decays", "delta"), [(1, True), (KEYS, False), (0, False), (1, False), (KEYS, True)]
)
def test_values_and_gradients_equal_the_loop(decays, delta, method):
    arguments = problem(decays, delta)
    (value, out), gradient = with_gradient(functools.partial(chunked, method=method), arguments)
    none = arguments[5] is None
    full = list(arguments)
    full[5] = jnp.zeros((TIME, HEADS, 1)) if none else full[5]
    (expected_value, expected), expected_gradient = with_gradient(loop, tuple(full))
    if none:
        expected_gradient = (*expected_gradient[:5], None)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11),
        (value, out, gradient),
        (expected_value, expected, expected_gradient),
    )


@pytest.mark.quick_rows(1)
@both_ways
@pytest.mark.parametrize(("decays", "delta"), [(1, True), (KEYS, False), (1, False), (KEYS, True)])
def test_no_gradient_crosses_a_border_inside_a_chunk(decays, delta, method):
    *floats, begin = problem(decays, delta)
    weights = jnp.asarray(np.random.default_rng(1).normal(size=(TIME, HEADS, VALUES)))
    later = (jnp.arange(TIME) >= 5)[:, None, None]  # where `begin` is

    @jax.jit
    @jax.grad
    def gradient(floats):
        end, reads = chunked(*floats, begin, method=method)
        return jnp.sum(later * weights * jnp.sin(reads)) + jnp.sum(end**2)

    *of_steps, of_state, of_decay = gradient(tuple(floats))
    for g in jax.tree.leaves((of_steps, of_decay)):
        assert not np.any(g[:5]) and np.any(g[5:])
    assert not np.any(of_state)


@pytest.mark.slow
@both_ways
@pytest.mark.parametrize(("steps", "length"), [(3, 16), (1, 16), (5, 1)])
def test_chunks_of_one_step_are_the_loop_too(steps, length, method):
    *arguments, state, _, begin = problem(1, True)
    cut = (*(x[:steps] for x in arguments), state, -jnp.ones((steps, HEADS, 1)), begin[:steps])
    run = functools.partial(chunked, length=length, method=method)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11),
        with_gradient(run, cut),
        with_gradient(loop, cut),
    )


@pytest.mark.quick_rows(2)
@both_ways
@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("bad", [jnp.nan, jnp.inf])
def test_what_is_not_finite_is_seen_until_the_episode_ends(bad, delta, method):
    q, k, v, rates, state, decay, begin = problem(1, delta)
    run = jax.jit(functools.partial(chunked, method=method))
    _, expected = run(q, k, v, rates, state, decay, begin)
    # Where the loop has it too: from step 1 on, until step 5 begins an episode.
    end, reads = run(q, k, v.at[1, 0, 0].set(bad), rates, state, decay, begin)
    finite = jnp.isfinite(reads[:, 0]).all(1)
    np.testing.assert_array_equal(finite, (jnp.arange(TIME) < 1) | (jnp.arange(TIME) >= 5))
    assert jnp.isfinite(reads[:, 1]).all() and jnp.isfinite(end).all()
    np.testing.assert_array_equal(reads[5:], expected[5:])
    end, reads = run(q, k, v, rates, state.at[0, 0, 0].set(bad), decay, begin)
    np.testing.assert_array_equal(jnp.isfinite(reads[:, 0]).all(1), jnp.arange(TIME) >= 5)
    assert jnp.isfinite(end).all()
    # After the last border, it reaches the end.
    end, _ = run(q, k.at[-1, 0, 0].set(bad), v, rates, state, decay, begin)
    assert not jnp.isfinite(end[0]).any() and jnp.isfinite(end[1]).all()


@pytest.mark.quick_rows(1)
@both_ways
def test_an_episode_that_overflows_ends_with_it(float32, method):
    rng = np.random.default_rng(0)
    q, k, v = (jnp.asarray(rng.normal(size=(40, 8)), jnp.float32) for _ in range(3))
    begin, rates, empty = jnp.arange(40) == 12, jnp.full(40, 0.1), jnp.zeros((8, 8))
    run = jax.jit(lambda k: scan.delta_rule(q, k, v, rates, empty, begin=begin, method=method))
    state, reads = run(k.at[:12].multiply(1000))
    expected_state, expected = run(k)
    assert not jnp.isfinite(reads[11]).any()
    np.testing.assert_allclose(reads[12:], expected[12:], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(state, expected_state, rtol=1e-5, atol=1e-5)


def test_the_inverse_of_equal_keys_is_exact(float32):
    """Powers of the matrix would grow to thousands here; substitution does not."""
    k = jnp.ones((16, 1))
    v = jax.random.normal(jax.random.key(0), (16, 1))
    _, reads = scan.delta_rule(k, k, v, jnp.ones(16), jnp.zeros((1, 1)), length=16)
    np.testing.assert_allclose(reads, v, rtol=1e-6, atol=1e-6)


def test_lists_are_as_good_as_arrays(unhooked):
    one = [[1.0], [2.0]]
    _, reads = scan.outer_products(one, one, one, [[0.0]])
    np.testing.assert_array_equal(reads, [[1], [10]])
    np.testing.assert_array_equal(scan.blocks([[[2.0]]] * 2, one, [1.0]), [[3], [8]])


def test_bad_arguments():
    q, k, v, _, state, _, _ = problem(1, False)
    with pytest.raises(ValueError, match=r"`length` \(=3\) must be a power of two"):
        scan.outer_products(q, k, v, state, length=3)
    with pytest.raises(ValueError, match=r"`method` \(='tree'\) must be one of auto, sequential"):
        scan.outer_products(q, k, v, state, method="tree")
    with pytest.raises(ValueError, match=r"`keys` .* must have a time axis of at least one step"):
        scan.outer_products(q[:0], k[:0], v[:0], state)


def test_shapes_that_do_not_fit_are_named(unhooked):
    q, v, state = jnp.ones((6, 4)), jnp.ones((6, 3)), jnp.zeros((4, 3))
    rates = jnp.ones(6)
    for name, changed, rule in (
        ("queries", {"queries": q[:5]}, "(5, 4)) must have the shape (6, 4)"),
        ("values", {"values": v[:5]}, "(5, 3)) must have the shape (6, 3)"),
        ("rates", {"rates": jnp.ones((6, 1))}, "(6, 1)) must have the shape (6,)"),
        ("state", {"state": state.T}, "(3, 4)) must have the shape (4, 3)"),
        ("log_decay", {"log_decay": q[:, :2]}, "(6, 2)) must have the shape (6, 1) or (6, 4)"),
    ):
        operands = {"queries": q, "keys": q, "values": v, "rates": rates, "state": state}
        with pytest.raises(ValueError, match=re.escape(f"`{name}` (shape {rule}")):
            scan.delta_rule(**operands | changed)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_strong_decay_hides_none_behind_it_in_half_precision(dtype):
    one, k = jnp.ones((16, 1), dtype), jnp.zeros((16, 1), dtype).at[0].set(1)
    decay = jnp.full((16, 1), -0.02, dtype).at[0].set(-8)
    state, reads = scan.outer_products(one, k, one, jnp.zeros((1, 1), dtype), decay)
    assert state.dtype == reads.dtype == dtype
    np.testing.assert_allclose(state.astype(float), np.exp(-0.3), rtol=0.01)
    # One that is stronger than the smallest number of half precision.
    state, _ = scan.outer_products(one, 0 * k, one, 1000 * one[:1], jnp.full((16, 1), -20.0, dtype))
    assert state[0, 0] == 0


@pytest.mark.quick_rows(2)
@both_ways
@pytest.mark.parametrize("decays", [1, KEYS])
def test_behind_a_closed_gate_nothing_is_less_exact(decays, float32, method):
    """Of a strong decay, also the one before an episode, no rounding is left in the steps after."""
    rng = np.random.default_rng(0)
    shut = rng.random((64, HEADS, decays)) < 0.2
    log_decay = np.where(shut, -80, -0.01 * rng.random(shut.shape)).astype(np.float32)
    draw = lambda *shape: rng.normal(size=shape).astype(np.float32)  # noqa: E731
    q, k, v = (draw(64, HEADS, n) for n in (KEYS, KEYS, VALUES))
    begin = np.arange(64) % 11 == 7
    arguments = q, k, v, None, draw(HEADS, KEYS, VALUES), log_decay, begin
    found = jax.jit(functools.partial(chunked, length=16, method=method))(*arguments)
    with jax.enable_x64(True):
        wide = [x if x is None else x.astype(float) for x in arguments[:-1]]
        expected = jax.jit(loop)(*wide, begin)
    for got, want in zip(jax.device_get(found), jax.device_get(expected), strict=True):
        assert np.max(np.abs(got - want)) < 1e-6 * np.max(np.abs(want))


@pytest.mark.quick_rows(2)
@both_ways
@pytest.mark.parametrize("between", ["a begin", "a closed gate"])
def test_products_that_the_loop_does_not_form_may_overflow(between, float32, method):
    large = jnp.float32(1e20)
    q, k, v = (jnp.ones((8, 1, 1)) for _ in range(3))
    q, k = q.at[3].set(large), k.at[0].set(large).at[3].set(1 / large)
    begins = between == "a begin"
    gate = jnp.zeros((8, 1, 1)) if begins else jnp.full((8, 1, 1), -0.1).at[1:3].set(-80.0)
    begin = jnp.full(8, begins)
    arguments = q, k, v, None, jnp.zeros((1, 1, 1)), gate, begin

    def loss(run, floats):
        q, k, v, log_decay = floats
        _, reads = run(q, k, v, None, arguments[4], log_decay, begin)
        return jnp.sum(jnp.sin(reads[1:])), reads

    # Two chunks, so that there is a map to combine.
    for run in (functools.partial(chunked, length=4, method=method), loop):
        found = jax.jit(jax.grad(functools.partial(loss, run), has_aux=True))
        gradient, reads = found((q, k, v, gate))
        assert all(jnp.isfinite(x).all() for x in (*gradient, reads))


def test_a_choice_inside_of_a_choice_has_its_platform():
    traced = []

    def noted(name):
        return lambda x: traced.append(name) or x

    def choice(name, x):
        return scan.loop_or_tree(noted(f"{name}: loop"), noted(f"{name}: tree"), x)

    @jax.jit
    def nested(x):
        on_cpu, elsewhere = (functools.partial(choice, name) for name in ("cpu", "other"))
        return choice("before", scan.loop_or_tree(on_cpu, elsewhere, choice("after", x)))

    x = jnp.ones(TIME)
    nested.trace(x)
    ends = {f"{place}: {way}" for place in ("before", "after") for way in ("loop", "tree")}
    assert set(traced) == ends | {"cpu: loop", "other: tree"}
    for platform, side, way in (("cpu", "cpu", "loop"), ("gpu", "other", "tree")):
        traced.clear()
        with scan.traced_for(platform):  # though it has been traced for any before
            nested.trace(x)
        assert traced == [f"{place}: {way}" for place in ("after", side, "before")]


@pytest.mark.slow
def test_chunks_of_other_platforms_go_side_by_side():
    """No loop goes through them there, forward or backward."""
    *floats, begin = problem(1, True)

    @jax.jit
    @jax.grad
    def gradient(floats):
        end, reads = chunked(*floats, begin, method="auto")
        return jnp.sum(jnp.sin(reads)) + jnp.sum(end**2)

    def loops(platform):
        return gradient.trace(floats).lower(lowering_platforms=(platform,)).as_text().count("while")

    assert loops("cuda") == 0 < loops("cpu")
