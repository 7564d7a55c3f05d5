"""`python -m agents play`: watch an agent, or random actions, in an environment."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console

from agents.cli.words import CompilingCommand, Count, KeyValues, Seed, Switch, check_picture

if TYPE_CHECKING:
    from gymnax.environments.environment import Environment

    from agents.acting import Policy


@dataclass(frozen=True, kw_only=True)
class Play(CompilingCommand):
    """Play episodes and write them as a GIF, or as a page of HTML for a robot of brax."""

    run: tyro.conf.Positional[Annotated[Path | None, tyro.conf.arg(metavar="[RUN]")]] = None
    """Folder of a run, whose trained agent acts; without it actions are random."""
    out: Path
    """The file to write; it ends in .gif, or in .html for brax."""
    env: str | None = None
    """Name of the environment; with a run, the run's by default."""
    env_options: KeyValues = ()
    """An option of the environment; may be given several times."""
    agent: Count = 0
    """Which of the run's seeds acts, counted from 0."""
    sample: Switch = False
    """Draw the agent's actions instead of taking the most probable ones."""
    episodes: Count = 1
    """Episodes to play."""
    steps: Count = 500
    """Steps at most, in all episodes together."""
    seed: Seed = 0
    """Root of the randomness."""
    fps: float | None = None
    """Frames per second of a GIF, from 0.1 to 50; 5 by default."""

    def __call__(self, console: Console) -> None:
        for name in ("episodes", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name} (={getattr(self, name)}) must be at least 1")
        import jax

        from agents import envs
        from agents.acting.episodes import play
        from agents.cli.tables import table
        from agents.envs.rendering.film import check_fps

        env, params, policy = self._players()
        is_brax = _is_brax(env)
        ending = ".html" if is_brax else ".gif"
        check_picture(self.out, (ending,), f" for {env.name}")
        if is_brax and self.fps is not None:
            raise ValueError(f"--fps has no meaning for {env.name}: its page has its own")
        fps = 5.0 if self.fps is None else self.fps
        check_fps(fps)
        shown = []

        def show(state: Any, observation: Any) -> None:
            picture = state if is_brax else envs.render(env, params, state, observation=observation)
            shown.append(picture)

        limits = {"episodes": self.episodes, "steps": self.steps}
        key = jax.random.key(self.seed)
        played = play(env, params, policy, show, **limits, sample=self.sample, key=key)
        if is_brax:
            envs.save_brax_html(env, shown, self.out)
        else:
            envs.save_gif(shown, self.out, fps=fps)
        rows = table(env.name, ["episode", "return", "length"])
        for number, episode in enumerate(played, 1):
            cut = "" if episode.complete else f", cut off by --steps {self.steps}"
            rows.add_row(str(number), f"{episode.total:.3f}", f"{episode.length}{cut}")
        console.print(rows)
        console.print(f"film: {self.out}", soft_wrap=True, highlight=False)

    def _players(self) -> "tuple[Environment, Any, Policy | None]":
        """The environment, its parameters, and who acts."""
        from agents.running.load import load_run, policy_of
        from zoo.options import parse_options

        options = parse_options(self.env_options, "--env-options")
        if self.run is None:
            if self.env is None:
                raise ValueError("a RUN or --env must be given")
            if self.sample or self.agent:
                raise ValueError("--sample and --agent have no meaning without a RUN")
            return *_make(self.env, options), None
        agent, state, config = load_run(self.run, trusted=self.env)
        if not 0 <= self.agent < config["seeds"]:
            raise ValueError(
                f"--agent (={self.agent}) must be in 0 … {config['seeds'] - 1}: {self.run} has "
                f"{config['seeds']} seeds"
            )
        name = agent.env_name if self.env is None else self.env
        if name == agent.env_name:
            options = {**agent.env_options, **options}
        env, params = _make(name, options)
        return env, params, policy_of(agent, state, self.agent)


def _make(name: str, options: dict[str, Any]) -> "tuple[Environment, Any]":
    from agents import envs

    try:
        return envs.make(name, **options)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _is_brax(env: Any) -> bool:
    from agents import envs
    from agents.envs.wrappers.base import unwrapped

    return any(isinstance(one, envs.BraxEnvironment) for one in unwrapped(env))
