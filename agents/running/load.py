"""What a run has trained, from its folder."""

from pathlib import Path
from typing import Any

import jax

from agents.acting import Policy
from agents.agent import AbstractAgent
from agents.algorithms import agent_class
from agents.envs import resolve
from agents.running.checkpoint import CheckpointError, load, read_header
from agents.running.folder import CHECKPOINT
from agents.running.programs import init_seeds, shapes
from agents.settings import from_plain
from zoo.annotations import checked


def load_run(folder: str | Path, *, env: Any = None) -> tuple[AbstractAgent, Any, dict]:
    """Load what a run has trained, from its folder.

    **Arguments:**

    - `env`: the environment, or a pair with its parameters, where the run was given an object
      instead of a name; or its name again, where that is of a module to import.

    **Returns:**

    The agent, its state with a leading axis over seeds, and the run's configuration.

    **Raises:**

    `CheckpointError` if there is no checkpoint, or a damaged one; `ValueError` if the environment
    has to be given.
    """
    path = Path(folder) / CHECKPOINT
    config = read_header(path).config
    settings = dict(config["agent"])
    kind = agent_class(config["algorithm"])
    given = settings["env"] if env is None else env
    if not isinstance(given, str):
        resolve(given)  # of an object there is a description only: refused with what to do
    if env is None and ":" in given:
        # gymnasium would import the module, and run whatever a stranger's file names.
        raise CheckpointError(
            f"{path} names an environment of a module ({given!r}), which loading does not import: "
            "give it as `env` if you trust it."
        )
    if env not in (None, settings["env"]):
        settings |= {"env": env, "env_options": {}}
    agent = from_plain(kind, settings)
    like = shapes(jax.eval_shape(init_seeds(agent, config["seed"], config["seeds"])))
    return agent, load(path, like, config=config)[0], config


@checked
def load_policy(folder: str | Path, *, seed: int = 0, env: Any = None) -> Policy:
    """Load the policy that a run has trained.

    **Arguments:**

    - `folder`: the run's folder, as given to `agents.train`.
    - `seed`: which of the run's seeds, counted from 0.
    - `env`: see `load_run`.

    **Raises:**

    `CheckpointError` without a sound checkpoint; `ValueError` for a seed that the run does not
    have.
    """
    agent, state, _ = load_run(folder, env=env)
    return policy_of(agent, state, seed)


def policy_of(agent: AbstractAgent, state: Any, seed: int = 0) -> Policy:
    """Return the policy of one seed, counted from 0, of what `load_run` gives.

    **Raises:**

    `ValueError` for a seed that the state does not have.
    """
    seeds = state.iteration.shape[0]
    if not 0 <= seed < seeds:
        raise ValueError(f"`seed` (={seed}) must be in 0 … {seeds - 1}: the run has {seeds} seeds.")
    return agent.policy(jax.tree.map(lambda x: x[seed], state.learner))
