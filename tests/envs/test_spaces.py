"""Spaces that are compared by what they hold."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

from agents.envs import MultiDiscrete
from agents.envs.core.spaces import by_content


class Odd(spaces.Discrete):
    """A kind of somebody's own."""


def box(high=1.0, shape=(2,), dtype=jnp.float32):
    return spaces.Box(-1.0, high, shape, dtype)


SPACES = (
    spaces.Discrete(3),
    spaces.Discrete(4),
    MultiDiscrete([2, 3]),
    MultiDiscrete([3, 2]),
    box(),
    box(2.0),
    box(shape=(3,)),
    box(dtype=jnp.int32),
    box(np.array([1.0, 2.0])),
    spaces.Tuple([box(), spaces.Discrete(3)]),
    spaces.Tuple([box(), spaces.Discrete(4)]),
    spaces.Dict({"a": box(), "b": MultiDiscrete([2])}),
    spaces.Dict({"a": box(), "c": MultiDiscrete([2])}),
)


def test_they_are_equal_where_they_hold_the_same():
    for i, one in enumerate(SPACES):
        same = by_content(one)
        assert isinstance(same, type(one)) and by_content(same) is same and repr(same) == repr(one)
        assert vars(same).keys() == vars(one).keys() | {"content"}
        for j, other in enumerate(SPACES):
            other = by_content(copy.deepcopy(other))
            assert (same == other) == (i == j)
            assert i != j or hash(same) == hash(other) == hash(pickle.loads(pickle.dumps(other)))


def test_bounds_that_are_traced_stay_what_they_are():
    """As where an agent of somebody's own asks the environment inside of a program."""

    @jax.jit
    def inside(high):
        space = box(high)
        assert by_content(space) is space
        return high

    inside(jnp.ones(2))


@pytest.mark.parametrize("space", [Odd(3), spaces.Tuple([Odd(3), box()])])
def test_another_kind_stays_what_it_is(space):
    assert by_content(space) is space


@pytest.mark.parametrize(
    ("nvec", "rule"),
    [
        ([2.9, 3], "a list, each of it a whole number"),
        ([True, 3], "a list, each of it a whole number"),
        (3, "a list, each of it a whole number"),
        (["a"], "a list, each of it a whole number"),
        (np.array([[2, 3]]), "a list, each of it a whole number"),
        ([], "counts of at least 1"),
        ([2, 0], "counts of at least 1"),
    ],
)
def test_counts_that_are_none_are_named(nvec, rule, unhooked):
    with pytest.raises((TypeError, ValueError), match=rf"`nvec` \(=.+\) must (be|hold) {rule}\."):
        MultiDiscrete(nvec)
