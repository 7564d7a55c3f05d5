"""`rtrl.accumulate`: value, gradient and carry of the loop it replaces, and the memory it needs."""

import textwrap

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from hypothesis import given

import rtrl
import zoo
from tests.cases import CELLS, slow_but
from tests.zoo import forms
from tests.zoo.examples import Network
from tests.zoo.forms import TIME, assert_close
from zoo.proofs.dtypes import cast

STACK = next(case for case in CELLS if case.name == "stack")
RTU = next(case for case in CELLS if case.name == "rtu")


def loss_of_step(y, weight):
    return forms.total(y, weight)


@eqx.filter_jit
def accumulate(memory, carry, xs, begin, weights, segment):
    return rtrl.accumulate(loss_of_step, memory, carry, xs, begin, targets=weights, segment=segment)


def check(memory, carry, xs, begin, weights, segment, present):
    cuts = np.arange(TIME) % segment == 0
    (states, ys), (exact, _, _) = forms.reference(
        memory, carry[0], xs, begin, weights, forms.no_cuts()
    )
    _, (truncated, _, _) = forms.reference(memory, carry[0], xs, begin, weights, cuts)
    value, gradient, (state, sensitivity) = accumulate(memory, carry, xs, begin, weights, segment)
    assert_close(value, forms.total(ys, weights))
    assert_close(state, jax.tree.map(lambda h: h[-1], states))
    forms.assert_gradient(gradient, exact, truncated, present)
    return sensitivity


@pytest.mark.parametrize(
    ("loss", "found"),
    [
        (lambda y: y, r"shape \(3,\)"),
        (lambda y: (jnp.sum(y), y), r"\('shape \(\)', 'shape \(3,\)'\)"),
    ],
)
def test_a_loss_that_is_more_than_a_number_is_refused(loss, found):
    cell = zoo.get("gru", hidden=3, inputs=2)
    carry = cell.init_state(), cell.rtrl_init()
    with pytest.raises(ValueError, match=rf"`loss` must return one number .*, not {found}"):
        rtrl.accumulate(loss, cell, carry, jnp.ones((4, 2)), segment=2)
    with pytest.raises(ValueError, match=r"`carry` \(whose second part is None\) must be a state"):
        cell.rtrl_scan((carry[0], None), jnp.ones((4, 2)))


@pytest.mark.slow
@pytest.mark.parametrize("segment", [1, 4, TIME])
@given(seed=forms.seeds, begin=forms.borders())
def test_a_stack_of_one_layer(segment, seed, begin):
    memory, carry, xs, weights = forms.problem(STACK, seed)
    got = check(memory, carry, xs, begin, weights, segment, STACK.present)
    ends, *_ = forms.segments(memory, carry, xs, begin, weights, [TIME])
    assert_close(got, ends[-1][1][1])


@pytest.mark.slow
@pytest.mark.parametrize("segment", [1, 4, TIME])
@given(seed=forms.seeds, begin=forms.borders())
def test_an_encoder_and_a_head(segment, seed, begin):
    """The memory and the head exactly; the encoder in front learns from the present segment."""
    memory, carry, _, _ = forms.problem(RTU, seed)
    network = Network(memory, 5, key=jax.random.key(0))
    rng = np.random.default_rng(seed)
    xs, weights = rng.normal(size=(TIME, 5)), rng.normal(size=(TIME, 2))
    check(network, carry, xs, begin, weights, segment, ("encoder",))


@pytest.mark.slow
def test_without_begin_and_targets():
    memory, carry, xs, _ = forms.problem(RTU, 0)
    weights = np.ones((TIME, memory.outputs))
    got = jax.jit(lambda c, xs: rtrl.accumulate(lambda y: forms.total(y, 1.0), memory, c, xs))(
        carry, xs
    )
    expected = accumulate(memory, carry, xs, forms.no_cuts(), weights, 1)
    assert_close(got, expected)


