"""`zoo.prove`: honest cells pass, and every liar is named with the rule that it breaks."""

import pickle
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rtrl
import zoo
from tests.zoo import liars, liars_of_forms
from zoo.__main__ import main
from zoo.proofs import dtypes, equalities, promises
from zoo.proofs.forms import known_options, states_forms_itself
from zoo.proofs.forms import problem as draw_problem
from zoo.proofs.losses import difference
from zoo.proofs.report import Check, Report
from zoo.proofs.resets import resets

KEY = jax.random.key(0)


def _deaf(choice):
    return lambda inputs, hidden, *, key: liars.Deaf(inputs, hidden, choice, key=key)


def _astray(past, own):
    return lambda inputs, hidden, *, key: liars.Astray(inputs, hidden, past, own, key=key)


LIARS = {
    "dense": (liars.Dense, r"`state`: structure, .* every unit depends on its own past only"),
    "norm": (liars.Normed, r"`state`: structure, .* every unit depends on its own past only"),
    "transposed": (
        lambda inputs, hidden, *, key: liars.Transposed(hidden, hidden, key=key),
        r"`\.w`: structure, .* the leading axes of a parameter are the units",
    ),
    "transposed, not square": (
        liars.Transposed,
        r"`\.w`: structure, .* its shape is \(3, 4\), the units are \(4,\)",
    ),
    "roll": (liars.Rolled, r"`\.u`: structure, .* each unit uses its own entries"),
    "softmax": (liars.Softened, r"`\.u`: structure, .* each unit uses its own entries"),
    "mixing": (liars.Mixed, r"`\.first`: structure, .* each unit uses its own entries"),
    "learned start": (
        liars.LearnedStart,
        r"`\.start`: constants, .* `init_state\(\)` is a constant, not a function of parameters",
    ),
    "linear from ones": (
        liars.LinearFromOnes,
        r"`\.init_state\(\)`: constants, .* off by 1.*: the state of a linear cell begins as",
    ),
    "conjugate": (liars.Conjugate, r"`state`: holomorphy, .* a complex recurrence is holomorphic"),
    "deaf to SnAp-1": (
        _deaf(rtrl.SnAp1()),
        r"`state`: structure, .* products with recurrent matrices go through `recurrent`",
    ),
    "read elsewhere": (
        liars.ReadElsewhere,
        r"forms, scan in chunks is off by .*: all forms compute",
    ),
    "deaf to RFLO": (_deaf(rtrl.RFLO()), r"`state`: .* go through `recurrent`"),
    "forgets": (
        _astray(0, 2),
        r"`\.[wu]`: RTRL, random sensitivities of the past, .* off by 1: a segment multiplies",
    ),
    "halves": (
        _astray(1, 2),
        r"`\.[wu]`: RTRL, random sensitivities of the past, .* off by 0\.9.*: a segment multiplies",
    ),
    "doubles": (
        _astray(2, 4),
        r"RTRL, mean of random sensitivities, in errors is off by 1.*: the mean over random signs",
    ),
}


def test_what_is_not_finite_is_as_far_off_as_can_be():
    sound, broken = {"a": np.ones(2)}, {"a": np.array([1, np.nan])}
    for one, other in ((sound, broken), (broken, sound), (broken, broken)):
        assert difference(one, other) == (np.inf, "['a']")
    nan, one, unknown = (Check("", "", number) for number in (np.nan, 1.0, None))
    for bad, good in ((nan, one), (unknown, one), (unknown, nan)):
        assert bad.worse(good) is bad and good.worse(bad) is bad


@pytest.mark.slow
@pytest.mark.parametrize("name", LIARS)
def test_a_lie_is_named(name):
    make, message = LIARS[name]
    with pytest.raises(zoo.ProofError, match=message) as raised:
        zoo.prove(make, show=False)
    report = raised.value.report
    assert not report.passed
    # Not only the promise: something computed is wrong as well, which is why it is one.
    computed = [c for c in report.checks if c.invariant in ("forms", "BPTT", "RTRL")]
    if name != "transposed, not square":  # which has no sensitivity at all
        assert max(check.number for check in computed) > 1e-3


