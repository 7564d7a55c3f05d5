"""Forward mode and its mixtures with reverse mode, against autodiff through a plain loop."""

import functools

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import scan
from tests.cases import slow_but
from tests.scan.test_linear import case, loop, normal
from tests.scan.test_nonlinear import FLAGS, PARAMETERS, RECURRENCES, XS
from tests.scan.test_nonlinear import platform as platform

TIME = 5
# Here "auto" is the loop.
every_method = pytest.mark.parametrize("method", slow_but(["auto"], ["auto", "associative"]))


def assert_close(got, expected):
    jax.tree.map(
        lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-9, atol=1e-10), got, expected
    )


def directions(arguments, seed=0):
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda x: normal(rng, x.shape, jnp.iscomplexobj(x)), arguments)


def energy(function):
    """A loss that is not quadratic, of the solution."""
    return lambda arguments: jnp.sum(jnp.sin(jnp.abs(function(*arguments)) ** 2))


def orders(function, arguments, tangents):
    """Derivatives of first and second order, by every mode and mixture of two."""
    loss = energy(function)

    def inner(one, other):
        pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
        return sum(jnp.sum((a * b).real) for a, b in pairs)

    _, tangent = jax.jvp(function, arguments, tangents)
    _, tangent_of = jax.linearize(function, *arguments)
    slope = lambda x: jax.jvp(loss, (x,), (tangents,))[1]  # noqa: E731
    return {
        "tangent": (tangent, tangent_of(*tangents)),
        "gradient": jax.grad(loss)(arguments),
        "forward over reverse": jax.jvp(jax.grad(loss), (arguments,), (tangents,))[1],
        "reverse over forward": jax.grad(slope)(arguments),
        "reverse over reverse": jax.grad(lambda x: inner(jax.grad(loss)(x), tangents))(arguments),
        "remembered": jax.grad(jax.checkpoint(loss))(arguments),
    }


def orders_of_linear(function, reverse, varies, is_complex):
    arguments = case(0, TIME, (2,), is_complex, varies)[:3]
    begin = jnp.arange(TIME) == 2
    solve = lambda *x: function(*x, begin, reverse=reverse)  # noqa: E731
    return jax.jit(lambda: orders(solve, arguments, directions(arguments)))()


orders_of_the_loop = functools.cache(functools.partial(orders_of_linear, loop))


# Every pair of values of the three; what all eight would add `test_linear` draws.
@every_method
@pytest.mark.parametrize(
    ("is_complex", "varies", "reverse"),
    slow_but(
        [(True, True, False)],
        [(True, True, False), (False, False, False), (True, False, True), (False, True, True)],
    ),
)
def test_all_orders_of_linear_are_those_of_the_loop(method, reverse, varies, is_complex):
    solve = functools.partial(scan.linear, method=method)
    expected = orders_of_the_loop(reverse, varies, is_complex)
    assert_close(orders_of_linear(solve, reverse, varies, is_complex), expected)


def jacobians_of_linear(function, wanted):
    arguments = case(1, TIME, (2,), False, True)[:3]
    value = lambda x: function(*arguments[:wanted], x, *arguments[wanted + 1 :])  # noqa: E731
    loss = lambda x: jnp.sum(jnp.sin(value(x)))  # noqa: E731
    x = arguments[wanted]
    return jax.jit(lambda: (jax.jacfwd(value)(x), jax.jacrev(value)(x), jax.hessian(loss)(x)))()


jacobians_of_the_loop = functools.cache(functools.partial(jacobians_of_linear, loop))


@pytest.mark.parametrize("wanted", slow_but([1], [0, 1, 2]))
@pytest.mark.parametrize("method", ["sequential", "associative"])
def test_jacobians_and_hessians_of_one_argument(wanted, method):
    """What is not differentiated has no tangent; `jacfwd` is a `vmap` over tangents only."""
    got = jacobians_of_linear(functools.partial(scan.linear, method=method), wanted)
    assert_close(got, jacobians_of_the_loop(wanted))


