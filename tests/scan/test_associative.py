"""`scan.associative` and `scan.resettable`: the laws of a monoid, and loops written out."""

import itertools

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

import scan


def affine(earlier, later):
    """`h -> a h + b`, one after another: not commutative."""
    (a1, b1), (a2, b2) = earlier, later
    return a2 * a1, a2 * b1 + b2


def product(earlier, later):
    """Matrices, the later one on the left."""
    return later @ earlier


def affine_element(rng, time=()):
    return tuple(rng.normal(size=(*time, 2)) for _ in range(2))


def product_element(rng, time=()):
    return rng.normal(size=(*time, 2, 2))


MONOIDS = {
    "affine": (affine, affine_element, (np.ones(2), np.zeros(2))),
    "product": (product, product_element, np.eye(2)),
}
solve = jax.jit(scan.associative, static_argnums=0, static_argnames="reverse")
every_monoid = pytest.mark.parametrize("name", MONOIDS)


def assert_close(got, expected):
    jax.tree.map(
        lambda g, e: np.testing.assert_allclose(g, e, atol=1e-12, rtol=1e-12), got, expected
    )


@pytest.mark.quick_rows(1)
@every_monoid
@given(st.integers(0, 10_000), st.tuples(*[st.booleans()] * 3))
def test_resettable_is_associative_and_keeps_the_identity(name, seed, flags):
    combine, element, identity = MONOIDS[name]
    operator = jax.jit(scan.resettable(combine))
    rng = np.random.default_rng(seed)
    one, two, three = ((element(rng), jnp.array(flag)) for flag in flags)
    assert_close(operator(operator(one, two), three), operator(one, operator(two, three)))
    neutral = (identity, jnp.array(False))
    assert_close(operator(neutral, one), one)
    assert_close(operator(one, neutral), one)


@pytest.mark.quick_rows(1)
@every_monoid
def test_a_begin_discards_what_is_earlier_and_is_remembered(name):
    combine, element, _ = MONOIDS[name]
    operator = jax.jit(scan.resettable(combine))
    rng = np.random.default_rng(0)
    earlier, later = element(rng), element(rng)
    nan = jax.tree.map(lambda x: x * jnp.nan, earlier)
    for first in (False, True):
        got, flag = operator((nan, jnp.array(first)), (later, jnp.array(True)))
        assert_close(got, later)
        assert flag
    got, flag = operator((earlier, jnp.array(True)), (later, jnp.array(False)))
    assert_close(got, combine(earlier, later))
    assert flag


def loop(combine, elements, begin, initial, reverse):
    """Prefixes from the definition; index by index."""
    steps = range(len(begin))
    out, total = [None] * len(begin), initial
    for t in reversed(steps) if reverse else steps:
        element = jax.tree.map(lambda x, t=t: x[t], elements)
        total = element if total is None or begin[t] else combine(total, element)
        out[t] = total
    return jax.tree.map(lambda *x: np.stack(x), *out)


@pytest.mark.quick_rows(1)
@every_monoid
@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_all_eight_reset_patterns(name, carried, reverse):
    combine, element, _ = MONOIDS[name]
    rng = np.random.default_rng(1)
    elements, initial = element(rng, (3,)), element(rng) if carried else None
    for begin in itertools.product([False, True], repeat=3):
        got = solve(combine, elements, jnp.asarray(begin), initial=initial, reverse=reverse)
        assert_close(got, loop(combine, elements, begin, initial, reverse))


@pytest.mark.quick_rows(1)
@every_monoid
@pytest.mark.parametrize("reverse", [False, True])
@given(seed=st.integers(0, 10_000))
def test_longer_sequences_in_chunks(name, reverse, seed):
    """The last prefix of a chunk is the initial element of the next."""
    combine, element, _ = MONOIDS[name]
    rng = np.random.default_rng(seed)
    elements, begin = element(rng, (7,)), rng.random(7) < 0.3
    parts, initial = [slice(0, 3), slice(3, 7)], None
    expected = loop(combine, elements, begin, None, reverse)
    assert_close(solve(combine, elements, jnp.asarray(begin), reverse=reverse), expected)
    for part in reversed(parts) if reverse else parts:
        chunk = jax.tree.map(lambda x, part=part: x[part], elements)
        got = solve(combine, chunk, jnp.asarray(begin[part]), initial=initial, reverse=reverse)
        assert_close(got, jax.tree.map(lambda x, part=part: x[part], expected))
        initial = jax.tree.map(lambda x: x[0 if reverse else -1], got)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("reverse", [False, True])
def test_without_begin(reverse):
    elements, initial = np.arange(1.0, 6.0), np.array(10.0)
    combine = lambda earlier, later: earlier + later  # noqa: E731
    got = solve(combine, elements, reverse=reverse)
    np.testing.assert_array_equal(got, [15, 14, 12, 9, 5] if reverse else [1, 3, 6, 10, 15])
    got = solve(combine, elements, initial=initial, reverse=reverse)
    np.testing.assert_array_equal(got, [25, 24, 22, 19, 15] if reverse else [11, 13, 16, 20, 25])


def test_a_begin_of_another_length_is_named():
    with pytest.raises(ValueError, match=r"`begin` \(shape \(2,\)\) must have the shape \(3,\)"):
        scan.associative(jnp.add, jnp.ones(3), jnp.zeros(2, bool))


def test_an_initial_value_is_not_cut_to_the_elements_type():
    got = scan.associative(jnp.add, jnp.arange(3), initial=0.5)
    np.testing.assert_array_equal(got, [0.5, 1.5, 3.5])


@pytest.mark.parametrize("bad", [jnp.nan, jnp.inf])
def test_what_is_not_finite_before_a_border_is_in_no_gradient_behind_it(bad):
    begin, b = jnp.array([False, False, True, False]), jnp.ones((4, 1)).at[1].set(bad)
    one = jnp.ones(1)

    def affine(earlier, later):
        return earlier[0] * later[0], later[0] * earlier[1] + later[1]

    def of(solve):
        return jax.jit(jax.grad(lambda a, b: jnp.sum(solve(a, b)[2:] ** 2), (0, 1)))

    given = jnp.full((4, 1), 0.5), b
    found = of(lambda *ab: scan.associative(affine, ab, begin, initial=(one, one))[1])(*given)
    expected = of(lambda a, b: scan.linear(a, b, one, begin))(*given)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
