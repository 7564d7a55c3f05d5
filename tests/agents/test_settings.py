"""Bounds of settings: every number has some, and what is beyond them is refused by name."""

import dataclasses

import jax.numpy as jnp
import pytest

import agents
from tests.agents.cases import FIRST
from zoo.annotations import Share, StepSize, annotations_of

# Any number will do: what a table begins with, an entropy in nats.
FREE = {"initial_value", "target_entropy"}


@pytest.mark.parametrize("case", FIRST, ids=lambda case: case.name)
def test_numbers_have_bounds(case):
    beyond = {}
    for name, kind in annotations_of(type(case.agent)).items():
        parts = [part for one in (kind, *getattr(kind, "__args__", ())) for part in _inside(one)]
        if not {int, float}.isdisjoint(parts) and name not in FREE:
            number = int if int in parts else float
            beyond[name] = list(map(number, [-1, 2] if kind in (Share, StepSize) else [-1]))
    assert len(beyond) >= 2
    for name, values in beyond.items():
        for value in values:
            with pytest.raises(ValueError, match=rf"^`{name}` \(={value}\) must be "):
                dataclasses.replace(case.agent, **{name: value})


def test_an_array_is_no_number(unhooked):
    with pytest.raises(
        TypeError, match=r"`learning_rate` .* must be a number, and no array of JAX"
    ):
        agents.Tabular(env="t_maze", learning_rate=jnp.float32(0.1))  # pyright: ignore[reportArgumentType]


def _inside(kind):
    return kind, *getattr(kind, "__args__", ())
