"""What a run is, in a few words, from its configuration."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agents.running.folder import CONFIG
from agents.running.output import printable


class Outline(NamedTuple):
    """What tells one run from another; empty where it has no such thing.

    **Attributes:**

    - `environment`: such as `RepeatPreviousEasy`, `RepeatPrevious(decks=2)` or
      `TimeLimit(RepeatFirst(decks=1), limit=5)`.
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
    agent = as_mapping(config.get("agent"))
    return Outline(*map(printable, (_environment(agent), _memory(agent), _gradient(agent))))


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
    """Sort runs by environment: what each is, by label, by the environment's name and options.

    Of environment objects whose parameters differ, the name tells those parameters too.
    """
    configs = {label: read_config(folder) for label, folder in runs.items()}
    outlines = {label: outline(config) for label, config in configs.items()}
    groups: dict[str, dict[str, Outline]] = {}
    for label, about in outlines.items():
        name, params = about.environment, _params(configs[label])
        others = [_params(configs[o]) for o, x in outlines.items() if x.environment == name]
        differing = {k: v for k, v in params.items() if any(x.get(k) != v for x in others)}
        name = " with ".join(filter(None, (name, printable(_listed(differing)))))
        groups.setdefault(name, {})[label] = about._replace(environment=name)
    return groups


def _environment(agent: Mapping[str, Any]) -> str:
    env, options = agent.get("env", ""), as_mapping(agent.get("env_options"))
    if isinstance(env, Mapping):
        return _object(str(env.get("object", "")), as_mapping(env.get("arguments")))
    return f"{env}({_listed(options)})" if options else str(env)


def _object(qualified: str, arguments: Mapping[str, Any]) -> str:
    """An environment object by its class and arguments, those of a wrapper around the inner's."""
    outer, _, inner = qualified.removesuffix(")").partition("(")
    own = {name: value for name, value in arguments.items() if not (inner and name == "env")}
    inside = _object(inner, as_mapping(arguments.get("env"))) if inner else ""
    listed = ", ".join(filter(None, (inside, _listed(own))))
    name = outer.rpartition(".")[2]
    return f"{name}({listed})" if listed else name


def _listed(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())


def _params(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters of a run's environment object."""
    return as_mapping(as_mapping(as_mapping(config.get("agent")).get("env")).get("params"))


def _memory(agent: Mapping[str, Any]) -> str:
    memory = as_mapping(agent.get("memory"))
    if not memory:
        return ""
    layers = memory.get("layers", 1)
    deep = "" if layers == 1 else f"{layers} layers of "
    return f"{memory.get('name')} of {deep}{memory.get('hidden')} units"


def _gradient(agent: Mapping[str, Any]) -> str:
    gradient = dict(as_mapping(agent.get("gradient")))
    name = str(gradient.pop("name", ""))
    numbers = [f"{x}" for x in gradient.values() if isinstance(x, int)]
    usual = ("never", "full")  # the defaults of `refresh` and `storage`
    words = [f"{k}={x}" for k, x in gradient.items() if isinstance(x, str) and x not in usual]
    listed = ", ".join(numbers + words)
    return f"{name}({listed})" if listed else name


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a part of a configuration that is to be a mapping, or an empty one in its place."""
    return value if isinstance(value, Mapping) else {}
