"""Scans and cells inside `jax.shard_map` on four devices, in a process that has as many."""

import os
import subprocess
import sys

import pytest

from tests.cases import CELLS

DISTINCT = [case.name for case in CELLS if not case.variant]
NAMES = ["scans", "accumulate", *DISTINCT]
# As many as keep two cores busy to the end, and no more: each starts a process.
PROCESSES = [NAMES[start::5] for start in range(5)]


@pytest.mark.slow
@pytest.mark.parametrize("names", PROCESSES, ids=lambda names: names[0])
def test_values_and_gradients_are_those_of_one_device(names):
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=4"
    run = subprocess.run(
        [sys.executable, "-m", "tests.zoo.sharded", *names],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert [line for line in run.stdout.split("\n") if line in DISTINCT] == [
        name for name in DISTINCT if name in names
    ]
