"""`rtrl.segment` with recurrences that are not cells."""

import functools
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rtrl
import scan

UNITS, TIME = 3, 8
RNG = np.random.default_rng(0)
PARAMETERS = {"a": RNG.normal(size=UNITS), "w": RNG.normal(size=(UNITS, 2)), "name": "not a number"}
NUMBERS = jax.device_put({name: PARAMETERS[name] for name in ("a", "w")})
NO_PAST = (jax.device_put({name: np.zeros_like(PARAMETERS[name]) for name in ("a", "w")}),)
XS = {"drive": RNG.normal(size=(TIME, 2)), "gain": RNG.normal(size=TIME)}
BEGIN = np.isin(np.arange(TIME), (2, 5))
WEIGHTS = jax.device_put(RNG.normal(size=(TIME, UNITS)))


class Counter(rtrl.AbstractRecurrence):
    """A nonlinear recurrence of units, with inputs in a dictionary and a count of steps."""

    exact: bool = True
    dense: bool = False

    @property
    def structure(self):
        return rtrl.Dense() if self.dense else rtrl.Diagonal()

    def init_state(self):
        return jnp.full(UNITS, 0.5), jnp.zeros((), jnp.int32)

    def states(self, parameters, state, xs, begin):
        def step(state, x):
            h, count = state
            past = parameters["a"] * h * jnp.exp(-0.1 * count)
            return jnp.tanh(past + x["gain"] * parameters["w"] @ x["drive"]), count + 1

        return scan.sequential(step, state, xs, begin, initial=self.init_state())[1]

    def surrogate_states(self, parameters, state, xs, begin, states):
        if self.exact:
            return self.states(parameters, state, xs, begin)
        # Only the last step has derivatives: the state before it is taken from what is known.
        before = jax.tree.map(lambda h, hs: jnp.concatenate([h[None], hs[:-1]]), state, states)
        last = jax.tree.map(lambda x: x[-1:], xs)
        start = jax.lax.stop_gradient(jax.tree.map(lambda h: h[-1], before))
        return self.states(parameters, start, last, None)


def by_segments(recurrence, length, products=False):
    """The gradient of a loss of all states, and the last carry."""

    def loss(numbers, xs):
        parameters = {**PARAMETERS, **numbers}
        state, sensitivity = recurrence.init_state(), start
        total = 0.0
        for first in range(0, TIME, length):
            piece = jax.tree.map(lambda x: x[first : first + length], (xs, jnp.asarray(BEGIN)))  # noqa: B023
            (state, sensitivity), (h, _) = rtrl.segment(
                recurrence, parameters, (state, sensitivity), *piece, products=products
            )
            total += jnp.sum(WEIGHTS[first : first + length] * h)
        return total, (state, sensitivity)

    one = jax.tree.map(lambda x: jax.ShapeDtypeStruct((1, *x.shape[1:]), x.dtype), XS)
    update = lambda p, s, x: recurrence.end_state(recurrence.states(p, s, x, None))  # noqa: E731
    initial = recurrence.init_state()
    start = rtrl.init(recurrence.structure, update, {**PARAMETERS, **NUMBERS}, initial, one)
    return jax.jit(jax.grad(loss, (0, 1), has_aux=True))(NUMBERS, jax.tree.map(jnp.asarray, XS))


@functools.cache
def by_a_loop():
    @jax.jit
    @jax.grad
    def gradient(numbers):
        h, count, total = jnp.full(UNITS, 0.5), 0, 0.0
        for t in range(TIME):
            if BEGIN[t]:
                h, count = jnp.full(UNITS, 0.5), 0
            drive = XS["gain"][t] * numbers["w"] @ XS["drive"][t]
            h, count = jnp.tanh(numbers["a"] * h * np.exp(-0.1 * count) + drive), count + 1
            total += jnp.sum(WEIGHTS[t] * h)
        return total

    return gradient(NUMBERS)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    ("dense", "length"), [(False, 2), (False, 1), (False, 4), (False, TIME), (True, 2), (True, 4)]
)
def test_the_gradient_is_that_of_the_whole_past(length, dense):
    (gradient, _), (state, sensitivity) = by_segments(Counter(dense=dense), length)
    exact = by_a_loop()
    jax.tree.map(lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-10), gradient, exact)
    assert state[1] == TIME - 5 and state[1].dtype == jnp.int32
    # The count has no sensitivity, not even in a dense structure.
    assert sensitivity[0]["a"].shape == ((UNITS, UNITS) if dense else (UNITS,))


