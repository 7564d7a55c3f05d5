"""`zoo.register`: a user's own memory by name."""

import functools
import json
from typing import TYPE_CHECKING, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import rtrl
import zoo
from zoo import registry

if TYPE_CHECKING:
    from pathlib import Path


class Average(zoo.AbstractLinearCell):
    w: jax.Array
    keep: float = eqx.field(static=True)
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, keep: float = 0.9, key):
        self.w = jax.random.normal(key, (hidden, inputs))
        self.inputs, self.hidden, self.keep = inputs, hidden, keep

    def coefficients(self, x):
        drive = x @ self.w.T
        return jnp.full_like(drive, self.keep), (1 - self.keep) * drive


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """What a test registers is its own."""
    monkeypatch.setattr(registry, "_MAKERS", dict(registry._MAKERS))


def two_averages(inputs, hidden, *, sensitivity=rtrl.Exact(), shapes=(1, 2), label=None, key):
    return Average(inputs, hidden, key=key)


def test_a_registered_cell_is_like_any_other():
    assert zoo.register("zz_average", Average) is Average
    zoo.register("zz_average", Average)  # a module that is imported twice
    again = type("Average", (Average,), {"__module__": __name__, "__qualname__": "Average"})
    assert zoo.register("zz_average", again) is again  # a notebook's cell that is run again
    zoo.register("zz_average", Average)
    assert "zz_average" in zoo.names()
    assert zoo.options("zz_average") == {"keep": 0.9}
    cell = zoo.get("zz_average", hidden=4, inputs=3, keep=0.5)
    assert isinstance(cell, Average) and (cell.keep, cell.inputs) == (0.5, 3)
    recipe = zoo.spec("zz_average", hidden=4, layers=2, keep=0.5)
    again = zoo.Spec(**json.loads(json.dumps(recipe.to_dict())))
    assert again == recipe and isinstance(again.build(3, jax.random.key(0)), zoo.Stack)
    with pytest.raises(TypeError, match=r"`keep` \(='x'\) of 'zz_average' must be a number"):
        zoo.spec("zz_average", hidden=4, keep="x")
    with pytest.raises(ValueError, match=r"Did you mean zz_average"):
        zoo.get("zz_averag", hidden=4)


class Written(Average):
    """Its annotations are texts, as all are under `from __future__ import annotations`."""

    def __init__(
        self,
        inputs,
        hidden,
        *,
        keep: "float" = 1,
        kind: "Literal['mean', 'sum']" = "mean",
        folder: "Path | None" = None,
        key,
    ):
        super().__init__(inputs, hidden, keep=keep, key=key)


def test_annotations_that_are_texts_are_looked_at():
    zoo.register("zz_written", Written)
    assert zoo.spec("zz_written", hidden=4, keep=0.5, folder="any").options["keep"] == 0.5
    with pytest.raises(ValueError, match=r"`kind` \(='max'\) of .* must be one of mean, sum"):
        zoo.spec("zz_written", hidden=4, kind="max")


def test_options_without_annotations_are_checked_by_their_defaults():
    zoo.register("zz_two_averages", two_averages)
    assert zoo.options("zz_two_averages") == {
        "sensitivity": "exact", "shapes": (1, 2), "label": None,
    }  # fmt: skip
    make = functools.partial(zoo.spec, "zz_two_averages", hidden=4)
    assert make(shapes=[3], label="any", sensitivity="uoro").options["shapes"] == (3,)
    for option in ({"shapes": 3}, {"sensitivity": "snap3"}, {"label": object()}):
        (name,) = option
        with pytest.raises((ValueError, TypeError), match=f"`{name}` .* must be"):
            make(**option)


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("gru", Average, r"`name` \(='gru'\) must be free: it is that of <class 'zoo"),
        ("my cell", Average, r"`name` \(='my cell'\) must be a Python identifier"),
        ("cell_1", 3, r"`make` \(=3\) must be a class or a function"),
        ("cell_1", dict, r"`make` \(=<class 'dict'>\) must take .*: no signature found"),
        ("cell_1", lambda hidden, *, key: 0, r"must take `\(inputs, hidden, \*, key"),
        ("cell_1", lambda hidden, inputs, *, key: 0, r"its arguments are \(hidden, inputs, key\)"),
        ("cell_1", lambda inputs, hidden: 0, r"its arguments are \(inputs, hidden\)"),
        ("cell_1", lambda inputs, hidden, *, heads, key: 0, r"`heads` must have a default"),
        ("cell_1", lambda inputs, hidden, heads=2, *, key: 0, r"`heads=2` must be an option"),
        ("cell_1", lambda inputs, hidden, *, layers=2, key: 0, r"`layers` is an argument of"),
        ("cell_1", lambda inputs, hidden, *, key, **rest: 0, r"`\*\*rest` must be an option"),
        ("cell_1", lambda inputs, hidden, *, sensitivity=0.5, key: 0, r"a choice of the RTRL"),
        ("cell_1", lambda inputs, hidden, *, rule=rtrl.Exact(), key: 0, r"be called `sensitivity`"),
        ("cell_1", lambda inputs, hidden, *, a=jnp.zeros, key: 0, r"must be a value of JSON"),
    ],
)  # fmt: skip
def test_what_cannot_be_registered_is_named(name, make, message, unhooked):
    before = zoo.names()
    with pytest.raises((ValueError, TypeError), match=message):
        zoo.register(name, make)
    assert zoo.names() == before


def test_what_makes_no_memory_is_named():
    zoo.register("zz_nothing", lambda inputs, hidden, *, key: 3)
    with pytest.raises(TypeError, match=r"`name` \(='zz_nothing'\) must make a memory, not 3"):
        zoo.get("zz_nothing", hidden=3)
