"""`scan.hoisted`: the same steps, and what is left in them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scan
from benchmarks.turns import turns_of
from scan._platform import steps_at_once

RNG = np.random.default_rng(0)
PARAMETERS = {"w": RNG.normal(size=(3, 2)), "u": RNG.normal(size=(3, 3)), "unused": np.ones(2)}
XS, STATE = RNG.normal(size=(7, 2)), (RNG.normal(size=3), np.ones(()))


def update(p, state, x):
    h, count = state
    scale = jnp.exp(p["w"][0, 0])
    return jnp.tanh(x @ p["w"].T + h @ (scale * p["u"]).T), count + 1


def states(use, parameters, state, xs):
    step, unroll = (lambda state, x: update(parameters, state, x)), 1
    if use == "hoisted":
        step = scan.hoisted(update, parameters, state, xs)
    elif use == "ahead":
        (step, xs), unroll = scan.ahead(update, parameters, state, xs), 3
    begin = jnp.arange(7) == 4
    return scan.sequential(step, state, xs, begin, initial=state, unroll=unroll)[1]


def test_values_and_derivatives_are_those_of_the_step():
    def all_of(use):
        def run(*arguments):
            return states(use, *arguments)

        def loss(*arguments):
            return jnp.sum(run(*arguments)[0] ** 2)

        def slope(*arguments):
            gradient = jax.grad(loss, argnums=(0, 2))(*arguments)
            return sum(jnp.sum(jnp.sin(g)) for g in jax.tree.leaves(gradient))

        point = PARAMETERS, STATE, XS
        return jax.jit(
            lambda: (
                run(*point),
                jax.grad(loss, argnums=(0, 1, 2))(*point),
                jax.grad(slope, argnums=(0, 2))(*point),
                jax.jvp(run, point, jax.tree.map(jnp.cos, point)),
                jax.vmap(run, (None, None, 0))(PARAMETERS, STATE, jnp.stack([XS, -XS])),
            )
        )()

    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)  # noqa: E731
    expected = all_of("never")
    for way in ("hoisted", "ahead"):
        jax.tree.map(close, all_of(way), expected)


@pytest.mark.parametrize(
    ("use", "transposes", "products"), [("hoisted", 0, 2), ("ahead", 0, 1), ("never", 2, 2)]
)
def test_what_is_left_in_the_loop(use, transposes, products):
    """No transposes and no exponential; ahead of it, no products of inputs either."""
    program = jax.make_jaxpr(lambda *arguments: states(use, *arguments))(PARAMETERS, STATE, XS)
    (loop,) = (e for e in program.eqns if e.primitive.name == "scan")
    names = [e.primitive.name for e in loop.params["jaxpr"].eqns]
    assert names.count("transpose") == transposes
    assert ("exp" in names) == (use == "never")
    assert names.count("dot_general") == products


def test_a_step_knows_whether_it_is_traced_for_a_loop():
    """And no longer than that, where the trace fails too."""
    known = []

    def step(parameters, state, x):
        known.append(scan.is_hoisted())
        return state + x

    step(None, 0.0, 1.0)
    scan.hoisted(step, jnp.ones(1), jnp.zeros(()), jnp.ones(3))
    assert known == [False, True]

    def fails(parameters, state, x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        scan.hoisted(fails, jnp.ones(1), jnp.zeros(()), jnp.ones(3))
    assert not scan.is_hoisted()


def test_what_is_made_ahead_is_products_and_what_they_need():
    """Elementwise operations of inputs stay, as they cost less than memory for their results."""

    def update(p, h, x):
        a, b, steps = x
        wide = jnp.outer(a, b).ravel()  # 6 numbers of 5
        return jnp.tanh(h + wide + jax.nn.relu(jnp.sin(a) @ p) * steps)

    xs = jnp.ones((4, 2)), jnp.ones((4, 3)), jnp.arange(4)
    step, drives = scan.ahead(update, jnp.ones((2, 6)), jnp.zeros(6), xs)
    assert [d.shape for d in drives] == [(4, 2), (4, 3), (4, 6), (4,)]
    loop = jax.make_jaxpr(step)(jnp.zeros(6), [d[0] for d in drives])
    assert "dot_general" not in str(loop)
    assert "sin" not in str(loop)


@pytest.mark.parametrize(("width", "made"), [(32, (4, 4)), (33, (4, 3))])
def test_a_product_that_needs_a_large_array_stays_in_the_loop(width, made):
    """Larger than eight times the state and than the inputs: it would fill the memory."""

    def update(p, h, x):
        return jnp.tanh(h + p[1] @ jnp.tanh(p[0] @ x))

    parameters = jnp.ones((width, 3)), jnp.ones((4, width))
    _, drives = scan.ahead(update, parameters, jnp.zeros(4), jnp.ones((4, 3)))
    assert [d.shape for d in drives] == [made]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_what_branches_on_an_input_stays_in_the_loop(wrap):
    """A loop that no step takes has no end; a choice of the platform is none of an input."""

    @wrap
    def read(p, x):
        def endless(x):
            return jax.lax.while_loop(lambda _: True, lambda x: x @ p, x)

        return jax.lax.cond(x[0] > 0, lambda x: x @ p, endless, x)

    def update(p, h, x):
        by_platform = jax.lax.platform_dependent(x, default=lambda x: jnp.sin(x) @ p)
        return jnp.tanh(h + read(p, x) + by_platform)

    parameters, state, xs = jnp.ones((3, 3)), jnp.zeros(3), jnp.ones((4, 3))
    step, drives = scan.ahead(update, parameters, state, xs)
    assert len(drives) == 2  # the inputs as they are, and the platform's product
    np.testing.assert_allclose(
        scan.sequential(step, state, drives)[1],
        scan.sequential(lambda h, x: update(parameters, h, x), state, xs)[1],
        rtol=1e-12,
    )


def test_inputs_of_a_size_that_is_not_known_yet_are_left_in_the_loop():
    def update(p, h, x):
        return jnp.tanh(h + jnp.sum(x @ p, 0))

    def drives(xs):
        return scan.ahead(update, jnp.ones((3, 4)), jnp.zeros(4), xs)[1]

    (size,) = jax.export.symbolic_shape("n")
    exported = jax.export.export(jax.jit(drives))(jax.ShapeDtypeStruct((5, size, 3), float))
    assert [str(x) for x in exported.out_avals] == ["float64[5,n,3]"]


def test_a_step_without_inputs_has_their_number_of_steps():
    step, drives = scan.ahead(
        lambda p, h, x: p * h, jnp.full(2, 0.5), jnp.ones(2), jnp.ones((3, 1))
    )
    np.testing.assert_array_equal(scan.sequential(step, jnp.ones(2), drives)[0], 0.125)


def test_a_turn_has_so_many_steps_and_is_not_too_large():
    def small(h, x):
        return jnp.sin(h) * x

    def large(h, x):
        for _ in range(50):
            h = jnp.sin(h) * x
        return h

    h = jnp.ones(3)
    assert steps_at_once("units", small, h, h) == 64
    assert steps_at_once("units", large, h, h) == 1024 // 100
    assert steps_at_once("dense", jax.jit(large), h, h) == 8
    with turns_of(5):
        assert steps_at_once("units", large, h, h) == 5
