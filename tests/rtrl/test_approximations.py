"""Approximations against what they are defined as, by brute force."""

import itertools
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rtrl
import zoo
from tests.zoo import forms
from tests.zoo.examples import spike
from zoo.kinds.choices import SENSITIVITIES, check_sensitivity

HIDDEN, TIME = 3, 6
XS = np.random.default_rng(0).normal(size=(TIME, 2))


class Spiking(zoo.AbstractDenseCell):
    """Units that leak, fire and adapt, with a surrogate gradient for reverse mode only."""

    w: jax.Array
    u: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    sensitivity: rtrl.AbstractSensitivity = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, sensitivity, key):
        keys = jax.random.split(key)
        self.w = jax.random.normal(keys[0], (hidden, inputs))
        self.u = jax.random.normal(keys[1], (hidden, 1, hidden))
        self.inputs, self.hidden, self.sensitivity = inputs, hidden, sensitivity

    def init_state(self):
        return jnp.zeros(self.hidden), jnp.zeros(self.hidden)

    def transition(self, state, x, recurrent):
        v, threshold = state
        z = spike(v - 0.3 - threshold)
        return 0.8 * v * (1 - z) + x @ self.w.T + recurrent(self.u, z)[:, 0], 0.9 * threshold + z

    def readout(self, state, x):
        return state[0]


KINDS = {
    "elman": zoo.Elman,
    "gru": zoo.GRU,
    "mgu": zoo.MGU,
    "lstm": zoo.LSTM,
    "felstm": zoo.FeLSTM,
    "ctrnn": zoo.CTRNN,
    "ltc": partial(zoo.LTC, unfolds=1),
    "spiking": Spiking,
}
GRU_FIRST = sorted(KINDS, key="gru".__ne__)  # for the quick tests


@cache
def begun(name, choice):
    """A cell, and its carry at an episode's beginning."""

    @eqx.filter_jit  # one program instead of dozens
    def build(key):
        kind = zoo.LMU if name == "lmu" else KINDS[name]
        cell = kind(2, HIDDEN, sensitivity=SENSITIVITIES[choice], key=key)
        return cell, (cell.init_state(), cell.rtrl_init())

    return build(jax.random.key(1))


def make(name, choice):
    return begun(name, choice)[0]


def in_segments(name, choice, lengths):
    """`(gradient, ys, ys of scan)`, with a loss of the last two steps."""
    cell, carry = begun(name, choice)
    weights = np.random.default_rng(1).normal(size=(TIME, HIDDEN))
    weights[:-2] = 0
    _, ys, scanned, (gradient, _) = forms.segments(
        cell, carry, XS, np.zeros(TIME, bool), weights, lengths
    )
    return gradient, ys, scanned


