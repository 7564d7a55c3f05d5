"""What devices say to each other in an iteration of PPO, by the program that XLA made.

Environments are split over all devices, such as those that a CPU is told to be. Every collective
operation is read off the compiled program, with the loops around it: how often it happens and how
many bytes each device gives. The ratio is to the parameters' gradients, once for each minibatch.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 python -m benchmarks.communication --markdown
"""

import dataclasses
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import equinox as eqx
import jax
import tyro

import agents
import zoo
from agents.running.programs import Programs
from benchmarks._measure import Output, Row, heading, tree_bytes

_BYTES = {"pred": 1, "bf16": 2, "c64": 8, "c128": 16}
_KINDS = (
    "all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute|collective-broadcast"
    "|ragged-all-to-all"
)
_COLLECTIVE = re.compile(rf" = (.*?) ({_KINDS})(?:-start)?\(")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_CALLED = re.compile(r"(?:calls|to_apply|body|condition|\w+_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"(?:branch_computations|called_computations)=\{([^}]*)\}")
_TRIPS = re.compile(r'known_trip_count":\{"n":"(\d+)"')


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


@dataclass(frozen=True)
class Collective:
    """An operation between devices: its kind, how often it happens (infinitely often where the
    program does not say), and the bytes of each time."""

    kind: str
    times: float
    size: int


def collectives(program: jax.stages.Compiled) -> list[Collective]:
    """List the operations between devices in a compiled program."""
    computations: dict[str, list[str]] = {}
    lines: list[str] = []
    entry = ""
    for line in (program.as_text() or "").splitlines():
        if found := _COMPUTATION.match(line):
            lines = computations.setdefault(found[1], [])
            entry = found[1] if line.startswith("ENTRY") else entry
        else:
            lines.append(line)

    def walk(name: str, times: float) -> Iterator[Collective]:
        for line in computations.get(name, ()):
            if found := _COLLECTIVE.search(line):
                yield Collective(found[2], times, _size(found[1]))
                continue
            trips = _TRIPS.search(line)
            inside = float(trips[1]) if trips else math.inf if " while(" in line else 1
            called = _CALLED.findall(line)
            for branches in _BRANCHES.findall(line):
                called += [branch.strip().lstrip("%") for branch in branches.split(",")]
            for one in called:
                yield from walk(one, times * inside)

    return list(walk(entry, 1))


def _size(shapes: str) -> int:
    """Bytes of the arrays that a text names, such as `(f32[3,4]{1,0}, s32[])`."""
    return sum(
        _BYTES.get(kind, int(re.sub(r"\D", "", kind) or 0) // 8) * math.prod(map(int, numbers))
        for kind, dims in re.findall(r"(\w+)\[([\d,]*)\]", shapes)
        for numbers in [filter(None, dims.split(","))]
    )


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
    run(tyro.cli(Options, description=__doc__))
