"""What devices say to each other in an iteration of PPO, by the program that XLA made.

Environments are split over all devices, such as those that a CPU is told to be, or over NVIDIA GPUs
that are not here. Every collective operation is read off the compiled program, with the loops
around it: how often it happens and how many bytes each device gives. The ratio is to the
parameters' gradients, once for each minibatch.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 python -m benchmarks.communication --markdown
    JAX_PLATFORMS=cpu python -m benchmarks.communication --gpus 8 --markdown
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import tyro

import agents
import zoo
from agents.running.devices import split_over
from agents.running.messages import collectives
from agents.running.programs import init_seeds, traced_step
from benchmarks._chips import ABSENT, absent_gpus, platform_of
from benchmarks._command import command
from benchmarks._measure import Output, Row, heading, tree_bytes


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.communication` reads."""

    envs: tuple[int, ...] = (16, 64, 256)
    """Numbers of environments."""
    memories: tuple[str, ...] = ("rtu", "gru")
    """Names of memories."""
    gpus: int = 0
    """NVIDIA GPUs, which need not be here, in the place of JAX's devices."""
    quick: bool = False
    """One program, to see that it works."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


def run(options: Options) -> list[Row]:
    """Read and print the table."""
    devices = absent_gpus(options.gpus) if options.gpus else jax.devices()
    if options.quick:
        options = dataclasses.replace(options, envs=(16,), memories=("rtu",))
    for envs in options.envs:
        if envs % len(devices):
            raise ValueError(f"`envs` (={envs}) must be divisible by {len(devices)} devices.")
    title = "Bytes between devices in an iteration"
    print(f"{title} ({ABSENT})" if options.gpus else heading(title))
    rows = []
    for memory in options.memories:
        for envs in options.envs:
            ppo = agents.PPO(
                env="RepeatPreviousEasy",
                memory=zoo.spec(memory, hidden=32),
                num_envs=envs,
                rollout_length=32,
            )
            rows.append({"memory": memory, "environments": envs, **read(ppo, devices)})
    options.output.table(f"PPO over {len(devices)} devices", rows)
    options.output.save({"communication": rows}, on=ABSENT if options.gpus else None)
    return rows


def read(ppo: agents.PPO, devices: list[jax.Device]) -> Row:
    """Read one program."""
    program, learner = compiled(ppo, devices)
    found = collectives(program)
    network = eqx.filter(learner.network, lambda x: hasattr(x, "shape"))
    minibatches = ppo.epochs * ppo.minibatches
    gradients = minibatches * tree_bytes(network)
    total = sum(x.times * x.size for x in found)
    return {
        "minibatches": minibatches,
        "gradients": gradients,
        "all": int(total),
        "in the gradients' operations": int(
            sum(x.times * x.size for x in found if x.size >= gradients / minibatches)
        ),
        "× the gradients": total / gradients,
    }


def compiled(ppo: agents.PPO, devices: list[jax.Device]) -> tuple[jax.stages.Compiled, Any]:
    """Return an iteration's program, compiled for devices that need not be here, and the shapes of
    what it learns."""
    place = split_over(devices, ppo, seeds=1)
    with place.splitting():
        state = jax.eval_shape(init_seeds(ppo, 0, 1, place.over_seeds))
        lowered = traced_step(ppo, place, state).lower(
            lowering_platforms=(platform_of(devices[0]),)
        )
        return lowered.compile(), state.learner


if __name__ == "__main__":
    command(run, Options, __doc__)
