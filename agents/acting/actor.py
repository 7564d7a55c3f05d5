"""Acting: environments side by side, with episodes that begin and end."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from agents.acting.behavior import AbstractBehavior
from agents.acting.contract import check_answer, check_episode, check_first, check_next
from agents.mapped import for_all, mapped, side_by_side
from agents.networks import Inputs
from agents.networks.spaces import clipped
from agents.parallel import on_each_device
from zoo.parts.checks import check_counts


class ActorState(eqx.Module):
    """Where acting stands: everything has a leading axis over environments.

    **Attributes:**

    - `env_state`, `observation`: of the environments, before the next action.
    - `begin`: whether `observation` is the first of an episode.
    - `action`, `reward`: the previous ones.
    - `memory`: the memory's state, before `observation`.
    - `episode_return`, `episode_length`: of the running episodes so far.
    """

    env_state: Any
    observation: Any
    begin: Bool[Array, " env"]
    action: Array
    reward: Float[Array, " env"]
    memory: Any
    episode_return: Float[Array, " env"]
    episode_length: Int[Array, " env"]

    def inputs(self) -> Inputs:
        """Return what is seen next."""
        return Inputs(self.observation, self.action, self.reward, self.begin)


class Transition(eqx.Module):
    """One step of all environments; in a rollout every leaf has a leading time axis as well.

    **Attributes:**

    - `inputs`: what was seen, observations as the environment gave them.
    - `action`: what was done.
    - `memo`: what the behavior kept beside it.
    - `reward`, `terminated`, `truncated`: what came of it.
    - `last`: what the behavior made of the episode's last observation where the step truncated
      and did not terminate it, from the memory's state before the reset. Not to be read elsewhere:
      zeros, or what was found because an environment beside it, or a seed, needed it.
    - `episode_return`, `episode_length`: of the episode so far, this step included.
    """

    inputs: Inputs
    action: Array
    memo: Any
    reward: Float[Array, "..."]
    terminated: Bool[Array, "..."]
    truncated: Bool[Array, "..."]
    last: Any
    episode_return: Float[Array, "..."]
    episode_length: Int[Array, "..."]

    @property
    def done(self) -> Bool[Array, "..."]:
        """Whether the episode ended with this step."""
        return self.terminated | self.truncated


class Actor(eqx.Module):
    """Environments to act in, of one kind: a gymnax environment and its parameters."""

    env: Any = eqx.field(static=True)
    params: Any

    def reset(self, behavior: AbstractBehavior, envs: int, *, key: Array) -> ActorState:
        """Start `envs` environments, each at the beginning of an episode.

        **Raises:**

        `ValueError` for no environments; `ValueError` or `TypeError` where the environment does not
        return what it has to.
        """
        check_counts(1, envs=envs)
        check_episode(self.env, self.params)
        keys = jax.random.split(key, envs)
        reset = on_each_device(lambda _, keys: mapped(self.env.reset, (0, None))(keys, self.params))
        observation, env_state = reset((), keys)
        check_first(self.env, self.params, observation)
        space = self.env.action_space(self.params)
        action = jnp.zeros((envs, *space.shape), space.dtype)
        memory = side_by_side(behavior.init_state(), envs)
        return ActorState(
            env_state=env_state,
            observation=observation,
            begin=jnp.ones(envs, bool),
            action=action,
            reward=jnp.zeros(envs, jnp.float32),
            memory=memory,
            episode_return=jnp.zeros(envs, jnp.float32),
            episode_length=jnp.zeros(envs, jnp.int32),
        )

    def step(
        self, behavior: AbstractBehavior, state: ActorState, key: Array, *, greedy: bool = False
    ) -> tuple[ActorState, Transition]:
        """Take one action in every environment, the best, where there is one, or a random one.

        **Returns:**

        `(state, transition)`.
        """
        action_key, env_key = jax.random.split(key)
        action_key = None if greedy and behavior.has_best else action_key
        memory, decision = behavior(state.memory, state.inputs(), action_key)
        state, transition, final = self.advance(state, memory, decision.action, env_key)

        # Rare, and as dear as a step: what is made of last observations is found only where one is
        # needed. After a termination nothing follows, so that it needs none.
        def last_of(behavior: Any, memory: Any, final: Inputs, needed: Array) -> Any:
            return jax.lax.cond(
                for_all(jnp.any(needed)),
                lambda: behavior.at_end(memory, final),
                lambda: jax.tree.map(
                    lambda x: jnp.zeros(x.shape, x.dtype),
                    jax.eval_shape(behavior.at_end, memory, final),
                ),
            )

        needed = transition.truncated & ~transition.terminated
        last = on_each_device(last_of)(behavior, memory, final, needed)
        return state, dataclasses.replace(transition, memo=decision.memo, last=last)

    def advance(
        self, state: ActorState, memory: Any, action: Array, key: Array
    ) -> tuple[ActorState, Transition, Inputs]:
        """Take actions that are chosen already.

        **Arguments:**

        - `memory`: the memory's states after the present observation.
        - `action`: one for every environment.

        **Returns:**

        `(state, transition, following)`: a transition without `memo` and `last`; and what is seen
        after the step, where an episode ends its final observation, with `begin` nowhere.
        """
        inputs = state.inputs()
        action = action.astype(state.action.dtype)
        keys = jax.random.split(key, state.begin.shape[0])
        step = on_each_device(
            lambda _, *now: mapped(self.env.step, (0, 0, 0, None))(*now, self.params)
        )
        taken = clipped(self.env.action_space(self.params), action)
        answer = check_answer(self.env, step((), keys, state.env_state, taken))
        observation, env_state, reward, terminated, truncated, info = answer
        before, after = (state.observation, state.env_state), (observation, env_state)
        check_next(self.env, before, after, (reward, terminated, truncated))
        reward = reward.astype(jnp.float32)
        final = Inputs(
            info["final_observation"], action, reward, jnp.zeros(state.begin.shape, bool)
        )
        done = terminated | truncated
        transition = Transition(
            inputs=inputs,
            action=action,
            memo=None,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            last=None,
            episode_return=state.episode_return + reward,
            episode_length=state.episode_length + 1,
        )
        state = ActorState(
            env_state=env_state,
            observation=observation,
            begin=done,
            action=action,
            reward=reward,
            memory=memory,
            episode_return=jnp.where(done, 0, transition.episode_return),
            episode_length=jnp.where(done, 0, transition.episode_length),
        )
        return state, transition, final

    def collect(
        self,
        behavior: AbstractBehavior,
        state: ActorState,
        *,
        length: int,
        segment: int | None = None,
        key: Array,
    ) -> tuple[ActorState, Transition, Any]:
        """Act for `length` steps, in segments of a divisor of it; in one by default.

        **Returns:**

        `(state, rollout, memories)`: the rollout with leading axes `[length, env]`, and the
        memory's states at the segments' borders, the rollout's end included: `[length / segment +
        1, env]`.

        **Raises:**

        `ValueError` for a length or a segment of no steps, or a segment that is no divisor.
        """
        segment = length if segment is None else segment
        check_counts(1, length=length, segment=segment)
        if length % segment:
            raise ValueError(f"`length` (={length}) must be divisible by `segment` (={segment}).")
        keys = jax.random.split(key, length)
        keys = keys.reshape(length // segment, segment, *keys.shape[1:])
        behavior, to_cache, to_state = behavior.prepared()

        def one_segment(state, keys):
            start = to_state(state.memory)
            state, steps = jax.lax.scan(lambda s, k: self.step(behavior, s, k), state, keys)
            return state, (steps, start)

        state = dataclasses.replace(state, memory=to_cache(state.memory))
        state, (steps, starts) = jax.lax.scan(one_segment, state, keys)
        state = dataclasses.replace(state, memory=to_state(state.memory))
        rollout = jax.tree.map(lambda x: x.reshape(length, *x.shape[2:]), steps)
        memories = jax.tree.map(
            lambda x, end: jnp.concatenate([x, end[None]]), starts, state.memory
        )
        return state, rollout, memories


def episode_statistics(rollout: Transition) -> dict[str, Float[Array, ""]]:
    """Average over the episodes that ended in a rollout `[time, env]`.

    **Returns:**

    `return`, `length` (NaN where no episode ended) and the number of `episodes`.
    """
    count = jnp.sum(rollout.done)
    mean = lambda x: jnp.sum(jnp.where(rollout.done, x, 0)) / count  # noqa: E731
    return {
        "return": mean(rollout.episode_return),
        "length": mean(rollout.episode_length.astype(jnp.float32)),
        "episodes": count.astype(jnp.float32),
    }
