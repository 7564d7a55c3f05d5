"""Steppers: what they keep changes nothing."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import zoo
from tests.cases import DISTINCT, CellCase, for_each
from tests.zoo.forms import assert_close

INPUTS, HIDDEN, TIME = 3, 4, 12


# Named, as every worker would have to make every cell before its first test to ask for them.
NAMES = (
    *("stack", "fronted", "stack-exact", "gtrxl", "rotrnn", "frame_stack"),
    *("qrnn", "rwkv", "tcn", "transformer"),
)
CACHED = tuple(case for case in DISTINCT if case.name in NAMES)
WITH_HEADS = tuple(
    CellCase(kind.__name__, partial(kind, heads=2, window=3), diagonal=False)
    for kind in (zoo.GTrXL, zoo.Transformer)
)


def _stepper(case):
    return case.build(INPUTS, HIDDEN, key=jax.random.key(0)).stepper()


def _steps(step, carry, xs, begin):
    return jax.lax.scan(lambda c, given: step(c, *given), carry, (xs, begin))


@pytest.mark.quick_rows(1)
@for_each((*CACHED, *WITH_HEADS))
def test_steps_on_a_cache_are_the_memorys(case):
    """From any state: outputs, and the state that is given back; across episodes and NaN."""

    @jax.jit
    def both(xs, begin):
        memory = case.build(INPUTS, HIDDEN, key=jax.random.key(1))
        stepper = memory.stepper()
        middle, expected = _steps(memory.step, memory.init_state(), xs, begin)
        end, later = _steps(memory.step, middle, xs, begin[::-1])
        start, got = _steps(stepper.step, stepper.init_cache(), xs, begin)
        again, got_later = _steps(stepper.step, stepper.cache(middle), xs, begin[::-1])
        states = stepper.state(start), stepper.state(again)
        return (expected, later, middle, end), (got, got_later, *states)

    xs = jax.random.normal(jax.random.key(2), (TIME, INPUTS), jnp.float64)
    for begins in ([], [0, 5], [3, 4, 11]):
        begin = np.isin(np.arange(TIME), begins)
        for given in (xs, xs.at[2].set(jnp.nan), xs.at[TIME - 2, 0].set(jnp.inf)):
            expected, got = both(given, begin)
            finite = lambda tree: jax.tree.map(np.isfinite, tree)  # noqa: E731
            assert eqx.tree_equal(finite(got), finite(expected))
            assert_close(*(jax.tree.map(np.nan_to_num, tree) for tree in (got, expected)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer", "gtrxl"])
def test_an_embedding_that_overflows_taints_what_sees_it_only(name):
    """An input that is finite is no token that the state tells apart."""

    @jax.jit
    def outputs(xs):
        memory = zoo.get(name, hidden=4, inputs=INPUTS, window=3, key=jax.random.key(0))
        ones = jnp.ones_like(memory.embed.weight)
        memory = eqx.tree_at(lambda m: m.embed.weight, memory, ones)
        stepper, state = memory.stepper(), memory.init_state()
        scanned = memory.scan(state, xs, begin)[1]
        stepped = _steps(stepper.step, stepper.init_cache(), xs, begin)[1]
        return scanned, _steps(memory.step, state, xs, begin)[1], stepped

    begin = jnp.isin(jnp.arange(9), jnp.array([0, 4]))
    xs = jax.random.normal(jax.random.key(2), (9, INPUTS), jnp.float64)
    large = outputs(xs.at[jnp.array([1, 5])].set(jnp.finfo(xs.dtype).max))
    for got, expected in zip(large, outputs(xs), strict=True):
        hurt = np.isin(np.arange(9), [1, 2, 3, 5, 6, 7])
        assert np.isnan(got[hurt]).all()
        assert_close(got[~hurt], expected[~hurt])


def test_those_that_keep_something_have_a_row():
    steppers = {case.name: eqx.filter_eval_shape(_stepper, case) for case in DISTINCT}
    kept = {name for name, kind in steppers.items() if not isinstance(kind, zoo.PlainStepper)}
    assert kept == set(NAMES)


@for_each(CACHED)
def test_a_wrong_width_is_refused(case):
    def step(x):
        stepper = _stepper(case)
        return stepper.step(stepper.init_cache(), x)

    with pytest.raises(ValueError, match=r"`x` \(shape \(4,\)\) must have the shape \(3,\)"):
        jax.eval_shape(step, jnp.zeros(INPUTS + 1))


@for_each(CACHED)
def test_a_begin_of_no_flag_is_refused(case, unhooked):
    def step(x, begin):
        stepper = _stepper(case)
        return stepper.step(stepper.init_cache(), x, begin)

    for begin, error in ((jnp.zeros(()), TypeError), (jnp.ones(1, bool), ValueError)):
        with pytest.raises(error, match=r"`begin` \(.*\) must be (a boolean array|one flag)"):
            jax.eval_shape(step, jnp.zeros(INPUTS), begin)