class Counter(eqx.Module):
    """A memory that answers with the difference between its input and the number of the step."""

    w: jax.Array

    def rtrl_scan(self, carry, xs, begin=None):
        steps = carry + jnp.arange(len(xs), dtype=carry.dtype)
        return carry + len(xs), self.w * (xs - steps) ** 2 + begin * steps


@pytest.mark.parametrize("segment", slow_but([3], [1, 3, 4, 12]))
def test_segments_are_contiguous_and_in_order(segment):
    """On a range: strided segments, or a carry taken from elsewhere, would not give zeros."""
    counter, xs = Counter(jnp.array(2.0)), jnp.arange(12.0)
    begin = jnp.arange(12) == 7
    value, gradient, carry = rtrl.accumulate(
        lambda y, target: y * target, counter, jnp.array(0.0), xs, begin,
        targets=jnp.arange(12.0), segment=segment,
    )  # fmt: skip
    assert (value, gradient.w, carry) == (49.0, 0.0, 12.0)
    value, gradient, _ = rtrl.accumulate(
        lambda y: y, counter, jnp.array(1.0), xs, begin, segment=segment
    )
    assert (value, gradient.w) == (2 * 12 + 8, 12)


def test_the_new_carry_goes_in_again():
    memory, carry, xs, weights = forms.problem(RTU, 0)
    carry = (memory.init_state(), carry[1])
    size = []

    @jax.jit
    def advance(carry):
        size.append(1)
        return rtrl.accumulate(loss_of_step, memory, carry, xs, targets=weights)[2]

    for _ in range(3):
        carry = advance(carry)
    assert len(size) == 1


def test_inputs_of_another_width_are_named_as_they_were_given():
    memory, carry, xs, weights = forms.problem(RTU, 0)
    message = rf"`xs` \(shape \({len(xs)}, {xs.shape[1] - 1}\)\) must have the shape \({len(xs)}, "
    with pytest.raises(ValueError, match=message):
        rtrl.accumulate(loss_of_step, memory, carry, xs[:, 1:], targets=weights)


@pytest.mark.parametrize("segment", [5, 0, -1, 13])
def test_an_indivisible_segment_is_named(segment):
    memory, carry, xs, weights = forms.problem(RTU, 0)
    message = (
        rf"`segment` \(={segment}\) must be a whole number that divides the number of steps \(=12\)"
    )
    with pytest.raises(ValueError, match=message):
        rtrl.accumulate(loss_of_step, memory, carry, xs, targets=weights, segment=segment)


@pytest.mark.slow
def test_whole_numbers_of_numpy_and_lists_of_flags_are_taken(unhooked):
    memory, carry, xs, weights = forms.problem(RTU, 0)

    def run(begin, segment):
        options = {"targets": weights, "segment": segment}
        return rtrl.accumulate(loss_of_step, memory, carry, xs, begin, **options)[:2]

    begin = [number == 5 for number in range(len(xs))]
    expected = run(jnp.asarray(begin), 4)
    jax.tree.map(np.testing.assert_array_equal, run(begin, np.int64(4)), expected)


# Memory, as XLA plans it


def temporary_bytes(function, *arguments):
    compiled = jax.jit(function).lower(*arguments).compile()
    return compiled.memory_analysis().temp_size_in_bytes


