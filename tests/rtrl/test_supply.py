"""`rtrl.supply`, `rtrl.init` and the layouts of the structures."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rtrl

STRUCTURE = rtrl.Diagonal()
H = jnp.array([0.5, -1.0])
G = jnp.array([2.0, 3.0])


def parameters(rng=None):
    rng = rng or np.random.default_rng(0)
    return {"a": jnp.asarray(rng.normal(size=2)), "w": jnp.asarray(rng.normal(size=(2, 3)))}


def sensitivity(rng=None):
    return (parameters(rng or np.random.default_rng(1)),)


def loss(p, h, s, weight=G, **options):
    """Not linear in the state that is supplied, and nothing else uses the parameters."""
    return jnp.sum(weight * rtrl.supply(STRUCTURE, p, h, s, **options) ** 2)


def expected(h, s, weight=G):
    g = 2 * weight * h
    return {"a": g * s[0]["a"], "w": g[:, None] * s[0]["w"]}, g


def assert_close(got, want):
    assert jax.tree.structure(got) == jax.tree.structure(want)
    jax.tree.map(lambda g, w: np.testing.assert_allclose(g, w, rtol=1e-12), got, want)


def test_the_backward_rule():
    p, s = parameters(), sensitivity()
    np.testing.assert_array_equal(rtrl.supply(STRUCTURE, p, H, s), H)
    d_p, d_h, d_s = jax.grad(loss, (0, 1, 2))(p, H, s)
    assert_close((d_p, d_h), expected(H, s))
    jax.tree.map(lambda g: np.testing.assert_array_equal(g, 0), d_s)


@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("again", [jax.hessian, lambda f: jax.jacrev(jax.grad(f))])
def test_a_second_derivative_is_refused(again, products):
    """It would lack that of the sensitivity, and not be symmetric; in a loop's body too."""
    once = lambda p: loss(p, H, sensitivity(), products=products) ** 2  # noqa: E731
    looped = lambda p: jax.lax.scan(lambda total, _: (total + once(p), 0), 0.0, None, length=2)[0]  # noqa: E731
    for value in (once, looped):
        with pytest.raises(TypeError, match=r"no derivatives of its own.*: take second deriv"):
            again(value)(parameters())


@pytest.mark.parametrize("products", [False, True])
def test_what_another_derivative_is_taken_of_in_a_loop_keeps_its_gradient(products):
    """JAX takes the loop's body apart for the inner derivative, before it takes the outer one."""

    def of_head(p, head, loop):
        def step(h, _):
            h = rtrl.supply(STRUCTURE, p, h, sensitivity(), products=products)
            return 0.5 * h, jnp.sum(jnp.tanh(head * h))

        if loop:
            return jnp.sum(jax.lax.scan(step, H, None, length=3)[1])
        h, total = H, 0.0
        for _ in range(3):
            h, value = step(h, None)
            total += value
        return total

    def of_value(p, loop):
        value, slope = jax.value_and_grad(of_head, 1)(p, 0.7, loop)
        return value + slope

    in_turn, looped = (jax.jit(jax.grad(partial(of_value, loop=x)))(parameters()) for x in (0, 1))
    assert_close(looped, in_turn)
    assert any(jnp.any(leaf != 0) for leaf in jax.tree.leaves(looped))


def test_a_second_derivative_in_forward_mode_is_refused():
    slope = lambda f: lambda p: jax.jvp(f, (p,), (p,))[1]  # noqa: E731
    once = slope(lambda p: loss(p, H, sensitivity(), products=True) ** 2)
    assert np.isfinite(once(parameters()))
    with pytest.raises(TypeError, match="no derivatives of its own"):
        slope(once)(parameters())


def test_forward_mode_is_for_rules_of_tangents():
    p, tangent = parameters(), parameters(np.random.default_rng(2))
    slope = lambda **options: jax.jvp(  # noqa: E731
        lambda p: loss(p, H, sensitivity(), **options), (p,), (tangent,)
    )[1]
    gradient = jax.grad(loss)(p, H, sensitivity())
    expected = sum(jnp.sum(gradient[name] * tangent[name]) for name in p)
    np.testing.assert_allclose(slope(products=True), expected, rtol=1e-12)
    with pytest.raises(TypeError, match=r"for reverse mode only: in forward mode take `rtrl_step`"):
        slope()


def checkpointed(p, h, s):
    return jax.checkpoint(loss)(p, h, s)


