"""What tests of agents share: programs that are traced once, and interrupted runs."""

import contextlib
import functools
import importlib
import os
import shutil
import signal

import jax
import numpy as np
import pytest
from filelock import FileLock

from agents.cli import main
from agents.running.scalars import ScalarLog
from tests.agents.tasks import SMALL_TRAINING, steered_t_maze_has_a_name


@contextlib.contextmanager
def _programs_kept(agents):
    """Runs of an agent share their programs: tracing them takes seconds, running them a moment.

    That a run goes on alike with programs of its own, `test_train` shows.
    """
    module = importlib.import_module("agents.running.train")
    with pytest.MonkeyPatch.context() as patch:
        kept = functools.lru_cache(maxsize=agents)(module.Programs)
        patch.setattr(module, "Programs", kept)
        yield kept


@pytest.fixture(scope="module")
def traced_once():
    """Runs of one agent, one after another, share their programs."""
    with _programs_kept(agents=1) as kept:
        yield kept


@pytest.fixture
def each_traced_once():
    """Runs of a few agents share their programs, within a test."""
    with _programs_kept(agents=16) as kept:
        yield kept


@pytest.fixture(scope="package", autouse=True)
def steered_t_maze():
    """The environment with vectors as actions can be named, by the command line too."""
    with steered_t_maze_has_a_name():
        yield


@pytest.fixture(scope="package")
def trained(tmp_path_factory):
    """The folder of a small run of two seeds, with JAX's usual types; tests only read it.

    One worker trains, and every one has a copy: tracing and compiling take four seconds.
    """
    root, folder = tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("runs") / "demo"
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # the session's, which the workers share
    shared, done = root / "demo", root / "demo is done"
    with FileLock(root / "demo.lock"):
        if not done.exists():
            before = jax.config.read("jax_enable_x64")
            jax.config.update("jax_enable_x64", False)
            try:
                assert main([*SMALL_TRAINING, str(shared)]) == 0
            finally:
                jax.config.update("jax_enable_x64", before)
            done.touch()
    shutil.copytree(shared, folder)
    return folder


@pytest.fixture
def interrupt(monkeypatch):
    """A function that arranges for a signal when the rows of an iteration are written."""

    def arrange(iteration, number=signal.SIGINT):
        write = ScalarLog.write

        def write_and_interrupt(self, now, *rest):
            if now == iteration:
                os.kill(os.getpid(), number)
            return write(self, now, *rest)

        monkeypatch.setattr(ScalarLog, "write", write_and_interrupt)

    return arrange


@pytest.fixture
def same_state():
    """A function that compares two states bit by bit."""

    def compare(one, two):
        # By path: structures also hold spaces, which equal only themselves.
        one, two = (jax.tree_util.tree_leaves_with_path(tree) for tree in (one, two))
        for (path, a), (other, b) in zip(one, two, strict=True):
            assert path == other and a.dtype == b.dtype
            if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
                a, b = jax.random.key_data(a), jax.random.key_data(b)
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()

    return compare