LARGER = [
    (RTU, 64, 32),
    (next(case for case in CELLS if case.name == "rtu-nonlinear"), 64, 32),
    (next(case for case in CELLS if case.name == "lru"), 64, 32),
    (next(case for case in CELLS if case.name == "gru"), 12, 8),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "hidden", "inputs"), LARGER, ids=lambda x: getattr(x, "name", None)
)
def test_memory(case, hidden, inputs):
    """A segment holds one sensitivity, not one per step; `accumulate` does not grow at all."""
    memory, sensitivity = forms.built(case, inputs, hidden)
    arrays, rest = eqx.partition(memory, eqx.is_inexact_array)
    state = memory.init_state()
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(sensitivity))

    def bptt(arrays, state, sensitivity, xs):
        return jnp.sum(eqx.combine(arrays, rest).scan(state, xs)[1] ** 2)

    def segment(arrays, state, sensitivity, xs):
        carry, ys = eqx.combine(arrays, rest).rtrl_scan((state, sensitivity), xs)
        return jnp.sum(ys**2), carry

    def online(arrays, state, sensitivity, xs):
        memory = eqx.combine(arrays, rest)
        _, gradient, carry = rtrl.accumulate(
            lambda y: jnp.sum(y**2), memory, (state, sensitivity), xs, segment=1
        )
        return gradient, carry

    def measure(function, time):
        return temporary_bytes(function, arrays, state, sensitivity, np.zeros((time, inputs)))

    short, long = 64, 256
    growth = [
        measure(function, long) - measure(function, short)
        for function in (jax.grad(bptt), jax.grad(segment, has_aux=True), online)
    ]
    for used in growth[:2]:
        assert used < (long - short) * size / 4, (growth, size)
    if case.diagonal:  # a dense recurrence has as many probes as state numbers in flight
        assert growth[1] <= 2 * growth[0], growth
    assert growth[2] <= (long - short) * inputs * 8, growth  # XLA's copy of the inputs, no more


@pytest.mark.slow
def test_a_carry_may_be_rounded():
    cell = zoo.get("elstm", hidden=3, inputs=2)
    xs = jnp.asarray(np.random.default_rng(0).normal(size=(4, 2)), jnp.float32)
    (state, sensitivity), _ = cell.rtrl_scan((cell.init_state(), cell.rtrl_init()), xs)

    def gradient(sensitivity):
        return rtrl.accumulate(jnp.sum, cell, (state, sensitivity), xs)[1]

    exact, rounded = (
        jax.tree.leaves(jax.jit(gradient)(s)) for s in (sensitivity, rtrl.rounded(sensitivity))
    )
    for a, b in zip(exact, rounded, strict=True):
        np.testing.assert_allclose(a, b, atol=0.01 * np.abs(a).max())


@pytest.mark.slow
def test_the_example_of_the_docstring():
    text = rtrl.accumulate.__doc__
    lines = text[text.index("```python") + 9 : text.index("```\n\n")].splitlines()
    rng = np.random.default_rng(0)
    xs, targets = jnp.asarray(rng.normal(size=(4, 3))), jnp.asarray(rng.normal(size=(4, 16)))
    names = {"rtrl": rtrl, "zoo": zoo, "jnp": jnp, "xs": xs, "targets": targets}
    exec(textwrap.dedent("\n".join(lines)), names)
    cell = names["cell"]
    _, ys = cell.scan(cell.init_state(), xs)
    np.testing.assert_allclose(names["value"], jnp.sum((ys - targets) ** 2), rtol=1e-10)
    assert jax.tree.structure(names["gradient"]) == jax.tree.structure(cell)


class Told(eqx.Module):
    """A memory whose `begin` comes with its inputs, as those of an agent's network do."""

    memory: zoo.AbstractMemory

    def rtrl_scan(self, carry, inputs, begin=None):
        assert begin is None
        return self.memory.rtrl_scan(carry, *inputs)