@pytest.mark.slow
def test_both_ways_of_adding_up_agree():
    one, other = by_segments(Counter(), 2), by_segments(Counter(), 2, products=True)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), one, other)


def test_a_carry_is_a_constant():
    """No gradient goes out by the carry that leaves a segment, nor by the one that enters it."""
    recurrence = Counter()
    piece = jax.tree.map(lambda x: jnp.asarray(x[:4]), XS)
    h, count = recurrence.init_state()

    def loss(numbers, h, sensitivity, xs, of_carry):
        carry = (h, count), sensitivity
        carry, (hs, _) = rtrl.segment(recurrence, numbers, carry, xs)
        leaves = [leaf for leaf in jax.tree.leaves(carry) if leaf.dtype == float]
        return jnp.sum(hs) + of_carry * sum(jnp.sum(leaf**2) for leaf in leaves)

    gradient = jax.jit(jax.grad(loss, (0, 1, 2, 3)))
    plain, weighted = (gradient(NUMBERS, h, NO_PAST, piece, weight) for weight in (0.0, 1.0))
    jax.tree.map(np.testing.assert_array_equal, plain, weighted)
    jax.tree.map(lambda g: np.testing.assert_array_equal(g, 0), plain[1:3])
    assert np.all(np.asarray(plain[3]["gain"]) != 0)


def test_the_sensitivity_follows_the_surrogate():
    """Same states and, in one segment, the same gradient; what is carried on is the surrogate's."""
    exact, (state, sensitivity) = by_segments(Counter(), TIME)
    local, (other_state, other_sensitivity) = by_segments(Counter(exact=False), TIME)
    same, close = np.testing.assert_array_equal, np.testing.assert_allclose
    jax.tree.map(same, (exact, state), (local, other_state))
    drive = XS["gain"][-1] * XS["drive"][-1]
    slope = 1 - np.asarray(other_state[0]) ** 2
    close(other_sensitivity[0]["w"], slope[:, None] * drive[None], rtol=1e-12)
    assert np.max(np.abs(sensitivity[0]["w"] - other_sensitivity[0]["w"])) > 1e-2
    stepped = by_segments(Counter(), 1)[1][1]
    jax.tree.map(lambda a, b: close(a, b, rtol=1e-10), stepped, sensitivity)


class OnSphere(rtrl.AbstractRecurrence):
    """A state of length one, which makes no step from zeros."""

    @property
    def structure(self):
        return rtrl.Dense()

    def init_state(self):
        return jnp.full(UNITS, UNITS**-0.5)

    def states(self, parameters, state, xs, begin):
        def step(h, x):
            z = parameters["a"] * h + parameters["w"] @ x
            return z / jnp.linalg.norm(z)

        return scan.sequential(step, state, xs, begin, initial=self.init_state())[1]


def test_a_state_need_not_have_been_zero_before_a_border():
    recurrence = OnSphere()
    xs, begin = jnp.asarray(XS["drive"]), jnp.asarray(BEGIN)

    def whole(numbers):
        return jnp.sum(WEIGHTS * recurrence.states(numbers, recurrence.init_state(), xs, begin))

    def in_segments(numbers):
        one = lambda p, h, x: recurrence.states(p, h, x, None)[-1]  # noqa: E731
        state = recurrence.init_state()
        carry, loss = (state, rtrl.init(recurrence.structure, one, numbers, state, xs[:1])), 0.0
        for part in (slice(0, 4), slice(4, 8)):
            carry, states = rtrl.segment(recurrence, numbers, carry, xs[part], begin[part])
            loss += jnp.sum(WEIGHTS[part] * states)
        return loss

    exact, found = jax.jit(lambda p: (jax.grad(whole)(p), jax.grad(in_segments)(p)))(NUMBERS)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), exact, found)


def test_what_is_not_finite_before_a_border_does_not_reach_the_carry():
    """The step before it is taken as the one at it, which is all that a sensitivity sees."""
    recurrence = Counter()
    border = int(np.argmax(BEGIN))

    @jax.jit
    def carried(drive):
        xs = {"drive": drive, "gain": jnp.asarray(XS["gain"][:4])}
        carry = recurrence.init_state(), NO_PAST
        return rtrl.segment(recurrence, NUMBERS, carry, xs, jnp.asarray(BEGIN[:4]))[0]

    drive = np.where(np.arange(4)[:, None] < border, np.inf, XS["drive"][:4])
    same = np.testing.assert_array_equal
    jax.tree.map(same, carried(drive), carried(XS["drive"][:4]))


