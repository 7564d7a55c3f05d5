"""What every scan refuses: no steps, borders that are not boolean, shapes that do not fit."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import scan
import zoo

ZEROS = jnp.zeros(3)


def add(parameters, state, x):
    return state + x


# The argument that has the time, and a call of the scan.
SCANS = {
    "linear": ("b", lambda xs, begin: scan.linear(ZEROS, xs, ZEROS, begin)),
    "blocks": (
        "b",
        lambda xs, begin: scan.blocks(
            jnp.zeros((*xs.shape, 2, 2)), jnp.stack([xs, xs], -1), jnp.zeros((3, 2)), begin
        ),
    ),
    "associative": ("elements", lambda xs, begin: scan.associative(jnp.add, xs, begin)),
    "sequential": (
        "xs",
        lambda xs, begin: scan.sequential(jnp.add, ZEROS, xs, begin, initial=ZEROS),
    ),
    "nonlinear": (
        "xs",
        lambda xs, begin: scan.nonlinear(add, (), ZEROS, xs, begin, initial=ZEROS),
    ),
    "outer_products": (
        "keys",
        lambda xs, begin: scan.outer_products(xs, xs, xs, jnp.zeros((3, 3)), None, begin),
    ),
    "newton": ("xs", lambda xs, begin: scan.newton(add, (), ZEROS, xs, begin, initial=ZEROS)),
}


@pytest.fixture
def unchecked(monkeypatch):
    """As for a user, whose annotations are not checked at run time."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.parametrize("name", SCANS)
def test_no_steps_are_named(name):
    argument, run = SCANS[name]
    with pytest.raises(
        ValueError, match=rf"`{argument}` \(shape \(0, 3.*\)\) must have a time axis"
    ):
        run(jnp.zeros((0, 3)), None)


@pytest.mark.parametrize("name", SCANS)
def test_borders_of_other_steps_are_named(name, unchecked):
    for shape in ((3,), (2, 2)):
        with pytest.raises(ValueError, match=r"`begin` \(shape \(.*\)\) must have the"):
            SCANS[name][1](jnp.ones((2, 3)), jnp.zeros(shape, bool))


BEGIN = jnp.zeros(2, bool)
NONLINEAR = {
    "nonlinear": scan.nonlinear,
    "newton": lambda *a, **options: scan.newton(*a, **options)[0],
}


@pytest.mark.parametrize("name", ["sequential", *NONLINEAR])
def test_leaves_of_other_lengths_and_other_initial_values_are_named(name):
    run = {"sequential": lambda update, _, *a, **k: scan.sequential(jnp.add, *a, **k), **NONLINEAR}
    run, xs = run[name], jnp.ones((2, 3))
    with pytest.raises(ValueError, match=r"`xs` \(shapes .*\) must have one number of steps in"):
        run(add, (), ZEROS, (xs, jnp.ones(3)))
    for initial in (jnp.zeros(2), (ZEROS,)):
        with pytest.raises(ValueError, match=r"`initial` \(shape .*\) must be built like `state`"):
            run(add, (), ZEROS, xs, BEGIN, initial=initial)
    with pytest.raises(ValueError, match=r"`initial` \(=None\) must be given with `begin`"):
        run(add, (), ZEROS, xs, BEGIN)


@pytest.mark.parametrize("run", NONLINEAR.values(), ids=NONLINEAR)
def test_a_state_and_its_update_fit(run):
    xs = jnp.ones((2, 3))
    for update, returned in (
        (lambda p, h, x: (h + x).astype("float32"), r"float32\[3\]"),
        (lambda p, h, x: h[:2] + x[:2], r"float64\[2\]"),
        (lambda p, h, x: (h, x), "float64"),
    ):
        with pytest.raises(ValueError, match=rf"`update` returns .*{returned}.*: it must return"):
            run(update, (), ZEROS, xs)
    with pytest.raises(ValueError, match=r"float32\[3\], float64\[3\]: `coupling='units'` needs"):
        run(lambda p, h, x: h, (), (ZEROS.astype("float32"), ZEROS), xs)
    # A number is a state, too.
    assert run(add, (), 0.5, xs[:, 0]).tolist() == [1.5, 2.5]


def test_blocks_and_keys_of_other_shapes_are_named(unchecked):
    a, b, h0 = jnp.zeros((2, 3, 2, 2)), jnp.zeros((2, 3, 2)), jnp.zeros((3, 2))
    for wrong in ((a[..., :1], b, h0), (a, b[0, 0], h0), (a, b, h0[:1]), (a[:1], b, h0)):
        with pytest.raises(ValueError, match=r"must have the shapes \[time, \*units, k, k\], "):
            jax.eval_shape(scan.blocks, *wrong)
    with pytest.raises(ValueError, match=r"`keys` \(shape \(3,\)\) must have an axis of keys"):
        scan.outer_products(ZEROS, ZEROS, ZEROS, jnp.zeros((3, 3)))


def pairs(dtype, **others):
    """Arguments of `scan.outer_products`: an outer product at each of two steps, read at both."""
    arrays = {name: np.eye(2, dtype=dtype) / 2 for name in ("queries", "keys")}
    return {**arrays, "values": np.eye(2), "state": np.zeros((2, 2)), **others}