@pytest.mark.slow
def test_begin_may_be_a_part_of_the_inputs():
    memory, carry, xs, weights = forms.problem(RTU, 3)
    begin = jnp.asarray(np.isin(np.arange(TIME), (1, 5)))
    arguments = carry, jnp.asarray(xs), begin, jnp.asarray(weights)
    value, gradient, end = accumulate(memory, *arguments, 2)
    carry, xs, begin, weights = arguments
    other_value, other, other_end = accumulate(Told(memory), carry, (xs, begin), None, weights, 2)
    jax.tree.map(
        lambda a, b: np.testing.assert_array_equal(a, b),
        (value, gradient, end),
        (other_value, other.memory, other_end),
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"xs": jnp.ones((0, 3))}, r"`xs` \(shape \(0, 3\)\) must have a time axis"),
        ({"begin": jnp.zeros(5, bool)}, r"`begin` \(shape \(5,\)\) must have the shape \(4,\)"),
        ({"targets": jnp.ones(3)}, r"`targets` \(of 3 steps\) must be of those of `xs`, 4"),
        ({"segment": 2.0}, r"`segment` \(=2.0\) must be a whole number"),
        ({"segment": "4"}, r"`segment` \(='4'\) must be a whole number"),
    ],
)
def test_other_steps_are_named(arguments, message, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    cell = zoo.get("rtu", hidden=2, inputs=3)
    carry = cell.init_state(), cell.rtrl_init()
    with pytest.raises(ValueError, match=message):
        rtrl.accumulate(
            lambda y, *_: jnp.sum(y), cell, carry, **{"xs": jnp.ones((4, 3)), **arguments}
        )


@pytest.mark.slow
def test_in_half_precision_the_sum_does_not_stop_growing(float32):
    """As exact as BPTT in bfloat16 is, of more steps than the sum has digits for."""
    cell = zoo.get("mingru", hidden=4, inputs=3)
    xs = jnp.asarray(np.random.default_rng(0).normal(size=(2000, 3)), jnp.float32)

    @eqx.filter_jit
    def gradient(cell, xs):
        carry = cell.init_state(), cell.rtrl_init()
        return rtrl.accumulate(jnp.sum, cell, carry, xs, segment=4)[1]

    low = cast(cell, jnp.bfloat16)
    got = gradient(low, cast(xs, jnp.bfloat16))
    want = gradient(cast(low, jnp.float32), xs)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert one.dtype == jnp.bfloat16
        assert jnp.linalg.norm(one.astype(jnp.float32) - other) < 0.05 * jnp.linalg.norm(other)


@pytest.mark.parametrize(
    ("loss", "targets", "message"),
    [
        (lambda y, t: jnp.sum(y - t), None, r"are \(y, t\)\) must be `loss\(y\)` without `targ"),
        (lambda y: jnp.sum(y), jnp.ones(4), r"are \(y\)\) must be `loss\(y, target\)` where `t"),
    ],
)
def test_a_loss_of_other_arguments_is_named(loss, targets, message):
    with pytest.raises(TypeError, match=message):
        rtrl.accumulate(loss, None, None, jnp.ones((4, 3)), targets=targets)


def test_a_loss_that_has_no_gradient_is_named():
    cell = zoo.get("rtu", hidden=2, inputs=3)
    carry = cell.init_state(), cell.rtrl_init()
    for dtype in ("int64", "complex128"):
        with pytest.raises(ValueError, match=rf"`loss` \(dtype {dtype}\) must be real floating"):
            rtrl.accumulate(lambda y, d=dtype: jnp.sum(y).astype(d), cell, carry, jnp.ones((4, 3)))


def test_what_is_no_loss_and_no_cell_is_named(unhooked):
    with pytest.raises(TypeError, match=r"`loss` \(=3\) must be a function"):
        rtrl.accumulate(3, None, None, jnp.ones((4, 3)))  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"`cell` \(=\(1, 2\)\) must have `rtrl_scan`"):
        rtrl.accumulate(jnp.sum, (1, 2), None, jnp.ones((4, 3)))


def test_a_carry_of_another_precision_is_taken():
    """As `rtrl_scan` takes it: the state is that of `init_state`."""
    cell = zoo.get("rtu", hidden=2, inputs=3)
    carry = cell.init_state(), cell.rtrl_init()
    narrow = jax.tree.map(lambda h: h.astype({"c": "c8", "f": "f4"}[h.dtype.kind]), carry)
    run = lambda carry: rtrl.accumulate(jnp.sum, cell, carry, jnp.ones((4, 3)))  # noqa: E731
    found, expected = run(narrow), run(carry)
    assert found[2][0].dtype == expected[2][0].dtype
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
