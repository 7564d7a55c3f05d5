"""Newton's method against the plain loop: states, gradients, resets, and where it gives up."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scan
import zoo
from tests.cases import slow_but
from tests.zoo import forms
from zoo.proofs.dtypes import cast

TIME = 64


def scaled(cell, factor):
    """Weights larger than at the start, as after training."""
    arrays, rest = eqx.partition(cell, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(lambda p: factor * p, arrays), rest)


def rtu(activation):
    return lambda: zoo.NonlinearRTU(3, 8, activation=activation, r_max=0.95, key=jax.random.key(1))


CELLS = {
    "rtu-tanh": rtu("tanh"),
    "rtu-relu": rtu("relu"),
    "elstm": lambda: zoo.ELSTM(3, 8, key=jax.random.key(2)),
    "elstm-scaled": lambda: scaled(zoo.ELSTM(3, 8, key=jax.random.key(2)), 2.0),
    "indrnn": lambda: zoo.IndRNN(3, 8, activation="tanh", key=jax.random.key(3)),
    "sru": lambda: zoo.SRU(3, 8, key=jax.random.key(3)),
    "gru": lambda: zoo.GRU(3, 4, key=jax.random.key(4)),
    "lstm": lambda: zoo.LSTM(3, 4, key=jax.random.key(5)),
}


def cell_named(name):
    return eqx.filter_jit(CELLS[name])()


@pytest.mark.parametrize("name", slow_but(["elstm", "gru"], CELLS))
def test_states_and_gradients_are_those_of_the_loop(name):
    cell = cell_named(name)
    rng = np.random.default_rng(0)
    xs, begin = jnp.asarray(rng.normal(size=(TIME, 3))), jnp.asarray(rng.random(TIME) < 0.1)
    state = jax.tree.map(lambda h: jnp.asarray(rng.normal(size=h.shape)), cell.init_state())
    weights = jnp.asarray(rng.normal(size=(TIME, cell.outputs)))

    @eqx.filter_jit
    def run(cell, state, xs, begin):
        def loss(arguments, method):
            cell, state, xs = arguments
            end, ys = cell.scan(state, xs, begin, method=method)
            return forms.total(ys, weights) + forms.of_state(end), (end, ys)

        return [
            eqx.filter_value_and_grad(lambda a, m=m: loss(a, m), has_aux=True)((cell, state, xs))
            for m in ("newton", "sequential")
        ]

    for flags in (begin, jnp.zeros(TIME, bool), jnp.ones(TIME, bool)):
        newton, loop = run(cell, state, xs, flags)
        forms.assert_close(newton, loop)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rtu-tanh", "rtu-relu", "elstm", "elstm-scaled"])
def test_a_long_sequence_converges_in_a_few_iterations(name):
    cell = cell_named(name)
    xs = jax.random.normal(jax.random.key(7), (4096, 3))
    parameters, rest = eqx.partition(cell, eqx.is_inexact_array)

    def update(p, h, x):
        return eqx.combine(p, rest).update(h, x)

    states, report = jax.jit(lambda p: scan.newton(update, p, cell.init_state(), xs))(parameters)
    expected = jax.jit(lambda: scan.sequential(cell.update, cell.init_state(), xs)[1])()
    forms.assert_close(states, expected, 1e-10)
    assert report.converged and report.iterations <= 25


def test_small_states_are_as_exact_as_large_ones(float32):
    cell = eqx.filter_jit(lambda: zoo.Elman(3, 8, key=jax.random.key(0)))()
    cell = eqx.tree_at(lambda c: c.b, cell, replace_fn=jnp.zeros_like)
    xs = jnp.asarray(np.random.default_rng(0).normal(size=(TIME, 3)), jnp.float32)

    @eqx.filter_jit
    def outputs(cell, xs, method):
        return cell.scan(cell.init_state(), xs, method=method)[1]

    for scale in (1.0, 1e-5):
        newton, loop = (outputs(cell, scale * xs, m) for m in ("newton", "sequential"))
        assert 0 < np.max(np.abs(loop)) < 10 * scale
        # The last step was below 1.2e-5, and by the Jacobian's diagonal alone others are left.
        forms.assert_close(newton / scale, loop / scale, 3e-5)


def test_small_states_of_large_numbers_that_cancel_are_found_too(float32):
    """Whose rounding is larger than they allow for: it ends where steps get no smaller."""
    p = jnp.asarray(np.random.default_rng(0).normal(size=8), jnp.float32)
    xs = jnp.asarray(1e-3 * np.random.default_rng(1).normal(size=(200, 8)), jnp.float32)

    def update(p, h, x):
        return jnp.tanh(x + 0.9 * h + p) - jnp.tanh(p)

    states, report = jax.jit(lambda: scan.newton(update, p, jnp.zeros(8), xs))()
    expected = scan.sequential(lambda h, x: update(p, h, x), jnp.zeros(8), xs)[1]
    assert report.converged and report.iterations <= 20
    np.testing.assert_allclose(states, expected, atol=2e-6)


def doubling(p, h, x):
    return p * h + jnp.sin(5 * h) + x


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rtu-tanh", "gru"])
def test_in_half_precision_it_is_as_exact_as_the_loop(name):
    cell = cell_named(name)
    xs = jnp.asarray(np.random.default_rng(0).normal(size=(TIME, 3)))

    @eqx.filter_jit
    def outputs(cell, xs, method):
        return cell.scan(cell.init_state(), xs, method=method)[1].astype(jnp.float32)

    low = cast(cell, jnp.bfloat16), cast(xs, jnp.bfloat16)
    want = outputs(*(cast(tree, jnp.float32) for tree in low), "sequential")
    newton, loop = (jnp.max(jnp.abs(outputs(*low, m) - want)) for m in ("newton", "sequential"))
    assert 0 < newton < 1.5 * loop


def test_where_it_does_not_converge_the_loop_takes_over():
    p, xs = jnp.array(1.0), jnp.linspace(0, 1, 16)
    run = jax.jit(
        lambda p, n, d: scan.newton(doubling, p, jnp.array(0.1), xs, max_iterations=n, damping=d),
        static_argnums=(1, 2),
    )
    expected = scan.sequential(lambda h, x: doubling(p, h, x), jnp.array(0.1), xs)[1]
    states, report = run(p, 3, 0.0)
    assert not report.converged and report.iterations == 3
    np.testing.assert_array_equal(states, expected)
    states, report = run(p, 200, 0.5)
    assert report.converged
    np.testing.assert_allclose(states, expected, rtol=1e-9)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("coupling", ["units", "dense"])
@pytest.mark.parametrize(("dtype", "step"), [("float32", 1000), ("bfloat16", 1)])
def test_a_unit_that_is_large_hides_no_other(dtype, step, coupling):
    def update(_, h, x):
        return jnp.stack([h[0] + step, jnp.tanh(2.5 * h[1] + x)]).astype(dtype)

    xs = jnp.asarray(np.random.default_rng(0).normal(size=100), dtype)
    start = jnp.zeros(2, dtype)
    states, _ = jax.jit(lambda xs: scan.newton(update, (), start, xs, coupling=coupling))(xs)
    _, expected = scan.sequential(lambda h, x: update((), h, x), start, xs)
    tolerance = 1e-5 if dtype == "float32" else 0.02
    np.testing.assert_allclose(states[:, 1], expected[:, 1], rtol=0, atol=tolerance)


@pytest.mark.slow
def test_an_initial_state_has_the_states_dtype(float32):
    update = lambda p, h, x: jnp.tanh(p * h + x)  # noqa: E731
    ones, begin = jnp.ones(3), jnp.arange(5) == 2
    given = (update, ones, ones, jnp.ones((5, 3)), begin)
    expected, _ = scan.newton(*given, initial=jnp.zeros(3))
    found, _ = scan.newton(*given, initial=np.zeros(3, int))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_inputs_may_be_of_numpy():
    p, xs = {"used": jnp.array(1.0), "unused": 2.0}, np.linspace(0, 1, 16)
    update = lambda p, h, x: doubling(p["used"], h, x)  # noqa: E731
    # Three iterations, so that the loop takes over, which reads one input at a time.
    states, _ = scan.newton(update, p, jnp.array(0.1), xs, max_iterations=3)
    expected = scan.sequential(lambda h, x: doubling(1.0, h, x), jnp.array(0.1), xs)[1]
    np.testing.assert_array_equal(states, expected)


@pytest.mark.slow
def test_under_vmap_each_sequence_is_its_own():
    cell = cell_named("rtu-tanh")
    xs = jax.random.normal(jax.random.key(0), (3, 20, 3)) * jnp.array([0.1, 1, 10])[:, None, None]
    run = lambda method: eqx.filter_jit(  # noqa: E731
        jax.vmap(lambda xs: cell.scan(cell.init_state(), xs, method=method)[1])
    )(xs)
    np.testing.assert_allclose(run("newton"), run("sequential"), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_a_nan_spoils_what_comes_after_it_and_no_more():
    cell = cell_named("rtu-tanh")
    xs = jnp.ones((20, 3)).at[7].set(jnp.nan)
    begin = jnp.arange(20) == 12
    _, ys = eqx.filter_jit(lambda: cell.scan(cell.init_state(), xs, begin, method="newton"))()
    bad = ~np.all(np.isfinite(ys), 1)
    assert np.all(bad[7:12]) and not np.any(bad[:7]) and not np.any(bad[12:])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coupling": "full"}, r"`coupling` \(='full'\) must be one of units, dense"),
        ({"damping": 1.0}, r"`damping` \(=1.0\) must be a number of at least 0 and below 1"),
        ({"max_iterations": 0}, r"`max_iterations` \(=0\) must be a whole number of at least 1"),
        (
            {"max_iterations": 2.5},
            r"`max_iterations` \(=2.5\) must be a whole number of at least 1",
        ),
        ({"damping": "x"}, r"`damping` \(='x'\) must be a number of at least 0 and below 1"),
        ({"tolerance": -1.0}, r"`tolerance` \(=-1.0\) must be a number of at least 0"),
        ({"tolerance": float("nan")}, r"`tolerance` \(=nan\) must be a number of at least 0"),
        ({"tolerance": "x"}, r"`tolerance` \(='x'\) must be a number of at least 0"),
        ({"initial": (0.0,)}, r"`initial` \(shape \(\(\),\)\) must be built like `state`"),
        ({"begin": jnp.zeros(4, bool)}, r"`initial` \(=None\) must be given with `begin`"),
    ],
)
def test_bad_input_is_named(options, message, unhooked):
    with pytest.raises(ValueError, match=message):
        scan.newton(doubling, jnp.array(1.0), jnp.array(0.0), jnp.zeros(4), **options)


def test_states_that_are_not_units_are_named():
    with pytest.raises(ValueError, match=r"`state` has leaves .*`coupling='units'`"):
        scan.newton(lambda p, h, x: h, (), (jnp.zeros(2), jnp.zeros(3)), jnp.zeros(4))
    with pytest.raises(ValueError, match="`state` has a complex leaf"):
        scan.newton(lambda p, h, x: h, (), jnp.zeros(2, complex), jnp.zeros(4))


@pytest.mark.parametrize("state", [(), jnp.zeros((0, 2))])
def test_without_a_number_there_is_nothing_to_solve(state):
    for coupling in ("units", "dense"):
        states, report = scan.newton(lambda p, h, x: h, (), state, jnp.ones(3), coupling=coupling)
        shapes = [h.shape for h in jax.tree.leaves(states)]
        assert shapes == [(3, *h.shape) for h in jax.tree.leaves(state)]
        assert report.converged and report.iterations == 0
