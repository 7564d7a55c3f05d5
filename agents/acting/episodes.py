"""Whole episodes, with a memory that is carried and reset as in acting; compiled, or not."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from gymnax.environments.environment import Environment
from jaxtyping import Array, Float

from agents.acting.actor import Actor
from agents.acting.policy import Policy
from agents.envs import episode_steps
from agents.envs.wrappers.base import check_end
from agents.mapped import for_all
from zoo.annotations import Count, checked
from zoo.parts.checks import check_key


@checked
def evaluate(
    actor: Actor,
    policy: Policy,
    *,
    episodes: Count,
    greedy: bool = True,
    max_steps: Count | None = None,
    key: Array,
) -> dict[str, Float[Array, "..."]]:
    """Play `episodes` whole episodes, all at once, one in each of as many environments.

    One episode each, so that short episodes are not counted more often than long ones.

    **Arguments:**

    - `greedy`: take the best action; otherwise draw it.
    - `max_steps`: where an episode is cut; the environment's own limit by default.

    **Returns:**

    `returns` and `lengths`, each of shape `[episodes]`.

    **Raises:**

    `ValueError` or `TypeError` for an argument that breaks its rule, such as no `episodes`, a
    policy of other spaces, or no `max_steps` in an environment without a time limit.
    """
    check_key(key)
    policy.check_spaces(actor.env, actor.params)
    if max_steps is None:
        check_end(actor.env)
    limit = episode_steps(actor.env, actor.params) if max_steps is None else max_steps
    policy = policy.prepared()
    reset_key, key = jax.random.split(key)
    state = actor.reset(policy.behavior, episodes, key=reset_key)
    empty = jnp.zeros(episodes, jnp.float32), jnp.zeros(episodes, jnp.int32)

    def go_on(carry):
        time, _, finished, *_ = carry
        # One condition for all seeds, without which an environment on the host cannot take part.
        return for_all(~jnp.all(finished)) & (time < limit)

    def step(carry):
        time, state, finished, returns, lengths = carry
        step_key = jax.random.fold_in(key, time)
        state, step = actor.step(policy.behavior, state, step_key, greedy=greedy)
        # The environment goes on with another episode: what has ended is not written to again.
        returns = jnp.where(finished, returns, step.episode_return)
        lengths = jnp.where(finished, lengths, step.episode_length)
        return time + 1, state, finished | step.done, returns, lengths

    start = (jnp.int32(0), state, jnp.zeros(episodes, bool), *empty)
    *_, returns, lengths = jax.lax.while_loop(go_on, step, start)
    return {"returns": returns, "lengths": lengths}


class Episode(NamedTuple):
    """What an episode came to: its return without discount, its steps, and whether it has ended."""

    total: float
    length: int
    complete: bool


@checked
def play(
    env: Environment,
    params: Any,
    policy: Policy | None,
    show: Callable[[Any, Any], None],
    *,
    episodes: Count,
    steps: Count,
    sample: bool = False,
    key: Array,
) -> list[Episode]:
    """Play episodes one after the other on the host, and show every state.

    The last state of an episode is shown too, unless a wrapper or another package resets the
    environment itself and hides it.

    **Arguments:**

    - `env`, `params`: the environment.
    - `policy`: chooses the actions; random ones without it.
    - `show`: called with each state and its observation.
    - `episodes`, `steps`: how many at most, the latter in all episodes together.
    - `sample`: draw the policy's actions instead of taking the best ones, where it has such.

    **Returns:**

    The episodes; the last one is not complete if the steps did not suffice.

    **Raises:**

    `ValueError` or `TypeError` for an argument that breaks its rule, such as a policy of other
    spaces.
    """
    check_key(key)
    if policy is not None:
        policy.check_spaces(env, params)
    # Wrappers and environments of other packages have no step without a reset.
    resets_itself = type(env).step_env is Environment.step_env

    @eqx.filter_jit
    def advance(policy: Policy | None, carried: Any, seen: tuple, state: Any, key: Array) -> Any:
        key_action, key_step = jax.random.split(key)
        if policy is None:
            action = env.action_space(params).sample(key_action)
        else:
            drawn_with = key_action if sample or not policy.behavior.has_best else None
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
    policy = None if policy is None else policy.prepared()
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