AXES = [(0, 1, None, None), (1, 2, 1, 1), (0, None, None, None), (None, 1, 0, 1)]


def orders_under_vmap(function, axes):
    rng = np.random.default_rng(2)
    begin = rng.random((3, TIME)) < 0.3
    shapes = (TIME, 2), (TIME, 2), (2,)

    def stacked(value, axis):
        return jnp.asarray(value[0] if axis is None else np.moveaxis(value, 0, axis))

    a, b, h0 = (
        stacked(0.8 * rng.normal(size=(3, *shape)), axis)
        for shape, axis in zip(shapes, axes, strict=False)
    )
    begin = stacked(begin, axes[3])

    many = jax.vmap(function, axes)
    solve = lambda a, b, h0: many(a, b, h0, begin)  # noqa: E731
    return jax.jit(lambda: orders(solve, (a, b, h0), directions((a, b, h0))))()


orders_of_loops = functools.cache(functools.partial(orders_under_vmap, loop))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("axes", "method"), [*((axes, "auto") for axes in AXES), (AXES[1], "associative")], ids=str
)
def test_under_vmap_in_any_position(axes, method):
    solve = functools.partial(scan.linear, method=method)
    assert_close(orders_under_vmap(solve, axes), orders_of_loops(axes))


def test_a_gradient_in_the_drive_alone_reads_no_states():
    """Discounted returns: the coefficients are constants, and their cotangents are not computed."""
    a, b, h0, _, weight = case(4, TIME, (2,), False, True)
    loss = lambda b: jnp.sum(weight * scan.linear(a, b, h0, method="sequential"))  # noqa: E731
    assert "dynamic_slice" not in str(jax.make_jaxpr(jax.grad(loss))(b))
    np.testing.assert_allclose(
        jax.grad(loss)(b), jax.grad(lambda b: jnp.sum(weight * loop(a, b, h0)))(b), rtol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto"])
def test_exported_for_another_platform(method):
    a, b, h0, begin, _ = case(5, TIME, (2,), False, True)

    def hessian(b):
        return jax.hessian(lambda b: jnp.sum(scan.linear(a, b, h0, begin, method=method) ** 3))(b)

    # JAX does not promise to run a kernel that a later version reads from a file.
    kernels = [jax.export.DisabledSafetyCheck.custom_call("__gpu$xla.gpu.triton")]
    exported = jax.export.export(
        jax.jit(hessian), platforms=["cpu", "cuda"], disabled_checks=kernels
    )(b)
    np.testing.assert_allclose(exported.call(b), jax.jit(hessian)(b), rtol=1e-12)


def by_newton(*arguments, **options):
    return scan.newton(*arguments, **options)[0]


def orders_of_nonlinear(solve, name):
    """By a way to solve the recurrence, or by the plain loop where it is `None`."""
    update, state, coupling = RECURRENCES[name]
    options = {"begin": FLAGS, "initial": jax.tree.map(jnp.ones_like, state)}
    arguments = PARAMETERS, state, XS

    def run(p, state, xs):
        if solve is None:
            states = scan.sequential(lambda h, x: update(p, h, x), state, xs, **options)[1]
        else:
            states = solve(update, p, state, xs, coupling=coupling, **options)
        return jnp.concatenate([h.reshape(len(FLAGS), -1) for h in jax.tree.leaves(states)], 1)

    return jax.jit(lambda: orders(run, arguments, directions(arguments)))()


orders_of_the_nonlinear_loop = functools.cache(functools.partial(orders_of_nonlinear, None))


def known(solve, at):
    """States that another call has found, with the derivatives of this one."""
    return lambda *x, **o: solve(*x, **o, states=jax.lax.stop_gradient(at(*x, **o)))


def tanh_step(p, h, x):
    a, b = x
    return jnp.tanh(p * a * h + b)


def by_the_loop(update, p, state, xs):
    return scan.sequential(lambda h, x: update(p, h, x), state, xs)[1]


OF_SEGMENTS = {
    "linear": (scan.linear, loop),
    "linear known": (known(scan.linear, loop), loop),
    "units": (scan.nonlinear, by_the_loop),
    "dense": (functools.partial(scan.nonlinear, coupling="dense"), by_the_loop),
    "nonlinear known": (known(scan.nonlinear, by_the_loop), by_the_loop),
    "newton": (by_newton, by_the_loop),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_SEGMENTS)
def test_inside_a_loop_of_segments(name):
    """JAX takes its body apart for reverse mode, and then has forgotten rules of derivatives."""
    a, b, h0, _, _ = case(3, 6, (2,), False, True)

    def whole(solve):
        def run(a, b, h0):
            def segment(h, part):
                linear = name.startswith("linear")
                states = solve(*part, h) if linear else solve(tanh_step, a[0], h, part)
                return states[-1], states

            return jax.lax.scan(segment, h0, (a.reshape(2, 3, 2), b.reshape(2, 3, 2)))[1]

        return jax.jit(lambda: orders(run, (a, b, h0), directions((a, b, h0))))()

    solve, expected = OF_SEGMENTS[name]
    assert_close(whole(solve), whole(expected))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solve", "name", "platform"),
    [
        (scan.nonlinear, "two components", "cpu"),
        (scan.nonlinear, "two components", "default"),
        (scan.nonlinear, "one component", "default"),
        (scan.nonlinear, "dense", "cpu"),
        (scan.nonlinear, "dense", "default"),
        (by_newton, "two components", "default"),
    ],
    indirect=["platform"],
)
def test_all_orders_of_nonlinear_are_those_of_the_loop(name, solve, platform):
    assert_close(orders_of_nonlinear(solve, name), orders_of_the_nonlinear_loop(name))


