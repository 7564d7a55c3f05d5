"""What devices say to each other in an iteration of PPO, by the program that XLA made.

Environments are split over all devices, such as those that a CPU is told to be. Every collective
operation is read off the compiled program, with the loops around it: how often it happens and how
many bytes each device gives. The ratio is to the parameters' gradients, once for each minibatch.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 python -m benchmarks.communication --markdown
"""

import dataclasses
from dataclasses import dataclass, field

import equinox as eqx
import jax
import tyro

import agents
import zoo
from agents.running.messages import collectives
from agents.running.programs import Programs
from benchmarks._command import command
from benchmarks._measure import Output, Row, heading, tree_bytes


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.communication` reads."""

    envs: tuple[int, ...] = (16, 64, 256)
    """Numbers of environments."""
    memories: tuple[str, ...] = ("rtu", "gru")
    """Names of memories."""
    quick: bool = False
    """One program, to see that it works."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


def run(options: Options) -> list[Row]:
    """Read and print the table."""
    devices = jax.device_count()
    if options.quick:
        options = dataclasses.replace(options, envs=(16,), memories=("rtu",))
    print(heading("Bytes between devices in an iteration"))
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
    options.output.table(f"PPO over {devices} devices", rows)
    options.output.save({"communication": rows})
    return rows


def read(ppo: agents.PPO, devices: int) -> Row:
    """Read one program."""
    programs = Programs(ppo, seed=0, seeds=1, evaluation_episodes=0, devices=devices)
    found = collectives(programs.step)
    network = eqx.filter(programs.state.learner.network, lambda x: hasattr(x, "shape"))
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


if __name__ == "__main__":
    command(run, Options, __doc__)