def scanned(p, h, s):
    step = lambda total, weight: (total + loss(p, h, s, weight), None)  # noqa: E731
    return jax.lax.scan(step, 0.0, jnp.stack([G / 4, G / 4, G / 2]))[0]


def carried(p, h, s):
    """The sensitivity in the carry of a scan, as an online loop has it."""

    def step(carry, weight):
        h, s = carry
        return (h, s), loss(p, h, s, weight)

    return jnp.sum(jax.lax.scan(step, (h, s), jnp.stack([G / 2, G / 2]))[1])


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("function", [loss, checkpointed, scanned, carried, jax.jit(loss)])
def test_under_transformations(function):
    p, s = parameters(), sensitivity()
    got = jax.jit(jax.grad(function, (0, 1)))(p, H, s)
    assert_close(got, expected(H, s))
    got = eqx.filter_grad(lambda args: function(*args))((p, H, s))
    assert_close(got[:2], expected(H, s))
    jax.tree.map(lambda g: np.testing.assert_array_equal(g, 0), got[2])


def test_under_vmap():
    """Shared parameters: gradients add up. Parameters of each: they do not."""
    p = parameters()
    rng = np.random.default_rng(2)
    states = jnp.asarray(rng.normal(size=(4, 2)))
    each = [sensitivity(rng) for _ in range(4)]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *each)
    wanted = [expected(h, s) for h, s in zip(states, each, strict=True)]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *wanted)

    shared = jax.grad(lambda p, h: jnp.sum(jax.vmap(loss, (None, 0, 0))(p, h, batch)), (0, 1))
    d_p, d_h = jax.jit(shared)(p, states)
    assert_close(d_p, jax.tree.map(lambda g: g.sum(0), stacked[0]))
    assert_close(d_h, stacked[1])
    own = jax.jit(jax.vmap(jax.grad(loss, (0, 1)), (None, 0, 0)))(p, states, batch)
    assert_close(own, stacked)


@pytest.mark.parametrize("wrap", [lambda f: f, eqx.filter_jit, eqx.filter_checkpoint])
def test_parameters_without_a_sensitivity_get_none(wrap):
    """Readouts, integers and functions may sit in the same pytree, also as arguments of a `jit`."""
    p = {**parameters(), "readout": jnp.ones(7), "n": 3, "f": jnp.tanh}

    @wrap
    def update(p, h, x):
        return jnp.tanh(p["a"] * h + p["w"] @ x) * p["n"]

    s = rtrl.init(STRUCTURE, update, p, H, jnp.ones(3))
    assert s[0]["readout"] is None and s[0]["n"] is None and s[0]["f"] is None
    assert (s[0]["a"].shape, s[0]["w"].shape) == ((2,), (2, 3))
    jax.tree.map(lambda x: np.testing.assert_array_equal(x, 0), s)
    s = jax.tree.map(lambda x: x + 1.0, s)
    d_p = eqx.filter_grad(lambda p: loss(p, H, s))(p)
    np.testing.assert_array_equal(d_p["readout"], 0)
    np.testing.assert_allclose(d_p["a"], 2 * G * H)


def test_an_input_may_be_given_by_its_shape():
    shape = jax.ShapeDtypeStruct((3,), jnp.float64)
    s = rtrl.init(STRUCTURE, lambda p, h, x: p["a"] * h + p["w"] @ x, parameters(), H, shape)
    assert (s[0]["a"].shape, s[0]["w"].shape) == ((2,), (2, 3))


