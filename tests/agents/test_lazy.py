"""Packages whose names are imported late look like any other."""

import importlib

import pytest


@pytest.mark.parametrize("name", ["agents", "agents.running"])
def test_every_public_name_is_there(name, monkeypatch):
    package = importlib.import_module(name)
    for public in package.__all__:
        monkeypatch.delitem(vars(package), public, raising=False)  # as before its first use
    assert set(package.__all__) <= set(dir(package))
    assert package.__all__ == sorted(set(package.__all__))
    for public in package.__all__:
        value = getattr(package, public)
        assert getattr(value, "__name__", "").rpartition(".")[2] == public


def test_a_name_that_is_not_there_is_named():
    agents = importlib.import_module("agents")
    with pytest.raises(AttributeError, match="module 'agents' has no attribute 'PPPO'"):
        _ = agents.PPPO
    with pytest.raises(ImportError, match="cannot import name 'PPPO' from 'agents'"):
        exec("from agents import PPPO")


def test_a_package_may_hold_a_module_of_the_name_of_what_it_exports():
    importlib.import_module("agents.running.train")
    agents = importlib.import_module("agents")
    assert callable(agents.train)
