"""A front and a cell as one memory: the gradient of the whole past for both."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rtrl
import zoo
from tests.cases import slow_but
from zoo.proofs.loop import plain_loop

TIME, INPUTS, SEEN = 12, 2, 3
BEGIN = np.zeros(TIME, bool)
BEGIN[5] = True


class Front(eqx.Module):
    w: jax.Array
    b: jax.Array

    def __call__(self, x):
        return jnp.tanh(x @ self.w.T + self.b)


class Placed(zoo.AbstractDiagonalCell):
    """Units on two axes, each with a state of its own to begin with, and one of two updates."""

    w: jax.Array
    u: jax.Array
    squashes: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        self.w = jax.random.normal(key, (1, hidden, inputs))
        self.u = jnp.linspace(0.3, 0.9, hidden)[None]
        self.squashes = jnp.arange(hidden)[None] % 2 == 0
        self.inputs, self.hidden = inputs, hidden

    def init_state(self):
        return jnp.linspace(-1.0, 1.0, self.hidden)[None]

    def update(self, state, x):
        z = self.u * state + self.w @ x
        return jnp.where(self.squashes, jnp.tanh(z), jnp.sin(z))

    def readout(self, state, x):
        return state[0]


zoo.register("zz_placed", Placed)


class Buffered(Placed):
    """With an array that is no parameter and as long as the input: as many as there are units."""

    gains: jax.Array

    def __init__(self, inputs, hidden, *, key):
        super().__init__(inputs, hidden, key=key)
        self.w, self.u, self.squashes = self.w[0], self.u[0], self.squashes[0]
        self.gains = jnp.arange(1, inputs + 1)

    def init_state(self):
        return super().init_state()[0]

    def update(self, state, x):
        return super().update(state, self.gains * x)

    def readout(self, state, x):
        return state


zoo.register("zz_buffered", Buffered)


class Direction(eqx.Module):
    """A front that is not defined at zeros."""

    w: jax.Array

    def __call__(self, x):
        z = x @ self.w.T
        return z / jnp.linalg.norm(z)


def fronted(name, inputs=INPUTS, hidden=4, **options):
    hidden = SEEN if name == "zz_buffered" else hidden
    keys = jax.random.split(jax.random.key(0), 3)
    cell = zoo.get(name, hidden=hidden, inputs=SEEN, key=keys[0], **options)
    front = Front(jax.random.normal(keys[1], (SEEN, inputs)), jax.random.normal(keys[2], (SEEN,)))
    return zoo.Fronted(front, cell, inputs=inputs)


def total(ys, weights):
    return jnp.sum(weights * jnp.sin(ys))


@eqx.filter_jit
def by_the_loop(memory, xs, weights):
    def loss(memory):
        return total(plain_loop(memory, memory.init_state(), xs, jnp.asarray(BEGIN))[1], weights)

    return eqx.filter_grad(loss)(memory)


@eqx.filter_jit
def of_a_segment(memory, carry, xs, begin, weights):
    def loss(memory):
        after, ys = memory.rtrl_scan(carry, xs, begin)
        return total(ys, weights), after

    return eqx.filter_grad(loss, has_aux=True)(memory)


def difference(one, other):
    one, other = (jax.tree.leaves(eqx.filter(m, eqx.is_inexact_array)) for m in (one, other))
    return max(
        float(np.abs(a - b).max() / (np.abs(b).max() + 1e-12))
        for a, b in zip(one, other, strict=True)
    )


def by_segments(memory, xs, weights, length):
    carry, found = (memory.init_state(), memory.rtrl_init()), None
    for t in range(0, TIME, length):
        part = slice(t, t + length)
        new, carry = of_a_segment(memory, carry, xs[part], BEGIN[part], weights[part])
        found = new if found is None else jax.tree.map(jnp.add, found, new)
    return found


# One of each way: by units (complex, input-dependent, nonlinear, blocks of two), dense, two axes.
CELLS = (
    ("rtu", {}),
    ("mingru", {}),
    ("elstm", {}),
    ("rtu", {"nonlinear": True}),
    ("sru", {}),
    ("lru", {}),
    ("gru", {}),
    ("ffm", {"traces": 2, "contexts": 2}),
    ("zz_placed", {}),
    ("zz_buffered", {}),
)


# In segments of one step one of each way is enough: by units, dense and of two axes.
ALSO_BY_STEPS = ("elstm", "gru", "ffm")
ROWS = [(*cell, 4) for cell in CELLS] + [(*c, 1) for c in CELLS if c[0] in ALSO_BY_STEPS]


@pytest.mark.parametrize(("name", "options", "length"), slow_but([ROWS[2]], ROWS))
def test_rtrl_has_the_gradient_of_the_loop_for_front_and_cell(name, options, length):
    memory = fronted(name, **options)
    draw = np.random.default_rng(0)
    xs, weights = draw.normal(size=(TIME, INPUTS)), draw.normal(size=(TIME, memory.outputs))
    found = by_segments(memory, xs, weights, length)
    assert difference(found, by_the_loop(memory, xs, weights)) < 1e-9


@pytest.mark.slow
def test_before_a_border_no_input_has_to_be_zero():
    memory = fronted("lru")
    w = jax.random.normal(jax.random.key(1), (SEEN, INPUTS))
    memory = eqx.tree_at(lambda m: m.front, memory, Direction(w))
    draw = np.random.default_rng(0)
    xs, weights = draw.normal(size=(TIME, INPUTS)), draw.normal(size=(TIME, memory.outputs))
    found = by_segments(memory, xs, weights, 4)
    assert difference(found, by_the_loop(memory, xs, weights)) < 1e-9


@pytest.mark.slow
def test_a_front_outside_of_the_memory_loses_credit():
    """What the memory is for: the same network, the front's gradient cut at every segment."""
    memory = fronted("rtu")
    draw = np.random.default_rng(0)
    xs, weights = draw.normal(size=(TIME, INPUTS)), draw.normal(size=(TIME, memory.outputs))

    def loss(memory, carry, xs, begin, weights):
        after, ys = memory.cell.rtrl_scan(carry, jax.vmap(memory.front)(xs), begin)
        return total(ys, weights), after

    gradient = eqx.filter_jit(eqx.filter_grad(loss, has_aux=True))
    carry, found = (memory.init_state(), memory.cell.rtrl_init()), None
    for t in range(0, TIME, 4):
        part = slice(t, t + 4)
        new, carry = gradient(memory, carry, xs[part], BEGIN[part], weights[part])
        found = new if found is None else jax.tree.map(jnp.add, found, new)
    whole = by_the_loop(memory, xs, weights)
    assert difference(found.cell, whole.cell) < 1e-9
    assert difference(found.front, whole.front) > 1e-2


