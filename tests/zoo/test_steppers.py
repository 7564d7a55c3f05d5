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
