"""`python -m agents envs`."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console

from agents.cli.words import Command


@dataclass(frozen=True, kw_only=True)
class Envs(Command):
    """List the environments."""

    filter: str = ""
    """Only those whose name contains this text."""

    def __call__(self, console: Console) -> None:
        from agents import envs
        from agents.cli.tables import table

        found = [name for name in envs.names() if self.filter.lower() in name.lower()]
        if not found:
            raise ValueError(f"no environment's name contains {self.filter!r}")
        rows = table(None, ["environment", "observation", "action", "steps"], narrow=True)
        for name in found:
            rows.add_row(name, *_describe(name))
        rows.caption, rows.caption_justify = "steps: of an episode, at most", "left"
        console.print(rows)


def _describe(name: str) -> tuple[str, str, str]:
    from agents import envs

    try:
        env, params = envs.make(name)
    except ModuleNotFoundError as error:  # an optional package, and the line that installs it
        return str(error), "–", "–"
    spaces = env.observation_space(params), env.action_space(params)
    return _space(spaces[0]), _space(spaces[1]), str(envs.episode_steps(env, params))


def _space(space: Any) -> str:
    count = getattr(space, "n", None)
    sizes = getattr(space, "shape", ()) if count is None else (count,)
    return f"{type(space).__name__}({', '.join(map(str, sizes))})"