def test_the_forms_agree():
    memory = fronted("elstm")
    xs = np.random.default_rng(0).normal(size=(TIME, INPUTS))
    _, expected = eqx.filter_jit(
        lambda m: plain_loop(m, m.init_state(), jnp.asarray(xs), jnp.asarray(BEGIN))
    )(memory)
    _, scanned = eqx.filter_jit(memory.scan)(memory.init_state(), xs, BEGIN)
    step = eqx.filter_jit(lambda c, x, b: memory.step(c, x, b))
    online = eqx.filter_jit(lambda c, x, b: memory.rtrl_step(c, x, b))
    state, carry = memory.init_state(), (memory.init_state(), memory.rtrl_init())
    for t in range(TIME):
        state, y = step(state, xs[t], BEGIN[t])
        carry, z = online(carry, xs[t], BEGIN[t])
        for got in (y, z, scanned[t]):
            np.testing.assert_allclose(got, expected[t], rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_a_matrix_memory_is_scanned_in_chunks_behind_a_front():
    memory = fronted("linear_attention")
    xs = np.random.default_rng(0).normal(size=(TIME, INPUTS))
    ends = [
        eqx.filter_jit(memory.scan)(memory.init_state(), xs, BEGIN, method=method)
        for method in ("chunks", "sequential")
    ]
    for one, other in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
    other = fronted("rtu")
    with pytest.raises(ValueError, match="`method`"):
        other.scan(other.init_state(), jnp.asarray(xs), jnp.asarray(BEGIN), method="chunks")


@pytest.mark.slow
def test_what_is_kept_for_the_front_is_its_size_for_every_unit():
    memory = fronted("rtu", inputs=6, hidden=5)
    (kept,) = memory.rtrl_init()
    assert isinstance(memory.structure, rtrl.Shared) and memory.structure.by_unit
    assert [x.shape for x in jax.tree.leaves(kept.shared)] == [(5, SEEN, 6)] * 2 + [(5, SEEN)] * 2
    assert not fronted("gru", sensitivity="snap1").structure.by_unit


def test_what_cannot_be_fronted():
    key = jax.random.key(0)
    with pytest.raises(TypeError, match=r"`cell` \(a Stack\) must be a zoo.AbstractCell"):
        zoo.Fronted(jnp.tanh, zoo.get("rtu", hidden=4, layers=2), inputs=4)
    with pytest.raises(TypeError, match=r"`cell` \(a Fronted\) has a front already"):
        zoo.Fronted(jnp.tanh, fronted("rtu"), inputs=INPUTS)
    with pytest.raises(ValueError, match=r"`inner` .* must not be by unit"):
        rtrl.Shared(rtrl.Shared(rtrl.Diagonal()), by_unit=False)
    with pytest.raises(
        ValueError, match=r"`front` \(=Linear.*must take one `x` of `inputs` \(=5\) n"
    ):
        zoo.Fronted(zoo.parts.Linear(4, 4, key=key), zoo.RTU(4, 3, key=key), inputs=5)
    with pytest.raises(ValueError, match=r"`front` gives shape \(3,\), which must be .* \(4,\)"):
        zoo.Fronted(jnp.tanh, zoo.get("rtu", hidden=4), inputs=3)
    with pytest.raises(ValueError, match=r"`front` gives complex128, which must be real"):
        zoo.Fronted(lambda x: x + 1j, zoo.get("rtu", hidden=4), inputs=4)
    with pytest.raises(ValueError, match=r"`inputs` \(=0\) must be a whole number"):
        zoo.Fronted(jnp.tanh, zoo.get("rtu", hidden=4), inputs=0)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("name", ["mlp", "positional_mlp"])
def test_a_front_of_what_no_parameter_moves(name):
    """No state, or only a clock: there is nothing to keep, and the present is all of the past."""
    memory = fronted(name)
    rng = np.random.default_rng(0)
    xs, weights = rng.normal(size=(TIME, INPUTS)), rng.normal(size=(TIME, memory.outputs))
    carry = memory.init_state(), memory.rtrl_init()
    assert not jax.tree.leaves(carry[1])
    got, _ = of_a_segment(memory, carry, jnp.asarray(xs), jnp.asarray(BEGIN), weights)
    assert difference(got, by_the_loop(memory, jnp.asarray(xs), weights)) < 1e-9


def test_what_is_no_front_or_cell_is_named(unhooked):
    cell = zoo.get("gru", hidden=3, inputs=2)
    with pytest.raises(ValueError, match=r"`front` gives shape \(\(2,\), \(2,\)\), which must be"):
        zoo.Fronted(lambda x: (x, x), cell, inputs=2)
    with pytest.raises(TypeError, match=r"`cell` \(a str\) must be a zoo.AbstractMemory"):
        zoo.Windowed("gru", 2)
    with pytest.raises(TypeError, match=r"`parameters` \(of kind dict\) must be an `rtrl.Parts`"):
        rtrl.Shared(rtrl.Diagonal()).zeros({"w": jnp.ones(3)}, jnp.zeros(3))


@pytest.mark.parametrize("makes_a_number", [True, False])
def test_a_number_made_of_how_many_units_an_array_has_is_refused(makes_a_number):
    """A unit by itself would have another, which no shape shows."""

    class Scaled(Placed):
        def update(self, state, x):
            count = self.u.shape[1] if makes_a_number else self.hidden
            x = jnp.where(jnp.isfinite(x), x, jnp.nan)  # which is written into either program
            return super().update(state, x / count**0.5)

    memory = zoo.Fronted(jnp.tanh, Scaled(3, 4, key=jax.random.key(0)), inputs=3)
    run = lambda: memory.rtrl_scan((memory.init_state(), memory.rtrl_init()), jnp.ones((5, 3)))  # noqa: E731
    if not makes_a_number:
        jax.eval_shape(run)
        return
    with pytest.raises(ValueError, match=r"no number \(such as 2\.0\) of how many units"):
        jax.eval_shape(run)