@cache
def brute_force(name, of_snap1):
    """Sensitivities `[states, parameters]` by full Jacobians, masked at every step.

    MGU's two products come one after the other, so that a path leaves a unit and comes back within
    a step; both approximations leave such paths out of what they call immediate.

    - `of_snap1`: whose recursion: SnAp-1's, or that of RFLO, which e-prop has too.
    """
    cell = make(name, "exact")
    parameters, rest = eqx.partition(cell, eqx.is_inexact_array)
    flat, unravel = jax.flatten_util.ravel_pytree(parameters)
    state = cell.init_state()
    flat_state, to_state = jax.flatten_util.ravel_pytree(state)
    # Which unit each number belongs to: the leading axis of every leaf.
    unit_of = lambda tree: np.concatenate(  # noqa: E731
        [np.repeat(np.arange(len(p)), p.size // len(p)) for p in jax.tree.leaves(tree)]
    )
    own = unit_of(state)[:, None] == unit_of(parameters)[None]
    # RFLO's recurrence without the products; SnAp-1's with all of them, and then only its diagonal.
    product = rtrl.exact_product if of_snap1 else rtrl.rflo_product
    immediate = rtrl.exact_product
    if isinstance(cell, zoo.MGU):
        product = immediate = rtrl.snap1_product if of_snap1 else rtrl.rflo_product

    @jax.jit
    def jacobians(flat, h, x):
        def step(flat, h, product):
            whole = eqx.combine(unravel(flat), rest)
            return jax.flatten_util.ravel_pytree(whole.transition(to_state(h), x, product))[0]

        return (
            step(flat, h, rtrl.exact_product),
            jax.jacrev(step, 1)(flat, h, product),
            jax.jacrev(step)(flat, h, immediate),
        )

    sensitivity = np.zeros((len(flat_state), len(flat)))
    h = flat_state
    for x in XS:
        h, j, i = jacobians(flat, h, x)
        j = np.where(unit_of(state)[:, None] == unit_of(state)[None], j, 0)
        sensitivity = np.where(own, j @ sensitivity + i, 0)
    return sensitivity, unravel


# E-prop's product is RFLO's.
@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    ("name", "choice"),
    [*itertools.product(GRU_FIRST, ("snap1", "rflo")), ("gru", "eprop")],
)
def test_local_sensitivities_are_the_masked_recursion(name, choice):
    cell, carry = begun(name, choice)
    expected, unravel = brute_force(name, choice == "snap1")
    step = lambda carry, x: cell.rtrl_step(carry, x)  # noqa: E731
    state, sensitivity = eqx.filter_jit(lambda c: jax.lax.scan(step, c, jnp.asarray(XS))[0])(carry)
    cotangent = jax.tree.map(lambda h: np.random.default_rng(2).normal(size=h.shape), state)
    (got,) = jax.vjp(
        lambda p: rtrl.supply(cell.structure, eqx.combine(p, cell), state, sensitivity),
        eqx.filter(cell, eqx.is_inexact_array),
    )[1](cotangent)
    flat, _ = jax.flatten_util.ravel_pytree(cotangent)
    exact = unravel(jnp.asarray(flat @ expected))
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(exact), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-14)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("choice", ["snap1", "rflo", "uoro"])
def test_one_segment_is_exact_and_values_never_change(choice):
    got, ys, _ = in_segments("gru", choice, [TIME])
    expected, _, values = in_segments("gru", "exact", [TIME])
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(ys, values, rtol=1e-12)


def sum_over_steps(cell, choice):
    """The gradient that a rule of every step is defined as, from full Jacobians of single steps.

    SnAp-0 is autodiff with a constant for the previous state. E-prop is Σ_t ∂L_t/∂h_t e_t with
    e_t = D_t e_{t-1} + I_t, both of a step whose recurrent inputs are held fixed.
    """
    parameters, rest = eqx.partition(cell, eqx.is_inexact_array)
    flat, unravel = jax.flatten_util.ravel_pytree(parameters)
    flat_state, to_state = jax.flatten_util.ravel_pytree(cell.init_state())
    fixed = lambda u, h: jnp.einsum("igk,k->ig", u, jax.lax.stop_gradient(h))  # noqa: E731

    def step(flat, h, x):
        return jax.flatten_util.ravel_pytree(
            eqx.combine(unravel(flat), rest).transition(
                to_state(h), x, rtrl.exact_product if choice == "snap0" else fixed
            )
        )[0]

    @jax.jit
    def of_step(flat, h, trace, x, w):
        new = step(flat, h, x)
        decay, immediate = (jax.jacrev(step, place)(flat, h, x) for place in (1, 0))
        trace = immediate if choice == "snap0" else decay @ trace + immediate

        def loss(flat, h):
            return forms.total(
                eqx.combine(unravel(flat), rest).readout(to_state(h), x)[None], w[None]
            )

        of_readout, signal = jax.grad(loss, (0, 1))(flat, new)
        return new, trace, of_readout + signal @ trace

    weights, found = np.random.default_rng(1).normal(size=(TIME, HIDDEN)), np.zeros(len(flat))
    h, trace = flat_state, jnp.zeros((len(flat_state), len(flat)))
    for x, w in zip(XS, weights, strict=True):
        h, trace, new = of_step(flat, h, trace, jnp.asarray(x), jnp.asarray(w))
        found += new
    return unravel(jnp.asarray(found))


