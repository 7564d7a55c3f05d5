"""The suite's own check of annotations: without it a result of a wrong shape could pass unseen."""

import jax
import numpy as np
import pytest
from beartype.roar import BeartypeCallHintParamViolation, BeartypeCallHintReturnViolation
from jaxtyping import Bool, Float

from agents.learning.losses import masked_mean
from tests.typed import checked


@checked
def without_first(x: Float[np.ndarray, "time units"]) -> Float[np.ndarray, "time units"]:
    return x[1:]


@checked
def halves(x: Float[np.ndarray, "time units"]) -> Float[np.ndarray, "time units"]:
    return np.concatenate([_doubled(x[:2]), _doubled(x[2:])])


@checked
def _doubled(x: Float[np.ndarray, "time units"]) -> Float[np.ndarray, "time units"]:
    return x + x


@checked
def not_annotated(x, y: Bool[np.ndarray, ""] | None = None):
    return x


@pytest.mark.parametrize("mask", [np.ones(4, bool), np.ones((3, 1), bool), np.ones(3)])
def test_functions_of_the_packages_are_checked(mask):
    with pytest.raises(BeartypeCallHintParamViolation, match="parameter mask="):
        masked_mean(*jax.device_put((np.ones(3), mask)))


def test_what_a_function_returns_is_of_the_sizes_of_what_it_was_given():
    with pytest.raises(BeartypeCallHintReturnViolation, match="without_first"):
        without_first(np.ones((3, 2)))


def test_sizes_are_of_one_call():
    assert halves(np.ones((5, 2))).shape == (5, 2)


def test_a_test_may_do_without(unhooked):
    assert without_first(np.ones((3, 2))).shape == (2, 2)


def test_what_is_not_annotated_may_be_anything():
    assert not_annotated("any") == "any"
    with pytest.raises(BeartypeCallHintParamViolation, match="parameter y="):
        not_annotated("any", np.ones(3, bool))