BEGINS = r"without `begin` a form does what it does where that is false"
CONSTANT = r"gradients through a carry is off by .*: a carry is a constant"
without_flags, constant_carries = equalities.without_flags, equalities.constant_carries
LIARS_OF_FORMS = {
    liars_of_forms.NoFlagsAreABegin: (
        without_flags,
        rf"forms, step and scan, .*: {BEGINS}",
    ),
    liars_of_forms.NoFlagsForgetThePast: (
        without_flags,
        rf"`\['carry'\]\[1\].*`: forms, rtrl_step and rtrl_scan, .*: {BEGINS}",
    ),
    liars_of_forms.EveryStepBegins: (
        without_flags,
        rf"forms, step and scan, .*: {BEGINS}",
    ),
    liars_of_forms.OneStepIsTwice: (
        without_flags,
        rf"`\['y'\]`: forms, scan of one step, .*: {BEGINS}",
    ),
    liars_of_forms.OneStepIsWithoutAPast: (
        equalities.forward_mode,
        r"`\['memory'\].*`: RTRL, rtrl_scan, segments of 4, 1 and 4, .*: RTRL has the gradient of",
    ),
    liars_of_forms.OpenToThePast: (constant_carries, rf"the carry in.*{CONSTANT}"),
    liars_of_forms.OpenToTheFuture: (
        constant_carries,
        rf"the carry out.*\.[wu]`.*{CONSTANT}",
    ),
    liars_of_forms.MultipliesItsReset: (
        resets,
        r"`stepper.*: resets, NaNs before a begin is off by inf: what is not finite",
    ),
}


@pytest.mark.slow
def test_a_stepper_owes_no_gradients():
    """What it keeps may be a function of a state that is not finite before a begin."""
    problem = draw_problem(liars_of_forms.KeepsAFunction(3, 4, key=KEY))
    for check in (*equalities.values(problem), *resets(problem)):
        assert check.passed, check.sentence()


@pytest.mark.slow
@pytest.mark.parametrize("kind", LIARS_OF_FORMS)
def test_a_form_that_lies_is_named(kind):
    check, message = LIARS_OF_FORMS[kind]
    problem = draw_problem(kind(3, 4, key=KEY))
    if check in (without_flags, equalities.forward_mode):
        assert states_forms_itself(problem.memory)
    found = [each for each in check(problem) if not each.passed]
    assert found and re.search(message, found[0].sentence())


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            liars.Wide,
            r"shapes, of a step.*real outputs of shape \(5,\), as `outputs` says, and not",
        ),
        (
            liars.Paired,
            r"shapes, of an update.*`update` returns a state like that of `init_state`, "
            r"float64\[4\], and not \('float64\[4\]', 'float64\[4\]'\)",
        ),
        (liars.Undefined, "values, after random inputs.*states and outputs are finite"),
    ],
)
def test_what_makes_no_sense_is_all_that_is_told(kind, message):
    report = zoo.prove(lambda n, m, *, key: kind(m, m, key=key), show=False, check=False)
    assert not report.passed and len(report.checks) == 1
    assert re.search(message, str(zoo.ProofError(report)))


def test_a_neutral_element_that_absorbs_is_named():
    cell = liars.Absorbing(3, 4, key=KEY)
    with jax.enable_x64(True):
        neutral, associative = promises._monoid("", dtypes.cast(cell, jnp.float64))
    assert not neutral.passed and neutral.number == 1 and associative.passed
    assert "`combine` of `init_state()` and an element is the element" in neutral.rule


def test_a_parameter_that_an_episode_begins_with_is_named_without_its_gradient():
    with jax.enable_x64(True):
        of_gradient, of_value = promises.constants(liars.HiddenStart(3, 4, key=KEY))
        assert all(check.passed for check in promises.constants(FromInfinity(3, 4, key=KEY)))
    assert of_gradient.passed and not of_value.passed
    message = r"`\.init_state\(\)`: constants, init_state at other parameters is off by [\d.]+: "
    assert re.match(f"{message}`init_state\\(\\)` is a constant", of_value.sentence())


class FromInfinity(liars.Rolled):
    """Begins with what is not finite, as a running maximum does."""

    def init_state(self):
        return jnp.full(self.hidden, -jnp.inf)


class Scalar(zoo.AbstractDiagonalCell):
    """Of one unit, whose axes are none."""

    w: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        self.w = jax.random.normal(key, (inputs,))
        self.inputs, self.hidden = inputs, 1

    def init_state(self):
        return jnp.zeros((), self.w.dtype)

    def update(self, state, x):
        return jnp.tanh(state + self.w @ x)

    def readout(self, state, x):
        return state[None]


def test_units_may_have_no_axes():
    found = promises.structure(Scalar(3, 1, key=KEY))
    assert [check.number for check in found] == [0]


def test_a_linear_cell_refuses_to_begin_with_ones():
    with pytest.raises(ValueError, match=r"`init_state\(\)` of LinearFromOnes .* must be zeros"):
        liars.LinearFromOnes(3, 4, key=KEY)


