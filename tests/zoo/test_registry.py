"""`zoo.get`, `zoo.names`, `zoo.spec` and what bad input gets."""

import copy
import dataclasses
import json
import math
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rtrl
import zoo


def test_names_are_sorted():
    assert list(zoo.names()) == sorted(zoo.names())
    assert {"gru", "lru", "mlp", "rtu"} <= set(zoo.names())


@pytest.mark.parametrize("name", zoo.names())
def test_every_name_builds(name):
    """Inside a traced program, as agents do."""

    def build(key):
        memory = zoo.get(name, hidden=3, inputs=2, key=key)
        assert isinstance(memory, zoo.AbstractMemory)
        assert (memory.inputs, memory.hidden) == (2, 3)
        _, y = memory.step(memory.init_state(), jnp.ones(2))
        assert y.shape == (memory.outputs,)

    jax.eval_shape(build, jax.random.key(0))


def test_get_needs_only_a_name_and_a_size():
    cell = zoo.get("rtu", hidden=256)
    assert isinstance(cell, zoo.RTU)
    assert (cell.inputs, cell.hidden, cell.outputs, cell.state_size) == (256, 256, 512, 512)
    state, y = eqx.filter_jit(lambda cell: cell.step(cell.init_state(), jnp.ones(256)))(cell)
    assert state.shape == (256,) and y.shape == (512,) and bool(jnp.any(y > 0))


def test_options_choose_the_kind():
    assert zoo.get("rtu", hidden=2).activation == "relu"
    nonlinear = zoo.get("rtu", hidden=2, nonlinear=True)
    assert isinstance(nonlinear, zoo.NonlinearRTU) and nonlinear.activation == "tanh"
    assert zoo.get("rtu", hidden=2, activation="identity").activation == "identity"
    assert zoo.get("lru", hidden=2, outputs=5).outputs == 5
    assert zoo.options("mlp") == {"activation": "relu"}
    assert zoo.options("gru") == {"sensitivity": "exact"}


def test_layers_make_a_stack():
    stack = zoo.get("gru", hidden=4, inputs=3, layers=2)
    assert isinstance(stack, zoo.Stack) and len(stack.blocks) == 2
    assert (stack.inputs, stack.outputs, stack.hidden, stack.state_size) == (3, 3, 4, 8)
    one, two = (block.cell.w for block in stack.blocks)
    assert not np.allclose(one, two)


@pytest.mark.parametrize(
    ("name", "sizes"), [("rtu", 2 * 5), ("lru", 2 * 5), ("gru", 5), ("mlp", 0)]
)
def test_state_size_counts_real_numbers(name, sizes):
    assert zoo.get(name, hidden=5).state_size == sizes


def test_a_recipe_survives_json():
    recipe = zoo.spec("rtu", hidden=8, layers=2, nonlinear=True, r_min=0.5, activation="relu")
    again = zoo.Spec(**json.loads(json.dumps(recipe.to_dict())))
    assert again == recipe and hash(again) == hash(recipe)
    assert recipe != zoo.spec("rtu", hidden=8, layers=2)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ffm", {"durations": [2, 50.0], "periods": (4, 9)}),
        ("gru", {"sensitivity": rtrl.SnAp1()}),
        ("s6", {"states": 3, "rank": None}),
        ("rtu", {"r_min": 0}),
    ],
)
def test_recipes_compare_and_hash_by_what_they_make(name, options):
    recipe = zoo.spec(name, hidden=8, **options)
    again = zoo.Spec(**json.loads(json.dumps(recipe.to_dict())))
    assert again == recipe and hash(again) == hash(recipe) and len({again, recipe}) == 1
    for same in (copy.deepcopy(recipe), pickle.loads(pickle.dumps(recipe))):
        assert same == recipe and hash(same) == hash(recipe)
    assert zoo.Spec(**dataclasses.asdict(recipe)) == recipe
    with pytest.raises(TypeError, match="options do not change"):
        recipe.options["states"] = 4
    with pytest.raises(TypeError, match="options do not change"):
        recipe.options.update(states=4)


def test_a_recipe_keeps_the_options_that_it_was_given():
    durations = [2, 50]
    recipe = zoo.spec("ffm", hidden=8, durations=durations)
    durations.append(3)
    assert recipe.options == {"durations": (2, 50)}


