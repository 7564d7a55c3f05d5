"""`zoo.prove`: honest cells pass, and every liar is named with the rule that it breaks."""

import jax
import pytest

import zoo
from tests.zoo import liars

KEY = jax.random.key(0)


def _deaf(choice):
    return lambda inputs, hidden, *, key: liars.Deaf(inputs, hidden, rtrl=choice, key=key)


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
        r"`\.init_state\(\)`: constants, .* off by 1.*: the state of a linear recurrence begins as",
    ),
    "conjugate": (liars.Conjugate, r"`state`: holomorphy, .* a complex recurrence is holomorphic"),
    "deaf to SnAp-1": (_deaf("snap1"), r"`state`: structure, .* every unit depends on its own"),
    "deaf to RFLO": (_deaf("rflo"), r"`state`: structure, .* every unit depends on its own"),
}


@pytest.mark.parametrize("name", LIARS)
def test_a_lie_is_named(name):
    make, message = LIARS[name]
    with pytest.raises(zoo.ProofError, match=message) as raised:
        zoo.prove(make, show=False)
    report = raised.value.report
    assert not report.passed
    # Not only the promise: something computed is wrong as well, which is why it is one.
    computed = [c for c in report.checks if c.invariant in ("forms", "BPTT", "RTRL")]
    assert any(not check.passed for check in computed)
