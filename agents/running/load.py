"""What a run has trained, from its folder."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
from jaxtyping import Array, Int

from agents.acting import Policy
from agents.agent import AbstractAgent
from agents.algorithms import agent_class
from agents.envs import resolve
from agents.envs.registry import GYMNASIUM
from agents.running.checkpoint import load, read_header, written_by
from agents.running.errors import CheckpointError, OtherStateError
from agents.running.folder import CHECKPOINT
from agents.running.programs import init_seeds, shapes
from agents.settings import from_plain
from zoo.annotations import Count, Seed, checked, fitted
from zoo.parts.checks import shown

_CONFIG = {
    "algorithm": str,
    "agent": dict,
    "seeds": Count,
    "seed": Seed,
    "evaluate_every": int,
    "evaluation_episodes": int,
    "log_every": int,
}


def load_run(
    folder: str | Path, *, env: Any = None, trusted: str | None = None
) -> tuple[AbstractAgent, Any, dict]:
    """Load what a run has trained, from its folder.

    **Arguments:**

    - `env`: the environment, or a pair with its parameters, where the run was given an object
      instead of a name; or its name again, where that is of a module to import.
    - `trusted`: a name of an environment for which a module may be imported, if the run has it.

    **Returns:**

    The agent, its state with a leading axis over seeds, and the run's configuration.

    **Raises:**

    `CheckpointError` if there is no checkpoint, a damaged one, or one of a run that this program
    does not know; also if the environment has to be given.
    """
    path = Path(folder) / CHECKPOINT
    if Path(folder).is_file():
        raise CheckpointError(f"{folder} is a file, and the folder of a run is expected.")
    header = read_header(path)
    try:
        config = _known(header.config)
        agent = _agent_of(config, env, trusted)
    except (ValueError, TypeError) as error:
        if env is not None:
            if "`env`" in str(error):
                raise  # no fault of the file's
            resolve(env)  # which says so where there is no such environment
        raise CheckpointError(f"{path}{written_by(header)}: {error}") from error
    like = shapes(jax.eval_shape(init_seeds(agent, config["seed"], config["seeds"])))
    try:
        return agent, load(path, like, config=config)[0], config
    except OtherStateError as error:
        if env is None:
            raise
        raise CheckpointError(
            f"{error}\n`env` (={agent.env_name}) must be what was trained in, whose state is in "
            "the checkpoint; in another of its spaces `agents.acting.evaluate` plays a policy."
        ) from error


def _known(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration, where it has what those of `train` have, of the kinds that they have."""
    if config.keys() != _CONFIG.keys():
        raise ValueError(f"its configuration has {list(config)}, and {list(_CONFIG)} is expected.")
    for name, kind in _CONFIG.items():
        fitted(name, config[name], kind)
    return config


def _agent_of(config: dict[str, Any], env: Any, trusted: str | None) -> AbstractAgent:
    settings, kind = dict(config["agent"]), agent_class(config["algorithm"])
    if env is None and (trusted is None or trusted != settings.get("env")):
        _refuse_imports_and_files(settings.get("env"), settings.get("env_options"))
    elif env is not None and env != settings.get("env"):
        settings |= {"env": env, "env_options": {}}
    return from_plain(kind, settings)


def _refuse_imports_and_files(env: Any, options: Any) -> None:
    """Refuse an environment that gymnasium would import a module for, whatever that does, or open a
    file."""
    if not isinstance(env, str):
        resolve(env)  # of an object there is a description only: refused with what to do
    if not env.startswith(GYMNASIUM):
        return
    module, named, _ = env.removeprefix(GYMNASIUM).partition(":")
    there = not named or sys.modules.get(module) is not None
    if not there or any(":" in text for text in _texts(options)):
        raise ValueError(
            f"it names an environment of a module ({shown(env)}), which loading does not import: "
            "if you trust it, import the module first (--import on the command line), or give it "
            "as `env`."
        )
    for text in _texts(options):
        if text.startswith(("~", ".")) or {"/", "\\"} & set(text):  # a model of MuJoCo's, say
            raise ValueError(
                f"it names a file ({shown(text)}) in an option of {shown(env)}, which loading does "
                "not open: if you trust it, give the environment as `env`."
            )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


@checked
def load_policy(folder: str | Path, *, seed: int = 0, env: Any = None) -> Policy:
    """Load the policy that a run has trained.

    **Arguments:**

    - `folder`: the run's folder, as given to `agents.train`.
    - `seed`: which of the run's seeds, counted from 0.
    - `env`: see `load_run`.

    **Raises:**

    `CheckpointError`, see `load_run`; `ValueError` for a seed that the run does not have.
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
    return agent.policy(_pick(state.learner, seed))


@jax.jit  # one program, which an index for each array would not be
def _pick(learner: Any, seed: Int[Array, ""] | int) -> Any:
    return jax.tree.map(lambda x: x[seed], learner)
