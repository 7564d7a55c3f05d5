"""Inputs of other dtypes, and what comes out of a memory beside numbers: buffers and weak types."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import rtrl
import zoo
from tests.cases import slow_but
from zoo.proofs.dtypes import cast

KEY = jax.random.key(0)
MEMORIES = {
    "rtu": {},
    "gru": {"layers": 2},
    "lstm": {"layers": 2, "credit": "exact"},
    "ctrnn": {"time_step": 0.5},
    "ltc": {"time_step": 0.5},
    "positional_mlp": {},
    "transformer": {"window": 3},
    "frame_stack": {},
    "qrnn": {},
    "rotrnn": {},
}

FEW = ("rtu", "gru", "ffm", "mlstm")


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """As for a user, whose annotations are not checked at run time."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def forms(memory, xs):
    """The outputs of all forms and of the stepper."""
    state = memory.init_state()
    carry = state, memory.rtrl_init()
    stepper = memory.stepper()
    return [
        memory.step(state, xs[0])[1],
        stepper.step(stepper.init_cache(), xs[0])[1],
        memory.scan(state, xs)[1],
        memory.rtrl_step(carry, xs[0])[1],
        memory.rtrl_scan(carry, xs)[1],
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", MEMORIES)
def test_whole_numbers_and_booleans_are_as_good_as_floats(name):
    memory = zoo.get(name, inputs=3, hidden=4, key=KEY, **MEMORIES[name])
    run = eqx.filter_jit(forms)
    for xs in (np.array([[1, 2, 3], [-1, 0, 2]]), np.array([[True, False, True]] * 2)):
        for got, want in zip(run(memory, xs), run(memory, xs.astype(float)), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", slow_but(FEW, zoo.names()))
def test_inputs_of_a_higher_precision_change_no_dtype(name, float32):
    """A cast of the cell is all of mixed precision: inputs may stay in float32."""
    memory = zoo.get(name, inputs=3, hidden=4, key=KEY)
    assert all(
        np.isfinite(leaf).all() for leaf in jax.tree.leaves(eqx.filter(memory, eqx.is_array))
    )
    memory = cast(memory, jnp.bfloat16)
    state = memory.init_state()
    x = jax.ShapeDtypeStruct((3,), jnp.float32)
    end, y = eqx.filter_eval_shape(memory.step, state, x)
    ends, ys = eqx.filter_eval_shape(memory.scan, state, jax.ShapeDtypeStruct((2, 3), jnp.float32))
    dtypes = lambda tree: [leaf.dtype for leaf in jax.tree.leaves(tree)]  # noqa: E731
    assert dtypes(end) == dtypes(ends) == dtypes(state)
    assert ys.dtype == y.dtype


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("name", ["gru", "rtu", "transformer"])
def test_a_state_of_another_precision_is_cast(name, float32):
    memory = zoo.get(name, inputs=3, hidden=4, key=KEY)
    carry = memory.init_state(), memory.rtrl_init()
    for dtype in (jnp.bfloat16, np.float64, np.int32):
        other = jax.tree.map(
            lambda h, d=dtype: h if jnp.issubdtype(h.dtype, jnp.integer) else np.asarray(h.real, d),
            carry[0],
        )
        ends = [
            eqx.filter_eval_shape(memory.scan, other, jnp.ones((2, 3)))[0],
            eqx.filter_eval_shape(memory.step, other, jnp.ones(3))[0],
            eqx.filter_eval_shape(memory.rtrl_step, (other, carry[1]), jnp.ones(3))[0][0],
        ]
        expected = [x.dtype for x in jax.tree.leaves(carry[0])]
        for end in ends:
            assert [x.dtype for x in jax.tree.leaves(end)] == expected
    if name == "gru":
        with pytest.raises(ValueError, match=r"`state` \(=complex64\[4\]\) must be like float32"):
            memory.scan(carry[0].astype(complex), jnp.ones((2, 3)))


def test_complex_inputs_are_named():
    cell = zoo.get("rtu", inputs=3, hidden=4)
    with pytest.raises(TypeError, match=r"`x` \(dtype complex128\) must be real"):
        cell.step(cell.init_state(), jnp.ones(3, complex))


@pytest.mark.parametrize("name", slow_but(FEW, zoo.names()))
def test_arrays_are_strongly_typed_and_have_buffers_of_their_own(name, float32):
    """A step that returns stronger types compiles again; one buffer cannot be donated twice."""
    memory = zoo.get(name, inputs=3, hidden=4, key=KEY)
    state = jax.tree.leaves(memory.init_state())
    arrays = [*jax.tree.leaves(eqx.filter(memory, eqx.is_array)), *state]
    assert not any(leaf.weak_type for leaf in arrays)
    buffers = [leaf.unsafe_buffer_pointer() for leaf in state if leaf.size]
    assert len(set(buffers)) == len(buffers)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_what_uoro_carries_keeps_its_dtypes(dtype):
    """float32 in a session of 64 bits, too."""
    cell = cast(zoo.get("gru", inputs=3, hidden=4, key=KEY, sensitivity="uoro"), dtype)
    carry = cell.init_state(), cell.rtrl_init()
    after = eqx.filter_eval_shape(cell.rtrl_step, carry, jax.ShapeDtypeStruct((3,), dtype))[0]
    dtypes = lambda tree: [leaf.dtype for leaf in jax.tree.leaves(tree)]  # noqa: E731
    assert dtypes(after) == dtypes(carry)


class Constant(zoo.AbstractLinearCell):
    """Without any parameters."""

    inputs: int = 3
    hidden: int = 3

    def init_state(self):
        return jnp.zeros(3)

    def coefficients(self, x):
        return jnp.full(3, 0.9), 0.1 * x


class ComplexInputs(zoo.AbstractTimeInvariantCell):
    """A real decay of a complex drive."""

    m: jax.Array
    inputs: int = 3
    hidden: int = 2

    @property
    def outputs(self):
        return 2

    def matrices(self):
        return jnp.full(2, 0.9), self.m * (1 + 1j)

    def readout(self, state, x):
        return state.real


class OneGate(zoo.AbstractLinearCell):
    """One decay for all units, of the input, in a sequence as long as the state is wide."""

    w: jax.Array
    inputs: int = 3
    hidden: int = 4

    def coefficients(self, x):
        return jax.nn.sigmoid(x[0]), self.w @ x


UNUSUAL = Constant(), ComplexInputs(jnp.ones((2, 3))), OneGate(jnp.ones((4, 3)))


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("cell", UNUSUAL)
def test_unusual_cells_go_through_a_loop(cell):
    xs = jnp.linspace(-1, 1, 12).reshape(4, 3)
    _, ys = cell.scan(cell.init_state(), xs)
    _, steps = jax.lax.scan(lambda *c: cell.step(*c), cell.init_state(), xs)
    np.testing.assert_allclose(ys, steps, rtol=1e-12)
    carry = cell.init_state(), cell.rtrl_init()
    np.testing.assert_allclose(cell.rtrl_scan(carry, xs)[1], steps, rtol=1e-12)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("name", ["rtu", "gru", "elstm", "ffm"])
def test_borders_may_be_of_numpy(name):
    """As many as a parameter has rows, so that a broadcast would not be noticed."""
    cell = zoo.get(name, inputs=3, hidden=4, key=KEY)
    xs, begin = np.ones((4, 3)), np.arange(4) == 2

    @jax.jit
    def both(carry):
        return [cell.rtrl_scan(carry, xs, b) for b in (begin, jnp.asarray(begin))]

    got, want = both((cell.init_state(), cell.rtrl_init()))
    assert all(map(np.array_equal, jax.tree.leaves(got), jax.tree.leaves(want)))


def test_exact_credit_needs_exact_cells_in_windows_too():
    cell = zoo.Windowed(zoo.GRU(6, 3, sensitivity=rtrl.SnAp1(), key=KEY), 2)
    with pytest.raises(ValueError, match="`sensitivity`"):
        zoo.Stack([zoo.stack.Block(cell, key=KEY)], credit="exact")


@pytest.mark.quick_rows(2)
@pytest.mark.parametrize(
    "options, other, got, own",
    [
        ({}, {"hidden": 4}, r"\[0\].w\[4, 4, 1, 2\]", r"\[0\].w\[3, 3, 1, 2\]"),
        ({}, {"sensitivity": rtrl.SnAp1()}, r"\[0\].w\[3, 1, 2\]", r"\[0\].w\[3, 3, 1, 2\]"),
        ({}, {"sensitivity": rtrl.SnAp0()}, "nothing more", r"\[0\].w\[3, 3, 1, 2\]"),
        ({"layers": 2}, {"layers": 3}, r"\[2\]\[0\].w\[3, 3, 1, 2\]", "nothing more"),
        ({"layers": 2, "credit": "exact"}, {"layers": 2}, r"\[0\]\[0\].w.*", r"\[0\].blocks.*"),
    ],
)
def test_a_sensitivity_of_another_memory_is_refused(options, other, got, own):
    made = {"inputs": 2, "hidden": 3}
    memory, others = (zoo.get("elman", **made | o) for o in (options, other))
    carry = memory.init_state(), others.rtrl_init()
    words = rf"`carry` \(whose sensitivity has {got}\) must .*hidden=3\), which has {own} there"
    with pytest.raises(ValueError, match=words):
        memory.rtrl_scan(carry, jnp.ones((2, 2)))
    with pytest.raises(ValueError, match=words):
        memory.rtrl_step(carry, jnp.ones(2))


def test_a_sensitivity_of_fewer_inputs_is_not_repeated_for_more():
    cell, other = (zoo.RTU(n, 3, key=KEY) for n in (2, 1))
    carry = cell.init_state(), other.rtrl_init()
    with pytest.raises(
        ValueError, match=r"has \[0\]\[1\].real\[3, 1\]\) must .* \[0\]\[1\].real\[3, 2\]"
    ):
        cell.rtrl_scan(carry, jnp.ones((2, 2)))