@pytest.mark.slow
def test_the_example_of_the_docstring():
    text = rtrl.segment.__doc__
    lines = text[text.index("```python") + 9 : text.index("```\n\n")].splitlines()
    names = {"rtrl": rtrl, "jnp": jnp, "scan": scan}
    exec(textwrap.dedent("\n".join(lines)), names)
    parameters = {"a": jnp.full(3, 0.5), "w": jnp.ones((3, 2))}
    recurrence, xs = names["Leak"](), jnp.ones((4, 2))
    update = lambda p, h, x: p["a"] * h + p["w"] @ x  # noqa: E731
    h = recurrence.init_state()
    carry = h, rtrl.init(recurrence.structure, update, parameters, h, xs[0])
    gradient, (state, _) = jax.grad(names["loss"], has_aux=True)(parameters, carry, xs)
    np.testing.assert_allclose(state, 2 * (2 - 2**-3.0))
    states = np.array([2.0, 3, 3.5, 3.75])
    slopes = np.array([0, 2, 4, 5.5])  # s' = a s + h with h = 0, 2, 3, 3.5
    np.testing.assert_allclose(gradient["a"], np.sum(2 * states * slopes))


@pytest.mark.parametrize(
    ("message", "parameters", "carry"),
    [
        (r"`carry` \(=float64\[3\]\) must be a state and its sens", None, lambda h, s: h[0]),
        (r"`carry` \(a tuple of 1\) must be a state and its sensitivity", None, lambda h, s: (h,)),
        (r"`carry` \(a list\) must be a state and its sensitivity", None, lambda h, s: [h, s]),
        (r"`carry` \(whose second part is None\) must be a", None, lambda h, s: (h, None)),
        (r"`parameters` \(=.*\) must have the structure of those that", {"a": jnp.ones(3)}, None),
    ],
)
def test_a_carry_or_parameters_of_another_kind_are_named(message, parameters, carry, unhooked):
    recurrence = Counter()
    state = recurrence.init_state()
    update = lambda p, h, x: recurrence.end_state(recurrence.states(p, h, x, None))  # noqa: E731
    one = jax.tree.map(lambda x: x[:1], XS)
    made = (state, rtrl.init(recurrence.structure, update, PARAMETERS, state, one))
    with pytest.raises(ValueError, match=message):
        rtrl.segment(recurrence, parameters or PARAMETERS, carry(*made) if carry else made, XS)


NO_STEPS = {name: x[:0] for name, x in XS.items()}


def _of_dense(h, s):
    return h, (jax.tree.map(lambda x: jnp.zeros((UNITS, *x.shape)), s[0]),)


def _narrower(h, s):
    """Of one unit, which broadcasts."""
    return h, (jax.tree.map(lambda x: x[:1], s[0]),)


def _wider(h, s):
    return h, (jax.tree.map(lambda x: jnp.zeros((UNITS + 1, *x.shape[1:])), s[0]),)


@pytest.mark.parametrize(
    ("message", "carry", "others"),
    [
        (r"`begin` \(shape \(\)\) must have the shape \(8,\)", None, (XS, True)),
        (r"`xs` \(shapes .*\) must have a time axis", None, (NO_STEPS, BEGIN[:0])),
        (r"state is \['fl.*\]\) must hold a state like \('fl", lambda h, s: ([*h], s), (XS,)),
        (r"`carry` \(whose state is \('int", lambda h, s: ((h[0].astype(int), h[1]), s), (XS,)),
        (r"sensitivity has \[0\]\['a'\]\[3, 3\]\) must hold one of Diag", _of_dense, (XS,)),
        (r"sensitivity has \[0\]\['a'\]\[4\]\) must hold one of Diagonal", _wider, (XS,)),
        (r"sensitivity has \[0\]\['a'\]\[1\]\) must hold one of Dia", _narrower, (XS,)),
    ],
)
def test_a_carry_or_steps_that_do_not_fit_are_named(message, carry, others, unhooked):
    made = Counter().init_state(), NO_PAST
    with pytest.raises(ValueError, match=message):
        rtrl.segment(Counter(), NUMBERS, carry(*made) if carry else made, *others)