@pytest.mark.parametrize(
    ("message", "refused"),
    [
        ("`x` (dtype bfloat16) must be of at least 32 bits.", True),
        ("unexpected JAX type: got float32[4], but expected bfloat16[4]", False),
    ],
)
def test_only_a_refusal_in_words_is_one(message, refused, float32):
    class Refusing(zoo.MinGRU):
        def update(self, state, x):
            if x.dtype == jnp.bfloat16:
                raise ValueError(message)
            return super().update(state, x)

    wide, narrow = dtypes.carried(Refusing(3, 4, key=KEY))
    assert narrow.passed == refused and (refused or message in narrow.rule)
    assert wide.passed and wide.what == "float32: forms that change a dtype"


def test_an_array_without_a_dtype_of_its_own_is_said_to_be_one(float32):
    class FromNumber(zoo.ELSTM):
        def init_state(self):
            return jnp.full(self.hidden, -1.0)

    check, _ = dtypes.carried(FromNumber(3, 4, key=KEY))
    assert not check.passed and "(weakly typed)" in check.where
    assert "an array has no dtype of its own: give it one" in check.rule


class Dropping(zoo.AbstractDiagonalCell):
    """With a typed key in its state, and an average of ones by which another is divided."""

    w: jax.Array
    u: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    weight: float = eqx.field(static=True, default=0.1)

    def __init__(self, inputs, hidden, *, key):
        self.w = jax.random.normal(key, (hidden, inputs))
        self.u = jnp.full(hidden, 0.5)
        self.inputs, self.hidden = inputs, hidden

    def init_state(self):
        zeros = jnp.zeros(self.hidden, self.w.dtype)
        return {"h": zeros, "ones": zeros, "key": jax.random.key(0)}

    def update(self, state, x):
        key, now = jax.random.split(state["key"])
        h = jnp.tanh(self.w @ x + self.u * state["h"])
        return {
            "h": jnp.where(jax.random.bernoulli(now, 0.8, h.shape), h, 0),
            "ones": self.fades() * state["ones"] + self.weight,
            "key": key,
        }

    def fades(self):
        return 1 - self.weight

    def readout(self, state, x):
        return state["h"] / state["ones"]


class Counting(Dropping):
    def fades(self):
        return 1.0


@pytest.mark.parametrize(("kind", "found"), [(Dropping, 0), (Counting, 1)])
def test_what_moves_by_itself_counts_only_where_by_as_much_at_every_step(kind, found):
    (check,) = dtypes.clocks(kind(3, 4, key=KEY))
    assert check.number == found and check.passed == (found == 0)
    assert check.where == ("state['ones']" if found else "")


@pytest.mark.slow
def test_random_sensitivities_of_layers_have_the_mean_that_they_stand_for():
    """Each is of its own layer, which is not all of BPTT's gradient."""
    with jax.enable_x64(True):
        blocks = [zoo.Block(_astray(2, 2)(4, 4, key=k), key=k) for k in jax.random.split(KEY)]
        problem = draw_problem(zoo.Stack(blocks))
        for check in (*equalities.unbiased(problem, 0), *equalities.moved_on(problem, 0)):
            assert check.passed, check.sentence()
        blocks[1] = eqx.tree_at(lambda block: block.cell.past, blocks[1], jnp.asarray(0, jnp.int32))
        (check,) = equalities.moved_on(draw_problem(zoo.Stack(blocks)), 0)
    assert check.number > 0.9 and check.where.startswith(".blocks[1].cell.")


@pytest.mark.slow
def test_a_typed_key_may_be_a_part_of_the_state():
    assert zoo.prove(Dropping, show=False).passed


@pytest.mark.slow
def test_zeros_are_not_near_a_scan_in_float32(float32):
    class Silent(zoo.MinGRU):
        def readout(self, state, x):
            y = super().readout(state, x)
            return 0 * y if y.dtype == jnp.bfloat16 else y

    class Opposite(zoo.MinGRU):
        def readout(self, state, x):
            y = super().readout(state, x)
            return -y if y.dtype == jnp.bfloat16 else y

    class Hidden(zoo.MinGRU):
        def readout(self, state, x):
            y = 0 * super().readout(state, x)
            return y / y if y.dtype == jnp.bfloat16 else y

    def passed(kind):
        return [check.passed for check in dtypes.in_half_precision(kind(3, 4, key=KEY))]

    assert passed(zoo.MinGRU) == [True, True]
    assert not passed(Silent)[1]  # of all leaves the one half is right
    assert passed(Opposite) == [False, True]
    assert passed(Hidden) == [False, False]  # a leaf of zeros is looked at, too


def test_a_single_number_may_be_near_zero_in_half_precision():
    cell = zoo.Elman(1, 1, key=KEY)
    with jax.enable_x64(False):
        assert all(check.passed for check in dtypes.in_half_precision(cell))


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [2, 4, 5])
def test_a_dnc_in_half_precision_may_take_its_slots_in_another_order(hidden, float32):
    assert all(
        check.passed for check in dtypes.in_half_precision(zoo.get("dnc", hidden=hidden, inputs=3))
    )