def test_build_is_deterministic():
    recipe = zoo.spec("rtu", hidden=3, layers=2)
    one, two, other = (recipe.build(2, jax.random.key(seed)) for seed in (1, 1, 2))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(a, b)
    w = [m.blocks[0].cell.parameters.w1 for m in (one, other)]
    assert not np.allclose(*w)
    default = zoo.get("gru", hidden=3)
    keyed = zoo.get("gru", hidden=3, key=jax.random.key(0))
    np.testing.assert_array_equal(default.w, keyed.w)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "rtuu",
            {},
            r"`name` \(='rtuu'\) must be one of block_diagonal, .*\. Did you mean rtu",
        ),
        ("GRU", {}, r"`name` \(='GRU'\) must be one of .*\. Did you mean gru"),
        ("gru", {"sensitivty": "snap1"}, r"'gru', which has: .*\. Did you mean sensitivity\?$"),
        ("gru", {"layer": 2}, r"'gru', which has: .*\. Did you mean layers\?$"),
        ("qqqq", {}, r"`name` \(='qqqq'\) must be one of [^?]*\.$"),
        ("rtu", {"rmin": 0.5}, r"`rmin` \(=0.5\) is not an option of 'rtu', which has: nonlinear="),
        (
            "gru",
            {"r_min": 0.5},
            r"`r_min` \(=0.5\) is not an option of 'gru', which has: sensitivity='exact'",
        ),
        ("rtu", {"activation": "relo"}, r"`activation` \(='relo'\) must be one of identity, relu"),
        ("mlp", {"activation": "relo"}, r"`activation` \(='relo'\) must be one of identity, relu"),
        ("rtu", {"nonlinear": True, "activation": "x"}, r"`activation` \(='x'\) must be one of"),
        ("rtu", {"r_min": 0.9, "r_max": 0.5}, r"`r_min` \(=0.9\) and `r_max` \(=0.5\) must obey"),
        ("rtu", {"r_min": -0.1}, r"`r_min` \(=-0.1\) and `r_max` \(=1.0\) must obey 0 <= r_min"),
        ("lru", {"r_max": 1.1}, r"`r_min` \(=0.0\) and `r_max` \(=1.1\) must obey"),
        ("lru", {"r_min": 0.5, "r_max": 0.5}, r"must obey 0 <= r_min < r_max <= 1"),
        ("rtu", {"max_phase": 0.0}, r"`max_phase` \(=0.0\) must be in \(0, 2π\]"),
        ("lru", {"max_phase": 7.0}, r"`max_phase` \(=7.0\) must be in \(0, 2π\]"),
        ("lru", {"outputs": 0}, r"`outputs` \(=0\) must be a whole number of at least 1"),
        ("rtu", {"hidden": 0}, r"`hidden` \(=0\) must be a whole number of at least 1"),
        ("gru", {"layers": 0}, r"`layers` \(=0\) must be a whole number of at least 1"),
        ("gru", {"inputs": 0}, r"`inputs` \(=0\) must be a whole number of at least 1"),
        ("mlp", {"inputs": -2}, r"`inputs` \(=-2\) must be a whole number of at least 1"),
        ("retnet", {"heads": 4}, r"`heads` \(=4\) must leave each at least two of `hidden`"),
        ("retnet", {"hidden": 1}, r"`hidden` \(=1\) must be at least 2: the norm of one value is"),
        ("ffm", {"hidden": 1}, r"`hidden` \(=1\) must be at least 2"),
        ("gtrxl", {"hidden": 1}, r"`hidden` \(=1\) must be at least 2"),
        ("transformer", {"hidden": 1}, r"`hidden` \(=1\) must be at least 2"),
        ("ttt", {"hidden": 1}, r"`hidden` \(=1\) must be at least 2"),
        ("retnet", {"heads": 2.5}, r"`heads` \(=2.5\) of 'retnet' must be a whole number\."),
        ("retnet", {"heads": True}, r"`heads` \(=True\) of 'retnet' must be a whole number\."),
        ("rtu", {"nonlinear": "no"}, r"`nonlinear` \(='no'\) of 'rtu' must be True or False\."),
        ("rtu", {"activation": 3}, r"`activation` \(=3\) of 'rtu' must be a string or None\."),
        ("lru", {"r_max": "1"}, r"`r_max` \(='1'\) of 'lru' must be a number\."),
        ("ffm", {"durations": (5, 2)}, r"`durations` \(=\(5.0, 2.0\)\) must be two positive"),
        ("ffm", {"durations": (2, 5), "decay": False}, "`durations` .* be None with `decay=False`"),
        ("ffm", {"periods": (2, 5), "context": False}, "`periods` .* be None with `context=False`"),
        (
            "ffm",
            {"durations": (1, 2, 3)},
            r"`durations` .* must be a list of 2 \(a number, a number",
        ),
        (
            "gru",
            {"sensitivity": "snap2"},
            r"`sensitivity` \(='snap2'\) of 'gru' must be one of exact",
        ),
        ("ctrnn", {"time_step": 0}, r"`time_step` \(=0.0\) must be above 0, or 'input'\."),
        (
            "ltc",
            {"time_step": "x"},
            r"`time_step` \(='x'\) of 'ltc' must be a number or one of inp",
        ),
        ("ltc", {"tau_min": 11.0}, r"`tau_min` \(=11.0\) and `tau_max` \(=10.0\) must obey 0 < ta"),
        ("s6", {"reads": "drive"}, r"`reads` \(='drive'\) must be one of input, signal\."),
    ],
)
def test_bad_input_is_named(name, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        zoo.get(name, **{"hidden": 4, **options})


def test_a_size_that_is_not_whole_is_refused():
    for hidden in (2.5, "8", True):
        with pytest.raises(TypeError, match=r"^`hidden` \(=.*\) must be a whole number\.$"):
            zoo.get("rtu", hidden=hidden)


def test_a_key_that_is_none_is_refused():
    for key in (np.zeros(2), np.zeros((3, 2), np.uint32), jax.random.split(jax.random.key(0))):
        with pytest.raises(TypeError, match=r"`key` \(=.*\) must be a PRNG key, such as jax"):
            zoo.spec("rtu", hidden=2).build(3, jnp.asarray(key))


def _refuses_wrong_arguments(cell):
    state = cell.init_state()
    carry = (state, cell.rtrl_init())
    kind = type(cell).__name__
    for form, start in ((cell.step, state), (cell.rtrl_step, carry)):
        for shape in ((2,), (1, 3), ()):
            message = rf"`x` \(shape \({', '.join(map(str, shape))}"
            with pytest.raises(ValueError, match=message) as raised:
                form(start, jnp.ones(shape))
            assert f"must have the shape (3,) for {kind}(inputs=3" in str(raised.value)
        borders = {None: "=None", "x": "='x'", 1: "dtype int", 0.5: "dtype float"}
        for begin, found in borders.items():
            with pytest.raises(TypeError, match=rf"`begin` \({found}.*\) must be a boolean array"):
                form(start, jnp.ones(3), begin)
        for x in (None, "abc", [[1], [2, 3]]):
            with pytest.raises(TypeError, match=r"`x` \(=.*\) must be an array of numbers"):
                form(start, x)
        with pytest.raises(ValueError, match=r"`begin` \(shape \(1,\)\) must be one flag"):
            form(start, jnp.ones(3), jnp.ones(1, bool))
    for form, start in ((cell.scan, state), (cell.rtrl_scan, carry)):
        with pytest.raises(TypeError, match=r"`xs` \(=None\) must be an array of numbers"):
            form(start, None)
        with pytest.raises(ValueError, match=r"`xs` \(shape \(5, 2\)\) must have .* \(5, 3\)"):
            form(start, jnp.ones((5, 2)))
        with pytest.raises(ValueError, match=r"`xs` \(shape \(3,\)\) must have .* \(3, 3\)"):
            form(start, jnp.ones(3))
        with pytest.raises(
            ValueError, match=r"`xs` \(shape \(0, 3\)\) must have at least one step"
        ):
            form(start, jnp.ones((0, 3)))
        with pytest.raises(ValueError, match=r"`begin` \(shape \(4,\)\) must have .* \(5,\)"):
            form(start, jnp.ones((5, 3)), jnp.zeros(4, bool))
    several = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    if jax.tree.leaves(several):
        with pytest.raises(ValueError, match=r"(?s)`state` \(=.*must be like .* use `jax.vmap`"):
            cell.step(several, jnp.ones(3))
        with pytest.raises(ValueError, match=r"(?s)`state` \(=.*must be like"):
            cell.scan(several, jnp.ones((5, 3)))
        for form, xs in ((cell.rtrl_step, jnp.ones(3)), (cell.rtrl_scan, jnp.ones((5, 3)))):
            with pytest.raises(ValueError, match=r"(?s)`state` \(=.*must be like"):
                form((several, carry[1]), xs)


@pytest.mark.parametrize("name", zoo.names())
def test_wrong_shapes_and_borders_are_named(name, unhooked):
    def build(key):
        _refuses_wrong_arguments(zoo.get(name, hidden=4, inputs=3, key=key))

    jax.eval_shape(build, jax.random.key(0))  # compiles nothing


@pytest.mark.parametrize("credit", ["layerwise", "exact"])
def test_a_stack_names_them_too(credit, unhooked):
    def build(key):
        stack = zoo.get("gru", hidden=4, inputs=3, layers=2, credit=credit, key=key)
        _refuses_wrong_arguments(stack)

    jax.eval_shape(build, jax.random.key(0))


# Initialization and sizes, from the papers


def count(module):
    return sum(leaf.size for leaf in jax.tree.leaves(module) if hasattr(leaf, "size"))


@pytest.mark.slow
def test_parameter_counts_of_the_control_experiments():
    assert count(zoo.get("rtu", hidden=192, inputs=64)) == 24_960
    assert count(zoo.get("rtu", hidden=192, inputs=64, nonlinear=True)) == 24_960
    assert count(zoo.get("gru", hidden=64)) == 24_832


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rtu", "lru"])
def test_eigenvalues_are_uniform_on_a_ring(name):
    options = {"outputs": 1} if name == "lru" else {}
    cell = zoo.get(name, hidden=20_000, inputs=1, r_min=0.4, r_max=0.9, max_phase=1.5, **options)
    eigenvalues, _ = cell.matrices()
    r, phase = np.abs(eigenvalues), np.angle(eigenvalues)
    assert np.all((r >= 0.4) & (r <= 0.9)) and np.all((phase > 0) & (phase <= 1.5))
    area = (r**2 - 0.4**2) / (0.9**2 - 0.4**2)  # uniform in (0, 1), as is phase / 1.5
    for u in (area, phase / 1.5):
        distance = np.max(np.abs(np.sort(u) - (np.arange(u.size) + 0.5) / u.size))
        assert distance < 1.63 / math.sqrt(u.size)  # Kolmogorov and Smirnov, 1 %
    assert abs(np.corrcoef(area, phase)[0, 1]) < 0.03


@pytest.mark.slow
def test_weights_of_the_lru_have_the_paper_variances():
    cell = zoo.get("lru", hidden=300, inputs=200, outputs=200)
    for leaf, variance in [
        (cell.b_real, 1 / 400), (cell.b_imag, 1 / 400),
        (cell.c_real, 1 / 300), (cell.c_imag, 1 / 300), (cell.d, 1.0),
    ]:  # fmt: skip
        assert abs(np.var(leaf) / variance - 1) < 5 * math.sqrt(2 / leaf.size)
        assert abs(np.mean(leaf)) < 5 * math.sqrt(variance / leaf.size)


@pytest.mark.slow
@pytest.mark.parametrize("limits", [(0.0, 1.0), (0.99999, 1.0), (0.0, 1e-3)])
def test_gamma_normalizes(limits):
    """γ = √(1 - r²), derived in the RTU, the initial value of a parameter in the LRU."""
    rtu = zoo.get("rtu", hidden=50, r_min=limits[0], r_max=limits[1])
    g, phi, gamma = rtu.parameters.rotation()
    np.testing.assert_allclose(gamma, np.sqrt(1 - (g**2 + phi**2)), rtol=1e-6)
    lru = zoo.get("lru", hidden=50, r_min=limits[0], r_max=limits[1])
    r2 = np.abs(lru.matrices()[0]) ** 2
    np.testing.assert_allclose(np.exp(lru.gamma_log), np.sqrt(1 - r2), rtol=1e-6)


@pytest.mark.slow
def test_inverse_frequencies_of_s4d_count_both_halves_of_the_pairs():
    frequency = zoo.get("s4d", hidden=2, states=16, init="inv").frequency
    np.testing.assert_allclose(frequency[:, [0, 1, 2, 15]][0], [315.8, 98.5, 55.0, 0.33], rtol=5e-3)
    assert np.all(frequency > 0) and np.all(np.diff(frequency) < 0)


@pytest.mark.slow
def test_phase_is_an_exponential():
    cell = zoo.get("rtu", hidden=30, inputs=1)
    eigenvalues, _ = cell.matrices()
    theta = np.exp(cell.parameters.theta)
    r = np.exp(-np.exp(cell.parameters.nu))
    np.testing.assert_allclose(eigenvalues, r * np.exp(1j * theta), rtol=1e-12)
    assert np.all((theta > 0) & (theta <= 2 * math.pi))