# SnAp-0 is the same for all: a constant in place of the previous state.
@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    ("name", "choice"),
    [
        *itertools.product(GRU_FIRST, ["eprop"]),
        *itertools.product(("gru", "lstm"), ["snap0"]),
    ],
)
def test_rules_of_every_step_are_their_sums_over_steps(name, choice):
    """Whatever the segmentation, and not the exact gradient."""
    cell, carry = begun(name, choice)
    weights = np.random.default_rng(1).normal(size=(TIME, HIDDEN))
    expected = sum_over_steps(cell, choice)

    def of_segments(cell, lengths):
        none = np.zeros(TIME, bool)
        return forms.segments(cell, carry, XS, none, weights, lengths)[3][0]

    got = eqx.filter(of_segments(cell, [3, 3]), eqx.is_inexact_array)
    forms.assert_close(got, expected, 1e-12)
    exact, _, _ = forms.reference(
        make(name, "exact"), carry[0], XS, np.zeros(TIME, bool), weights, forms.no_cuts(TIME)
    )[1]
    pairs = zip(jax.tree.leaves(exact), jax.tree.leaves(expected), strict=True)
    assert max(float(jnp.max(jnp.abs(a - b))) for a, b in pairs) > 1e-2


def by_one_step_of_tbptt(cell, weights):
    def loss(cell):
        state, total = cell.init_state(), 0.0
        for x, w in zip(XS, weights, strict=True):
            state, ys = cell.scan(jax.lax.stop_gradient(state), jnp.asarray(x)[None])
            total += forms.total(ys, w[None])
        return total

    return eqx.filter_jit(eqx.filter_grad(loss))(cell)


@pytest.mark.slow
def test_immediate_derivatives_are_tbptt_of_one_step():
    """Which any memory takes. A network without a leak has them under e-prop too."""
    weights = np.random.default_rng(1).normal(size=(TIME, HIDDEN))
    expected = by_one_step_of_tbptt(make("elman", "exact"), weights)
    for choice in ("snap0", "eprop"):
        got = sum_over_steps(make("elman", choice), choice)
        pairs = zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True)
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-14)
    assert not jax.tree.leaves(make("elman", "snap0").rtrl_init())


@pytest.mark.slow
@pytest.mark.parametrize("name", [*sorted(KINDS.keys() - {"spiking"}), "lmu"])
def test_two_steps_reach_everything(name):
    """Why there is no SnAp-2: its pattern has no zeros."""
    cell, (state, sensitivity) = begun(name, "exact")
    rng = np.random.default_rng(0)
    carry = jax.tree.map(lambda h: rng.normal(size=h.shape), state), sensitivity
    one_step = eqx.filter_jit(lambda carry, x: cell.rtrl_scan(carry, x)[0])
    for step in (1, 2):
        carry = one_step(carry, XS[step, None])
        full = all(np.all(np.asarray(s) != 0) for s in jax.tree.leaves(carry[1]))
        assert full == (step == 2)


@pytest.mark.slow
def test_uoro_is_unbiased():
    """The mean over random signs is the exact gradient, within five standard errors."""
    build = lambda choice: zoo.get(  # noqa: E731
        "gru", hidden=2, inputs=2, sensitivity=choice, key=jax.random.key(1)
    )
    cell, exact = build("uoro"), build("exact")
    weights = jnp.asarray(np.random.default_rng(1).normal(size=(TIME, 2)))

    def of_key(cell, key):
        def loss(cell):
            state, (start,) = cell.init_state(), cell.rtrl_init()
            carry = (state, (eqx.tree_at(lambda r: r.key, start, key),)) if key is not None else (
                state, (start,)
            )  # fmt: skip
            total = 0.0
            for piece, w in zip(jnp.split(jnp.asarray(XS), 3), jnp.split(weights, 3), strict=True):
                carry, ys = cell.rtrl_scan(carry, piece)
                total += forms.total(ys, w)
            return total

        return jax.flatten_util.ravel_pytree(eqx.filter_grad(loss)(cell))[0]

    keys = jax.vmap(jax.random.key_data)(jax.random.split(jax.random.key(0), 4000))
    samples = eqx.filter_jit(lambda c: jax.lax.map(lambda k: of_key(c, k), keys, batch_size=500))(
        cell
    )
    expected = eqx.filter_jit(lambda c: of_key(c, None))(exact)
    error = np.abs(np.mean(samples, 0) - expected)
    deviation = np.std(samples, 0) / np.sqrt(len(samples))
    assert np.all(error <= 5 * deviation + 1e-9)
    assert np.max(deviation) > 1e-4  # and it is random


