"""Nonlinear cells are scanned in another way where turns of a loop are dear, to the same end."""

import equinox as eqx
import jax
import jax.numpy as jnp

import zoo
from tests.cases import CELLS, for_each
from tests.scan.test_nonlinear import taken_by
from tests.zoo import forms

BEGIN = jnp.isin(jnp.arange(forms.TIME), jnp.array([3, 4]))
NONLINEAR = [
    *("elman", "gru", "lstm", "mgu", "ctrnn", "ltc", "felstm", "lmu", "dnc", "ttt"),
    *("elstm", "indrnn", "sru", "block_diagonal", "rtu-nonlinear"),
]


@for_each((case for case in CELLS if case.name in NONLINEAR), quick=["gru", "elstm"])
def test_scans_of_other_platforms_are_the_loop(case, monkeypatch):
    taken_by("default", monkeypatch)
    memory, (state, _), xs, weights = forms.problem(case, 0)
    assert isinstance(memory, zoo.AbstractNonlinearCell)
    arrays, rest = eqx.partition(memory, eqx.is_inexact_array)

    def outcome(method):
        def loss(arrays, state, xs):
            end, ys = eqx.combine(arrays, rest).scan(state, xs, BEGIN, method=method)
            return forms.total(ys, weights) + forms.of_state(end)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))(arrays, state, xs)

    forms.assert_close(outcome("auto"), outcome("sequential"), 1e-10)