def _complex_update(p, h, x):
    """Holomorphic in the state; a real and a complex parameter."""
    return jax.lax.complex(jnp.cos(p["r"]), jnp.sin(p["r"])) * 0.9 * h + p["w"] @ x


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("structure", [rtrl.Diagonal(), rtrl.Dense()])
def test_complex_states_with_real_and_complex_parameters(structure):
    """Steps of `supply` and `roll` against autodiff through the loop; a reset in the middle."""
    rng = np.random.default_rng(0)
    p = {
        "r": jnp.asarray(rng.normal(size=2)),
        "w": jnp.asarray(rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))),
    }
    xs, begin = jnp.asarray(rng.normal(size=(6, 3))), [False, False, True, False, False, False]
    weight = jnp.asarray(rng.normal(size=2) + 1j * rng.normal(size=2))
    start = jnp.zeros(2, complex)

    def value(h):
        return jnp.sum((weight * h).real) + jnp.sum((h * h.conj()).real)

    def run(p, h, x, begin):
        return _complex_update(p, jnp.where(begin, 0, h), x)

    @jax.jit
    def by_loop(p):
        h, total = start, 0.0
        for x, b in zip(xs, begin, strict=True):
            h = run(p, h, x, b)
            total += value(h)
        return total

    @jax.jit
    def by_rtrl(p):
        h, gradient = start, jax.tree.map(jnp.zeros_like, p)
        s = rtrl.init(structure, _complex_update, p, h, xs[0])
        for x, b in zip(xs, begin, strict=True):
            b = jnp.array(b)
            s = rtrl.roll(structure, run, p, h, s, x, b)
            h = run(p, h, x, b)
            new = jax.grad(lambda p, h=h, s=s: value(rtrl.supply(structure, p, h, s)))(p)
            gradient = jax.tree.map(jnp.add, gradient, new)
        return gradient, s

    gradient, s = by_rtrl(p)
    exact = jax.jit(jax.grad(by_loop))(p)
    jax.tree.map(lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-10), gradient, exact)
    if isinstance(structure, rtrl.Diagonal):  # a complex trace each, in two real arrays
        assert len(jax.tree.leaves(s)) == 2 * len(jax.tree.leaves(p))
        assert all(x.dtype == float for x in jax.tree.leaves(s))
        assert s[0]["r"].real.shape == (2,) and s[0]["w"].imag.shape == (2, 3)
    else:  # two real parts of two units
        assert s[0]["r"].shape == (4, 2) and s[0]["w"].shape == (4, 2, 3)


def test_roll_forgets_an_infinite_sensitivity():
    p, run = parameters(), lambda p, h, x, begin: p["a"] * jnp.where(begin, 0, h) + p["w"] @ x
    bad = jax.tree.map(lambda s: jnp.full_like(s, jnp.inf), sensitivity())
    zero = jax.tree.map(jnp.zeros_like, bad)
    x = jnp.ones(3)
    for begin in (True, jnp.array(True)):
        got = rtrl.roll(STRUCTURE, run, p, H, bad, x, begin)
        assert_close(got, rtrl.roll(STRUCTURE, run, p, jnp.zeros(2), zero, x, jnp.array(True)))
        np.testing.assert_allclose(got[0]["w"], 1.0)
        np.testing.assert_array_equal(got[0]["a"], 0)


@pytest.mark.parametrize(
    ("leaf", "state", "error", "message"),
    [
        (
            (3, 2),
            (jnp.zeros(2),),
            ValueError,
            r"`parameters\['w'\]` \(shape \(3, 2\)\) must begin .*\(2,\)",
        ),
        ((2,), (jnp.zeros(2), jnp.zeros(3)), ValueError, r"shape \(2,\), float64 and \(3,\), flo"),
        ((2,), (jnp.zeros(2), jnp.zeros(2, complex)), ValueError, "float64 and .*, complex128"),
        (
            (2,),
            (jnp.zeros((2, 3)),),
            ValueError,
            r"`parameters.*` \(shape \(2,\)\) must begin with the units \(2, 3\)",
        ),
    ],
)
def test_what_is_not_diagonal_is_refused(leaf, state, error, message):
    with pytest.raises(error, match=message):
        STRUCTURE.zeros({"w": jnp.ones(leaf)}, state)


def test_a_complex_parameter_of_a_real_state_is_refused():
    with pytest.raises(TypeError, match="`parameters` has a complex leaf but the state is real"):
        STRUCTURE.zeros({"w": jnp.ones(2, complex)}, jnp.zeros(2))


def test_a_large_dense_sensitivity_warns():
    with pytest.warns(UserWarning, match="keeps 24 numbers per environment"):
        rtrl.Dense(warn_above=23).zeros({"w": jnp.ones((2, 6))}, jnp.zeros(2))
    rtrl.Dense(warn_above=24).zeros({"w": jnp.ones((2, 6))}, jnp.zeros(2))  # and at 24 it does not


def without_zeros(structure, p, h):
    """A sensitivity of the state, every number of it moved from where it begins."""
    update = lambda p, h, x: (p["a"] * h + p["w"] @ x).astype(h.dtype)  # noqa: E731
    s = rtrl.init(structure, update, p, h, jnp.ones(3))
    return jax.tree.map(lambda x: x + 0.5 if eqx.is_inexact_array(x) else x, s)