def test_uoro_takes_the_balanced_step_of_the_paper():
    """s ← ρ₀ J s + ρ₁ ν and θ ← θ / ρ₀ + νᵀI / ρ₁, of norms under roots (equation 20)."""
    draw = np.random.default_rng(2)
    w, h, s = (draw.normal(size=shape) for shape in ((3, 3), 3, 3))
    of_parameters = draw.normal(size=(3, 3))
    step = lambda w, h: jnp.tanh(w @ h)  # noqa: E731

    @jax.jit
    def rolled(w, h, s, of_parameters):
        zeros = rtrl.init(rtrl.UORO().structure, lambda w, h, x: step(w, h), w, h, None)
        (before,) = zeros
        before = eqx.tree_at(lambda r: (r.state, r.parameters), before, (s, of_parameters))
        run = lambda w, h, xs, begin: step(w, h)  # noqa: E731
        roll = lambda start: rtrl.roll(rtrl.UORO().structure, run, w, h, start, None, None)  # noqa: E731
        _, signs_key = jax.random.split(jax.random.wrap_key_data(before.key))
        signs = jax.random.rademacher(signs_key, (3,), s.dtype)
        jacobians = [jax.jacobian(step, place)(w, h) for place in (0, 1)]
        return *roll((before,)), *roll(zeros), signs, *jacobians

    found = jax.device_get(rolled(w, h, s, of_parameters))
    after, first, signs, immediate, jacobian = found
    moved, seen = jacobian @ s, np.einsum("i,ijk->jk", signs, immediate)
    norm = np.linalg.norm
    keep = np.sqrt(norm(of_parameters) / norm(moved))
    add = np.sqrt(norm(seen) / norm(signs))
    np.testing.assert_allclose(after.state, keep * moved + add * signs, rtol=1e-12)
    np.testing.assert_allclose(after.parameters, of_parameters / keep + seen / add, rtol=1e-12)

    # At an episode's beginning there is nothing to keep, and nothing to balance.
    np.testing.assert_allclose(first.state, add * signs, rtol=1e-12)
    np.testing.assert_allclose(first.parameters, seen / add, rtol=1e-12)


@pytest.mark.parametrize(("dtype", "x"), [(jnp.float16, 200.0), (jnp.float32, 2e19)])
def test_uoro_balances_norms_whose_squares_overflow(dtype, x):
    """From x · [1, 1, 1] for every unit: νᵀI = x ν, of norm 2 x, and √(2 x / 2) of it in θ̃."""
    run = lambda w, h, xs, begin: 0.5 * h + w * xs  # noqa: E731
    w, h, x = jnp.ones(4, dtype), jnp.zeros(4, dtype), jnp.asarray(x, dtype)

    @jax.jit
    def rolled(w, h, x):
        update = lambda w, h, x: run(w, h, x, None)  # noqa: E731
        start = rtrl.init(rtrl.UORO(), update, w, h, x)
        first = rtrl.roll(rtrl.UORO(), run, w, h, start, x, None)
        return first, rtrl.roll(rtrl.UORO(), run, w, h, first, x, None)

    ((first,), (second,)) = rolled(w, h, x)
    np.testing.assert_allclose(np.abs(first.state), float(x) ** 0.5, rtol=1e-3)
    np.testing.assert_allclose(np.abs(first.parameters), float(x) ** 0.5, rtol=1e-3)
    assert first.state.dtype == first.parameters.dtype == dtype
    assert all(np.isfinite(leaf).all() for leaf in (second.state, second.parameters))


