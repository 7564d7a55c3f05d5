"""`scan.nonlinear` against autodiff through the plain loop, on the branch of every platform."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scan
from scan import _stand_in
from tests.cases import slow_but
from tests.zoo.examples import spike

TIME, UNITS, INPUTS = 9, 3, 2
RNG = np.random.default_rng(0)
XS = jax.device_put(RNG.normal(size=(TIME, INPUTS)))
SOME = np.array([0, 0, 1, 0, 0, 1, 1, 0, 0], bool)
BEGINS = jax.device_put({"none": None, "some": SOME, "most": ~SOME, "all": np.ones(TIME, bool)})
FLAGS = BEGINS["some"]


def draw(*shape):
    return jax.device_put(RNG.normal(size=shape))


def one(p, state, x):
    return [jnp.tanh(p["a"] * state[0] + p["w"] @ x)]


def two(p, state, x):
    h, c = state
    drive = p["w"] @ x
    return [jnp.tanh(p["a"] * h - p["b"] * c + drive), jnp.sin(p["b"] * h + c * drive)]


def mixed(p, state, x):
    h, (c,) = state
    return [jnp.tanh(p["u"] @ h + p["w"] @ x), (c * h[0] + jnp.cos(p["b"][0] * x[0]),)]


PARAMETERS = {
    "a": draw(UNITS),
    "b": draw(UNITS),
    "u": draw(UNITS, UNITS),
    "w": draw(UNITS, INPUTS),
    "unused": draw(2),
}
RECURRENCES = {
    "one component": (one, [draw(UNITS)], "units"),
    "two components": (two, [draw(UNITS), draw(UNITS)], "units"),
    "dense": (mixed, [draw(UNITS), (draw(2),)], "dense"),
}


def taken_by(platform, monkeypatch):
    """Let every choice be that of one platform, whatever a program is lowered for."""

    def branch(*arguments, **branches):
        return branches[platform](*arguments)

    def only(branches, types):
        by_name = {name: f for name, f, _ in branches}
        return dict.fromkeys(("cpu", "default"), by_name.get(platform, by_name["default"]))

    monkeypatch.setattr(jax.lax, "platform_dependent", branch)
    monkeypatch.setattr(_stand_in, "_fitting", only)


@pytest.fixture(params=["cpu", "default"])
def platform(request, monkeypatch):
    """The branch that programs take: that of other platforms runs on a CPU too."""
    taken_by(request.param, monkeypatch)
    return request.param


def weighted(states):
    leaves = jax.tree.leaves(states)
    return sum(
        jnp.sum(jnp.sin(k + 1 + jnp.arange(h.size)) * h.ravel() ** 2) for k, h in enumerate(leaves)
    )


def test_units_with_a_rule_for_reverse_mode_of_their_own_go_step_by_step():
    """JAX takes no Jacobian of those forward, as that of units is otherwise, known or not."""

    def update(p, h, x):
        return p["a"] * h * (1 - spike(h - 0.3)) + p["w"] @ x

    def loss(solve, p, h, xs):
        return weighted(solve(p, h, xs, FLAGS, jnp.ones(UNITS)))

    def in_turn(p, h, xs, begin, initial):
        step = functools.partial(update, p)
        return scan.sequential(step, h, xs, begin, initial=initial)[1]

    def by(p, h, xs, begin, initial, states=None):
        return scan.nonlinear(update, p, h, xs, begin, initial=initial, states=states)

    def of_known(p, h, xs, begin, initial):
        return by(p, h, xs, begin, initial, in_turn(p, h, xs, begin, initial))

    arguments = {k: PARAMETERS[k] for k in "aw"}, draw(UNITS), XS
    expected, *found = jax.jit(
        lambda *x: [
            jax.value_and_grad(functools.partial(loss, f), (0, 1, 2))(*x)
            for f in (in_turn, by, of_known)
        ]
    )(*arguments)
    for one, other in zip(jax.tree.leaves([expected] * 2), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    assert np.all(found[0][1][0]["a"] != 0)


def losses(name, begin):
    """`(ours, loop)`: functions of `(parameters, state, xs)`."""
    update, state, coupling = RECURRENCES[name]
    initial = jax.tree.map(lambda h: 0.3 * jnp.ones_like(h), state)

    def ours(p, state, xs):
        return weighted(
            scan.nonlinear(update, p, state, xs, begin, initial=initial, coupling=coupling)
        )

    def loop(p, state, xs):
        step = lambda state, x: update(p, state, x)  # noqa: E731
        return weighted(scan.sequential(step, state, xs, begin, initial=initial)[1])

    return ours, loop, (PARAMETERS, state, XS)


def assert_close(got, expected):
    jax.tree.map(
        lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-10, atol=1e-12), got, expected
    )


@functools.cache
def slopes(which, name, resets, platform):
    """Value and gradients of one of `losses`: one program, on each platform, for all flags."""

    def loss(p, state, xs, begin):
        return losses(name, begin if resets else None)[which](p, state, xs)

    return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


@pytest.mark.quick_rows(2)
@pytest.mark.parametrize("begin", slow_but(["some"], BEGINS))
@pytest.mark.parametrize("name", slow_but(["two components"], RECURRENCES))
def test_gradients_are_those_of_the_loop(name, begin, platform):
    arguments, resets = losses(name, None)[2], begin != "none"
    flags = BEGINS[begin] if resets else FLAGS
    got = slopes(0, name, resets, platform)(*arguments, flags)
    expected = slopes(1, name, resets, "any")(*arguments, flags)
    assert_close(got, expected)
    np.testing.assert_array_equal(got[1][0]["unused"], 0)


@pytest.mark.slow
def test_sequences_side_by_side():
    ours, loop, (p, state, xs) = losses("two components", FLAGS)
    batch = jnp.stack([xs, 2 * xs, -xs])

    def total(f):
        return jax.jit(jax.grad(lambda p, b: jnp.sum(jax.vmap(lambda x: f(p, state, x))(b))))(
            p, batch
        )

    assert_close(total(ours), total(loop))


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("name", ["two components", "dense"])
def test_tangents_are_those_of_the_loop_and_the_initial_state_is_a_constant(name):
    update, state, coupling = RECURRENCES[name]
    initial = jax.tree.map(lambda h: jnp.ones_like(h) / 3, state)
    point = PARAMETERS, state, XS
    direction = jax.tree.map(lambda x: jnp.sin(jnp.arange(x.size) + 1.0).reshape(x.shape), point)

    def pushed(run):
        return jax.jit(lambda: jax.jvp(run, point, direction))()

    def loop(p, h, xs):
        step = lambda h, x: update(p, h, x)  # noqa: E731
        return scan.sequential(step, h, xs, FLAGS, initial=initial)[1]

    def solve(p, h, xs, initial=initial):
        return scan.nonlinear(update, p, h, xs, FLAGS, initial=initial, coupling=coupling)

    expected = pushed(loop)
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)  # noqa: E731
    jax.tree.map(close, pushed(solve), expected)
    # Newton's method finds the same states, from the same initial one.
    jax.tree.map(
        close,
        jax.jit(
            lambda: scan.newton(update, *point, FLAGS, initial=initial, coupling=coupling)[0]
        )(),
        expected[0],
    )
    slope = jax.jit(jax.grad(lambda initial: weighted(solve(*point, initial))))(initial)
    jax.tree.map(lambda x: np.testing.assert_array_equal(x, 0), slope)


def test_known_states_are_differentiated_and_not_computed():
    update, state, _ = RECURRENCES["two components"]
    _, known = scan.sequential(lambda h, x: update(PARAMETERS, h, x), state, XS)

    def given(p, states):
        return weighted(scan.nonlinear(update, p, state, XS, states=states))

    run = jax.jit(jax.value_and_grad(given, argnums=(0, 1)))
    value, (gradient, of_states) = run(PARAMETERS, known)
    ours, _, _ = losses("two components", None)
    assert_close((value, gradient), jax.jit(jax.value_and_grad(ours))(PARAMETERS, state, XS))
    jax.tree.map(lambda g: np.testing.assert_array_equal(g, 0), of_states)
    forward = str(jax.make_jaxpr(given)(PARAMETERS, known))
    assert "scan" not in forward.replace("scan.nonlinear", "") and "while" not in forward


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("name", slow_but(["two components"], RECURRENCES))
def test_no_nan_crosses_the_border_of_an_episode(name, platform):
    update, state, coupling = RECURRENCES[name]
    xs = XS.at[1].set(jnp.nan)
    begin = jnp.arange(TIME) == 4

    def later(p, state, xs):
        states = scan.nonlinear(update, p, state, xs, begin, initial=state, coupling=coupling)
        return weighted(jax.tree.map(lambda h: h[4:], states))

    def alone(p, xs):
        return weighted(scan.sequential(lambda h, x: update(p, h, x), state, xs)[1])

    value, of_xs = jax.jit(jax.value_and_grad(later, argnums=2))(PARAMETERS, state, xs)
    expected, gradient = jax.jit(jax.value_and_grad(alone, argnums=1))(PARAMETERS, xs[4:])
    assert_close(value, expected)
    assert_close(of_xs[4:], gradient)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("width", slow_but([2], [1, 2, 3]))
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("begin", slow_but(["some"], ["none", "some"]))
def test_blocks_are_a_python_loop(width, reverse, begin, platform):
    begin = BEGINS[begin]
    rng = np.random.default_rng(width)
    a, b = rng.normal(size=(TIME, UNITS, width, width)), rng.normal(size=(TIME, UNITS, width))
    h0 = rng.normal(size=(UNITS, width))
    got = jax.jit(lambda *x: scan.blocks(*x, begin, reverse=reverse))(a, b, h0)
    h, expected = h0, np.zeros_like(b)
    for t in range(TIME)[:: -1 if reverse else 1]:
        before = np.zeros_like(h) if begin is not None and begin[t] else h
        h = expected[t] = np.einsum("uij,uj->ui", a[t], before) + b[t]
    assert_close(got, expected)


@pytest.mark.parametrize(
    ("state", "options", "message"),
    [
        (np.zeros(2), {"coupling": "full"}, r"`coupling` \(='full'\) must be one of units, dense"),
        (np.zeros(2), {"begin": FLAGS}, r"`initial` \(=None\) must be given with `begin`"),
        ((np.zeros(2), np.zeros(3)), {}, r"`state` has leaves .*`coupling='units'`"),
        (np.zeros(2, complex), {}, "`state` has a complex leaf: give its real and imaginary part"),
        (np.zeros(2, int), {"coupling": "dense"}, r"`state` has leaves of \['int64'\]: give real"),
    ],
)
def test_bad_input_is_named(state, options, message):
    with pytest.raises(ValueError, match=message):
        scan.nonlinear(lambda p, h, x: h, (), state, XS, **options)


def test_forward_mode_takes_numbers_of_python():
    def total(p):
        return jnp.sum(scan.nonlinear(lambda p, s, x: p * s + x, p, jnp.zeros(1), jnp.ones((3, 1))))

    # 1 + (p + 1) + (p² + p + 1), whose slope is 2 + 2p.
    assert jax.jvp(total, (0.5,), (1.0,)) == (4.25, 3.0)


def test_a_program_for_a_cpu_derives_nothing_of_other_platforms():
    """What another platform would do backward is neither traced nor compiled with it."""

    def times_derived(choose, platform):
        derived = []

        @jax.custom_jvp
        def squashed(h):
            return jnp.tanh(h)

        @squashed.defjvp
        def _(primals, tangents):
            derived.append(primals)
            h = jnp.tanh(*primals)
            return h, (1 - h**2) * tangents[0]

        def update(p, h, x):
            return squashed(p["u"] @ h + p["w"] @ x)

        def in_turn(p, h, xs):
            return scan.sequential(functools.partial(update, p), h, xs)[1]

        def known(p, h, xs):
            return scan.nonlinear(update, p, h, xs, coupling="dense")

        gradient = jax.grad(lambda *given: weighted(choose(in_turn, known, *given)))
        given = PARAMETERS, draw(UNITS), XS
        jax.jit(gradient).trace(*given).lower(lowering_platforms=(platform,))
        return len(derived)

    def first(in_turn, known, *given):
        return in_turn(*given)

    assert times_derived(scan.loop_or_tree, "cpu") == times_derived(first, "cpu") > 0
    assert times_derived(scan.loop_or_tree, "cuda") > times_derived(first, "cuda")
