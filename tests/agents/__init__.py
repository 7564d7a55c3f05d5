"""Tests of agents: a package, so that what `conftest.py` sets up ends with them."""
