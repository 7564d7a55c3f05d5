"""`python -m agents play`: watch an agent, or random actions, in an environment."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from gymnax.environments.environment import Environment
from jaxtyping import Array
from rich.console import Console
from rich.table import Table

from agents import envs
from agents.cli import Count, KeyValues, Switch, make_environment, parse_options
from agents.policy import Policy, policy_of
from agents.ppo import PPO
from agents.training import load_run


@dataclass(frozen=True)
class Play:
    """Play episodes and write them as a GIF, or as a page of HTML for a robot of brax."""

    out: Path
    """The file to write; it ends in .gif, or in .html for brax."""
    env: str | None = None
    """Name of the environment; with --checkpoint, the run's by default."""
    env_options: KeyValues = ()
    """An option of the environment; may be given several times."""
    checkpoint: Path | None = None
    """Folder of a run, whose trained agent acts; without it actions are random."""
    agent: Count = 0
    """Which of the run's seeds acts, counted from 0."""
    sample: Switch = False
    """Draw the agent's actions instead of taking the most probable ones."""
    episodes: Count = 1
    """Episodes to play."""
    steps: Count = 500
    """Steps at most, in all episodes together."""
    seed: int = 0
    """Root of the randomness."""
    fps: float | None = None
    """Frames per second of a GIF, from 0.1 to 50; 5 by default."""

    def __call__(self, console: Console) -> None:
        """Writes the film and prints return and length of each episode."""
        for name in ("episodes", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name} (={getattr(self, name)}) must be at least 1")
        env, params, policy = self._players()
        is_brax = _is_brax(env)
        ending = ".html" if is_brax else ".gif"
        if self.out.suffix.lower() != ending:
            raise ValueError(f"--out (={self.out}) must end in {ending} for {env.name}")
        if not self.out.parent.is_dir():
            raise ValueError(f"--out (={self.out}) must be in a folder that exists")
        if is_brax and self.fps is not None:
            raise ValueError(f"--fps has no meaning for {env.name}: its page has its own")
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
            envs.save_gif(shown, self.out, fps=5.0 if self.fps is None else self.fps)
        table = Table("episode", "return", "length", title=env.name, title_justify="left")
        for number, episode in enumerate(played, 1):
            cut = "" if episode.complete else f", cut off by --steps {self.steps}"
            table.add_row(str(number), f"{episode.total:.3f}", f"{episode.length}{cut}")
        console.print(table)
        console.print(f"film: {self.out}", soft_wrap=True, highlight=False)

    def _players(self) -> tuple[Environment, Any, Policy | None]:
        """The environment, its parameters, and who acts."""
        options = parse_options(self.env_options, "--env-options")
        if self.checkpoint is None:
            if self.env is None:
                raise ValueError("--env or --checkpoint must be given")
            if self.sample or self.agent:
                raise ValueError("--sample and --agent have no meaning without --checkpoint")
            return *make_environment(self.env, options), None
        algorithm, state, _ = load_run(self.checkpoint, PPO.from_dict)
        name = algorithm.env if self.env is None else self.env
        if name == algorithm.env:
            options = {**algorithm.env_options, **options}
        env, params = make_environment(name, options)
        theirs, their_params = algorithm.environment
        for what in ("observation_space", "action_space"):
            given = getattr(env, what)(params)
            trained = getattr(theirs, what)(their_params)
            if _key(given) != _key(trained):
                raise ValueError(
                    f"--env (={name}) has another {what} than {self.checkpoint} was trained with: "
                    f"{given!r} instead of {trained!r}"
                )
        return env, params, policy_of(state, self.agent)


class Episode(NamedTuple):
    """What an episode came to.

    **Attributes:**

    - `total`: its return, without discount.
    - `length`: its steps.
    - `complete`: whether it has ended.
    """

    total: float
    length: int
    complete: bool


def play(
    env: Environment,
    params: Any,
    policy: Policy | None,
    show: Callable[[Any, Any], None],
    *,
    episodes: int,
    steps: int,
    sample: bool = False,
    key: Array,
) -> list[Episode]:
    """Play episodes one after the other, and show every state.

    The last state of an episode is shown too, unless a wrapper or another package resets the
    environment itself and hides it.

    **Arguments:**

    - `env`: the environment.
    - `params`: its parameters.
    - `policy`: chooses the actions; random ones without it.
    - `show`: called with each state and its observation.
    - `episodes`: how many, at most.
    - `steps`: how many in all episodes together, at most.
    - `sample`: draw the policy's actions instead of taking the most probable ones.
    - `key`: PRNG key.

    **Returns:**

    The episodes; the last one is not complete if the steps did not suffice.
    """
    # Wrappers and environments of other packages have no step without a reset.
    resets_itself = type(env).step_env is Environment.step_env

    @eqx.filter_jit
    def advance(policy: Policy | None, carried: Any, seen: tuple, state: Any, key: Array) -> Any:
        key_action, key_step = jax.random.split(key)
        if policy is None:
            action = env.action_space(params).sample(key_action)
        else:
            drawn_with = key_action if sample else None
            carried, action = policy.act(carried, *seen, key=drawn_with)
        if resets_itself:
            observation, state, reward, *ends, _ = env.step(key_step, state, action, params)
        else:
            observation, state, reward, terminated, _ = env.step_env(
                key_step, state, action, params
            )
            ends = terminated, env.is_truncated(state, params)
        return carried, (observation, ends[0] | ends[1], reward), state

    played = []
    total, length = 0.0, 0
    key_reset, key = jax.random.split(key)
    observation, state = env.reset(key_reset, params)
    carried = None if policy is None else policy.init_state()
    seen = observation, jnp.bool_(True), jnp.float32(0)
    show(state, observation)
    for step in range(steps):
        key_step, key_reset = jax.random.split(jax.random.fold_in(key, step))
        carried, seen, state = advance(policy, carried, seen, state, key_step)
        total, length = total + float(seen[2]), length + 1
        ended = bool(seen[1])
        if not (ended and resets_itself):
            show(state, seen[0])
        if not ended:
            continue
        played.append(Episode(total, length, True))
        if len(played) == episodes:
            return played
        total, length = 0.0, 0
        if not resets_itself:
            observation, state = env.reset(key_reset, params)
            seen = observation, *seen[1:]
        show(state, seen[0])
    return [*played, Episode(total, length, False)] if length else played


def _is_brax(env: Any) -> bool:
    while env is not None and not isinstance(env, envs.BraxEnvironment):
        env = getattr(env, "env", None)
    return env is not None


def _key(space: Any) -> tuple:
    """What must be equal for a network to fit."""
    shape, n = getattr(space, "shape", None), getattr(space, "n", None)
    return type(space), shape, n, tuple(getattr(space, "nvec", ()))
