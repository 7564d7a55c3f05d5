"""What a run is, in a few words, from its configuration."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agents.running.folder import CONFIG


class Outline(NamedTuple):
    """What tells one run from another; empty where it has no such thing.

    **Attributes:**

    - `environment`: such as `RepeatPreviousEasy` or `RepeatPrevious(decks=2)`.
    - `memory`: such as `rtu of 96 units`.
    - `gradient`: such as `RTRL(8)`.
    """

    environment: str
    memory: str
    gradient: str

    def __str__(self) -> str:
        """One line: the environment, and behind a colon the rest."""
        rest = ", ".join(filter(None, self[1:]))
        return ": ".join(filter(None, (self.environment, rest)))


def outline(config: Mapping[str, Any]) -> Outline:
    """Describe a run by its configuration, that of `config.json`."""
    agent = _mapping(config.get("agent"))
    return Outline(_environment(agent), _memory(agent), _gradient(agent))


def common(outlines: Sequence[Outline]) -> Outline:
    """Keep what several runs have in common."""
    return Outline(*(x[0] if len(set(x)) == 1 else "" for x in zip(*outlines, strict=True)))


def read_config(folder: str | Path) -> dict[str, Any]:
    """Read the configuration of a run's folder; empty where there is none that can be read."""
    try:
        config = json.loads((Path(folder) / CONFIG).read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}


def by_environment(runs: Mapping[str, str | Path]) -> dict[str, dict[str, Outline]]:
    """Sort runs by environment: what each is, by label, by the environment's name and options."""
    groups: dict[str, dict[str, Outline]] = {}
    for label, folder in runs.items():
        about = outline(read_config(folder))
        groups.setdefault(about.environment, {})[label] = about
    return groups


def _environment(agent: Mapping[str, Any]) -> str:
    env, options = agent.get("env", ""), _mapping(agent.get("env_options"))
    if isinstance(env, Mapping):  # of an object: its module and class
        env = str(env.get("object", "")).partition("(")[0].rpartition(".")[2]
    listed = ", ".join(f"{name}={value}" for name, value in options.items())
    return f"{env}({listed})" if listed else str(env)


def _memory(agent: Mapping[str, Any]) -> str:
    memory = _mapping(agent.get("memory"))
    if not memory:
        return ""
    layers = memory.get("layers", 1)
    deep = "" if layers == 1 else f"{layers} layers of "
    return f"{memory.get('name')} of {deep}{memory.get('hidden')} units"


def _gradient(agent: Mapping[str, Any]) -> str:
    gradient = dict(_mapping(agent.get("gradient")))
    name = str(gradient.pop("name", ""))
    numbers = [f"{x}" for x in gradient.values() if isinstance(x, int)]
    usual = ("never", "full")  # the defaults of `refresh` and `storage`
    words = [f"{k}={x}" for k, x in gradient.items() if isinstance(x, str) and x not in usual]
    listed = ", ".join(numbers + words)
    return f"{name}({listed})" if listed else name


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
