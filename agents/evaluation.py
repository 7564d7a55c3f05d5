"""Evaluation: whole episodes, with a memory that is carried and reset as in acting."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from agents.envs import episode_steps
from agents.rollout import Actor, across_seeds


def evaluate(
    actor: Actor,
    network: Any,
    *,
    episodes: int,
    greedy: bool = True,
    max_steps: int | None = None,
    key: Array,
) -> dict[str, Float[Array, "..."]]:
    """Play `episodes` whole episodes, all at once, one in each of as many environments.

    One episode each, so that short episodes are not counted more often than long ones.

    **Arguments:**

    - `actor`: the environment.
    - `network`: chooses the actions; a module with `memory` and `step`, such as
      `agents.ActorCritic`.
    - `episodes`: number of episodes.
    - `greedy`: take the most probable action; otherwise sample.
    - `max_steps`: where an episode is cut; the environment's own limit by default.
    - `key`: PRNG key.

    **Returns:**

    `returns` and `lengths`, each of shape `[episodes]`.

    **Raises:**

    `ValueError` when `episodes` is less than 1.
    """
    if episodes < 1:
        raise ValueError(f"`episodes` (={episodes}) must be at least 1.")
    limit = episode_steps(actor.env, actor.params) if max_steps is None else max_steps
    reset_key, key = jax.random.split(key)
    runner = actor.reset(network, episodes, key=reset_key)
    empty = jnp.zeros(episodes, jnp.float32), jnp.zeros(episodes, jnp.int32)

    def go_on(carry):
        time, _, finished, *_ = carry
        # One condition for all seeds, without which an environment on the host cannot take part.
        return (across_seeds(~jnp.all(finished)) > 0) & (time < limit)

    def step(carry):
        time, runner, finished, returns, lengths = carry
        runner, step = actor.step(network, runner, jax.random.fold_in(key, time), greedy=greedy)
        returns = jnp.where(finished, returns, step.episode_return)
        lengths = jnp.where(finished, lengths, step.episode_length)
        return time + 1, runner, finished | step.terminated | step.truncated, returns, lengths

    start = (jnp.int32(0), runner, jnp.zeros(episodes, bool), *empty)
    *_, returns, lengths = jax.lax.while_loop(go_on, step, start)
    return {"returns": returns, "lengths": lengths}
