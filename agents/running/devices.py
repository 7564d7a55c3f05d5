"""Which devices a run uses, and what of its state lies where.

Seeds are split where their number can be divided by the devices': each device has some of its own,
and none has to hear from another. Otherwise environments are, with what was kept of them:
parameters are the same on all devices, which average their gradients.
"""

import abc
import contextlib
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from agents.agent import AbstractAgent, AgentState
from agents.envs.wrappers.base import runs_on_the_host
from agents.mapped import mapped
from agents.parallel import ENVIRONMENTS
from agents.running.processes import several, spread
from zoo.annotations import Count, checked

SEEDS = "seed"
"""The axis of a mesh of devices over which seeds are split."""

Devices = Count | Literal["all"]


class AbstractPlacement(abc.ABC):
    """Where a state, with a leading axis over seeds, lies, and how its programs run there.

    **Attributes:**

    - `state`: where, as a tree prefix of an `AgentState`; `None` for wherever it is.
    - `learner`: the same of its learner.
    - `per_seed`: the same of arrays with a leading axis over seeds.
    """

    state: Any = None
    learner: Any = None
    per_seed: Any = None

    @abc.abstractmethod
    def over_seeds(self, one: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of all seeds, whose arguments have a leading axis over them."""

    def splitting(self) -> contextlib.AbstractContextManager:
        """Enter where programs are made that act in the run's own environments."""
        return contextlib.nullcontext()

    def of_each(self, state: Any) -> Any:
        """Say of each array of a state where it belongs; `None` for wherever it is."""
        if self.state is None:
            return None
        return jax.tree.map(
            lambda where, part: jax.tree.map(lambda _: where, part), self.state, state
        )

    def put(self, state: Any) -> Any:
        """Bring a state there, of which every process has all, or its own part there already."""
        if self.state is None:
            return state
        if not several():
            return jax.device_put(state, self.state)
        return jax.tree.map(spread, state, self.of_each(state))


class OneDevice(AbstractPlacement):
    """All on JAX's default device, seeds side by side in one program."""

    def over_seeds(self, one: Callable[..., Any]) -> Callable[..., Any]:
        return mapped(one)


class SeedsSplit(AbstractPlacement):
    """The same number of seeds on each device."""

    def __init__(self, devices: list[jax.Device]):
        self._mesh = Mesh(np.array(devices), (SEEDS,))
        self.per_seed = self.learner = self.state = NamedSharding(self._mesh, PartitionSpec(SEEDS))

    def over_seeds(self, one: Callable[..., Any]) -> Callable[..., Any]:
        # XLA rounds otherwise in a program for another number of seeds side by side. One after the
        # other, as a CPU is not slower with, a seed comes out the same bit by bit wherever it is;
        # other devices are too fast to be given one seed at a time.
        on_cpu = self._mesh.devices.flat[0].platform == "cpu"
        own = (lambda *x: jax.lax.map(lambda y: one(*y), x)) if on_cpu else mapped(one)
        seeds = PartitionSpec(SEEDS)
        # Unchecked, as nothing is ever the same on two devices.
        return jax.shard_map(own, mesh=self._mesh, in_specs=seeds, out_specs=seeds, check_vma=False)


class EnvironmentsSplit(AbstractPlacement):
    """The same number of environments on each device, with all seeds side by side."""

    def __init__(self, devices: list[jax.Device], like: AgentState):
        self._mesh = Mesh(np.array(devices), (ENVIRONMENTS,))
        same, split = (
            NamedSharding(self._mesh, spec)
            for spec in (PartitionSpec(), PartitionSpec(None, ENVIRONMENTS))
        )
        # Not by the constructor, which asks for arrays.
        parts = lambda s: (s.learner, s.actors, s.replay, s.iteration, s.key)  # noqa: E731
        none = lambda x: x is None  # noqa: E731
        self.state = eqx.tree_at(parts, like, (same, split, split, same, same), is_leaf=none)
        self.per_seed = self.learner = same

    def over_seeds(self, one: Callable[..., Any]) -> Callable[..., Any]:
        return mapped(one)

    def splitting(self) -> contextlib.AbstractContextManager:
        return jax.set_mesh(self._mesh)


@checked
def placement(devices: Devices | None, agent: AbstractAgent, *, seeds: int) -> AbstractPlacement:
    """Split a run over devices: its seeds where they can be divided, or its environments.

    **Arguments:**

    - `devices`: how many; `"all"` for those that JAX has, `None` for its default one, or for all
        where there are several processes.
    - `agent`, `seeds`: what is run, and how many of it.

    **Raises:**

    `ValueError` if there are not as many devices, or neither can be divided by their number.
    """
    if devices is None and not several():
        return OneDevice()
    there = jax.devices()
    devices = "all" if devices is None else devices
    count = len(there) if devices == "all" else devices
    if count > len(there):
        raise ValueError(
            f"`devices` (={count}) must be at most {len(there)}: so many {there[0].platform} "
            "devices has JAX here."
        )
    if several() and count < len(there):
        raise ValueError(
            f"`devices` (={count}) must be all {len(there)} of {jax.process_count()} processes: "
            "leave it out."
        )
    return split_over(there[:count], agent, seeds=seeds)


def split_over(devices: list[jax.Device], agent: AbstractAgent, *, seeds: int) -> AbstractPlacement:
    """Split a run over devices, which need not be JAX's own; see `placement`."""
    state = to_split(len(devices), agent, seeds=seeds)
    return SeedsSplit(devices) if state is None else EnvironmentsSplit(devices, state)


def to_split(count: int, agent: AbstractAgent, *, seeds: int) -> AgentState | None:
    """The shapes of a state whose environments are split; `None` where seeds are.

    **Raises:**

    `ValueError` if neither can be divided by the number of devices, or the environments are not
    JAX's.
    """
    if runs_on_the_host(agent.environment[0]):
        raise ValueError(
            f"`devices` (={count}) splits what JAX runs; {agent.env_name} runs in Python, on the "
            "host."
        )
    if seeds % count == 0:
        return None
    state = jax.eval_shape(lambda: agent.init(key=jax.random.key(0)))
    envs = _environments(state)
    rule = f"`devices` (={count}) must divide `seeds` (={seeds})"
    if envs is None:
        raise ValueError(
            f"{rule}: {type(agent).__name__} has no environments side by side, which could be "
            "split instead."
        )
    if envs % count:
        raise ValueError(f"{rule} or the number of environments (={envs}).")
    return state


def _environments(state: AgentState) -> int | None:
    """How many environments a state is of, if all that is kept of them has an axis over them."""
    sizes = {x.shape[0] if x.ndim else None for x in jax.tree.leaves((state.actors, state.replay))}
    return sizes.pop() if len(sizes) == 1 else None