def test_uoro_takes_a_seed_of_numpy(unhooked):
    one, other = rtrl.UORO(np.int64(5)), rtrl.UORO(5)
    assert one == other and hash(one) == hash(other)
    (zeros,), (expected,) = (
        structure.zeros(jnp.ones(2), jnp.ones(2)) for structure in (one, other)
    )
    np.testing.assert_array_equal(zeros.key, expected.key)


def test_uoro_takes_a_state_of_no_numbers():
    parameters, state = {"w": jnp.ones(2)}, jnp.zeros(0)
    structure = rtrl.UORO()
    s = structure.zeros(parameters, state)
    assert structure.jvp(s, parameters, state).shape == (0,)


@pytest.mark.slow
def test_uoro_keeps_its_key_at_a_begin():
    cell = make("gru", "uoro")
    carry = (cell.init_state(), cell.rtrl_init())
    carry, _ = eqx.filter_jit(cell.rtrl_scan)(carry, jnp.asarray(XS))
    begun, _ = eqx.filter_jit(cell.rtrl_scan)(carry, jnp.asarray(XS), jnp.arange(TIME) == 0)
    fresh = (cell.init_state(), cell.rtrl_init())
    again, _ = eqx.filter_jit(cell.rtrl_scan)(fresh, jnp.asarray(XS))
    np.testing.assert_allclose(begun[0], again[0])
    assert not np.array_equal(begun[1][0].key, again[1][0].key)


def test_a_choice_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"`sensitivity` \(='snap3'\) .*must be one of exact"):
        zoo.get("gru", hidden=4, sensitivity="snap3")
    with pytest.raises(ValueError, match=r"uoro \(SnAp-2 would be exact: in two steps"):
        zoo.get("gru", hidden=4, sensitivity="snap2")
    refused = (
        r"`sensitivity` \(=SnAp1\(\)\) must be one of rtrl.Exact\(\), rtrl.UORO\(\), rtrl.SnAp0"
    )
    with pytest.raises(ValueError, match=refused):
        zoo.get("lmu", hidden=4, sensitivity="snap1")
    with pytest.raises(
        ValueError, match=r"=UORO\(seed=1\)\) .*must be one of exact, .* in a recipe"
    ):
        zoo.spec("gru", hidden=4, sensitivity=rtrl.UORO(seed=1))
    with pytest.raises(TypeError):
        zoo.GRU(2, 4, sensitivity="snap1", key=jax.random.key(0))
    types = r"`sensitivity` \(='snap1'\) must be one of rtrl.Exact\(\), rtrl.SnAp1\(\): only"
    with pytest.raises(TypeError, match=types):
        check_sensitivity("snap1", (rtrl.Exact, rtrl.SnAp1))


def test_a_recipe_holds_the_name_of_a_choice():
    recipe = zoo.spec("gru", hidden=4, sensitivity=rtrl.SnAp1())
    assert recipe == zoo.spec("gru", hidden=4, sensitivity="snap1")
    assert recipe.to_dict()["options"] == {"sensitivity": "snap1"}
    assert recipe.build(2, jax.random.key(0)).sensitivity == rtrl.SnAp1()


class Sideways(zoo.AbstractDenseCell):
    """A dense cell whose input weights do not start with the units."""

    w: jax.Array
    u: jax.Array
    sensitivity: rtrl.AbstractSensitivity = eqx.field(static=True)
    inputs: int = eqx.field(static=True, default=2)
    hidden: int = eqx.field(static=True, default=3)

    def transition(self, state, x, recurrent):
        return jnp.tanh(x @ self.w + recurrent(self.u, state)[:, 0])


def test_a_parameter_that_does_not_start_with_the_units_is_refused_when_a_cell_is_made():
    w, u = jnp.ones((2, 3)), jnp.ones((3, 1, 3))
    message = r"`parameters\.w` \(shape \(2, 3\)\) must begin with the units \(3,\)"
    with pytest.raises(ValueError, match=message):
        Sideways(w, u, rtrl.SnAp1())
    cell = Sideways(w, u, rtrl.Exact())  # which needs no units
    assert cell.rtrl_init()[0].w.shape == (3, 2, 3)