@pytest.mark.parametrize(
    ("message", "call"),
    [
        (
            r"`queries` \(dtype complex128\) must be real",
            lambda: scan.outer_products(**pairs(complex)),
        ),
        (
            r"`values` \(dtype int64\) must be real floating point",
            lambda: scan.outer_products(*np.ones((3, 2, 2), int), np.ones((2, 2), int)),
        ),
        (
            r"`log_decay` \(dtype int64\) must be real floating point",
            lambda: scan.outer_products(**pairs(float, log_decay=np.zeros((2, 1), int))),
        ),
        (
            r"`length` \(=2.0\) must be a whole number",
            lambda: scan.outer_products(**pairs(float), length=2.0),
        ),
        (
            r"`b` \(dtype int64\) must be real or complex floating point",
            lambda: scan.blocks(*(jnp.ones(s, int) for s in ((2, 2, 2), (2, 2), (2,)))),
        ),
        (
            r"`states` \(dtype complex128\) must be real, as `b` is",
            lambda: scan.linear(ZEROS, jnp.ones((2, 3)), states=jnp.ones((2, 3), complex)),
        ),
        (
            r"`states` \(dtype int64\) must be real floating point",
            lambda: scan.nonlinear(add, (), ZEROS, jnp.ones((2, 3)), states=jnp.ones((2, 3), int)),
        ),
        (
            r"`initial` \(=\('float64\[3\]',\)\) must be one element, like float64\[3\]",
            lambda: scan.associative(jnp.add, jnp.ones((2, 3)), initial=(ZEROS,)),
        ),
        (
            r"`initial` \(=float64\[2\]\) must be one element",
            lambda: scan.associative(jnp.add, jnp.ones((2, 3)), initial=jnp.zeros(2)),
        ),
        (
            r"`initial` \(shape \(3,\)\) must be built like `state` \(shape \(2,\)\)",
            lambda: scan.reset(True, ZEROS, jnp.ones(2)),
        ),
        (
            r"`xs` \(shape \(\)\) must have a time axis",
            lambda: scan.hoisted(add, (), ZEROS, jnp.ones(())),
        ),
    ],
)
def test_what_would_be_rounded_or_broadcast_is_named(message, call, unchecked):
    with pytest.raises(ValueError, match=message):
        call()


def test_whole_numbers_among_the_arguments_are_as_good_as_floats(unchecked):
    expected = scan.outer_products(**pairs(float))
    for other in ({"values": np.eye(2, dtype=int)}, {"state": np.zeros((2, 2), int)}):
        found = scan.outer_products(**pairs(float, **other))
        jax.tree.map(np.testing.assert_array_equal, found, expected)
    state, reads = scan.delta_rule(
        *np.zeros((2, 3, 0)), np.ones((3, 2)), np.ones(3), np.ones((0, 2))
    )
    assert state.shape == (0, 2) and not np.any(reads) and reads.shape == (3, 2)


@pytest.mark.parametrize("name", ["hoisted", *NONLINEAR])
def test_a_parameter_that_is_no_array_is_named(name):
    run = {"hoisted": scan.hoisted, **NONLINEAR}[name]
    with pytest.raises(
        TypeError, match=r"`parameters\['f'\]` \(=<.*\) must be an array: take other"
    ):
        run(add, {"f": jnp.tanh, "w": ZEROS}, ZEROS, jnp.ones((2, 3)))


def test_known_states_are_those_of_all_steps():
    xs = jnp.ones((3, 3))
    narrow = scan.nonlinear(add, (), ZEROS, xs, states=xs.astype("float32"))
    assert narrow.dtype == "float64"
    with pytest.raises(ValueError, match=r"`states` \(of 2 steps\) must be those of all 3"):
        scan.nonlinear(add, (), ZEROS, xs, states=xs[:2])
    with pytest.raises(ValueError, match=r"`states` \(each of shape \(2,\)\) must be built like"):
        scan.nonlinear(add, (), ZEROS, xs, states=xs[:, :2])


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("name", SCANS)
def test_borders_that_are_not_boolean_are_named(name, dtype, unchecked):
    with pytest.raises(TypeError, match=rf"`begin` \(dtype {dtype}\) must be a boolean array"):
        SCANS[name][1](jnp.ones((2, 3)), jnp.zeros(2, dtype))


def test_a_cell_and_a_reset_name_them_too(unchecked):
    cell, x = zoo.get("rtu", hidden=3), jnp.ones(3)
    state = cell.init_state()
    message = r"`begin` \(dtype int32\) must be a boolean array"
    one = jnp.ones((), jnp.int32)
    for begin in (None, "x", [[True], [True, False]]):
        with pytest.raises(TypeError, match=r"`begin` \(=.*\) must be a boolean array"):
            scan.check_begin(begin)
    for call in (
        lambda: scan.reset(one, ZEROS, ZEROS),
        lambda: cell.step(state, x, one),
        lambda: cell.scan(state, x[None], one[None]),
        lambda: cell.rtrl_scan((state, cell.rtrl_init()), x[None], one[None]),
        lambda: cell.rtrl_step((state, cell.rtrl_init()), x, one),
    ):
        with pytest.raises(TypeError, match=message):
            call()