@pytest.mark.quick_rows(3)
@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("structure", [rtrl.Diagonal(), rtrl.Dense(), rtrl.UORO()])
def test_a_state_may_be_narrower_than_parameters(structure, products):
    p, h = parameters(), H.astype(jnp.float32)
    s = without_zeros(structure, p, h)

    def gradient(h):
        supplied = lambda p: rtrl.supply(structure, p, h, s, products=products)  # noqa: E731
        return jax.grad(lambda p: jnp.sum(G.astype(h.dtype) * supplied(p)))(p)

    narrow, wide = gradient(h), gradient(H)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), narrow, wide)


@pytest.mark.parametrize("structure", [rtrl.Diagonal(), rtrl.Dense(), rtrl.UORO(), rtrl.SnAp0()])
def test_a_tangent_of_parameters_is_all_that_moves_the_state(structure):
    """Forward mode: nothing comes of no tangent, of others what the gradient pairs with them."""
    p = parameters()
    s = without_zeros(structure, p, H)
    pushed = jax.jit(lambda tangent: structure.jvp(s, tangent, H))
    none = pushed(jax.tree.map(jnp.zeros_like, p))
    np.testing.assert_array_equal(none, np.zeros_like(H))
    supplied = lambda p: jnp.sum(G * rtrl.supply(structure, p, H, s))  # noqa: E731
    gradient = jax.jit(jax.grad(supplied))(p)
    expected = sum(jnp.sum(x) for x in jax.tree.leaves(gradient))
    np.testing.assert_allclose(jnp.sum(G * pushed(jax.tree.map(jnp.ones_like, p))), expected)
    assert bool(expected) == (structure != rtrl.SnAp0())


def test_products_of_dense_sensitivities_ask_for_all_digits():
    p = parameters()
    s = rtrl.init(rtrl.Dense(), lambda p, h, x: p["a"] * h + p["w"] @ x, p, H, jnp.ones(3))

    def moved_and_used(s):
        run = lambda p, h: p["a"] * h + p["w"] @ jnp.ones(3)  # noqa: E731
        end, pullback = jax.vjp(run, p, H)
        return rtrl.Dense().advance(pullback, end, s), rtrl.Dense().jvp(s, p, H)

    program = jax.jit(moved_and_used).trace(s).lower(lowering_platforms=("cuda",)).as_text()
    products = [line for line in program.splitlines() if "dot_general" in line]
    assert len(products) > 2
    of_sensitivities = [line for line in products if "HIGHEST" in line]
    assert len(of_sensitivities) == 4  # of two parameters, moved on and used


@pytest.mark.parametrize("structure", [rtrl.Diagonal(), rtrl.Dense()])
def test_without_a_state(structure):
    s = rtrl.init(structure, lambda p, h, x: (), parameters(), (), jnp.ones(3))
    assert not [leaf for leaf in jax.tree.leaves(s) if leaf.size]
    assert rtrl.supply(structure, parameters(), (), s) == ()


def test_only_so_many_components_are_followed():
    state, p = (H, 2 * H), jnp.ones(2)
    for count in (1, 2):  # all of them too
        structure = rtrl.Diagonal(components=count)
        zeros = structure.zeros(p, state)
        np.testing.assert_array_equal(zeros, np.zeros((count, 2)))
        found = structure.jvp(tuple(z + 3 for z in zeros), p / 2, state)
        np.testing.assert_array_equal(found, [[1.5, 1.5], [1.5 * (count - 1)] * 2])


@pytest.mark.parametrize(
    ("message", "make"),
    [
        (r"`components` \(=0\) must be a whole", lambda: rtrl.Diagonal(components=0)),
        (r"`components` \(=1.5\) must be a whole", lambda: rtrl.Diagonal(components=1.5)),
        (r"`probes_at_once` \(=-1\) must be a whole", lambda: rtrl.Dense(probes_at_once=-1)),
        (r"`warn_above` \(='x'\) must be a whole", lambda: rtrl.Dense(warn_above="x")),
        (r"`probes_at_once` \(=0\) must be a whole", lambda: rtrl.TwoAxes(probes_at_once=0)),
        (r"`seed` \(=4294967296\) must be a whole number from 0 to", lambda: rtrl.UORO(seed=2**32)),
        (
            r"`components` \(=2\) must be at most those of the state, 1",
            lambda: rtrl.Diagonal(components=2).zeros((), jnp.zeros(3)),
        ),
    ],
)
def test_counts_of_a_structure_are_checked(message, make, unhooked):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_number_of_python_is_a_state():
    update = lambda p, h, x: p * h + x  # noqa: E731
    (kept,) = rtrl.init(rtrl.Dense(), update, jnp.ones(2)[0], 0.0, jnp.ones(()))
    assert kept.shape == (1,)
