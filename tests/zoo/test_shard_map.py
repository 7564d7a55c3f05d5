"""Scans and cells inside `jax.shard_map` on four devices, in a process that has as many."""

import os
import subprocess
import sys

import pytest

from tests.cases import CELLS

DISTINCT = [case.name for case in CELLS if not case.variant]
QUICK = ["scans", "rtu"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(QUICK, id="quick"),
        pytest.param(
            ["accumulate", *(n for n in DISTINCT if n not in QUICK)],
            id="others",
            marks=pytest.mark.slow,
        ),
    ],
)
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