@pytest.mark.parametrize("options", [{"inputs": 3}, {"hidden": 4}, {"key": KEY}])
def test_a_memory_has_its_sizes_already(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"`{name}` .* must be left out"):
        zoo.prove(zoo.MinGRU(3, 4, key=KEY), **options)


@pytest.mark.parametrize("memory", ["gru", zoo.spec("gru", hidden=2), lambda *_, key: None])
def test_what_is_no_memory_is_named(memory, unhooked):
    with pytest.raises(TypeError, match=r"`memory` .* must be a memory, or a class or function"):
        zoo.prove(memory)


@pytest.mark.parametrize("key", [3, jax.random.split(KEY)])
def test_what_is_no_key_is_named(key, unhooked):
    with pytest.raises(TypeError, match=r"`key` \(=.*\) must be a PRNG key, such as"):
        zoo.prove(zoo.RTU, key=key)


def test_a_class_without_a_key_is_named():
    def make(inputs, hidden): ...

    message = r"must take `\(inputs, hidden, \*, key\)`, its arguments are \(inputs, hidden\)"
    with pytest.raises(TypeError, match=message):
        zoo.prove(make)


def test_an_error_goes_through_a_pool_of_processes():
    report = Report("mine", (Check("forms", "scan", 1.0, "w", 0.0, "must agree"),))
    error = pickle.loads(pickle.dumps(zoo.ProofError(report)))
    assert error.report == report and str(error) == str(zoo.ProofError(report))


def test_the_precision_of_the_session_comes_back(float32):
    def make(inputs, hidden, *, key):
        assert float(jax.random.uniform(key)) < 1  # no program could be of it
        return liars.Transposed(inputs, hidden, key=key)

    report = zoo.prove(make, show=False, check=False)
    assert not report.passed
    assert not jax.config.read("jax_enable_x64")
    assert "FAILS" in str(report) and ".w" in str(report)


# The command line


@pytest.mark.slow
def test_a_class_is_found_by_its_module(capsys):
    assert main(["prove", "tests.zoo.liars:Transposed"]) == 1
    out = capsys.readouterr()
    assert "FAILS" in out.out and "`.w`: structure" in out.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prove", "gruu"], "`name` (='gruu') must be one of"),
        (["prove", "gru", "heads"], "`option` (='heads') must be written as key=value"),
        (["prove", "gru", "key=5"], "`option` (='key') must be one of the cell"),
        (["prove", "gru", "heads=2"], "`heads` (=2) is not an option of 'gru'"),
        (["prove", "all", "heads=2"], "`option` (='heads=2') must be left out with `all`"),
        (["prove", "all", "--hidden", "3"], "gtrxl: `heads` (=2) must divide `hidden` (=3)"),
        (["prove", "gru", "--table", "pyproject.toml/table.md"], "pyproject.toml"),
        (["prove", "no_such_module:Cell"], "`target` (='no_such_module:Cell'): No module named"),
        (
            ["prove", "tests.zoo.liars:Transposed", "kep=1"],
            "`option` (='kep') must be one of tests.zoo.liars:Transposed's: inputs, hidden, key",
        ),
        (["prove", "zoo:RetNet", "heads=x"], "`heads` (='x') of 'zoo:RetNet' must be a whole"),
        (
            ["prove", "tests.zoo.test_register:Written", "keep=0.5", "kind=max"],
            "`kind` (='max') of 'tests.zoo.test_register:Written' must be one of mean, sum",
        ),
        (
            ["prove", "json:loads"],
            "`target` (='json:loads') must take `(inputs, hidden, *, key, **options)`",
        ),
        (["prove", "tests.zoo.liars:Honest"], "tests.zoo.liars has no class or function 'Honest'"),
    ],
)
def test_a_wrong_command_is_named(arguments, message, capsys):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_what_is_missing_is_the_memory_alone(capsys):
    with pytest.raises(SystemExit):
        main(["prove"])
    assert capsys.readouterr().err.endswith("arguments are required: target\n")


def test_names_are_listed_with_their_options(capsys):
    assert main(["names"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(zoo.names())
    assert any(line.split()[:3] == ["ffm", "traces=32", "contexts=4"] for line in lines)
    assert [line.split()[0] for line in lines] == list(zoo.names())


def test_options_that_the_compiler_does_not_have_are_left_out():
    options = {"xla_nobody_knows_this": True, "xla_backend_optimization_level": 0}
    assert known_options(options) == {"xla_backend_optimization_level": 0}
