"""What XLA makes of cells and agents for an NVIDIA GPU that is not here.

    JAX_PLATFORMS=cpu python -m benchmarks.compiled --markdown

It needs JAX's plugin for NVIDIA GPUs (`trace-zoo[cuda12]`), but no GPU and no driver. Nothing runs:
a row says that XLA compiles a program, how long that takes, how much memory it wants besides
arguments and results, and what it consists of. `loops` start several kernels in every turn;
`kernels` are fusions and calls of libraries or of our own, those of loops counted once.
"""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import tyro
from jax.sharding import SingleDeviceSharding

import agents
import zoo
from agents.running.devices import OneDevice
from agents.running.programs import init_seeds
from benchmarks._chips import ABSENT, absent_gpus, platform_of
from benchmarks._command import check_names, command
from benchmarks._measure import Output, Row, temp_bytes
from benchmarks.ppo import CHOICES


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.compiled` compiles."""

    cells: tuple[str, ...] = tuple(zoo.names())
    """Names of cells, for their forms with gradients of their parameters."""
    choices: tuple[str, ...] = tuple(CHOICES)
    """Gradients of PPO."""
    time: int = 256
    """Steps of a sequence."""
    batch: int = 16
    """Sequences side by side."""
    inputs: int = 32
    """Numbers of an input."""
    hidden: int = 64
    """Units, or what a cell has for them."""
    num_envs: int = 4096
    """Environments of PPO."""
    quick: bool = False
    """Few and small programs, to see that it works."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)

    def __post_init__(self):
        check_names("cells", self.cells, zoo.names())
        check_names("choices", self.choices, CHOICES)


def run(options: Options) -> dict[str, list[Row]]:
    """Compile, print and save the tables."""
    (gpu,) = absent_gpus(1)
    if options.quick:
        few = {"cells": ("mlp", "lru"), "choices": ("RTRL(8)",)}
        options = replace(options, **few, time=4, batch=2, hidden=4, num_envs=4)
    rows = [
        {"cell": name, "form": form, **compiled(function, arguments, gpu)}
        for name in options.cells
        for form, function, arguments in forms(name, options)
    ]
    sizes = f"{options.time} steps, batch {options.batch}, {options.hidden} units"
    options.output.table(f"Cells compiled for an H200, {sizes}", rows)
    tables = {"cells": rows, "ppo": []}
    for choice in options.choices:
        ppo = agents.PPO(
            env="RepeatPreviousEasy",
            memory=zoo.spec("rtu", hidden=32),
            gradient=CHOICES[choice],
            num_envs=options.num_envs,
            encoder_size=0,
        )
        over_seeds = OneDevice().over_seeds
        state = jax.eval_shape(init_seeds(ppo, 0, 1, over_seeds))
        row = compiled(over_seeds(ppo.iterate), (state,), gpu, donate_argnums=0)
        tables["ppo"].append({"gradient": choice, **row})
    options.output.table(f"PPO, {options.num_envs} environments", tables["ppo"])
    options.output.save(tables, on=f"{ABSENT}, JAX {jax.__version__}")
    return tables


def forms(name: str, options: Options) -> Iterator[tuple[str, Callable, tuple]]:
    """A cell's programs: their names, functions, and shapes of what they are given."""
    memory = zoo.get(name, inputs=options.inputs, hidden=options.hidden)
    arrays, rest = eqx.partition(memory, eqx.is_inexact_array)
    shape = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype)  # noqa: E731
    given = jax.tree.map(shape, arrays)
    xs = jax.ShapeDtypeStruct((options.time, options.batch, options.inputs), jnp.float32)
    begin = jax.ShapeDtypeStruct(xs.shape[:2], bool)

    def step(arrays, x):
        memory = eqx.combine(arrays, rest)
        return jax.vmap(lambda x: memory.step(memory.init_state(), x))(x)

    def gradient(form: str, axis: int, **how: str) -> Callable:
        def loss(arrays, xs, begin):
            memory = eqx.combine(arrays, rest)
            state = memory.init_state()
            carry = (state, memory.rtrl_init()) if form.startswith("rtrl") else state
            one = lambda xs, begin: getattr(memory, form)(carry, xs, begin, **how)[1]  # noqa: E731
            return jnp.sum(jax.vmap(one, axis, axis)(xs, begin) ** 2)

        return jax.value_and_grad(loss)

    now = jax.ShapeDtypeStruct(xs.shape[1:], xs.dtype), jax.ShapeDtypeStruct(xs.shape[1:2], bool)
    yield "step", step, (given, now[0])
    yield "scan", gradient("scan", 1), (given, xs, begin)
    if getattr(memory, "has_chunks", False):
        yield "scan in chunks", gradient("scan", 1, method="chunks"), (given, xs, begin)
    yield "rtrl_scan", gradient("rtrl_scan", 1), (given, xs, begin)
    yield "rtrl_step", gradient("rtrl_step", 0), (given, *now)


def compiled(function: Callable, arguments: tuple, gpu: jax.Device, **options: Any) -> Row:
    """Compile one program."""
    place = SingleDeviceSharding(gpu)
    arguments = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), arguments
    )
    start = time.perf_counter()
    lowered = (
        jax.jit(function, **options).trace(*arguments).lower(lowering_platforms=(platform_of(gpu),))
    )
    traced = time.perf_counter()
    program = lowered.compile()
    return {
        "trace s": traced - start,
        "compile s": time.perf_counter() - traced,
        "temp MB": temp_bytes(program) / 1e6,
        **counted(program.as_text() or ""),
    }


def counted(program: str) -> dict[str, int]:
    """Count what a compiled program consists of."""
    kinds = re.findall(r"^\s+(?:ROOT )?%?\S+ = .*? ([a-z][a-z\-]*)\(", program, re.MULTILINE)
    return {
        "loops": kinds.count("while"),
        "kernels": kinds.count("fusion") + kinds.count("custom-call"),
    }


if __name__ == "__main__":
    command(run, Options, __doc__)
