"""Settings of the whole suite: float64, strict warnings, run-time shape checks, fixed seeds.

The session runs with 64-bit types enabled, because most tests compare two exact computations to
1e-9. JAX's default float is therefore float64 here. A test of float32 behavior names its dtypes,
or takes the `float32` fixture, which restores JAX's usual 32-bit defaults while the test runs.
"""

import gc
import importlib
import os
from collections import Counter
from importlib.metadata import version

# The tests' programs run for a moment and compiling them takes the time, so that XLA optimizes
# little here. What the environment says comes later, and wins.
os.environ["XLA_FLAGS"] = " ".join(
    [
        "--xla_backend_optimization_level=0",
        "--xla_llvm_disable_expensive_passes=true",
        # XLA ends a program at a flag that it does not know, as this one from JAX 0.11 on.
        "--xla_cpu_use_fusion_emitters=false"
        if version("jaxlib").startswith(("0.8.", "0.9.", "0.10."))
        else "",
        "--xla_cpu_parallel_codegen_split_count=1",
        # The first two undo each other's work until neither finds any; the others look after
        # threads, and after XLA itself. Compiling takes four fifths of the time without the four.
        "--xla_disable_hlo_passes=while-loop-invariant-code-motion,while-loop-constant-sinking,"
        "cpu-parallel-task-assigner,hlo-verifier",
        # For what runs on several; everything else is on the first.
        "--xla_force_host_platform_device_count=8",
        # Two workers on two cores: more threads than cores only make them wait for each other.
        "--xla_cpu_multi_thread_eigen=false" if "PYTEST_XDIST_WORKER" in os.environ else "",
        os.environ.get("XLA_FLAGS", ""),
    ]
)
# Where `JAX_PLATFORMS=cuda,cpu` has the tests run on a GPU, all workers share its memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["TRACE_ZOO_CACHE"] = ""  # no test writes into the cache of whoever runs it

import hypothesis
import jax
import jaxtyping
import pytest

from tests.typed import check_annotations

# Importing the tests makes little that is garbage: see `pytest_collection_finish`.
gc.disable()

# What the tests import anyway, before jaxtyping's hook would have it compiled once more. Every
# other worker begins at the end: in a fresh clone they compile for each other, not both the same.
_PACKAGES = ("equinox", "optax", "flax", "tyro", "rich.progress", "gymnasium", "matplotlib.figure")
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    for package in _PACKAGES[:: -1 if worker[-1] in "13579" else 1]:
        importlib.import_module(package)

check_annotations(["scan", "rtrl", "zoo", "agents"])  # before anything imports them

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
# Not each operation's place in the source, which costs lowering a tenth of its time or more.
jax.config.update("jax_traceback_in_locations_limit", 0)

_COMMON = {
    "deadline": None,  # the first example compiles
    "derandomize": True,  # the same examples on every run and machine
    "database": None,
    "print_blob": True,
    "suppress_health_check": [
        hypothesis.HealthCheck.too_slow,
        hypothesis.HealthCheck.data_too_large,
        hypothesis.HealthCheck.function_scoped_fixture,
    ],
}
hypothesis.settings.register_profile("default", max_examples=10, **_COMMON)
hypothesis.settings.register_profile("thorough", max_examples=100, **_COMMON)
# While writing a cell: the first failing example is enough to start with.
hypothesis.settings.register_profile(
    "draft", max_examples=2, phases=[hypothesis.Phase.generate], **_COMMON
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by mark
def pytest_collection_modifyitems(items):
    """Mark as slow what `quick_rows(n)` leaves, and bring the tests of one cell together.

    All rows of a test under `quick_rows(n)` are slow but its first n quick ones. Tests of one cell
    or environment share what they compile, so they run one after another; xdist's `worksteal`
    keeps neighbors in one process, but for the few that it moves at the end.
    """
    quick = Counter()
    for item in items:
        mark = item.get_closest_marker("quick_rows")
        if mark is None or item.get_closest_marker("slow"):
            continue
        test = item.nodeid.partition("[")[0]
        quick[test] += 1
        if quick[test] > mark.args[0]:
            item.add_marker(pytest.mark.slow)

    first = {}  # where a row's first test stands
    places = [first.setdefault(_row(item) or item, place) for place, item in enumerate(items)]
    items[:] = [item for _, item in sorted(zip(places, items, strict=True), key=lambda x: x[0])]


def pytest_collection_finish(session):
    """Let the garbage collector look less often, and not at modules.

    Tracing makes many small objects that live, among a million that live as long as the process:
    looking at all of them is 7 % of the time of the tests of `scan` and `rtrl`, and was 15 % of the
    time until the first test.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def pytest_sessionfinish(session):
    """Let what the tests have left lie: pytest collects garbage five times before it ends."""
    gc.collect()
    gc.freeze()


def _row(item) -> str | None:
    """The row of `tests/cases.py` or `tests/envs/cases.py` that a test is about."""
    case = item.callspec.params.get("case") if hasattr(item, "callspec") else None
    return getattr(case, "name", None)


# Linux lends a process 65,530 maps of memory, XLA takes some for every compiled program, and a
# process that has none left crashes in the compiler. With so many it has 4 GB of memory; with half
# of them 3, but compiles so much anew that the tests of `zoo` take a fifth longer.
_MOST_MAPS = 18_000
_TESTS_BETWEEN_LOOKS = 10
_finished = 0


def pytest_runtest_teardown(item, nextitem):
    """Drop compiled programs long before the system's limit on a process's maps is reached."""
    global _finished
    _finished += 1
    if _finished % _TESTS_BETWEEN_LOOKS == 0 and _maps() > _MOST_MAPS:
        jax.clear_caches()


def _maps() -> int:
    """How many maps of memory this process has; 0 where the system does not tell."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            return sum(1 for _ in maps)
    except OSError:
        return 0


@pytest.fixture
def getkey():
    """A function that returns a new PRNG key at every call; the same sequence in every test."""
    count = 0

    def next_key() -> jax.Array:
        nonlocal count
        count += 1
        return jax.random.fold_in(jax.random.key(20250101), count)

    return next_key


@pytest.fixture(scope="session")
def eight_devices():
    """Skip where the tests run on GPUs that are fewer; a CPU is split into eight."""
    if len(jax.devices()) < 8:
        pytest.skip(f"there are {len(jax.devices())} devices of 8")


@pytest.fixture
def unhooked():
    """Run the test as users do, without the suite's own checks of types, which would come first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def float32():
    """Run the test with JAX's usual 32-bit default types."""
    jax.config.update("jax_enable_x64", False)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", True)
