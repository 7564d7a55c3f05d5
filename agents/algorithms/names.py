"""Algorithms by name, for checkpoints and the command line."""

import dataclasses
import inspect
from typing import Any

from agents.agent import AbstractAgent
from agents.algorithms.dqn import DQN
from agents.algorithms.ideal_policy_iteration import IdealPolicyIteration
from agents.algorithms.ppo import PPO
from agents.algorithms.pqn import PQN
from agents.algorithms.r2ac import R2AC
from agents.algorithms.sac import SAC
from agents.algorithms.streaming_ac import StreamingAC
from agents.algorithms.streaming_q import StreamingQ
from agents.algorithms.streaming_td import StreamingTD
from agents.algorithms.tabular import Tabular
from agents.algorithms.tabular_actor_critic import TabularActorCritic
from agents.algorithms.td3 import TD3
from agents.settings import to_plain
from zoo.parts.checks import did_you_mean, same_definition

_AGENTS: dict[str, type[AbstractAgent]] = {
    "dqn": DQN,
    "ideal_policy_iteration": IdealPolicyIteration,
    "ppo": PPO,
    "pqn": PQN,
    "r2ac": R2AC,
    "sac": SAC,
    "streaming_ac": StreamingAC,
    "streaming_q": StreamingQ,
    "streaming_td": StreamingTD,
    "tabular": Tabular,
    "tabular_actor_critic": TabularActorCritic,
    "td3": TD3,
}


def names() -> tuple[str, ...]:
    """Return the names of all algorithms, sorted."""
    return tuple(sorted(_AGENTS))


def register(name: str, kind: type[AbstractAgent]) -> None:
    """Give an algorithm of your own a name, with which checkpoints and the command line take it.

    **Arguments:**

    - `name`: not yet taken; letters, digits and underscores.
    - `kind`: a frozen, keyword-only dataclass derived from `agents.AbstractAgent`.

    **Raises:**

    `ValueError` or `TypeError` naming the argument, its value and the rule.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"`name` (={name!r}) must be of letters, digits and underscores.")
    if not (inspect.isclass(kind) and issubclass(kind, AbstractAgent)):
        raise TypeError(f"`kind` (={kind!r}) must be a class derived from agents.AbstractAgent.")
    if inspect.isabstract(kind) or "__dataclass_fields__" not in vars(kind):
        raise TypeError(
            f"`kind` (={kind.__name__}) must be a dataclass that defines every abstract method."
        )
    required = [
        f.name
        for f in dataclasses.fields(kind)
        if f.default is f.default_factory is dataclasses.MISSING and f.name not in ("env", "memory")
    ]
    if required:
        raise TypeError(f"`kind` (={kind.__name__}) needs defaults for: {', '.join(required)}.")
    if not same_definition(_AGENTS.get(name, kind), kind):
        raise ValueError(f"`name` (={name!r}) is that of {_AGENTS[name].__name__}: choose another.")
    taken = name_of(kind, default=name)
    if taken != name:
        raise ValueError(f"`kind` (={kind.__name__}) has a name already: {taken!r}.")
    _AGENTS[name] = kind


def agent_class(name: str) -> type[AbstractAgent]:
    """Return the algorithm of a name.

    **Raises:**

    `ValueError` for an unknown one, with the nearest.
    """
    if name not in _AGENTS:
        hint = did_you_mean(str(name), _AGENTS)
        raise ValueError(f"`algorithm` (={name!r}) must be one of {', '.join(names())}.{hint}")
    return _AGENTS[name]


def configuration(agent: AbstractAgent, *, seeds: int, seed: int) -> dict[str, Any]:
    """Return what a run's folder must hold to be one of this agent and of these seeds."""
    return {
        "algorithm": name_of(type(agent)),
        "agent": to_plain(agent),
        "seeds": seeds,
        "seed": seed,
    }


def name_of(kind: type[AbstractAgent], *, default: str | None = None) -> str:
    """Return the name of an algorithm.

    **Arguments:**

    - `kind`: its class.
    - `default`: what to return for one that has none.

    **Raises:**

    `ValueError` for one that has none, without a default.
    """
    found: Any = next((name for name, known in _AGENTS.items() if known is kind), default)
    if found is None:
        raise ValueError(
            f"{kind.__name__} has no name, which its checkpoints need: give it one by "
            f"agents.register('name', {kind.__name__})."
        )
    return found
