"""A class is abstract or final; a default is overridden once."""

import inspect

import pytest

import rtrl
import zoo


def _classes():
    found = {}
    for package in (rtrl, zoo):
        for name in package.__all__:
            if inspect.isclass(kind := getattr(package, name)):
                found[name] = kind
    return found


CLASSES = _classes()
OURS = ("rtrl", "zoo")


def _defined(kind, name):
    """The definition of a name in a class itself, unless it is abstract."""
    value = vars(kind).get(name)
    function = value.fget if isinstance(value, property) else value
    is_method = inspect.isfunction(inspect.unwrap(function)) if callable(function) else False
    return is_method and not getattr(value, "__isabstractmethod__", False)


def _errors(kind):
    """What in a class breaks the rules."""
    ancestors = [base for base in kind.__mro__[1:] if base.__module__.split(".")[0] in OURS]
    for base in ancestors:
        if not base.__name__.startswith("Abstract"):
            yield f"it subclasses {base.__name__}, which is final"
    for name in sorted({name for base in (kind, *ancestors) for name in vars(base)}):
        where = [base.__name__ for base in (kind, *ancestors) if _defined(base, name)]
        if len(where) > 2 and not name.startswith("_"):
            yield f"`{name}` is defined in {where}: a default is overridden once"


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_abstract_or_final_and_overrides_a_default_once(name):
    assert not list(_errors(CLASSES[name]))


def test_what_breaks_the_rules_is_found():
    class Child(zoo.GRU):
        def readout(self, state, x):
            return -state

    class Other(zoo.AbstractDiagonalCell):
        def surrogate_states(self, parameters, state, xs, begin, states):
            return states

        def update(self, state, x):
            return state

    assert list(_errors(Child)) == ["it subclasses GRU, which is final"]
    assert [e.split("`")[1] for e in _errors(Other)] == ["surrogate_states"]