def orders_of_blocks(function, reverse):
    rng = np.random.default_rng(2)
    shapes = (TIME, 3, 2, 2), (TIME, 3, 2), (3, 2)
    arguments = tuple(jnp.asarray(0.5 * rng.normal(size=shape)) for shape in shapes)
    begin = jnp.arange(TIME) == 2

    solve = lambda a, b, h0: function(a, b, h0, begin, reverse=reverse)  # noqa: E731
    return jax.jit(lambda: orders(solve, arguments, directions(arguments)))()


def blocks_by_a_loop(a, b, h0, begin, *, reverse):
    def step(h, inputs):
        a_t, b_t, begin_t = inputs
        h = jnp.einsum("uij,uj->ui", a_t, jnp.where(begin_t, 0, h)) + b_t
        return h, h

    return jax.lax.scan(step, h0, (a, b, begin), reverse=reverse)[1]


orders_of_the_loop_of_blocks = functools.cache(
    functools.partial(orders_of_blocks, blocks_by_a_loop)
)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("reverse", [False, True])
def test_all_orders_of_blocks_are_those_of_the_loop(reverse, platform):
    assert_close(orders_of_blocks(scan.blocks, reverse), orders_of_the_loop_of_blocks(reverse))


def test_what_a_step_closes_over_is_a_parameter():
    """Arrays of integers too, under `jit`, `vmap` and in a loop, in either mode."""
    xs = jnp.asarray(np.random.default_rng(0).normal(size=(TIME, 3)))

    def states(w, permutation, by):
        update = lambda p, h, x: jnp.tanh(p * h + (w * x)[permutation])  # noqa: E731
        if by is None:
            return scan.sequential(lambda h, x: update(0.5, h, x), jnp.zeros(3), xs)[1]
        return by(update, jnp.array(0.5), jnp.zeros(3), xs)

    def derivatives(by):
        def one(w, permutation):
            value = lambda w: states(w, permutation, by)  # noqa: E731
            return jax.jacrev(value)(w), jax.jacfwd(value)(w)

        w, permutations = jnp.array([1.0, -0.5, 2.0]), jnp.array([[0, 1, 2], [2, 0, 1]])
        looped = lambda: jax.lax.map(lambda p: one(w, p), permutations)  # noqa: E731
        return jax.jit(looped)(), jax.jit(jax.vmap(one, (None, 0)))(w, permutations)

    assert_close(derivatives(scan.nonlinear), derivatives(None))
